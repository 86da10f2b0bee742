"""The spelling of search boxes into an expression: `niger AND uranium -yellowcake "of mass"`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final, Literal, NoReturn

from tamis.errors import ExpressionError, InputError, QueryError, SchemaError
from tamis.language.ast import And, Attribute, Condition, Matches, Not, Or
from tamis.language.check import check
from tamis.language.infer import infer_schema
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.names import parse_path
from tamis.language.parser import parse
from tamis.language.printer import print_expression
from tamis.text import DEFAULT_ANALYSER, get_analyser

_TOKEN: Final = re.compile(
    r'\s*(?:(?P<phrase>"[^"]*")|(?P<mark>[()]|[-+](?=[^\s)+-]))|(?P<word>[^\s()"]+))'
)
_OPERATORS: Final = ("AND", "OR", "NOT")
_ALLOWED: Final = 'words, "a phrase", -excluded, AND, OR, NOT and parentheses'
_SHOWN: Final = 60  # characters of what was given


def search_query(query: str, attributes: str | Sequence[str]) -> str:
    """The expression that a search-box query means over the attributes.

    Words side by side must all be found, each in any of the attributes. AND, OR and NOT in capitals
    join them, OR being the loosest; `-word` and `-"some words"` exclude, `+` changes nothing, and
    parentheses group. Parts without a word are left out. Raises an `InputError` for a query that
    has nothing to look for, or more than the limits allow.
    """
    if not isinstance(query, str):
        raise InputError(f"the query is {_show(query)}; a string is expected", hint=_ALLOWED)
    fields = _read_fields(attributes)
    try:
        expression = print_expression(_SearchBox(query, fields).parse())
    except QueryError as error:
        raise error.located(query) from None
    try:
        condition = parse(expression)
        check(condition, infer_schema([condition]), text=expression)
    except ExpressionError as error:
        raise InputError(
            f"the query {_show(query)} over {_show(attributes)} makes no expression: "
            f"{error.message}",
            hint=error.hint,
        ) from None
    return expression


def _read_fields(attributes: Any) -> tuple[Attribute, ...]:
    is_one = isinstance(attributes, str) or not isinstance(attributes, Sequence)
    names = [attributes] if is_one else list(attributes)
    try:
        if names and all(isinstance(name, str) for name in names):
            return tuple(Attribute(parse_path(name)) for name in names)
    except SchemaError:  # an empty name
        pass
    raise InputError(
        f"the attributes to search in are {_show(attributes)}",
        hint='the name of an attribute, or a list of names: "body", ("title", "body")',
    )


def _show(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"


def _excludes(condition: Condition) -> bool:
    """Whether it says only what to leave out."""
    parts = condition.operands if isinstance(condition, And) else (condition,)
    return all(isinstance(part, Not) for part in parts)


class _SearchBox:
    def __init__(self, query: str, fields: tuple[Attribute, ...]) -> None:
        self.query = query
        self.fields = fields
        self.tokens: list[tuple[str, str, int]] = []  # kind, text, place
        place = 0
        while found := _TOKEN.match(query, place):
            kind = found.lastgroup or ""
            text = found[kind]
            is_operator = kind == "word" and text in _OPERATORS
            self.tokens.append(
                (text if is_operator or kind == "mark" else kind, text, found.start(kind))
            )
            place = found.end()
        if rest := query[place:].lstrip():
            self.refuse("a quote is not closed", (len(query) - len(rest), len(query)))
        self.tokens.append(("", "", len(query)))
        self.at = 0
        self.depth = 0

    @property
    def kind(self) -> str:
        """The kind of the token looked at; empty at the end."""
        return self.tokens[self.at][0]

    def parse(self) -> Condition:
        """The whole query."""
        condition = self.either()
        if self.kind:
            self.refuse_token("nothing is open to be closed")
        if condition is None:
            self.refuse("the query says nothing to look for: it has no word", (0, len(self.query)))
        return condition

    def either(self) -> Condition | None:
        """Groups joined by OR; None where no word is."""
        groups = [self.group()]
        while self.kind == "OR":
            self.at += 1
            groups.append(self.group())
        operands = tuple(group for group in groups if group is not None)
        return Or(operands) if len(operands) > 1 else next(iter(operands), None)

    def group(self) -> Condition | None:
        """All that stands side by side or is joined by AND: plain words in one query."""
        start = self.at
        words: list[str] = []
        others: list[Condition | None] = []
        while self.kind not in ("", "OR", ")"):
            if self.kind == "AND":
                self.at += 1
                if self.at == start + 1 or self.kind in ("", "OR", ")", "AND"):
                    self.refuse_token("AND joins two words")
            elif self.kind == "word":
                words.append(self.take())
            else:
                others.append(self.other())
        found = [one for one in (self.find("all", " ".join(words)), *others) if one is not None]
        excluded = [one for one in found if _excludes(one)]
        wanted = [one for one in found if not _excludes(one)]
        # Alone in parentheses, what is wanted may stand outside: a AND (NOT b).
        is_enclosed = start > 0 and self.tokens[start - 1][0] == "(" and self.kind == ")"
        if not wanted and (self.at == start or (excluded and not is_enclosed)):
            what = "only what to leave out" if excluded else "nothing to look for"
            begin, end = self.tokens[start][2], self.tokens[self.at][2]
            self.refuse(f"the query says {what}", (begin, max(end, begin)))
        operands = (*wanted, *excluded)
        return And(operands) if len(operands) > 1 else next(iter(operands), None)

    def find(self, how: Literal["all", "phrase"], text: str) -> Condition | None:
        """The search for a text; None where it has no word."""
        has_words = bool(get_analyser(DEFAULT_ANALYSER).words(text))
        return Matches(how, self.fields, text) if has_words else None

    def other(self) -> Condition | None:
        """A phrase, something in parentheses, or what is excluded."""
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
        """The text of the token, which is passed."""
        self.at += 1
        return self.tokens[self.at - 1][1]

    def refuse_token(self, message: str) -> NoReturn:
        """Refuse at the token looked at."""
        _, text, place = self.tokens[self.at]
        self.refuse(message, (place, place + len(text)))

    def refuse(self, message: str, span: tuple[int, int]) -> NoReturn:
        """Refuse a part of the query."""
        raise QueryError("bad-query", message, span=span, hint=_ALLOWED)
