"""Conjunctions annotated with their occurrences (§2.1), shared by Dewey and Interval.

An annotation is 64 bits: the expression in the upper half and, as in §5.3, its position there in
the lower. When sorted, an event's annotations are grouped by expression, each in the order that the
evaluator needs.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tamis.lab.fontoura.conjunction_index import ConjunctionIndex
from tamis.lab.fontoura.delta import ImmutableIndex, Work
from tamis.lab.fontoura.expressions import read_expression
from tamis.lab.forest import Rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from tamis.kernels.arrays import Int32, Int64
    from tamis.lab.fontoura.expressions import Conjunction, Expression
    from tamis.lab.forest import Tree

Keys = npt.NDArray[np.uint64]


class AnnotatedPart(ImmutableIndex):
    """An index of conjunctions with an annotator and an evaluator."""

    def build(self, trees: list[Tree], n_leaves: int, opposites: Mapping[int, int]) -> None:
        """Annotate and index the conjunctions."""
        occurrences: dict[Conjunction, list[int]] = defaultdict(list)
        expressions = (read_expression(tree, opposites) for tree in trees)
        for number, places in enumerate(self.annotate(expressions)):
            for conjunction, place in places:
                occurrences[conjunction].append(number << 32 | place)
        self.index = ConjunctionIndex(occurrences, n_leaves, np.uint64)

    @abstractmethod
    def annotate(
        self, expressions: Iterable[Expression]
    ) -> Iterator[Iterable[tuple[Conjunction, int]]]:
        """The conjunctions of each expression, each with its position in 32 bits."""

    @abstractmethod
    def evaluate(self, starts: Int64, keys: Keys, found_starts: Int64, found: Int32) -> None:
        """Write the expressions that are true, given each event's sorted annotations."""

    def match(self, satisfied: Rows, work: Work) -> Rows:
        """Find conjunctions, sort their annotations, evaluate; a block of events at a time."""
        blocks: list[Rows] = []
        row = 0
        self.index.scratch.n_postings[0] = 0
        while row < len(satisfied):
            with work.phase("index"):
                found = self.index.find(row, satisfied)
            with work.phase("sort"):
                starts, keys = self.index.gather(found)
                for begin, end in zip(starts.tolist(), starts[1:].tolist(), strict=False):
                    keys[begin:end].sort()
            with work.phase("evaluate"):
                blocks.append(self._evaluate(starts, keys))
            row += found.n_rows
            work.counts["conjunctions"] += len(found.conjunctions)
            work.counts["annotations"] += len(keys)
        work.counts["postings"] += int(self.index.scratch.n_postings[0])
        return join_blocks(blocks)

    def _evaluate(self, starts: Int64, keys: Keys) -> Rows:
        found_starts = np.zeros(len(starts), dtype=np.int64)
        found = np.empty(min(len(keys), len(self.ordinals) * (len(starts) - 1)), dtype=np.int32)
        self.evaluate(starts, keys, found_starts, found)
        return Rows(found_starts, found[: found_starts[-1]])

    @property
    def n_bytes(self) -> int:
        """The index and the annotations database."""
        return self.index.n_bytes


def join_blocks(blocks: list[Rows]) -> Rows:
    """Concatenate blocks of events."""
    sizes = [np.diff(block.starts) for block in blocks]
    starts = np.zeros(sum(map(len, sizes)) + 1, dtype=np.int64)
    if blocks:
        np.cumsum(np.concatenate(sizes), out=starts[1:])
    values = [np.empty(0, dtype=np.int32), *(block.values for block in blocks)]
    return Rows(starts, np.concatenate(values))
