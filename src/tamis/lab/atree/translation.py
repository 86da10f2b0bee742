"""Translation (§2): each expression becomes conjunctions, which a counting algorithm matches."""

from __future__ import annotations

from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias

import numpy as np

from tamis.index.layout import OR, run_starts
from tamis.lab.atree.encoding import plain
from tamis.lab.atree.kernels.translation import match_conjunctions
from tamis.lab.forest import RanOutError, Rows, collect_rows, rising
from tamis.lab.machine import Machine

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.atree.arrays import Ints
    from tamis.lab.forest import Tree

Conjunctions: TypeAlias = "list[frozenset[int]]"

MOST_OF_ONE: Final = 10_000  # conjunctions of an expression
MOST_OF_ALL: Final = 50_000_000  # predicates in all conjunctions


class ConjunctionArrays(NamedTuple):
    """Conjunctions, and the conjunctions of each predicate."""

    posting_starts: Ints
    postings: Ints  # conjunctions, by predicate
    sizes: Ints  # int32[n_conjunctions], predicates of each
    owners: Ints  # its expression
    always: Ints  # expressions with an empty conjunction


class Translation(Machine):
    """The disjunctive normal form of every expression, over counters of conjunctions."""

    name: ClassVar = "Translation"
    paper: ClassVar = "Ji and Jacobsen 2021, §2"

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Translate the expressions, and list the conjunctions of each predicate."""
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
        of_leaves = np.array(leaves, dtype=np.int32)
        sizes_of = np.array(sizes, dtype=np.int32)
        owner_of = np.array(owners, dtype=np.int32)
        conjunction = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes_of)
        self._index = ConjunctionArrays(
            run_starts(np.bincount(of_leaves, minlength=self.n_leaves)),
            conjunction[np.argsort(of_leaves, kind="stable")],
            sizes_of,
            owner_of,
            np.unique(owner_of[sizes_of == 0]),
        )

    def match(self, satisfied: Rows) -> Rows:
        """The ordinals that each event matches, ascending."""
        return rising(self.find(satisfied))

    def find(self, satisfied: Rows) -> Rows:
        """The ordinals that each event matches, in the order of their first true conjunction."""
        hits = np.zeros(self.n_conjunctions, dtype=np.int32)
        found_at = np.full(len(self._ordinals), -1, dtype=np.int32)
        counts = np.zeros(2, dtype=np.int64)

        def find(first: int, starts: Ints, found: Ints) -> int:
            into = (starts, found, counts)
            return int(match_conjunctions(first, satisfied, self._index, hits, found_at, *into))

        rows = collect_rows(find, len(satisfied), len(self._ordinals))
        self.counts = dict(zip(("postings", "conjunctions"), counts.tolist(), strict=True))
        return Rows(rows.starts, self._ordinals[rows.values])

    @property
    def n_conjunctions(self) -> int:
        """The number of conjunctions of all expressions."""
        return len(self._index.sizes)

    @property
    def n_bytes(self) -> int:
        """The conjunctions and postings."""
        return sum(array.nbytes for array in (self._ordinals, *self._index))


def translate(tree: Tree) -> Conjunctions:
    """The distinct conjunctions of the tree: it is true if at least one of them is."""
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
