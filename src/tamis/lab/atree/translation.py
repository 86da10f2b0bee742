"""Translation (§2): each expression becomes conjunctions, which a counting matcher finds."""

from __future__ import annotations

from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, ClassVar, Final, TypeAlias

import numpy as np

from tamis.index.layout import OR, run_starts
from tamis.lab.atree.encoding import plain
from tamis.lab.atree.kernels.translation import match_conjunctions
from tamis.lab.forest import RanOutError, Rows, as_rows
from tamis.lab.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.forest import Tree

Conjunctions: TypeAlias = "list[frozenset[int]]"

MOST_OF_ONE: Final = 10_000  # conjunctions of an expression
MOST_OF_ALL: Final = 50_000_000  # predicates in all conjunctions


class Translation(Machine):
    """The disjunctive normal form of every expression, over counters of conjunctions."""

    name: ClassVar = "Translation"
    paper: ClassVar = "Ji and Jacobsen 2021, §2"

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Translate, and list by predicate the conjunctions that it is in."""
        self._ordinals = np.array(sorted(trees), dtype=np.int32)
        owners: list[int] = []
        sizes: list[int] = []
        leaves: list[int] = []
        for place, ordinal in enumerate(self._ordinals.tolist()):
            conjunctions = translate(plain(trees[ordinal]))
            owners.extend([place] * len(conjunctions))
            sizes.extend(map(len, conjunctions))
            leaves.extend(chain.from_iterable(conjunctions))
            if len(leaves) > MOST_OF_ALL:
                raise RanOutError(f"conjunctions have more than {MOST_OF_ALL:,} predicates")
        self._owners = np.array(owners, dtype=np.int32)
        self._sizes = np.array(sizes, dtype=np.int32)
        of_leaves = np.array(leaves, dtype=np.int32)
        conjunction = np.repeat(np.arange(len(sizes), dtype=np.int32), self._sizes)
        self._postings = conjunction[np.argsort(of_leaves, kind="stable")]
        self._posting_starts = run_starts(np.bincount(of_leaves, minlength=self.n_leaves))
        self._always = np.unique(self._owners[self._sizes == 0])

    def match(self, satisfied: Rows) -> Rows:
        """The ordinals each event matches."""
        hits = np.zeros(len(self._sizes), dtype=np.int32)
        found_at = np.full(len(self._ordinals), -1, dtype=np.int32)
        found = np.empty(len(self._ordinals), dtype=np.int32)
        counts = np.zeros(2, dtype=np.int64)
        runs = []
        for row in range(len(satisfied)):
            n_found = match_conjunctions(
                satisfied[row],
                *(self._posting_starts, self._postings, self._sizes, self._owners),
                *(hits, row, found_at, found, counts),
            )
            places = np.union1d(found[:n_found], self._always)
            runs.append(self._ordinals[places])
        self.counts = dict(zip(("postings", "conjunctions"), counts.tolist(), strict=True))
        return as_rows(runs)

    @property
    def n_conjunctions(self) -> int:
        """How many conjunctions the expressions became."""
        return len(self._sizes)

    @property
    def n_bytes(self) -> int:
        """Conjunctions and postings."""
        arrays = (self._ordinals, self._owners, self._sizes, self._postings)
        return sum(array.nbytes for array in (*arrays, self._posting_starts))


def translate(tree: Tree) -> Conjunctions:
    """The conjunctions of which one at least holds where the tree does, each once."""
    if isinstance(tree, int):
        return [frozenset((tree,))]
    parts = [translate(child) for child in tree.children]
    is_or = tree.operator == OR
    n_found = sum(map(len, parts)) if is_or else prod(map(len, parts))
    if n_found > MOST_OF_ONE:
        raise RanOutError(f"{n_found:,} conjunctions of an expression; at most {MOST_OF_ONE:,}")
    if is_or:
        return list(dict.fromkeys(chain.from_iterable(parts)))
    return list(dict.fromkeys(frozenset[int]().union(*some) for some in product(*parts)))
