"""BoP (§2): expressions are looked at when enough of their predicates hold."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tamis.index.layout import OR, run_starts
from tamis.lab.atree.encoding import LEAF, encode, plain
from tamis.lab.atree.kernels.bop import match_by_counts, minimum_counts
from tamis.lab.forest import Rows, as_rows
from tamis.lab.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.forest import Tree


class BoP(Machine):
    """Counts true predicates; an expression with its minimum of them is a candidate."""

    name: ClassVar = "BoP"
    paper: ClassVar = "Ji and Jacobsen 2021, §2"

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Encode the expressions (Figure 2) and list, by predicate, where it occurs."""
        self._ordinals = np.array(sorted(trees), dtype=np.int32)
        encoding = encode(plain(trees[ordinal]) for ordinal in self._ordinals.tolist())
        is_leaf = encoding.kinds == LEAF
        inner = encoding.values << 1 | (encoding.kinds == OR)
        # One word for the pair of what and which: ~leaf, or a count and the operator's bit.
        self._codes = np.where(is_leaf, ~encoding.values, inner).astype(np.int32)
        self._starts = run_starts(np.diff(encoding.starts))
        n_trees = len(self._ordinals)
        self._minima = np.zeros(n_trees, dtype=np.int32)
        minimum_counts(self._starts, self._codes, np.zeros(len(is_leaf), np.int32), self._minima)
        owners = np.repeat(np.arange(n_trees, dtype=np.int32), np.diff(encoding.starts))[is_leaf]
        leaves = encoding.values[is_leaf]
        # A predicate that an expression has twice counts twice, as it does in the minimum.
        self._postings = owners[np.argsort(leaves, kind="stable")]
        self._posting_starts = run_starts(np.bincount(leaves, minlength=self.n_leaves))
        self._always = np.flatnonzero(self._minima == 0)

    def match(self, satisfied: Rows) -> Rows:
        """The ordinals each event matches."""
        is_true = np.zeros(self.n_leaves, dtype=np.bool_)
        hits = np.zeros(len(self._ordinals), dtype=np.int32)
        found = np.empty(len(self._ordinals), dtype=np.int32)
        counts = np.zeros(3, dtype=np.int64)
        runs = []
        for row in range(len(satisfied)):
            leaves = satisfied[row]
            is_true[leaves] = True
            n_found = match_by_counts(
                leaves,
                is_true,
                *(self._posting_starts, self._postings, self._minima, self._starts, self._codes),
                hits,
                found,
                counts,
            )
            is_true[leaves] = False
            places = np.sort(np.concatenate((found[:n_found], self._always)))
            runs.append(self._ordinals[places])
        names = ("postings", "candidates", "nodes")
        self.counts = dict(zip(names, counts.tolist(), strict=True))
        return as_rows(runs)

    @property
    def n_bytes(self) -> int:
        """Encoded expressions, minima and postings."""
        arrays = (self._ordinals, self._codes, self._starts, self._minima)
        return sum(array.nbytes for array in (*arrays, self._postings, self._posting_starts))
