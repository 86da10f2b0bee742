"""The moment and the change of each event: one row for each entry, in growing arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence


class EntryRow(NamedTuple):
    """An entry of a journal; the entry of a closed segment has no record."""

    first_event: int
    moment: int  # microseconds since 1970
    change: int
    record_at: int = 0


class EntryTable:
    """The entries of a segment. One thread adds entries; others read those that were there."""

    def __init__(self, rows: np.ndarray | None = None) -> None:
        """`rows` is int64[4, n_entries], the fields of `EntryRow`."""
        self._rows = np.empty((4, 16), np.int64) if rows is None else rows
        self._length = 0 if rows is None else rows.shape[1]

    def __len__(self) -> int:
        return self._length

    def extend(self, rows: Sequence[EntryRow]) -> None:
        """Add entries."""
        end = self._length + len(rows)
        if end > self._rows.shape[1]:
            grown = np.empty((4, max(end, 2 * self._length)), np.int64)
            grown[:, : self._length] = self._rows[:, : self._length]
            self._rows = grown  # readers go on with the one they have
        if rows:
            self._rows[:, self._length : end] = np.array(rows, np.int64).T
        self._length = end

    def rows(self) -> np.ndarray:
        """All entries as int64[4, n_entries], the fields of `EntryRow`."""
        length = self._length  # before the rows, which only grow
        return self._rows[:, :length]

    def find(self, events: np.ndarray) -> np.ndarray:
        """The places of the entries that have the events."""
        # Entries without events come before the one that has the event.
        places: np.ndarray = np.searchsorted(self.rows()[0], events, side="right") - 1
        return places

    def last_at(self, moment: int) -> int:
        """How many entries are at or before a moment."""
        return int(np.searchsorted(self.rows()[1], moment, side="right"))
