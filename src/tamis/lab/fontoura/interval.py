"""Interval ID (§4): a leaf is an interval; an expression is true if intervals cover its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tamis.index.layout import AND
from tamis.lab.fontoura.annotated import AnnotatedPart
from tamis.lab.fontoura.delta import WithDelta
from tamis.lab.fontoura.expressions import Branch, Conjunction, conjunctions_of
from tamis.lab.fontoura.kernels.interval import match_intervals
from tamis.lab.forest import RanOutError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.kernels.arrays import Int32, Int64
    from tamis.lab.fontoura.annotated import Keys
    from tamis.lab.fontoura.expressions import Expression

MOST_LEAVES = (1 << 16) - 1  # `begin` and `end` have 16 bits each (§5.3)


def label(
    node: Expression, begin: int, end: int, left_leaves: int = 0
) -> Iterator[tuple[Expression, int, int]]:
    """LABEL (Algorithm 4): `node` and each node below it, with its interval.

    `left_leaves` is the number of leaves before the node. Operators need not alternate.
    """
    yield node, begin, end
    if isinstance(node, Conjunction):
        return
    current = begin
    for at, child in enumerate(node.children):
        size = count_leaves(child)
        child_begin, child_end = begin, end
        if node.operator == AND:
            child_begin = current
            if at + 1 < len(node.children):
                # As many integers as leaves, starting after the leaves before; the remaining
                # integers on either side go to the first and the last child.
                child_end = (left_leaves if at == 0 else current - 1) + size
            current = child_end + 1
        yield from label(child, child_begin, child_end, left_leaves)
        left_leaves += size


def count_leaves(node: Expression) -> int:
    """The size of a node: its number of conjunctions, counted with repetitions."""
    return sum(1 for _ in conjunctions_of(node))


class IntervalPart(AnnotatedPart):
    """The conjunctions with their intervals in their expressions."""

    def annotate(
        self, expressions: Iterable[Expression]
    ) -> Iterator[Iterable[tuple[Conjunction, int]]]:
        """Give each conjunction its interval: begin in the upper 16 bits, end in the lower."""
        known = list(expressions)
        self._line_end = max(map(count_leaves, known), default=1)
        if self._line_end > MOST_LEAVES:
            raise RanOutError(
                f"the tree has {self._line_end:,} conjunctions; "
                f"intervals of 16 bits have room for {MOST_LEAVES:,}"
            )
        self._ends = np.zeros(self._line_end + 1, dtype=np.int32)
        for expression in known:
            yield [
                (node, begin << 16 | end)
                for node, begin, end in label(expression, 1, self._line_end)
                if not isinstance(node, Branch)
            ]

    def evaluate(self, starts: Int64, keys: Keys, found_starts: Int64, found: Int32) -> None:
        """MATCH (Algorithm 5)."""
        match_intervals(starts, keys, self._ends, found_starts, found)


class Interval(WithDelta):
    """Interval ID: two array accesses for each true conjunction."""

    name: ClassVar = "Interval ID"
    paper: ClassVar = "Fontoura 2010, §4"
    part: ClassVar = IntervalPart
