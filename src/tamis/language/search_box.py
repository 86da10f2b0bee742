"""The spelling of search boxes into an expression: `niger AND uranium -yellowcake "of mass"`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn

from tamis.errors import ParseError
from tamis.language.ast import And, Attribute, Condition, Matches, Not, Or
from tamis.language.limits import DEFAULT_LIMITS
from tamis.language.names import parse_path
from tamis.language.printer import print_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN: Final = re.compile(
    r'\s*(?:(?P<phrase>"[^"]*")|(?P<mark>[()]|[-+](?=[^\s)+-]))|(?P<word>[^\s()"]+))'
)
_OPERATORS: Final = ("AND", "OR", "NOT")


def search_query(query: str, attributes: str | Sequence[str]) -> str:
    """The expression that a search-box query means over the attributes.

    Words side by side must all be found, each in any of the attributes. AND, OR and NOT in capitals
    join them, OR being the loosest; `-word` and `-"some words"` exclude, `+` changes nothing, and
    parentheses group. Raises a `ParseError` for a query that has nothing to look for.
    """
    names = [attributes] if isinstance(attributes, str) else list(attributes)
    fields = tuple(Attribute(parse_path(name)) for name in names)
    try:
        return print_expression(_SearchBox(query, fields).parse())
    except ParseError as error:
        raise error.located(query) from None


class _SearchBox:
    def __init__(self, query: str, fields: tuple[Attribute, ...]) -> None:
        if not fields:
            raise ParseError("bad-query", "a query needs attributes to search in", span=(0, 0))
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
        if query[place:].strip():
            self.refuse("a quote is not closed", (place, len(query)))
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
        return condition

    def either(self) -> Condition:
        """Groups joined by OR."""
        operands = [self.group()]
        while self.kind == "OR":
            self.at += 1
            operands.append(self.group())
        return Or(tuple(operands)) if len(operands) > 1 else operands[0]

    def group(self) -> Condition:
        """All that stands side by side or is joined by AND: plain words in one query."""
        start = self.at
        words: list[str] = []
        others: list[Condition] = []
        while self.kind not in ("", "OR", ")"):
            if self.kind == "AND":
                self.at += 1
                if self.at == start + 1 or self.kind in ("", "OR", ")", "AND"):
                    self.refuse_token("AND joins two words")
            elif self.kind == "word":
                words.append(self.take())
            else:
                others.append(self.other())
        found: list[Condition] = [Matches("all", self.fields, " ".join(words))] if words else []
        wanted = [*found, *(one for one in others if not isinstance(one, Not))]
        if not wanted:
            what = "only what to leave out" if others else "nothing to look for"
            begin, end = self.tokens[start][2], self.tokens[self.at][2]
            self.refuse(f"the query says {what}", (begin, max(end, begin)))
        operands = (*wanted, *(one for one in others if isinstance(one, Not)))
        return And(operands) if len(operands) > 1 else operands[0]

    def other(self) -> Condition:
        """A phrase, something in parentheses, or what is excluded."""
        kind = self.kind
        if kind == "phrase":
            return Matches("phrase", self.fields, self.take()[1:-1])
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
        operand = Matches("all", self.fields, self.take()) if self.kind == "word" else None
        if operand is None and self.kind not in ("phrase", "("):
            self.refuse_token(f"a word is expected after {kind}")
        condition = operand or self.other()
        return condition if kind == "+" else Not(condition)

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
        hint = 'words, "a phrase", -excluded, AND, OR, NOT and parentheses'
        raise ParseError("bad-query", message, span=span, hint=hint)
