"""Terms: what an index looks for in a text, a word or a phrase, spelled as one string."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.text.analysers import get_analyser

if TYPE_CHECKING:
    from collections.abc import Sequence


def spell_term(words: Sequence[str]) -> str:
    """A word, or the words of a phrase with one space for each step from one to the next."""
    return " ".join(words)


def read_term(term: str, analyser: str) -> tuple[str, ...]:
    """The words that `spell_term` spelled, for the analyser of that name."""
    return (term,) if get_analyser(analyser).takes_whole else tuple(term.split(" "))
