r"""Lint of strings that would be patterns in other languages, or elsewhere in this one.

Such strings are valid and are compared literally, so only those that are very rarely meant
literally are reported. A wildcard counts at the beginning or the end of a string next to a letter
or a digit, or as a step of a path. Plain strings also contain `*` and `%`: `5%`, `%20`, `%TEMP%\x`,
`%Y-%m`, `****1234`, `*/5 * * * *`.
"""

from __future__ import annotations

import re
from ipaddress import ip_network
from typing import TYPE_CHECKING, Final

from tamis.language.ast import (
    ArraysOverlap,
    Attribute,
    Comparison,
    Condition,
    In,
    InNetwork,
    Like,
    Literal,
    Matches,
    Not,
    Rlike,
    Span,
    StringTest,
)
from tamis.language.comparators import Comparator
from tamis.language.names import print_path
from tamis.language.patterns import Wild, parse_like
from tamis.language.printer import print_expression
from tamis.language.types import STRING
from tamis.logic.findings import Finding
from tamis.text import get_analyser

if TYPE_CHECKING:
    from collections.abc import Iterator

_STAR: Final = re.compile(r"\*(?![*/\s])|.*(?:[^*\s]\*\Z|[\\/]\*[\\/])", re.DOTALL)
_PERCENT: Final = re.compile(r"%(?![%\s])|.*[^%\s\\]%\Z", re.DOTALL)
# A percentage, a URL escape, a variable of a Windows path, a placeholder of a format.
_NO_WILDCARD: Final = re.compile(
    r"[-+~<>=≤≥]*\d+(?:[.,]\d+)?%\Z|%(?:\d[0-9A-Fa-f]|[A-Fa-f]\d)(?!.*%\Z)|%\w+%[\\/]"
    r"|%[A-Za-z](?![\w%])",
    re.DOTALL,
)
_REGEX: Final = re.compile(r"\.\*|\^.*(?:\$|\.\*)\Z", re.DOTALL)
_SLASHES: Final = re.compile(r"/((?:[^/\\]|\\.)+)/([gimsuxy]{0,4})", re.DOTALL)
_WORD_WILDCARD: Final = re.compile(r"(?<!\S)%\w\S*|\S*[^\W\d]%(?!\S)")
_WHOLE_WILDCARD: Final = re.compile(r"(?<!\S)\*\w\S*|\S*[\w-]\*(?!\S)")
_QUERY_SYNTAX: Final = re.compile(r'(?<!\S)(?:AND|OR|NOT)(?!\S)|(?<!\S)-(?=[^\W\d])|"')
# Attributes whose names contain these have networks as values.
_NETWORKS: Final = ("net", "cidr", "prefix", "range", "block", "route", "mask")


def lint_literals(leaf: Condition) -> Iterator[Finding]:
    """Findings for patterns, networks and search operators that this leaf compares literally."""
    if isinstance(leaf, Matches):
        yield from _lint_query(leaf)
    tested = _tested(leaf)
    if tested is None:
        return
    for text, span in _texts(leaf):
        if why := _find_pattern(leaf, text):
            yield Finding("literal-pattern", why, span, hint=_write_pattern(leaf, tested, text))
        elif hint := _write_network(leaf, tested, text):
            message = f"'{text}' is compared as text, not as a network"
            yield Finding("literal-network", message, span, hint=hint)


def _tested(leaf: Condition) -> Attribute | None:
    match leaf:
        case Comparison() if leaf.operator.is_equality:
            sides = (leaf.left, leaf.right)
            return next((side for side in sides if isinstance(side, Attribute)), None)
        case In() | ArraysOverlap() | StringTest() | Like() | Rlike():
            return leaf.operand
        case _:
            return None


def _texts(leaf: Condition) -> Iterator[tuple[str, Span]]:
    """The strings that the attribute is compared with, and their spans."""
    match leaf:
        case StringTest():
            yield leaf.text, leaf.span
        case Like() | Rlike():
            yield leaf.pattern, leaf.span
        case Comparison() | In() | ArraysOverlap():
            values = (leaf.left, leaf.right) if isinstance(leaf, Comparison) else leaf.values
            for value in values:
                if isinstance(value, Literal) and value.type == STRING:
                    yield value.value, value.span if value.span != (0, 0) else leaf.span
        case _:
            pass


# ── patterns ────────────────────────────────────────────────────────────────────────────────


def _find_pattern(leaf: Condition, text: str) -> str | None:
    """Why the string is suspicious, if it looks like a pattern that the leaf does not support."""
    if isinstance(leaf, Rlike):
        return "RLIKE takes the slashes as plain characters" if _unslash(text) else None
    if not any(map(str.isalnum, text)):
        return None
    if isinstance(leaf, Like) and Wild.ANY_TEXT in parse_like(leaf.pattern, leaf.escape):
        return None
    taken = f"which {_name(leaf)} takes as"
    if _REGEX.match(text):
        return f"'{text}' looks like a regular expression, {taken} plain text"
    if _STAR.match(text):
        return f"'{text}' has *, {taken} a plain character"
    if not isinstance(leaf, Like) and _PERCENT.match(text) and not _NO_WILDCARD.match(text):
        return f"'{text}' has %, {taken} a plain character"
    return None


def _name(leaf: Condition) -> str:
    match leaf:
        case Comparison():
            return str(leaf.operator)
        case Like():
            return "ILIKE" if leaf.ignores_case else "LIKE"
        case StringTest() | ArraysOverlap():
            return f"{leaf.function}()"
        case _:
            return "IN"


def _unslash(text: str) -> str | None:
    """The text between slashes, as in Perl and JavaScript; None for a path such as /api/."""
    found = _SLASHES.fullmatch(text)
    if found is None or not (found[2] or found[1][0] == "^" or found[1][-1] == "$"):
        return None
    flags = "".join(flag for flag in "ims" if flag in found[2])
    return (f"(?{flags})" if flags else "") + found[1].replace(r"\/", "/")


def _write_pattern(leaf: Condition, tested: Attribute, text: str) -> str:
    """The suggested spelling for the pattern."""
    if isinstance(leaf, ArraysOverlap):
        return "members of arrays are compared as a whole: patterns are not supported"
    is_negated = _is_negated(leaf)
    if isinstance(leaf, Rlike):
        test: Condition = Rlike(tested, _unslash(text) or text, is_negated)
    elif _REGEX.match(text):
        test = Rlike(tested, _search(text), is_negated)
    elif isinstance(leaf, StringTest):
        test = _widen(leaf, text)
    else:
        ignores_case = isinstance(leaf, Like) and leaf.ignores_case
        test = Like(tested, _to_like(text), ignores_case=ignores_case, negated=is_negated)
    return _write(leaf, test)


def _is_negated(leaf: Condition) -> bool:
    if isinstance(leaf, Comparison):
        return leaf.operator is Comparator.NOT_EQUAL
    return isinstance(leaf, In | Like | Rlike) and leaf.negated


def _write(leaf: Condition, test: Condition) -> str:
    written = f"write {print_expression(test)}"
    if not isinstance(leaf, In):
        return written
    return f"{written} for it, joined by {'AND' if leaf.negated else 'OR'}"


def _search(regex: str) -> str:
    """The regular expression of a whole string as one that is searched for."""
    begin = "" if regex.startswith((".*", "^")) else "^"
    end = "" if regex.endswith((".*", "$")) else "$"
    return begin + (regex.removeprefix(".*").removesuffix(".*") or ".*") + end


def _widen(leaf: StringTest, text: str) -> Condition:
    """The test for the string without its outer wildcards; a pattern if one is inside."""
    inner = text.strip("*%")
    opens = leaf.function != "startswith" or text != text.lstrip("*%")
    closes = leaf.function != "endswith" or text != text.rstrip("*%")
    if "*" in inner or "%" in inner:
        return Like(leaf.operand, "%" * opens + _to_like(inner) + "%" * closes)
    function = "contains" if opens and closes else leaf.function
    return StringTest(function, leaf.operand, inner)


def _to_like(text: str) -> str:
    r"""The LIKE pattern; if `*` is the wildcard, `_` and `%` are escaped."""
    pattern = text.replace("\\", r"\\")
    if "*" in text:
        pattern = re.sub(r"([%_])", r"\\\1", pattern).replace("*", "%")
    return pattern


# ── networks ────────────────────────────────────────────────────────────────────────────────


def _write_network(leaf: Condition, tested: Attribute, text: str) -> str | None:
    """The suggested spelling for a network such as 10.0.0.0/8; None for other strings."""
    name = tested.path[-1].lower()
    if "/" not in text or any(part in name for part in _NETWORKS):
        return None
    try:
        network = ip_network(text)
    except ValueError:
        return None
    if network.prefixlen == network.max_prefixlen:
        return None
    name_in_schema = print_path(tested.path)
    if isinstance(leaf, ArraysOverlap):
        test = InNetwork(Attribute(("x",)), (text,))
        written = f"exists({name_in_schema}, x -> {print_expression(test)})"
        return f"declare {name_in_schema} as ARRAY<IP> and write {written}"
    networks = leaf.values if isinstance(leaf, In) else ()
    listed = tuple(own.value for own in networks if isinstance(own.value, str)) or (text,)
    test = InNetwork(tested, listed)
    written = print_expression(Not(test) if _is_negated(leaf) else test)
    return f"declare {name_in_schema} as IP and write {written}"


# ── queries of words ────────────────────────────────────────────────────────────────────────


def _lint_query(leaf: Matches) -> Iterator[Finding]:
    function = f"{leaf.function}()"
    if found := _WORD_WILDCARD.search(leaf.query):
        message = f"'{found[0]}' has no wildcard: {function} looks for whole words"
        hint = f"write {found[0].replace('%', '*')}: * stands for any characters in a word"
        yield Finding("literal-pattern", message, leaf.span, hint=hint)
    type_ = leaf.attributes[0].type
    is_whole = type_ is not None and get_analyser(type_.analyser).takes_whole
    if is_whole and (found := _WHOLE_WILDCARD.search(leaf.query)):
        message = f"'{found[0]}' has no wildcard: the analyser keyword compares whole texts"
        tested = Like(leaf.attributes[0], leaf.query.replace("*", "%"), "\\")
        hint = f"write {print_expression(tested)}"
        yield Finding("literal-pattern", message, leaf.span, hint=hint)
    if leaf.mode != "phrase" and (found := _QUERY_SYNTAX.search(leaf.query)):
        what = {"-": "a word after - is not excluded", '"': "quotes make no phrase"}.get(
            found[0], f"{found[0]} is a word to look for, not an operator"
        )
        yield Finding("literal-operator", f"{what}: {function} takes words only", leaf.span, _JOIN)


_JOIN: Final = (
    "join tests: matches(a, 'x') OR matches_phrase(a, 'y z') AND NOT matches(a, 'w'); "
    "tamis.search_query makes them of such a query"
)
