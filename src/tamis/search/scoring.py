"""Relevance of events that no index has scored: BM25, with the counts of indexed events."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.errors import RowError
from tamis.events.json_texts import parse_quickly

if TYPE_CHECKING:
    from tamis.search.fields import Field
    from tamis.search.query import Query

K1: Final = 1.2  # as in tantivy
B: Final = 0.75


class Statistics(NamedTuple):
    """What is known of the words of all indexed events."""

    n_events: int
    n_words: int
    frequencies: dict[tuple[Field, str], int]  # by word: how many events have it


class Scorer:
    """Scores events by the words of a query."""

    def __init__(self, query: Query, known: Statistics) -> None:
        pairs = {(own.field, word) for own in query.scored for word in own.words if word}
        self._fields = tuple(dict.fromkeys(field for field, _ in pairs))
        self._weights = {pair: _weigh(known, known.frequencies.get(pair, 0)) for pair in pairs}
        self._usual = known.n_words / known.n_events if known.n_events else 100.0

    def score(self, text: bytes) -> float:
        """The larger, the more relevant."""
        try:
            event = parse_quickly(text)
        except RowError:
            return 0.0
        words = {field: field.words(event) for field in self._fields}
        length = sum(map(len, words.values()))
        norm = K1 * (1 - B + B * length / self._usual)
        total = 0.0
        for (field, word), weight in self._weights.items():
            n_found = words[field].count(word)
            total += weight * n_found * (K1 + 1) / (n_found + norm)
        return total


def _weigh(known: Statistics, n_with: int) -> float:
    n_events = max(known.n_events, n_with)
    return math.log(1 + (n_events - n_with + 0.5) / (n_with + 0.5))
