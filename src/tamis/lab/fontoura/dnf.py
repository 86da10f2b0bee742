"""DNF expansion (§5.2): an expression is an OR of conjunctions, found by the index."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tamis.index.layout import OR
from tamis.lab.fontoura.annotated import join_blocks
from tamis.lab.fontoura.conjunction_index import ConjunctionIndex
from tamis.lab.fontoura.delta import ImmutableIndex, WithDelta, Work
from tamis.lab.fontoura.expressions import Conjunction, read_expression
from tamis.lab.fontoura.kernels.distinct import keep_distinct
from tamis.lab.forest import RanOutError, Rows

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.fontoura.expressions import Expression
    from tamis.lab.forest import Tree

MOST_CONJUNCTIONS = 10_000  # of an expression
MOST_IN_ALL = 5_000_000


def expand(node: Expression, most: int = MOST_CONJUNCTIONS) -> set[Conjunction]:
    """The disjunctive normal form; raises `RanOutError` if it has more than `most` conjunctions."""
    if isinstance(node, Conjunction):
        return {node}
    expanded = [expand(child, most) for child in node.children]
    if node.operator == OR:
        return limited(set().union(*expanded), most)
    product = {Conjunction((), ())}
    for one in expanded:
        if len(product) * len(one) > 4 * most:  # some may be equal, but not that many
            run_out(most)
        joined = {both for a in product for b in one if (both := conjoin(a, b)) is not None}
        product = limited(joined, most)
    return product


def conjoin(one: Conjunction, other: Conjunction) -> Conjunction | None:
    """The union of both conjunctions; none if it requires a leaf and its absence."""
    wanted = {*one.wanted, *other.wanted}
    unwanted = {*one.unwanted, *other.unwanted}
    if wanted & unwanted:
        return None
    return Conjunction(tuple(sorted(wanted)), tuple(sorted(unwanted)))


def limited(found: set[Conjunction], most: int) -> set[Conjunction]:
    """The argument, unless it is too large."""
    if len(found) > most:
        run_out(most)
    return found


def run_out(most: int) -> None:
    """Raise the error that the form is too large."""
    raise RanOutError(f"the disjunctive normal form has more than {most:,} conjunctions")


class DnfPart(ImmutableIndex):
    """The conjunctions of all normal forms, each with the expressions that contain it."""

    def build(self, trees: list[Tree], n_leaves: int, opposites: Mapping[int, int]) -> None:
        """Expand the expressions and index their conjunctions."""
        owners: dict[Conjunction, list[int]] = defaultdict(list)
        for number, tree in enumerate(trees):
            for conjunction in expand(read_expression(tree, opposites)):
                owners[conjunction].append(number)
            if len(owners) > MOST_IN_ALL:
                raise RanOutError(
                    f"the normal forms of {number + 1:,} of {len(trees):,} expressions "
                    f"have more than {MOST_IN_ALL:,} conjunctions"
                )
        self.index = ConjunctionIndex(owners, n_leaves, np.int32)
        self._stamps = np.zeros(len(trees), dtype=np.int64)
        self._latest = 0

    def match(self, satisfied: Rows, work: Work) -> Rows:
        """Find conjunctions; an expression with at least one of them is true."""
        blocks: list[Rows] = []
        row = 0
        self.index.scratch.n_postings[0] = 0
        while row < len(satisfied):
            with work.phase("index"):
                found = self.index.find(row, satisfied)
            with work.phase("evaluate"):
                starts, owners = self.index.gather(found)
                n_owners = len(owners)
                self._latest = keep_distinct(starts, owners, self._stamps, self._latest)
                for begin, end in zip(starts.tolist(), starts[1:].tolist(), strict=False):
                    owners[begin:end].sort()
                blocks.append(Rows(starts, owners[: starts[-1]].copy()))
            row += found.n_rows
            work.counts["conjunctions"] += len(found.conjunctions)
            work.counts["annotations"] += n_owners
        work.counts["postings"] += int(self.index.scratch.n_postings[0])
        return join_blocks(blocks)

    @property
    def n_bytes(self) -> int:
        """The memory of the index and of the expressions of each conjunction."""
        return self.index.n_bytes


class Dnf(WithDelta):
    """DNF expansion: no evaluation above conjunctions, but there are many of them."""

    name: ClassVar = "DNF expansion"
    paper: ClassVar = "Fontoura 2010, §5.2"
    part: ClassVar = DnfPart
