"""BoP (§2): an expression is evaluated if enough of its predicates are true."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from tamis.index.layout import OR, run_starts
from tamis.lab.atree.encoding import LEAF, encode, plain
from tamis.lab.atree.kernels.bop import match_by_counts, minimum_counts
from tamis.lab.forest import Rows, collect_rows, rising
from tamis.lab.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.atree.arrays import Ints
    from tamis.lab.forest import Tree


class BoPArrays(NamedTuple):
    """Postings, minima and encoded expressions."""

    posting_starts: Ints
    postings: Ints  # expressions, by predicate
    minima: Ints  # int32[n_expressions], how many predicates must be true
    starts: Ints  # of expressions in `codes`
    codes: Ints
    always: Ints  # expressions that need no true predicate


class BoP(Machine):
    """Counts true predicates; an expression with its minimum of them is a candidate."""

    name: ClassVar = "BoP"
    paper: ClassVar = "Ji and Jacobsen 2021, §2"

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Encode the expressions (Figure 2), and list the expressions of each predicate."""
        self._ordinals = np.array(sorted(trees), dtype=np.int32)
        encoding = encode(plain(trees[ordinal]) for ordinal in self._ordinals.tolist())
        is_leaf = encoding.kinds == LEAF
        inner = encoding.values << 1 | (encoding.kinds == OR)
        # One word for the pair of kind and number: ~leaf, or a count and the operator's bit.
        codes = np.where(is_leaf, ~encoding.values, inner).astype(np.int32)
        starts = run_starts(np.diff(encoding.starts))
        minima = np.zeros(len(self._ordinals), dtype=np.int32)
        minimum_counts(starts, codes, np.zeros(len(is_leaf), np.int32), minima)
        owners = np.repeat(np.arange(len(minima), dtype=np.int32), np.diff(encoding.starts))
        leaves = encoding.values[is_leaf]
        self._index = BoPArrays(
            run_starts(np.bincount(leaves, minlength=self.n_leaves)),
            # A predicate that occurs twice in an expression counts twice, as in the minimum.
            owners[is_leaf][np.argsort(leaves, kind="stable")],
            minima,
            starts,
            codes,
            np.flatnonzero(minima == 0).astype(np.int32),
        )

    def match(self, satisfied: Rows) -> Rows:
        """The ordinals that each event matches, ascending."""
        return rising(self.find(satisfied))

    def find(self, satisfied: Rows) -> Rows:
        """The ordinals that each event matches, in the order in which they become candidates."""
        is_true = np.zeros(self.n_leaves, dtype=np.bool_)
        hits = np.zeros(len(self._ordinals), dtype=np.int32)
        counts = np.zeros(3, dtype=np.int64)

        def find(first: int, starts: Ints, found: Ints) -> int:
            into = (starts, found, counts)
            return int(match_by_counts(first, satisfied, is_true, self._index, hits, *into))

        rows = collect_rows(find, len(satisfied), len(self._ordinals))
        names = ("postings", "candidates", "nodes")
        self.counts = dict(zip(names, counts.tolist(), strict=True))
        return Rows(rows.starts, self._ordinals[rows.values])

    @property
    def n_bytes(self) -> int:
        """The encoded expressions, minima and postings."""
        return sum(array.nbytes for array in (self._ordinals, *self._index))
