"""Terms: the words and phrases that an index searches texts for, spelled as one string."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.text.analysers import get_analyser

if TYPE_CHECKING:
    from collections.abc import Sequence


def spell_term(words: Sequence[str]) -> str:
    """The word, or the words of a phrase, joined by one space per position between them."""
    return " ".join(words)


def read_term(term: str, analyser: str) -> tuple[str, ...]:
    """The words of a string that `spell_term` made, for the analyser of that name."""
    return (term,) if get_analyser(analyser).takes_whole else tuple(term.split(" "))
