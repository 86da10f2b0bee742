"""Texts of events that fail a test only because of a blank before or after them.

`" Private"` is not `'Private'`. In a file with a blank after each comma, no value is what its
reader sees. So the first events of a batch are checked, and an attribute is reported only if most
of its values have blanks and one of them would satisfy a test without them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tamis.events.entries import Entries
from tamis.events.oddities import Padded
from tamis.index.carriers import LARGE_STRING, TEXTS, text_buffers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.events.plan import EncodingPlan, PatternColumn
    from tamis.events.ranks import Ranking

SAMPLE: Final = 1_000  # events of a batch that are checked
TRIED: Final = 20  # distinct texts that are tested without their blanks
_BLANK: Final = 0x20  # and all control characters below it


def find_padded(
    entries: Entries, plan: EncodingPlan, ranking: Ranking
) -> Iterator[tuple[int, Padded]]:
    """The attributes most of whose texts in the first events have surrounding blanks, if one of
    these texts would satisfy a test without them.
    """
    seen = np.flatnonzero(entries.rows < SAMPLE)
    offsets, data = text_buffers(entries.values)
    begins, ends = offsets[seen], offsets[seen + 1]
    filled = ends > begins
    seen, begins, ends = seen[filled], begins[filled], ends[filled]
    is_padded = (data[begins] <= _BLANK) | (data[ends - 1] <= _BLANK)
    if not is_padded.any():
        return
    attributes = entries.attributes[seen]
    for attribute in np.unique(attributes[is_padded]).tolist():
        own = attributes == attribute
        places = seen[own & is_padded]
        n_padded, n_values = len(places), int(own.sum())
        if 2 * n_padded < n_values:
            continue
        place = _first_missed(entries, places, attribute, plan, ranking)
        if place is not None:
            row, value = int(entries.rows[place]), entries.values[place].as_py()
            yield attribute, Padded(n_padded, n_values, row, value)


def _first_missed(
    entries: Entries, places: np.ndarray, attribute: int, plan: EncodingPlan, ranking: Ranking
) -> int | None:
    """The first of the texts that satisfies a test only without its blanks."""
    texts: dict[str, int] = {}
    for place in places.tolist():
        texts.setdefault(entries.values[place].as_py(), place)
        if len(texts) == TRIED:
            break
    given, trimmed = list(texts), [text.strip() for text in texts]
    is_met = _equal(trimmed, attribute, ranking) & ~_equal(given, attribute, ranking)
    for pattern in plan.patterns:
        if pattern.attribute == attribute:
            is_met |= _count_leaves(trimmed, pattern) > _count_leaves(given, pattern)
    met = np.flatnonzero(is_met)
    return texts[given[met[0]]] if len(met) else None


def _equal(texts: list[str], attribute: int, ranking: Ranking) -> np.ndarray:
    """Which of the texts equal a constant of the attribute."""
    n_texts = len(texts)
    if not ranking.has_texts(attribute):
        return np.zeros(n_texts, dtype=np.bool_)
    nowhere, own = np.zeros(n_texts, np.int32), np.full(n_texts, attribute, np.int32)
    codes = ranking.rank(TEXTS, Entries(nowhere, own, pa.array(texts, LARGE_STRING)))
    equal: np.ndarray = (codes - ranking.first_code(attribute)) % 2 == 1
    return equal


def _count_leaves(texts: list[str], pattern: PatternColumn) -> np.ndarray:
    """How many patterns each text satisfies."""
    starts, _ = pattern.matcher.match_texts(texts)
    counts: np.ndarray = np.diff(starts)
    return counts
