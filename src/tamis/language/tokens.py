"""Splits text into tokens: one regular expression, and a specific error for each invalid
character.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.errors import LimitError, ParseError
from tamis.language.comparators import COMPARATORS, Comparator
from tamis.language.foreign_spellings import (
    SUBQUERY,
    hint_at_bar,
    hint_at_bracket,
    hint_at_colon,
    hint_at_double_quote,
    hint_at_exists,
    hint_at_tilde,
)
from tamis.language.foreign_values import (
    CURRENCIES,
    hint_at_address,
    hint_at_currency,
    hint_at_wildcard,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.limits import Limits

# A token's kind is its text for operators, the upper-case word for keywords, else one of:
WORD, QUOTED, STRING, RAW_STRING, NUMBER, VARIABLE, REFERENCE, END = (
    "word",
    "quoted name",
    "string",
    "raw string",
    "number",
    "variable",
    "reference",
    "end",
)

KEYWORDS: Final = frozenset(
    "AND OR NOT XOR XNOR IN IS NULL BETWEEN LIKE ILIKE RLIKE TRUE FALSE".split()
)
ARROW: Final = "->"  # in a lambda
_WORD_KINDS: Final = {word: word for word in KEYWORDS}  # the usual spelling, found at once
_KEYWORD_LENGTH: Final = max(map(len, KEYWORDS))

# Words that begin unsupported SQL: as attribute names they need backticks.
REFUSED_WORDS: Final = {
    "SELECT": "subqueries are not supported",
    "EXISTS": "EXISTS is not supported, except for arrays: exists(tags, t -> t = 'a')",
    "CASE": "CASE is not supported; combine conditions with AND, OR and NOT",
    "CAST": "CAST is followed by a value and a type in parentheses: cast(a AS DOUBLE)",
    "REGEXP": "REGEXP is not supported; write RLIKE",
    "INTERVAL": "INTERVAL is not supported; write the date or timestamp itself",
}

_OTHER_SPELLINGS: Final = {
    "==": Comparator.EQUAL.value,
    "!=": Comparator.NOT_EQUAL.value,
}

_OPERATORS: Final = (*COMPARATORS, *_OTHER_SPELLINGS, ARROW)

# Possessive throughout: no character is examined twice.
_TOKEN = re.compile(
    r"""[ \t\r\n]*+(?:
      (?P<raw>[rR]'[^']*+')
    | (?P<word>[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<number>(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?
                 (?:BD|[LDFlfd])?(?![A-Za-z0-9_.]))
    | (?P<operator>"""
    + "|".join(map(re.escape, sorted(_OPERATORS, key=len, reverse=True)))
    + r"""|(?!--)(?!/\*)[(),.+*/%-])
    | (?P<string>'(?:[^'\\]++|\\.|'')*+')
    | (?P<quoted>`(?:[^`]++|``)++`)
    | (?P<variable>\?[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<reference>@[A-Za-z_][A-Za-z0-9_]*+)
    | (?P<refused>[^ \t\r\n])
    )""",
    re.VERBOSE | re.DOTALL,
)
_WORD_GROUP: Final = _TOKEN.groupindex["word"]
_OPERATOR_GROUP: Final = _TOKEN.groupindex["operator"]
_REFUSED_GROUP: Final = _TOKEN.groupindex["refused"]
_GROUP_KINDS: Final = ["", RAW_STRING, WORD, NUMBER, "", STRING, QUOTED, VARIABLE, REFERENCE]
# What comes after a refused word that is a function.
_FUNCTION_WORDS: Final = {
    "CAST": re.compile(r"[ \t\r\n]*\("),
    "EXISTS": re.compile(rf"(?!{SUBQUERY})[ \t\r\n]*\(", re.IGNORECASE),
}
_SURROGATE = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")  # allowed in strings, as in Spark
_SMART_QUOTES: Final = "‘’‚‛“”„‟′″«»"


class Tokens(NamedTuple):
    """Parallel arrays of tokens, ended by three of kind END so that lookahead needs no check."""

    kinds: list[str]
    spans: list[tuple[int, int]]


def tokenize(text: str, limits: Limits) -> Tokens:
    """All tokens of `text`; raises `ParseError` or `LimitError` at the first error."""
    if len(text) > limits.text_length:
        raise LimitError(
            "text-too-long",
            f"the expression has {len(text)} characters; at most {limits.text_length}",
            span=(limits.text_length, len(text)),
            hint="write many tests of one attribute as a list, LIKE ANY ('…', '…') or IN (…); the "
            "limit is text_length of tamis.Limits, --limit-text-length in the shell",
        )
    if found := _SURROGATE.search(text):
        raise _refuse_unprintable(found)
    kinds: list[str] = []
    spans: list[tuple[int, int]] = []
    add_kind, add_span = kinds.append, spans.append
    span = (0, 0)
    for found in _TOKEN.finditer(text):
        group = found.lastindex
        span = found.span(group)  # type: ignore[arg-type]
        if group == _WORD_GROUP:
            word = found[group]
            kind = _WORD_KINDS.get(word) or _kind_of_word(text, word, *span)
        elif group == _OPERATOR_GROUP:
            spelling = found[group]
            kind = _OTHER_SPELLINGS.get(spelling, spelling)
        elif group == _REFUSED_GROUP:
            raise _refuse_character(text, span[0])
        else:
            kind = _GROUP_KINDS[group]  # type: ignore[index]
            if kind == QUOTED and (control := _CONTROL.search(text, *span)):
                raise _refuse_unprintable(control)
        add_kind(kind)
        add_span(span)
    for _ in range(3):
        add_kind(END)
        add_span((span[1], span[1]))
    return Tokens(kinds, spans)


def _kind_of_word(text: str, word: str, start: int, end: int) -> str:
    if len(word) > _KEYWORD_LENGTH + 1:
        return WORD
    upper = word.upper()
    if upper in KEYWORDS:
        return upper
    is_function = upper in _FUNCTION_WORDS and _FUNCTION_WORDS[upper].match(text, end)
    if upper in REFUSED_WORDS and not is_function:
        raise refuse_word(text, start, end)
    return WORD


def refuse_word(text: str, start: int, end: int) -> ParseError:
    """The error of one of the `REFUSED_WORDS`."""
    word = text[start:end]
    is_exists = word.upper() == "EXISTS"
    hint = hint_at_exists(text, start, end) if is_exists else None
    return ParseError(
        "unsupported-syntax",
        REFUSED_WORDS[word.upper()],
        span=(start, end),
        hint=hint or f"an attribute of that name is written `{word}`",
    )


def _refuse_unprintable(found: re.Match[str]) -> ParseError:
    code_point = ord(found[0])
    what = "lone surrogate" if code_point >= 0xD800 else "control character"
    return ParseError(
        "bad-character",
        f"{what} U+{code_point:04X} is not allowed",
        span=found.span(),
        hint="only strings may contain it, best as a visible escape: '\\u0007'"
        if code_point < 0xD800
        else None,
    )


_REFUSALS: Final = (  # start of the remaining text, code, message, hint
    ("'", "unterminated-string", "the string is not closed", "write a quote inside a string as ''"),
    ("`", "bad-name", "the quoted name is empty or not closed", None),
    ('"', "bad-character", "double quotes are not used here", "write strings in quotes: 'text'"),
    ("--", "unsupported-syntax", "comments are not allowed in an expression", None),
    ("/*", "unsupported-syntax", "comments are not allowed in an expression", None),
    (";", "unsupported-syntax", "one expression only, without ';'", None),
    ("!", "bad-character", "'!' is not an operator here", "write NOT"),
    ("&", "bad-character", "'&' is not an operator here", "write AND"),
    ("|", "bad-character", "'|' is not an operator here", "write OR"),
    ("^", "bad-character", "'^' is not an operator here", "write xor(p, q)"),
    (":", "bad-character", "':' is not an operator here", None),
    ("~", "bad-character", "'~' is not an operator here", "write RLIKE"),
    ("[", "bad-character", "'[' is not used here", None),
    ("@", "bad-name", "a reference needs the name of a definition, such as @office_hours", None),
    ("?", "bad-name", "a variable needs a name, such as ?x", None),
    ("${", "unsupported-syntax", "variable substitution is not supported", None),
)

_HINTS: Final[dict[str, Callable[[str, int], str | None]]] = {
    '"': hint_at_double_quote,
    "|": hint_at_bar,
    ":": hint_at_colon,
    "~": hint_at_tilde,
    "[": hint_at_bracket,
}


def _refuse_character(text: str, position: int) -> ParseError:
    for opening, code, message, usual_hint in _REFUSALS:
        if text.startswith(opening, position):
            to_the_end = code in ("unterminated-string", "bad-name")
            end = len(text) if to_the_end else position + len(opening)
            hint = _HINTS[opening](text, position) if opening in _HINTS else usual_hint
            return ParseError(code, message, span=(position, end), hint=hint)
    if control := _CONTROL.match(text, position):
        return _refuse_unprintable(control)
    character = text[position]
    if character in "0123456789.":
        wrong = re.compile(r"[\w.]+").match(text, position)
        end = wrong.end() if wrong else position + 1
        message = f"'{text[position:end]}' is not a number"
        hint = hint_at_address(text, position)
        return ParseError("bad-number", message, span=(position, end), hint=hint)
    if character in _SMART_QUOTES:
        message, hint = f"typographic quote {character}", "use straight quotes: 'text'"
    elif character.isspace():
        message, hint = f"unusual white space (U+{ord(character):04X})", "use a plain blank"
    else:
        message = f"unexpected character {character!r} (U+{ord(character):04X})"
        hint = "write names with such characters in backticks" if character > "~" else None
        if character == "\\":
            hint = hint_at_wildcard(text, position)
        elif character in CURRENCIES:
            hint = hint_at_currency(text, position)
    return ParseError("bad-character", message, span=(position, position + 1), hint=hint)
