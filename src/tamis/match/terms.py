"""Counts the events with each word or phrase that an index searches for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.index.columns import TEXT
from tamis.language.names import print_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.events.encoder import EncodedEvents
    from tamis.index.contents import Contents


def share_terms(parts: Sequence[Contents], batch: EncodedEvents) -> dict[str, dict[str, float]]:
    """The share of the events that have each term, by attribute."""
    counts = TermCounts(parts)
    counts.add(batch)
    return {
        attribute: {term: n / max(1, batch.n_rows) for term, n in own.items()}
        for attribute, own in counts.by_attribute().items()
    }


class TermCounts:
    """Counts batch after batch."""

    def __init__(self, parts: Sequence[Contents]) -> None:
        self._parts = parts
        self._counts = [np.zeros(part.n_codes, dtype=np.int64) for part in parts]

    def add(self, batch: EncodedEvents) -> None:
        """Count the events of a batch."""
        for at, (part, arrays) in enumerate(zip(self._parts, batch.parts, strict=True)):
            codes = arrays.codes[arrays.codes < part.n_codes]
            self._counts[at] += np.bincount(codes, minlength=part.n_codes)

    def by_attribute(self) -> dict[str, dict[str, int]]:
        """How many events have each term of each text attribute."""
        # Parts that search for the same term have counted the same events.
        found: dict[str, dict[str, int]] = {}
        for part, counts in zip(self._parts, self._counts, strict=True):
            firsts = part.leaves.column_codes.tolist()
            for column, first in zip(part.columns, firsts, strict=False):
                if column.kind == TEXT:
                    # A constant c_i has the code 2i + 1.
                    own = counts[first + 1 : first + column.n_codes : 2].tolist()
                    named = found.setdefault(print_path(column.attributes[0].path), {})
                    named.update(zip(column.constants or (), own, strict=True))
        return found
