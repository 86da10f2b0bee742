"""Numbers of matches, by event and by subscription. No pairs are produced, except by operators."""

from __future__ import annotations

from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np

from tamis.match.batch import count_events
from tamis.match.engine import borrow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.kernels.arrays import Int64
    from tamis.match.batch import Group, Scratch
    from tamis.match.catalogue import Catalogue
    from tamis.match.question import Block, BlockRead


class EventCounts:
    """How many subscriptions each event satisfies."""

    def read(self, block: Block) -> Int64:
        """The number of matches of each event of the block."""
        if block.is_quick_to_list:
            return np.concatenate([np.diff(pairs.starts) for pairs in block.local_pairs()])
        roots = block.wanted.settled

        def count(group: Group, scratch: Scratch) -> Int64:
            return count_events(group, roots, scratch)

        counts: Int64 = np.concatenate(block.read_settled(count))
        for pairs in block.decided():
            own = np.diff(pairs.starts)
            first = pairs.first_row - block.first_row
            counts[first : first + len(own)] += own
        return counts

    def answer(self, blocks: Iterable[BlockRead[Int64]]) -> Int64:
        """The numbers of all events."""
        found = [np.asarray(sum(block.parts)) for block in blocks if block.parts]
        return found[0] if len(found) == 1 else np.concatenate([_NOTHING, *found])


_NOTHING = np.empty(0, dtype=np.int64)


class SubscriptionCounts:
    """How many events each subscription matches, by ordinal."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        # By part: counts as long as the part. A thread adds to an array that no other thread uses,
        # instead of making one for each block.
        self._tallies: list[SimpleQueue[Int64]] = [SimpleQueue() for _ in catalogue.parts]

    def read(self, block: Block) -> None:
        """Add the block to the counts so far."""
        part = block.part
        n_subscriptions = len(part.engine.contents.ids)
        with borrow(
            self._tallies[part.number], lambda: np.zeros(n_subscriptions, dtype=np.int64)
        ) as counts:
            block.count_settled(counts)
            for pairs in block.decided():
                np.add.at(counts, pairs.subscriptions, 1)

    def answer(self, blocks: Iterable[BlockRead[None]]) -> Int64:
        """The numbers of all subscriptions."""
        for _ in blocks:
            pass
        total = np.zeros(len(self._catalogue), dtype=np.int64)
        for numbering, tallies in zip(self._catalogue.numberings, self._tallies, strict=True):
            while not tallies.empty():
                total[numbering.first : numbering.end] += numbering.shown(tallies.get())
        return total
