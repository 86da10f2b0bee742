"""Scan with conjunction match (§5.2): evaluates only trees with a true conjunction."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tamis.lab.fontoura.annotated import join_blocks
from tamis.lab.fontoura.conjunction_index import ConjunctionIndex
from tamis.lab.fontoura.delta import ImmutableIndex, WithDelta, Work
from tamis.lab.fontoura.expressions import conjunctions_of, read_branch
from tamis.lab.fontoura.kernels.distinct import keep_distinct
from tamis.lab.fontoura.kernels.scan import scan_some
from tamis.lab.fontoura.scan import write_trees
from tamis.lab.forest import Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.fontoura.expressions import Conjunction
    from tamis.lab.forest import Tree


class ScanConjunctionsPart(ImmutableIndex):
    """All trees, and the trees of each conjunction."""

    def build(self, trees: list[Tree], n_leaves: int, opposites: Mapping[int, int]) -> None:
        """Write the trees to arrays and index their conjunctions.

        No tree is true without a true leaf: operators other than AND are treated as OR here, since
        it only matters that none of the tree's leaves is left out.
        """
        owners: dict[Conjunction, list[int]] = defaultdict(list)
        for number, tree in enumerate(trees):
            for conjunction in set(conjunctions_of(read_branch(tree, opposites))):
                owners[conjunction].append(number)
        self.index = ConjunctionIndex(owners, n_leaves, np.int32)
        self._trees = write_trees(trees)
        self._is_true = np.zeros(n_leaves, dtype=np.bool_)
        self._stamps = np.zeros(len(trees), dtype=np.int64)
        self._latest = 0

    def match(self, satisfied: Rows, work: Work) -> Rows:
        """Find conjunctions, then evaluate the trees that contain one of them."""
        blocks: list[Rows] = []
        row = 0
        n_nodes = np.zeros(1, dtype=np.int64)
        self.index.scratch.n_postings[0] = 0
        while row < len(satisfied):
            with work.phase("index"):
                found = self.index.find(row, satisfied)
            with work.phase("sort"):
                starts, owners = self.index.gather(found)
                self._latest = keep_distinct(starts, owners, self._stamps, self._latest)
                for begin, end in zip(starts.tolist(), starts[1:].tolist(), strict=False):
                    owners[begin:end].sort()
            work.counts["conjunctions"] += len(found.conjunctions)
            work.counts["trees"] += int(starts[-1])
            with work.phase("evaluate"):
                scan_some(
                    row,
                    satisfied.starts,
                    satisfied.values,
                    self._is_true,
                    *self._trees,
                    starts,
                    owners,
                    n_nodes,
                )
                blocks.append(Rows(starts, owners[: starts[-1]].copy()))
            row += found.n_rows
        work.counts["postings"] += int(self.index.scratch.n_postings[0])
        work.counts["nodes"] += int(n_nodes[0])
        return join_blocks(blocks)

    @property
    def n_bytes(self) -> int:
        """The memory of the trees and the index."""
        return self.index.n_bytes + sum(array.nbytes for array in self._trees)


class ScanConjunctions(WithDelta):
    """Scan with conjunction match: the index only selects the trees to evaluate."""

    name: ClassVar = "Scan with conjunction match"
    paper: ClassVar = "Fontoura 2010, §5.2"
    part: ClassVar = ScanConjunctionsPart
