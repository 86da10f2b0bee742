"""The best matches of each event: those of the highest weight, and of equal weights by id."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.match.batch import Pairs, count_events
from tamis.match.kernels.top import push_everywhere, push_roots, push_runs, sort_heaps
from tamis.match.readouts.pairs import joined_pairs
from tamis.match.readouts.rows import ResultRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.kernels.arrays import Int32, Int64
    from tamis.match.batch import Group, Scratch
    from tamis.match.catalogue import WeightOrder
    from tamis.match.question import Block, BlockRead
    from tamis.match.result import Result


class TopRows(ResultRows):
    """As `ResultRows`, of the best matches of each event only, the best first."""

    def __init__(self, result: Result, ranking: WeightOrder, n_best: int) -> None:
        super().__init__(result)
        self._ranking = ranking
        self._n_best = n_best

    def read(self, block: Block) -> list[Pairs]:
        """The block's best matches, as ranks."""
        ranks = block.part.listing.to_part(self._ranking.ranks)
        if block.is_quick_to_list:
            return [self._best(pairs, ranks) for pairs in block.local_pairs()]
        roots = block.wanted.settled
        always = np.sort(ranks[roots.always])[: self._n_best]
        # Only verified matches are counted and compared.
        decided = iter(block.decided())

        def read(group: Group, scratch: Scratch) -> Pairs:
            counts = count_events(group, roots, scratch)
            others = next(decided, None)
            if others is not None:
                counts += np.diff(others.starts)
            heaps = Heaps(np.minimum(counts, self._n_best))
            push_everywhere(always, *heaps)
            starts, subscriptions = roots.subscription_starts, roots.subscriptions
            push_roots(group.found, group.masks, starts, subscriptions, ranks, *heaps)
            if others is not None:
                push_runs(others.starts, ranks[others.subscriptions], *heaps)
            return heaps.sorted(group.first_row)

        return block.read_settled(read)

    def _best(self, pairs: Pairs, ranks: Int32) -> Pairs:
        return choose_best(pairs._replace(subscriptions=ranks[pairs.subscriptions]), self._n_best)

    def pairs(self, block: BlockRead[list[Pairs]]) -> Iterator[Pairs]:
        """The best matches of all parts."""
        for found in joined_pairs(block):
            best = found
            if len(block.parts) > 1:
                best = choose_best(found, self._n_best)
            yield best._replace(subscriptions=self._ranking.ordinals[best.subscriptions])


def choose_best(found: Pairs, n_best: int) -> Pairs:
    """The best ranks of each event."""
    heaps = Heaps(np.minimum(np.diff(found.starts), n_best))
    push_runs(found.starts, found.subscriptions, *heaps)
    return heaps.sorted(found.first_row)


def best_of_one(ordinals: Int32, ranking: WeightOrder, n_best: int) -> Int32:
    """The best of one event's matches."""
    starts = np.array([0, len(ordinals)], dtype=np.int64)
    best = choose_best(Pairs(0, starts, ranking.ranks[ordinals]), n_best)
    chosen: Int32 = ranking.ordinals[best.subscriptions]
    return chosen


class Heaps:
    """A heap of ranks for each event, of a given size."""

    def __init__(self, sizes: Int64) -> None:
        self._starts = np.zeros(len(sizes) + 1, dtype=np.int64)
        np.cumsum(sizes, out=self._starts[1:])
        self._sizes = np.zeros(len(sizes), dtype=np.int64)  # so far
        self._heaps = np.empty(int(self._starts[-1]), dtype=np.int32)

    def __iter__(self) -> Iterator[np.ndarray]:
        """What the kernels take."""
        return iter((self._starts, self._sizes, self._heaps))

    def sorted(self, first_row: int) -> Pairs:
        """The ranks of each event, ascending, once all are pushed."""
        sort_heaps(self._starts, self._heaps)
        return Pairs(first_row, self._starts, self._heaps)
