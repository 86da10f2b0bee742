"""Counts with an example of each: the first event of a subscription, the first match of an event.

Both are read from the masks that counting needs anyway: no pairs are produced, except by operators.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.match.batch import count_events
from tamis.match.kernels.readout import find_first_events, find_first_roots
from tamis.match.kernels.rows import ROW

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.index.layout import RootArrays
    from tamis.kernels.arrays import Int32, Int64
    from tamis.match.batch import Group, Pairs, Scratch
    from tamis.match.question import AskedPart, Block, BlockRead


class Counted(NamedTuple):
    """How many matches each subscription or event has, and the first of them."""

    counts: Int64
    firsts: Int64  # rows of events, or ordinals of subscriptions; -1 without a match

    @classmethod
    def nothing(cls, n: int) -> Counted:
        """A summary without matches."""
        return cls(np.zeros(n, dtype=np.int64), np.full(n, -1, dtype=np.int64))

    def add(self, places: Any, counts: Any, firsts: Any) -> None:
        """Add later counts; `places` are distinct."""
        self.counts[places] += counts
        known = self.firsts[places]
        self.firsts[places] = np.where(known < 0, firsts, known)


# ── by subscription ─────────────────────────────────────────────────────────────────────────


class Places(NamedTuple):
    """How many events of a group some roots or subscriptions match, and the row of the first."""

    places: Int32
    counts: Int64
    firsts: Int64  # of the batch; -1 if there is none


class PartRead(NamedTuple):
    """The summary of a block of events for a part's subscriptions."""

    roots: list[Places]  # of those without operators, by root
    decided: list[Places]  # of the others, by ordinal of the part
    n_events: int
    first_event: int  # row of the batch; -1 if there is none


class SubscriptionSummary:
    """How many events each subscription matches, by ordinal, and the row of the first one."""

    def __init__(self, parts: Sequence[AskedPart]) -> None:
        self._tallies = [_Tally(part) for part in parts]

    def read(self, block: Block) -> PartRead:
        """The summary of the block for a part."""
        own = block.bad_rows - block.first_row
        good = np.delete(np.arange(block.n_rows), own[(own >= 0) & (own < block.n_rows)])
        return PartRead(
            block.read_settled(_count_roots),
            [_count_pairs(pairs) for pairs in block.decided()],
            len(good),
            block.first_row + int(good[0]) if len(good) else -1,
        )

    def answer(self, blocks: Iterable[BlockRead[PartRead]]) -> Counted:
        """The numbers of all subscriptions."""
        for block in blocks:
            for tally, own in zip(self._tallies, block.parts, strict=False):
                tally.add(own, block.batch_row)
        parts = [Counted.nothing(0), *(tally.finish() for tally in self._tallies)]
        return Counted(*map(np.concatenate, zip(*parts, strict=True)))


class _Tally:
    """The counts of one part, in the order of events."""

    def __init__(self, part: AskedPart) -> None:
        self._roots = part.wanted.settled
        self._numbering = part.numbering
        self._by_root = Counted.nothing(len(self._roots.nodes))
        self._counted = Counted.nothing(len(part.engine.contents.ids))

    def add(self, read: PartRead, batch_row: int) -> None:
        for target, found in ((self._by_root, read.roots), (self._counted, read.decided)):
            for own in found:
                target.add(own.places, own.counts, _shifted(own.firsts, batch_row))
        if len(self._roots.always) and read.n_events:
            first = batch_row + read.first_event
            self._counted.add(self._roots.always, read.n_events, first)

    def finish(self) -> Counted:
        """The numbers of the part's subscriptions, without hidden ones."""
        roots, by_root = self._roots, self._by_root
        sizes = np.diff(roots.subscription_starts)
        self._counted.add(
            roots.subscriptions, np.repeat(by_root.counts, sizes), np.repeat(by_root.firsts, sizes)
        )
        return Counted(*map(self._numbering.shown, self._counted))


def _count_roots(group: Group, scratch: Scratch) -> Places:
    counts = np.empty(len(group.found), dtype=np.int64)
    firsts = np.empty(len(group.found), dtype=np.int64)
    find_first_events(group.masks, counts, firsts)
    return Places(group.found.copy(), counts, _shifted(firsts, group.first_row))


def _count_pairs(pairs: Pairs) -> Places:
    rows = np.repeat(np.arange(len(pairs.starts) - 1), np.diff(pairs.starts))
    ordinals, at, counts = np.unique(pairs.subscriptions, return_index=True, return_counts=True)
    return Places(ordinals, counts, pairs.first_row + rows[at])


def _shifted(firsts: Int64, n_rows: int) -> Int64:
    return np.where(firsts < 0, firsts, firsts + n_rows)


# ── by event ────────────────────────────────────────────────────────────────────────────────


class EventSummary:
    """How many subscriptions each event satisfies, and the ordinal of the first one."""

    def read(self, block: Block) -> list[Counted]:
        """The same for the block, group by group."""
        if block.part.engine.has_operators or block.is_quick_to_list:
            return [_first_pairs(pairs) for pairs in block.pairs()]
        roots, numbering = block.wanted.roots, block.part.numbering

        def count(group: Group, scratch: Scratch) -> Counted:
            firsts = _find_firsts(group, roots)
            has_any = firsts >= 0
            firsts[has_any] = numbering.to_index(firsts[has_any].astype(np.int32))
            return Counted(count_events(group, roots, scratch), firsts)

        return block.read_settled(count)

    def answer(self, blocks: Iterable[BlockRead[list[Counted]]]) -> Counted:
        """The numbers of all events."""
        found = [Counted.nothing(0)]
        for block in blocks:
            for first, *others in zip(*block.parts, strict=True):
                for other in others:
                    first.add(slice(None), *other)
                found.append(first)
        return Counted(*map(np.concatenate, zip(*found, strict=True)))


def _find_firsts(group: Group, roots: RootArrays) -> Int64:
    """The first subscription of each event, by ordinal of the part; -1 if there is none."""
    first_roots = np.full(ROW, -1, dtype=np.int64)
    find_first_roots(group.found, group.masks, first_roots)
    first_roots = first_roots[: group.n_rows]
    firsts = np.full(group.n_rows, -1, dtype=np.int64)
    has_any = first_roots >= 0
    firsts[has_any] = roots.subscriptions[roots.subscription_starts[first_roots[has_any]]]
    if len(roots.always):
        firsts[:] = roots.always[0]
    firsts[group.bad] = -1
    return firsts


def _first_pairs(pairs: Pairs) -> Counted:
    counts = np.diff(pairs.starts)
    firsts = np.full(len(counts), -1, dtype=np.int64)
    firsts[counts > 0] = pairs.subscriptions[pairs.starts[:-1][counts > 0]]
    return Counted(counts, firsts)
