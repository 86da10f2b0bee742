"""Splits the query of a search box into tokens, and refuses syntax that it does not support."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn

from tamis.errors import QueryError
from tamis.language.names import print_path
from tamis.language.search_foreign import (
    BEFORE,
    FOREIGN,
    LONE,
    RANGE,
    SINGLE_QUOTED,
    find_field,
)
from tamis.text import DEFAULT_ANALYSER
from tamis.text.queries import describe_bad_wildcard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.ast import Attribute
    from tamis.language.search_notices import Token

# Kinds of tokens; operators and marks are their own kind.
WORD, PHRASE, NEAR, FIELD, END = "word", "phrase", "near", "field", ""
ALLOWED: Final = (
    'words, wom?n, child*, "a phrase", "near words"~3, a NEAR/3 b, field:word, -excluded, AND, OR '
    "(or |), NOT and parentheses"
)
_OPERATORS: Final = ("AND", "OR", "NOT")
_ENDS: Final = (*_OPERATORS, ")", "|")
# Characters that word processors substitute for " and -.
_TYPED: Final = str.maketrans(dict.fromkeys("“”„‟«»‹›", '"') | dict.fromkeys("‐‑‒–—−", "-"))
_PLAIN_NAME: Final = re.compile(r"[\w.]+")


def refuse(message: str, span: tuple[int, int], hint: str = ALLOWED) -> NoReturn:
    """Raise an error for a part of the query."""
    raise QueryError("bad-query", message, span=span, hint=hint)


def field_names(fields: Sequence[Attribute]) -> dict[str, Attribute]:
    """The attributes that a query can name, by name in lower case."""
    names = {print_path(field.path).lower(): field for field in fields}
    return {name: field for name, field in names.items() if _PLAIN_NAME.fullmatch(name)}


def split_tokens(query: str, fields: Sequence[Attribute]) -> list[Token]:
    """The tokens of a query over these attributes; the last one is its end."""
    return _Splitter(query, fields).tokens


class _Splitter:
    def __init__(self, query: str, fields: Sequence[Attribute]) -> None:
        # One character for one: positions stay the same.
        self.query = query = query.translate(_TYPED)
        self.names = list(field_names(fields))
        self.pattern = _token_pattern(self.names)
        self.tokens: list[Token] = []
        place = 0
        while found := self.pattern.match(query, place):
            group = found.lastgroup or ""
            text, begin = found[group], found.start(group)
            self._refuse_foreign(group, text, begin)
            kind = text if group == "mark" or text in _OPERATORS else group
            self.tokens.append(("OR" if kind[0] == "|" else kind, text, begin))
            place = found.end()
        if rest := query[place:].lstrip():
            refuse("a quote is not closed", (len(query) - len(rest), len(query)))
        self.tokens.append((END, "", len(query)))

    def _refuse_foreign(self, kind: str, text: str, place: int) -> None:
        """Raise an error for syntax that has a meaning elsewhere and would be read as words
        here.
        """
        span = (place, place + len(text))
        if kind in (WORD, PHRASE) and (short := describe_bad_wildcard(DEFAULT_ANALYSER, text)):
            refuse(short[0], span, short[1])
        if kind == PHRASE and LONE.looks.match(text):
            refuse(LONE.message, span, LONE.hint)
        if kind != WORD:
            return
        # Text directly before or after a phrase belongs to it: "a b"[ti], title:"a b".
        begin = self.query[place - 1] + text if self.query[place - 1 : place] == '"' else text
        begin += self.query[place + len(text) : place + len(text) + 1].strip()
        for foreign in FOREIGN:
            if foreign.looks.match(begin):
                refuse(foreign.message, span, foreign.hint)
        if unknown := find_field(begin, self.names):
            refuse(unknown.message, span, unknown.hint)
        if text[:-1].lower() in self.names and text[-1] == ":" and self._has_next(span[1]):
            hint = f"write it without a blank, as in {text}oil; in quotes it is a word"
            refuse("a field is directly before its word", span, hint)
        if text[0] == ":" and self._is_after_field() and (text[1:] or self._has_next(span[1])):
            _, name, start = self.tokens[-1]
            hint = f"write it without blanks, as in {name}:oil; in quotes it is a word"
            refuse("a field is directly before its word", (start, place + 1), hint)
        if BEFORE.looks.match(text) and self._has_next(place + len(text)):
            refuse(BEFORE.message, span, BEFORE.hint)
        if RANGE.looks.match(self.query, place):
            refuse(RANGE.message, span, RANGE.hint)
        if quoted := SINGLE_QUOTED.match(self.query, place):
            hint = f'write "{(quoted[1] or quoted[2]).strip()}"'
            refuse("a phrase is in double quotes", quoted.span(), hint)

    def _is_after_field(self) -> bool:
        """Whether the last token is the name of a field, as a word."""
        if not self.tokens:
            return False
        kind, text, _ = self.tokens[-1]
        return kind == WORD and text.lower() in self.names

    def _has_next(self, end: int) -> bool:
        """Whether a word that ends there has something to look for after it."""
        following = self.pattern.match(self.query, end)
        return following is not None and following[0].strip() not in _ENDS


def _token_pattern(names: Sequence[str]) -> re.Pattern[str]:
    # The longest name first: one may be the beginning of another.
    ordered = sorted(map(re.escape, names), key=len, reverse=True)
    field = rf"|(?P<field>(?i:{'|'.join(ordered)}):(?=[^\s:)/|]))" if ordered else ""
    return re.compile(
        r'\s*(?:(?P<phrase>"[^"]*"(?:~\d+(?![^\s()|]))?)'
        r"|(?P<mark>[()]|\|+|[-+](?=[^\s)+-]))"
        r'|(?P<near>(?i:O?NEAR)/\d+(?![^\s()"|]))'
        rf"{field}"
        r'|(?P<word>[^\s()"|]+))'
    )
