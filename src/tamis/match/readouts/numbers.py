"""The numbers of the subscriptions that each event satisfies."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.match.readouts.pairs import joined_pairs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.kernels.arrays import Int64
    from tamis.match.batch import Pairs
    from tamis.match.question import Block, BlockRead, NamedPairs


class NumberLists(NamedTuple):
    """For each event, the numbers of the subscriptions that it satisfies."""

    starts: Int64  # [n_events + 1]
    numbers: Int64


class Numbers:
    """The lists of all events, in two arrays."""

    def read(self, block: Block) -> list[Pairs]:
        """The block's matches."""
        return block.numbered()

    def answer(self, blocks: Iterable[BlockRead[list[Pairs]]]) -> NumberLists:
        """The lists, joined."""
        starts, numbers = [np.zeros(1, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for block in blocks:
            for pairs in joined_pairs(block):
                starts.append(pairs.starts[1:] + starts[-1][-1])
                numbers.append(pairs.subscriptions)
        return NumberLists(np.concatenate(starts), np.concatenate(numbers))


class NamedLists(NamedTuple):
    """The same, with the ids of the subscriptions."""

    lists: NumberLists
    ids: list[list[str]]  # by event


class NamedNumbers:
    """The lists of all events, with the ids of the subscriptions."""

    def read(self, block: Block) -> list[NamedPairs]:
        """The block's matches."""
        return block.named()

    def answer(self, blocks: Iterable[BlockRead[list[NamedPairs]]]) -> NamedLists:
        """The lists, joined."""
        numbers: list[Int64] = []
        names: list[list[str]] = []
        for block in blocks:
            for group in zip(*block.parts, strict=True):
                found = [(own.pairs, own.ids.to_pylist()) for own in group]
                for event in range(len(group[0].pairs.starts) - 1):
                    names.append([])
                    for pairs, ids in found:
                        begin, end = pairs.starts[event : event + 2].tolist()
                        numbers.append(pairs.subscriptions[begin:end])
                        names[-1] += ids[begin:end]
        sizes = np.fromiter(map(len, names), np.int64, len(names))
        starts = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        joined = np.concatenate([np.empty(0, dtype=np.int64), *numbers])
        return NamedLists(NumberLists(starts, joined), names)
