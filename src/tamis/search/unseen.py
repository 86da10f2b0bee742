"""Attributes of a query that no archived event has: a test of one finds nothing."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.events.json_source import hold_arrow_texts
from tamis.events.names import find_names
from tamis.language.names import print_path
from tamis.match.unseen import find_likely

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.archive import Archive
    from tamis.events.encoder import EncodedEvents
    from tamis.events.rejects import Reject
    from tamis.match.index import Index
    from tamis.search.query import Query

MOST: Final = 8_192  # events that are looked at, the newest
_NAMED: Final = 100  # events whose names are compared


class SeenAttributes:
    """Which attributes of an index the events have, batch after batch."""

    def __init__(self, index: Index) -> None:
        self._asked = index.view.asked
        self._has_values = np.zeros(len(self._asked.table), dtype=np.bool_)
        self._n_rejects: Counter[str | None] = Counter()  # by attribute
        self._examples: dict[str | None, Reject] = {}
        self._sample: list[Any] = []  # texts
        self.n_events = 0

    def add(self, encoded: EncodedEvents, texts: pa.Array) -> None:
        """Add events, which are also given as JSON texts."""
        self.n_events += encoded.n_rows
        if encoded.has_values is not None:
            self._has_values |= encoded.has_values
        for (attribute, _), n_rejects in encoded.rejects.counts.items():
            self._n_rejects[attribute] += n_rejects
        for reject in encoded.rejects:
            self._examples.setdefault(reject.attribute, reject)
        if len(self._sample) < _NAMED:
            self._sample += texts[: _NAMED - len(self._sample)].to_pylist()

    def describe(self, *, is_whole: bool) -> list[str]:
        """A sentence about each attribute that none of the events has; they are all of the
        archive, or its newest ones.
        """
        if not self.n_events:
            return []
        asked = self._asked
        is_unseen = ~self._has_values[: asked.table.n_read]
        unseen = [asked.table.paths[at] for at in np.flatnonzero(is_unseen).tolist()]
        unseen = [path for path in unseen if path in asked.uses]
        missing = [path for path in unseen if not self._n_rejects[print_path(path)]]
        alike = find_likely(missing, find_names(self._sample) - asked.known) if missing else {}
        every = "no archived event has"
        if not is_whole:
            every = f"none of the newest {self.n_events:,} archived events has"
        notes = []
        for path in unseen:
            name = print_path(path)
            if path in alike:
                notes.append(f"{every} {name}, but they have {print_path(alike[path])}")
            elif path in missing:
                notes.append(f"{every} {name}")
            else:
                example = self._examples.get(name)
                shown = "" if example is None else f": {example.reason}"
                notes.append(f"{every} a value of {name} that can be read{shown}")
        return notes


def note_missing(query: Query, archive: Archive) -> list[str]:
    """Notes on the attributes of a query that no archived event has, or none of the newest."""
    seen = SeenAttributes(query.index)
    last = archive.last_event
    encoder = query.index.view.encoder
    for batch in archive.scan(after=max(0, last - MOST), up_to=last):
        texts = batch.column("event")
        seen.add(encoder.encode(hold_arrow_texts([texts])), texts)
    return seen.describe(is_whole=last <= MOST)
