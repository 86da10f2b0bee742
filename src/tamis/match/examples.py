"""Counts with an example of each: the first event of a subscription, the first match of an event.

Both are read out of the masks that counting needs anyway: no pair is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.match.kernels.readout import count_by_event, find_first_events, find_first_roots
from tamis.match.kernels.rows import ROW

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.events.encoder import EncodedEvents
    from tamis.index.layout import RootArrays
    from tamis.kernels.arrays import Int32, Int64
    from tamis.match.batch import Group, Pairs, Scratch


class Counted(NamedTuple):
    """How many matches each subscription or event has, and the first of them."""

    counts: Int64
    firsts: Int64  # rows of events, or ordinals of subscriptions; -1 where there is no match

    @classmethod
    def nothing(cls, n: int) -> Counted:
        """No match of any."""
        return cls(np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64))

    def add(self, places: Any, counts: Any, firsts: Any) -> None:
        """Add what was counted later; `places` names none twice."""
        self.counts[places] += counts
        known = self.firsts[places]
        self.firsts[places] = np.where(known < 0, firsts, known)

    def after(self, n_rows: int) -> Counted:
        """The same where so many other events come before."""
        return Counted(self.counts, _shifted(self.firsts, n_rows))


def _shifted(firsts: Int64, n_rows: int) -> Int64:
    return np.where(firsts < 0, firsts, firsts + n_rows)


# ── by subscription ─────────────────────────────────────────────────────────────────────────


class RootCounts(NamedTuple):
    """What a group of events says of the roots that it satisfies."""

    found: Int32
    counts: Int64
    firsts: Int64  # rows of events


def count_roots(group: Group, scratch: Scratch, bad_rows: Int64) -> RootCounts:
    """How many events of the group satisfy each root, and the first of them."""
    masks = _without(group, bad_rows)
    counts = np.empty(len(group.found), dtype=np.int64)
    firsts = np.empty(len(group.found), dtype=np.int64)
    find_first_events(masks, counts, firsts)
    return RootCounts(group.found.copy(), counts, _shifted(firsts, group.first_row))


def _without(group: Group, bad_rows: Int64) -> np.ndarray:
    """The masks without rows that hold no event."""
    own = _rows_of(group, bad_rows)
    if not len(own):
        return group.masks
    masks = group.masks.copy()
    for row in own.tolist():
        masks[:, row >> 6] &= ~(np.uint64(1) << np.uint64(row & 63))
    return masks


def add_roots(counted: Counted, found: Iterable[RootCounts], roots: RootArrays) -> None:
    """Add the counts of roots to those of the subscriptions that stand there."""
    by_root = Counted.nothing(len(roots.nodes))
    for own in found:
        by_root.add(*own)
    sizes = np.diff(roots.subscription_starts)
    counted.add(
        roots.subscriptions, np.repeat(by_root.counts, sizes), np.repeat(by_root.firsts, sizes)
    )


def add_pairs(counted: Counted, found: Iterable[Pairs]) -> None:
    """Add matches to the counts of their subscriptions."""
    for pairs in found:
        rows = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
        ordinals, at, counts = np.unique(pairs.subscriptions, return_index=True, return_counts=True)
        counted.add(ordinals, counts, pairs.first_row + rows[at])


def add_always(counted: Counted, roots: RootArrays, batch: EncodedEvents) -> None:
    """Add the subscriptions that every event matches."""
    if len(roots.always) and len(batch.bad_rows) < batch.n_rows:
        good = np.setdiff1d(np.arange(batch.n_rows), batch.bad_rows)
        counted.add(roots.always, len(good), good[0])


# ── by event ────────────────────────────────────────────────────────────────────────────────


def count_events(group: Group, scratch: Scratch, roots: RootArrays, bad_rows: Int64) -> Counted:
    """How many subscriptions each event of the group satisfies, and the first of them."""
    counts = np.empty(ROW, dtype=np.int64)
    count_by_event(group.found, group.masks, roots, scratch.planes, counts)
    first_roots = np.full(ROW, -1, dtype=np.int64)
    find_first_roots(group.found, group.masks, first_roots)
    counts, first_roots = counts[: group.n_rows], first_roots[: group.n_rows]
    firsts = np.full(group.n_rows, -1, dtype=np.int64)
    has_any = first_roots >= 0
    firsts[has_any] = roots.subscriptions[roots.subscription_starts[first_roots[has_any]]]
    if len(roots.always):
        counts += len(roots.always)
        firsts[:] = roots.always[0]
    own = _rows_of(group, bad_rows)
    counts[own], firsts[own] = 0, -1
    return Counted(counts, firsts)


def count_pairs(pairs: Pairs) -> Counted:
    """The same of pairs."""
    counts = np.diff(pairs.starts)
    firsts = np.full(len(counts), -1, dtype=np.int64)
    firsts[counts > 0] = pairs.subscriptions[pairs.starts[:-1][counts > 0]]
    return Counted(counts, firsts)


def _rows_of(group: Group, rows: Int64) -> Int64:
    """Those of the rows that are in the group, counted from its first."""
    own = rows - group.first_row
    return own[(own >= 0) & (own < group.n_rows)]
