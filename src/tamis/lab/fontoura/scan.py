"""Scan (§5.2): evaluates every tree for every event."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tamis.index.layout import run_starts
from tamis.lab.fontoura.kernels.scan import scan_trees
from tamis.lab.forest import Rows, collect_rows
from tamis.lab.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.kernels.arrays import Int32, Int64, Starts
    from tamis.lab.forest import Tree


class Scan(Machine):
    """All trees, each evaluated from its root down with short-circuiting."""

    name: ClassVar = "Scan"
    paper: ClassVar = "Fontoura 2010, §5.2"

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Write the trees to arrays."""
        self._ordinals = np.array(sorted(trees), dtype=np.int32)
        self._arrays = write_trees([trees[ordinal] for ordinal in self._ordinals.tolist()])

    def match(self, satisfied: Rows) -> Rows:
        """The ordinals that each event matches."""
        is_true = np.zeros(self.n_leaves, dtype=np.bool_)
        n_nodes = np.zeros(1, dtype=np.int64)

        def find(first: int, starts: Int64, found: Int32) -> int:
            trees = self._arrays
            return int(scan_trees(first, satisfied, is_true, trees, starts, found, n_nodes))

        rows = collect_rows(find, len(satisfied), len(self._ordinals))
        self.counts = {"nodes": int(n_nodes[0])}
        return Rows(rows.starts, self._ordinals[rows.values])

    @property
    def n_bytes(self) -> int:
        """The nodes and links of all trees."""
        return sum(array.nbytes for array in (*self._arrays, self._ordinals))


class TreeArrays(NamedTuple):
    """Each tree as a run of nodes, root first."""

    roots: Int32  # [n_trees], positions of nodes
    operators: Int32  # [n_nodes]; a leaf is -1 - its number
    required: Int32  # [n_nodes]
    starts: Starts  # [n_nodes + 1]
    children: Int32  # positions of nodes


def write_trees(trees: Sequence[Tree]) -> TreeArrays:
    """The nodes of all trees; nothing is shared."""
    operators: list[int] = []
    required: list[int] = []
    children: list[tuple[int, ...]] = []

    def write(tree: Tree) -> int:
        place = len(operators)
        if isinstance(tree, int):
            operators.append(-1 - tree)
            required.append(0)
            children.append(())
        else:
            operators.append(tree.operator)
            required.append(tree.required)
            children.append(())
            children[place] = tuple([write(child) for child in tree.children])
        return place

    roots = [write(tree) for tree in trees]
    return TreeArrays(
        np.array(roots, dtype=np.int32),
        np.array(operators, dtype=np.int32),
        np.array(required, dtype=np.int32),
        run_starts(np.array([len(below) for below in children], dtype=np.int64)),
        np.array([link for below in children for link in below], dtype=np.int32),
    )
