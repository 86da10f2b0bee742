"""The events of a batch that are stored together, and whom they matched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tamis.broker.stream_rows import BatchRows
    from tamis.kernels.arrays import Int64

MOST_BYTES: Final = 256 << 20  # of the events of one entry
MOST_MATCHES: Final = 1 << 26  # of one entry


class TakenEvents(NamedTuple):
    """Events that matched a subscription which exists."""

    buffer: bytes  # their texts
    lengths: Int64
    ends: Int64
    match_starts: Int64
    matches: Int64  # numbers of subscriptions, by event


def split_batch(rows: BatchRows, done: int) -> list[int]:
    """Where entries end, so that none is too large; the last one ends the batch."""
    ends: list[int] = []
    n_bytes = n_matches = 0
    sizes = np.bincount(rows.event_of, minlength=len(rows.texts)).tolist()
    for at in range(done, len(rows.texts)):
        n_bytes += len(rows.texts[at])
        n_matches += sizes[at]
        if n_bytes >= MOST_BYTES or n_matches >= MOST_MATCHES:
            ends.append(at + 1)
            n_bytes = n_matches = 0
    if not ends or ends[-1] < len(rows.texts):
        ends.append(len(rows.texts))
    return ends


def choose_events(rows: BatchRows, numbers: Int64, begin: int, end: int) -> TakenEvents:
    """The events in [begin, end) that match a subscription which exists. `numbers` has the number
    of each subscription, 0 if it does not exist.
    """
    low, high = np.searchsorted(rows.event_of, (begin, end)).tolist()
    found, events = numbers[rows.id_of[low:high]], rows.event_of[low:high]
    is_kept = (found > 0) & rows.has_text()[events]
    found, events = found[is_kept], events[is_kept]
    chosen, counts = np.unique(events, return_counts=True)
    texts = [rows.texts[at] for at in chosen.tolist()]
    lengths = np.array([len(text) for text in texts], np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return TakenEvents(b"".join(texts), lengths, np.cumsum(lengths), starts, found)
