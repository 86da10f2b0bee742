"""Notices about words of a search query that probably mean something else: `oil or gas`, `C++`."""

from __future__ import annotations

import re
import unicodedata
from itertools import pairwise
from typing import TYPE_CHECKING, Final, TypeAlias

from tamis.language.ast import StringTest
from tamis.language.printer import print_expression
from tamis.text import DEFAULT_ANALYSER, get_analyser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.language.ast import Attribute

Token: TypeAlias = tuple[str, str, int]  # kind, text, place


def find_notices(tokens: Sequence[Token], fields: Sequence[Attribute]) -> list[str]:
    """One sentence about each such word, with its place and a remedy."""
    return [*_find_lower_case(tokens), *_find_lone_dash(tokens), *_find_lost(tokens, fields)]


def _find_lower_case(tokens: Sequence[Token]) -> Iterator[str]:
    """The words between others that would be operators in capitals."""
    found: dict[str, int] = {}
    for at, (kind, text, place) in enumerate(tokens[:-1]):
        has_before = at > 0 and tokens[at - 1][0] in ("word", "phrase", ")")
        has_after = tokens[at + 1][0] in ("word", "phrase", "(", "-", "+")
        word = text.lower()
        is_joint = word in ("and", "or", "near", "xor") and has_before
        if kind == "word" and has_after and (is_joint or word == "not"):
            found.setdefault(text, place)
    for word, place in found.items():
        written = f"the operator is {word.upper()} in capitals"
        if word.lower() == "near":
            written = "the operator has a distance, NEAR/3; for adjacent words write a phrase"
        if word.lower() == "xor":
            written = "it is not an operator; for one of two words, not both, write (a OR b) -(a b)"
        yield (
            f"{word} at column {place + 1} is a word to look for; {written}, "
            f'and "{word}" in quotes the word'
        )


def _find_lone_dash(tokens: Sequence[Token]) -> Iterator[str]:
    """A dash before a blank, which excludes nothing."""
    for (kind, text, place), (after, word, _) in pairwise(tokens):
        if kind == "word" and text == "-" and after in ("word", "phrase", "("):
            remedy = f"what follows, write -{word}" if after != "(" else "the group, write -(…)"
            yield (
                f"- at column {place + 1} excludes nothing, since a blank follows; "
                f"to exclude {remedy}"
            )


def _find_lost(tokens: Sequence[Token], fields: Sequence[Attribute]) -> Iterator[str]:
    """The words with symbols of which only one letter is searched for."""
    words = get_analyser(DEFAULT_ANALYSER).words
    for kind, text, place in tokens:
        for piece in _PIECE.finditer(text) if kind in ("word", "phrase") else ():
            left = words(piece[0])
            is_letter = len(left) == 1 and len(left[0]) == 1 and left[0].isalpha()
            if is_letter and any(map(_is_symbol, piece[0])):
                as_it_is = print_expression(StringTest("contains", fields[0], piece[0]))
                yield (
                    f"{piece[0]} at column {place + piece.start() + 1} is looked for as the word "
                    f"{left[0]}; to find it as it is, use the expression {as_it_is}"
                )


_PIECE: Final = re.compile(r'[^\s"]+')


def _is_symbol(character: str) -> bool:
    return character in "#@&%*/\\" or unicodedata.category(character)[0] == "S"
