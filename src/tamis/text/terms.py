"""Terms: what an index searches texts for, spelled as one string: `pain`, `back pain` for a phrase,
`~3 back pain` for words at most three words apart, `>3 back pain` for those in this order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.text.analysers import get_analyser

if TYPE_CHECKING:
    from collections.abc import Sequence


PHRASE: Final = "phrase"
NEAR: Final = "near"
NEAR_IN_ORDER: Final = "near_in_order"
_MARKS: Final = {NEAR: "~", NEAR_IN_ORDER: ">"}  # no word begins with them
_MODES: Final = {mark: mode for mode, mark in _MARKS.items()}


class Term(NamedTuple):
    """A word or several words, and how these are placed."""

    words: tuple[str, ...]
    mode: str = PHRASE  # adjacent, or NEAR or NEAR_IN_ORDER
    distance: int = 0  # of words that are near: how many other words may be between them


def spell_term(words: Sequence[str], mode: str = PHRASE, distance: int = 0) -> str:
    """The words, joined by one space per position between them, and how they are placed."""
    spelled = " ".join(words)
    return spelled if mode == PHRASE else f"{_MARKS[mode]}{distance} {spelled}"


def read_term(term: str, analyser: str) -> Term:
    """The term that `spell_term` made, for the analyser of that name."""
    if get_analyser(analyser).takes_whole:
        return Term((term,))
    first, *others = term.split(" ")
    mode = _MODES.get(first[:1])
    if mode is None:
        return Term((first, *others))
    return Term(tuple(others), mode, int(first[1:]))
