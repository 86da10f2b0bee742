"""Query strings in Lucene's syntax: `title:(oil OR gas) AND -draft AND size:[1 TO 5}`.

As in Lucene, AND and OR do not have different precedence: each word is required, optional or
prohibited. AND makes both of its sides required; optional ones count only if none is required.
"""

from __future__ import annotations

import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.errors import RowError
from tamis.importers.conditions import ALWAYS, NEVER, All, Not, Wish
from tamis.importers.conditions import Any as AnyOf
from tamis.importers.elasticsearch.errors import bad
from tamis.importers.elasticsearch.terms import count_all, count_one, split_wildcards
from tamis.importers.model import not_expressible

if TYPE_CHECKING:
    from tamis.importers.elasticsearch.terms import Terms

_TOKEN: Final = re.compile(
    r"""\s*(?:
        (?P<operator>AND\b|OR\b|NOT\b|&&|\|\||!(?=\S))
      | (?P<sign>[+-](?=\S))
      | (?P<open>\()
      | (?P<close>\))
      | (?P<field>(?:[^\s:()\[\]{}"/^~\\+!<>=-]|\\.)(?:[^\s:()\[\]{}"/^~\\]|\\.)*)\s*:
      | (?P<phrase>"(?:[^"\\]|\\.)*")
      | (?P<regex>/(?:[^/\\]|\\.)*/)
      | (?P<range>[\[{](?:[^\]}"]|"[^"]*")*[\]}])
      | (?P<compare>[<>]=?)
      | (?P<boost>\^[0-9.]+)
      | (?P<fuzzy>~[0-9.]*)
      | (?P<word>(?:[^\s()\[\]{}"^~\\:]|\\.)+)
    )""",
    re.VERBOSE | re.DOTALL,
)
_WILDCARD: Final = re.compile(r"(?<!\\)(?:\\\\)*[*?]")
_RANGE: Final = re.compile(r'([\[{])\s*("[^"]*"|\S+)\s+TO\s+("[^"]*"|\S+?)\s*([\]}])', re.DOTALL)
_BOUNDS: Final = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}


_NUMBER: Final = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")


def find_numbers(text: str) -> list[str]:
    """The fields of a query string that are compared with numbers."""
    try:
        tokens = _split(text)
    except RowError:
        return []  # the error is reported when the query is read
    found: list[str] = []
    fields, current = [""], ""  # of the groups around a token, and of the token itself
    for at, token in enumerate(tokens):
        if token.kind == "open":
            fields.append(current)
        elif token.kind == "close" and len(fields) > 1:
            fields.pop()
        following = "".join(own.text for own in tokens[at + 1 : at + 3] if own.kind != "operator")
        is_compared = token.kind == "compare" and _NUMBER.match(_plain(following))
        if current and (is_compared or _has_numbers(token)):
            found.append(current.removesuffix(".keyword"))
        if token.kind != "compare":
            current = _plain(token.text) if token.kind == "field" else fields[-1]
    return found


def _has_numbers(token: _Token) -> bool:
    """Whether it is a range of numbers."""
    found = _RANGE.fullmatch(token.text) if token.kind == "range" else None
    return found is not None and any(_NUMBER.fullmatch(own) for own in (found[2], found[3]))


class _Occurs(Enum):
    REQUIRED = "+"
    OPTIONAL = ""
    PROHIBITED = "-"


class _Clause(NamedTuple):
    occurs: _Occurs
    wish: Wish


class _Token(NamedTuple):
    kind: str
    text: str


def parse_query_string(
    text: str, terms: Terms, fields: list[str], operator: str, analyser: str | None = None
) -> Wish:
    """The condition of a query string; `fields` are searched where it names none."""
    parser = _Parser(_split(text), terms, operator.upper() == "AND", analyser)
    wish = parser.clauses(fields)
    if parser.peek() is not None:
        raise bad(f"the query string {text!r} has a ) without a (")
    return NEVER if wish is None else wish


def _split(text: str) -> list[_Token]:
    tokens, position = [], 0
    stripped = text.rstrip()
    while position < len(stripped):
        found = _TOKEN.match(stripped, position)
        if found is None or found.end() == position:
            raise bad(f"the query string {text!r} cannot be read at character {position + 1}")
        tokens.append(_Token(str(found.lastgroup), found[str(found.lastgroup)]))
        position = found.end()
    return tokens


class _Parser:
    """A condition that is None has no words, as `the` in English: its clause does not count."""

    def __init__(
        self, tokens: list[_Token], terms: Terms, is_and: bool, analyser: str | None
    ) -> None:
        self._tokens = tokens
        self._at = 0
        self._terms = terms
        self._is_and = is_and
        self._analyser = analyser

    def peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def take(self) -> _Token:
        token = self.peek()
        if token is None:
            raise bad("the query string ends where a word is expected")
        self._at += 1
        return token

    def clauses(self, fields: list[str]) -> Wish | None:
        """The clauses up to the end or a closing parenthesis."""
        found: list[_Clause] = []
        start = self._at
        while (token := self.peek()) is not None and token.kind != "close":
            operator = ""
            if token.kind == "operator" and token.text in ("AND", "OR", "&&", "||"):
                operator = "AND" if self.take().text in ("AND", "&&") else "OR"
                if self._at == start + 1:
                    raise bad(f"the query string begins with {token.text}")
            self._add(found, operator, self._sign(), fields)
        if self._at == start:
            raise bad("a part of the query string is empty")
        return _join(found)

    def _sign(self) -> _Occurs | None:
        sign = None
        while (token := self.peek()) is not None and (
            token.kind == "sign" or (token.kind == "operator" and token.text in ("NOT", "!"))
        ):
            self._at += 1
            sign = _Occurs.REQUIRED if token.text == "+" else _Occurs.PROHIBITED
        return sign

    def _add(
        self, found: list[_Clause], operator: str, sign: _Occurs | None, fields: list[str]
    ) -> None:
        """Add a clause as Lucene's parser does, which may change the one before it."""
        wish = self._operand(fields)
        if found and found[-1].occurs is not _Occurs.PROHIBITED:
            if operator == "AND":
                found[-1] = found[-1]._replace(occurs=_Occurs.REQUIRED)
            elif operator == "OR" and self._is_and:
                found[-1] = found[-1]._replace(occurs=_Occurs.OPTIONAL)
        is_required = operator == "AND" or (self._is_and and operator != "OR")
        default = _Occurs.REQUIRED if is_required else _Occurs.OPTIONAL
        if wish is None:
            return
        if self._is_and and operator == "OR" and sign is _Occurs.REQUIRED:
            sign = None  # as in Lucene, where OR outweighs a plus sign then
        found.append(_Clause(sign or default, wish))

    def _operand(self, fields: list[str]) -> Wish | None:
        token = self.take()
        if token.kind == "field":
            return self._field(_plain(token.text))
        if token.kind == "open":
            wish = self.clauses(fields)
            if self.take().kind != "close":
                raise bad("the query string has a ( without a )")
        else:
            wish = self._value(token, fields)
        while (following := self.peek()) is not None and following.kind == "boost":
            self._at += 1  # a boost changes scores alone
        return wish

    def _field(self, field: str) -> Wish | None:
        """What follows the name of a field."""
        following = self.peek()
        if field == "_exists_":
            return self._terms.exists(_plain(self.take().text))
        if field == "*" and following is not None and following.text == "*":
            self._at += 1
            return ALWAYS
        if following is not None and following.kind == "sign":
            raise bad(
                f"the query string has {following.text} where the value of {field} is expected",
                hint=f"a sign is written before the field, -{field}:x, and that of a negative "
                f"number after a backslash, {field}:\\-5",
            )
        return self._operand([field])

    def _value(self, token: _Token, fields: list[str]) -> Wish | None:
        if not fields or "*" in fields:
            raise not_expressible(
                f"{token.text} is searched for in all fields; an expression names the attributes "
                "that it tests",
                hint="name default_field or fields in the query",
            )
        following = self.peek()
        if following is not None and following.kind == "fuzzy":
            raise not_expressible(f"{token.text}{following.text}: similar or near words")
        compared = self._bound() if token.kind == "compare" else ""
        if self._is_and and len(fields) > 1:
            self._refuse_pairs(token)
        text = _text_of(token)
        found = [own for own in fields if text is None or self._terms.has_words(own, text)]
        tests = tuple(self._test(field, token, compared) for field in found)
        return AnyOf(tests) if tests else None

    def _bound(self) -> str:
        """What follows <, <=, > or >=."""
        sign = self.peek()
        if sign is not None and sign.kind == "sign":
            self._at += 1
            return sign.text + _plain(self.take().text)
        return _plain(self.take().text)

    def _refuse_pairs(self, token: _Token) -> None:
        """Refuse words that Elasticsearch looks for together, all in the same field."""
        following = self.peek()
        if (
            following is not None
            and token.kind == following.kind == "word"
            and None not in (_text_of(token), _text_of(following))
        ):
            raise not_expressible(
                f"{token.text} {following.text}: with default_operator and, all words are searched "
                "for in the same one of several fields",
                hint="write AND between words that may be in different fields",
            )

    def _test(self, field: str, token: _Token, compared: str) -> Wish:
        terms = self._terms
        text = _text_of(token)
        if text is not None:
            terms.check_analyser("query_string", field, self._analyser)
        match token.kind:
            case "phrase" if text is not None:
                return terms.phrase(field, text)
            case "regex":
                return terms.regex(field, token.text[1:-1])
            case "range":
                return terms.range(field, _read_range(token.text))
            case "compare":
                return terms.range(field, {_BOUNDS[token.text]: _number(compared)})
            case "word":
                pattern = list(split_wildcards(token.text))
                if token.text == "*":
                    return terms.exists(field)
                if text is None:
                    return terms.word_pattern(field, pattern)
                return terms.words(field, text, count_all if self._is_and else count_one)
        raise bad(f"the query string has {token.text!r} where a word is expected")


def _text_of(token: _Token) -> str | None:
    """The text in which words are looked for; None for patterns, ranges and the like."""
    if token.kind == "phrase":
        return _plain(token.text[1:-1])
    is_plain = token.kind == "word" and not _WILDCARD.search(token.text)
    return _plain(token.text) if is_plain else None


def _join(found: list[_Clause]) -> Wish | None:
    """The condition of clauses; prohibited ones alone exclude from all events."""
    if not found:
        return None
    required = [own.wish for own in found if own.occurs is _Occurs.REQUIRED]
    optional = [own.wish for own in found if own.occurs is _Occurs.OPTIONAL]
    prohibited = [Not(own.wish) for own in found if own.occurs is _Occurs.PROHIBITED]
    if not required and optional:
        required = [AnyOf(tuple(optional))]
    return All((*required, *prohibited))


def _read_range(text: str) -> dict[str, Any]:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise bad(f"{text} is not a range; such as [1 TO 5}} is expected")
    low, high = (own.strip('"') for own in (found[2], found[3]))
    bounds: dict[str, Any] = {}
    if low != "*":
        bounds["gte" if found[1] == "[" else "gt"] = _number(low)
    if high != "*":
        bounds["lte" if found[4] == "]" else "lt"] = _number(high)
    return bounds


def _number(text: str) -> Any:
    """A bound: a number if it is spelled like one."""
    if re.fullmatch(r"-?[0-9]+", text):
        return int(text)
    return float(text) if re.fullmatch(r"-?[0-9]+\.[0-9]+", text) else text


def _plain(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
