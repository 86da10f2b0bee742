"""Converts the query of a search box to an expression: `niger AND uranium -yellowcake "of
mass"`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, Literal, NoReturn

from tamis.errors import ExpressionError, InputError, QueryError, SchemaError, warn
from tamis.language.ast import And, Attribute, Condition, IsNull, Matches, Not, Or
from tamis.language.check import check
from tamis.language.infer import infer_schema
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.names import parse_path, split_listed
from tamis.language.parser import parse
from tamis.language.printer import print_expression
from tamis.language.search_notices import Token, find_notices
from tamis.text import DEFAULT_ANALYSER, get_analyser

_TOKEN: Final = re.compile(
    r'\s*(?:(?P<phrase>"[^"]*")|(?P<mark>[()]|[-+](?=[^\s)+-]))|(?P<word>[^\s()"]+))'
)
_OPERATORS: Final = ("AND", "OR", "NOT")
_ENDS: Final = (*_OPERATORS, ")")
_RANGE: Final = re.compile(r"[\[{]\S+\s+TO\s+\S+[\]}]")  # [1990 TO 1995]
_ALLOWED: Final = 'words, "a phrase", -excluded, AND, OR, NOT and parentheses'
_SHOWN: Final = 60  # characters of the query
# Characters that word processors substitute for " and -.
_TYPED: Final = str.maketrans(dict.fromkeys("“”„‟«»", '"') | dict.fromkeys("‐‑‒–—−", "-"))

_AS_IT_IS: Final = "in quotes it is searched for literally"
# Syntax of other search boxes that this one does not support: read as words, it would search for
# something else than its author means. Each has a pattern, an error and a hint.
_WILDCARD: Final = (
    re.compile(r"\w\*|\*\w|\w\?\w"),
    "wildcards are not supported",
    "write the words out, as in (child OR children)",
)
_ADDRESS: Final = re.compile(r"[a-z]+://", re.IGNORECASE)  # a ? in it is not a wildcard
_NEAR: Final = "proximity and fuzzy words are not supported"
_A_PHRASE: Final = 'write a phrase, "back pain", or all the words'
# N3 and W3 may also be words: they are operators only between two others.
_BETWEEN: Final = (
    re.compile(r"[NW](?:[1-9]|1\d|20)$|/(?:\d+|[sp])$"),
    _NEAR,
    f"{_A_PHRASE}; {_AS_IT_IS}",
)
# A phrase in single quotes; an apostrophe inside a word does not close it.
_SINGLE_QUOTED: Final = re.compile(
    r"(?:[‘‚]|'(?=\w))(?:((?:[^'’‘\"]|['’](?=\w))*)['’‘](?!\w)|([^\s()\"]*))"
)
_RANGES: Final = "ranges and comparisons are not supported"
_A_CONDITION: Final = f"join the expression with a condition: … AND year >= 1990; {_AS_IT_IS}"
_FOREIGN: Final = (
    _WILDCARD,
    (
        re.compile(
            r"(?:O?NEAR/?\d*|ADJ\d*|(?i:o?near/\d+|pre/\d+|within/\d+|[nw]/\d+))$|.+~[\d.]*$"
        ),
        _NEAR,
        _A_PHRASE,
    ),
    (re.compile(r".*\d\.\.|\.\.\d|.*[<>]=?-?\d"), _RANGES, _A_CONDITION),
    (re.compile(r"!+\w|[-+]{2,}\w|(?:AND|BUT)NOT$"), "not an operator", "write -word, or NOT word"),
    (re.compile(r"[%~]\w"), "not an operator", f"leave it out; {_AS_IT_IS}"),
    (re.compile(r".*\|"), "| is not an operator", "write OR in capitals"),
    (
        re.compile(r".+\[[a-z]|\[(?:tiab|ti|ab|mesh|mh|tw|majr|title|pt|au|all)\b", re.IGNORECASE),
        "tags of fields are not supported",
        "name the attributes to search in: search_query(query, attributes)",
    ),
    (
        re.compile(r"[A-Za-z_][\w.]*:(?!//)."),
        "fields are not supported",
        f"search each attribute by its own query and join the expressions; {_AS_IT_IS}",
    ),
    (re.compile(r".*\w\^\d"), "weights are not supported", "leave them out"),
)


def search_query(query: str, attributes: str | Sequence[str], *, missing: str | None = None) -> str:
    """The expression that a search-box query means over the attributes.

    Adjacent words must all be found, each in any of the attributes. AND, OR and NOT in capitals
    join them, where OR binds loosest; `-word` and `-"some words"` exclude, `+` changes nothing, and
    parentheses group. Parts without a word are left out. Raises an `InputError` for a query that
    has no word to search for, or exceeds the limits, and for syntax of other search boxes:
    wildcards, proximity, fields, ranges. A `TamisWarning` reports operators that are not in
    capitals, which are read as words, a dash before a blank, which excludes nothing, and words that
    are reduced to one letter, such as C++.

    `missing="empty"` treats a missing attribute as an empty text, which contains no excluded word;
    `missing="undefined"` leaves such a query undefined, as NOT of an expression is. The default is
    "empty" for several attributes and "undefined" for one.
    """
    if not isinstance(query, str):
        raise InputError(f"the query is {_show(query)}; a string is expected", hint=_ALLOWED)
    fields = _read_fields(attributes)
    if missing not in (None, "empty", "undefined"):
        raise InputError(f"missing is {_show(missing)}; allowed: empty, undefined")
    takes_for_empty = missing == "empty" or (missing is None and len(fields) > 1)
    try:
        box = _SearchBox(query, fields)
        condition = box.parse()
    except QueryError as error:
        raise error.located(query) from None
    if takes_for_empty:
        condition = _with_empty(condition, is_negated=False)
    expression = print_expression(condition)
    try:
        parsed = parse(expression)
        check(parsed, infer_schema([parsed]), text=expression)
    except ExpressionError as error:
        raise InputError(
            f"the query {_show(query)} over {_show(attributes)} makes no expression: "
            f"{error.message}",
            hint=error.hint,
        ) from None
    if notices := find_notices(box.tokens, fields):
        warn(f"the query {_show(query)}: {'; '.join(notices)}")
    return expression


def _read_fields(attributes: Any) -> tuple[Attribute, ...]:
    is_one = isinstance(attributes, str) or not isinstance(attributes, Sequence)
    names = [attributes] if is_one else list(attributes)
    try:
        if names and all(isinstance(name, str) for name in names):
            _refuse_listed(names)
            _report_blanks(names)
            return tuple(Attribute(parse_path(name)) for name in names)
    except SchemaError:  # an empty name
        pass
    raise InputError(
        f"the attributes to search in are {_show(attributes)}",
        hint='the name of an attribute, or a list of names: "body", ("title", "body")',
    )


def _refuse_listed(names: Sequence[str]) -> None:
    """Raise an error for several names in one string, which would be one attribute that no event
    has.
    """
    for name in names:
        listed = [one.strip() for one in split_listed(name)]
        if len(listed) > 1:
            raise InputError(
                f"the attributes to search in are one text, {_show(name)}",
                hint=f"write a list of names: {_show(tuple(listed))}; a name with a comma in it is "
                "written in backticks",
            )


def _report_blanks(names: Sequence[str]) -> None:
    """Warn about an attribute that is probably a query."""
    for name in names:
        if " " in name.strip() and "`" not in name:
            warn(
                f"the attribute to search in is {_show(name)}, which has blanks; the query comes "
                "first: search_query(query, attributes)"
            )


def _show(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _excludes(condition: Condition) -> bool:
    """Whether the query only excludes words."""
    parts = condition.operands if isinstance(condition, And) else (condition,)
    return all(isinstance(part, Not) for part in parts)


# ── a missing attribute as an empty text ────────────────────────────────────────────────────


def _with_empty(condition: Condition, *, is_negated: bool) -> Condition:
    """The condition, or its negation, where a missing attribute has no words.

    A word found in one attribute is found even if others are missing; only an exclusion must handle
    missing attributes.
    """
    match condition:
        case Not():
            return _with_empty(condition.operand, is_negated=not is_negated)
        case And() | Or():
            operands = [_with_empty(one, is_negated=is_negated) for one in condition.operands]
            return _join(And if isinstance(condition, And) != is_negated else Or, operands)
        case Matches() if is_negated:
            return _not_found(condition)
        case _:
            return condition


def _not_found(search: Matches) -> Condition:
    texts = [search.query] if search.mode == "phrase" else search.query.split()
    return _join(Or, [_lacks(search, text) for text in texts])


def _lacks(search: Matches, text: str) -> Condition:
    """True if no attribute contains the text, or if the present attributes together do not."""
    fields = search.attributes
    is_one_word = len(get_analyser(DEFAULT_ANALYSER).words(text)) == 1
    if is_one_word or search.mode == "phrase" or len(fields) == 1:
        either = [(IsNull(field), Not(Matches(search.mode, (field,), text))) for field in fields]
        return _join(And, [Or(both) for both in either])
    # A word such as wi-fi is several words, and each attribute may contain some: the exclusion is
    # expanded over every choice of present attributes.
    choices = []
    for n_there in range(len(fields), -1, -1):
        for there in combinations(fields, n_there):
            absent = [IsNull(field) for field in fields if field not in there]
            lacking = [Not(Matches(search.mode, there, text))] if there else []
            choices.append(_join(And, [*absent, *lacking]))
    return _join(Or, choices)


def _join(kind: type[And | Or], operands: Sequence[Condition]) -> Condition:
    """The operands joined, with nested operands of the same kind lifted."""
    flat: list[Condition] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    return kind(tuple(flat)) if len(flat) > 1 else flat[0]


# ── reading ─────────────────────────────────────────────────────────────────────────────────


class _SearchBox:
    def __init__(self, query: str, fields: tuple[Attribute, ...]) -> None:
        # One character for one: positions stay the same.
        self.query = query = query.translate(_TYPED)
        self.fields = fields
        self.tokens: list[Token] = []
        place = 0
        while found := _TOKEN.match(query, place):
            kind = found.lastgroup or ""
            text = found[kind]
            is_operator = kind == "word" and text in _OPERATORS
            self._refuse_foreign(kind, text, found.start(kind))
            self.tokens.append(
                (text if is_operator or kind == "mark" else kind, text, found.start(kind))
            )
            place = found.end()
        if rest := query[place:].lstrip():
            self.refuse("a quote is not closed", (len(query) - len(rest), len(query)))
        self.tokens.append(("", "", len(query)))
        self.at = 0
        self.depth = 0

    def _refuse_foreign(self, kind: str, text: str, place: int) -> None:
        """Raise an error for syntax that has a meaning elsewhere and would be read as words
        here.
        """
        if kind == "phrase":
            foreign: tuple[Any, ...] = (_WILDCARD,)
            begin = text
        else:
            foreign = _FOREIGN if kind == "word" else ()
            # Text directly before or after a phrase belongs to it: "a b"~5, title:"a b".
            begin = self.query[place - 1] + text if self.query[place - 1 : place] == '"' else text
            begin += self.query[place + len(text) : place + len(text) + 1].strip()
        for looks, what, hint in foreign:
            is_found = looks.search if looks is _WILDCARD[0] else looks.match
            if is_found(begin) and not _ADDRESS.match(begin):
                self.refuse(what, (place, place + len(text)), hint)
        looks, what, hint = _BETWEEN
        if kind == "word" and looks.match(text) and self._is_between(place + len(text)):
            self.refuse(what, (place, place + len(text)), hint)
        if kind == "word" and _RANGE.match(self.query, place):
            self.refuse(_RANGES, (place, place + len(text)), _A_CONDITION)
        if kind == "word" and (quoted := _SINGLE_QUOTED.match(self.query, place)):
            hint = f'write "{(quoted[1] or quoted[2]).strip()}"'
            self.refuse("a phrase is in double quotes", quoted.span(), hint)

    def _is_between(self, end: int) -> bool:
        """Whether a word that ends there has something to look for on both sides."""
        has_before = bool(self.tokens) and self.tokens[-1][0] in ("word", "phrase", ")")
        following = _TOKEN.match(self.query, end)
        return has_before and following is not None and following[0].strip() not in _ENDS

    @property
    def kind(self) -> str:
        """The kind of the current token; empty at the end."""
        return self.tokens[self.at][0]

    def parse(self) -> Condition:
        """The whole query."""
        condition = self.either()
        if self.kind:
            self.refuse_token("a parenthesis is closed that was not opened")
        if condition is None:
            self.refuse("the query has no word to search for", (0, len(self.query)))
        return condition

    def either(self) -> Condition | None:
        """Groups joined by OR; None if there is no word."""
        start = self.at
        groups = [self.group()] if self.kind != "OR" else []
        while self.kind == "OR":
            if self.at == start or self.tokens[self.at + 1][0] in ("", "OR", ")"):
                self.refuse_token("OR joins two words")
            self.at += 1
            groups.append(self.group())
        operands = tuple(group for group in groups if group is not None)
        return Or(operands) if len(operands) > 1 else next(iter(operands), None)

    def group(self) -> Condition | None:
        """All adjacent parts and those joined by AND: plain words in one query."""
        start = self.at
        words: list[str] = []
        others: list[Condition | None] = []
        while self.kind not in ("", "OR", ")"):
            if self.kind == "AND":
                self.at += 1
                if self.at == start + 1 or self.kind in ("", "OR", ")", "AND"):
                    self.refuse_token("AND joins two words")
            elif self.kind == "+" and self.tokens[self.at + 1][0] == "word":
                self.at += 1  # joined with the other words: alone, it could be a stop word
            elif self.kind == "word":
                words.append(self.take())
            else:
                others.append(self.other())
        found = [one for one in (self.find("all", " ".join(words)), *others) if one is not None]
        excluded = [one for one in found if _excludes(one)]
        wanted = [one for one in found if not _excludes(one)]
        # A single exclusion in parentheses may have its positive part outside: a AND (NOT b).
        is_enclosed = start > 0 and self.tokens[start - 1][0] == "(" and self.kind == ")"
        if not wanted and (self.at == start or (excluded and not is_enclosed)):
            what = "only excludes words" if excluded else "has no word to search for"
            begin, end = self.tokens[start][2], self.tokens[self.at][2]
            self.refuse(f"the query {what}", (begin, max(end, begin)))
        operands = (*wanted, *excluded)
        return And(operands) if len(operands) > 1 else next(iter(operands), None)

    def find(self, how: Literal["all", "phrase"], text: str) -> Condition | None:
        """The search for a text; None if it has no word."""
        has_words = bool(get_analyser(DEFAULT_ANALYSER).words(text))
        return Matches(how, self.fields, text) if has_words else None

    def other(self) -> Condition | None:
        """A phrase, a group in parentheses, or an exclusion."""
        kind = self.kind
        if kind == "phrase":
            return self.find("phrase", self.take()[1:-1])
        self.at += 1
        if kind == "(":
            self.depth += 1
            if 2 * self.depth > DEFAULT_LIMITS.depth:
                self.refuse_token("parentheses are nested too deep")
            inside = self.either()
            if self.kind != ")":
                self.refuse_token("a parenthesis is not closed")
            self.at += 1
            self.depth -= 1
            return inside
        if self.kind not in ("word", "phrase", "("):
            self.refuse_token(f"a word is expected after {kind}")
        condition = self.find("all", self.take()) if self.kind == "word" else self.other()
        return condition if kind == "+" or condition is None else Not(condition)

    def take(self) -> str:
        """The text of the current token, which is consumed."""
        self.at += 1
        return self.tokens[self.at - 1][1]

    def refuse_token(self, message: str) -> NoReturn:
        """Raise an error at the current token."""
        _, text, place = self.tokens[self.at]
        self.refuse(message, (place, place + len(text)))

    def refuse(self, message: str, span: tuple[int, int], hint: str = _ALLOWED) -> NoReturn:
        """Raise an error for a part of the query."""
        raise QueryError("bad-query", message, span=span, hint=hint)
