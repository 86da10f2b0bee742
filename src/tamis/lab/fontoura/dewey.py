"""Dewey ID (§3): the path from the root to a leaf, from which the tree is evaluated bottom-up."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tamis.index.layout import AND, run_starts
from tamis.lab.fontoura.annotated import AnnotatedPart
from tamis.lab.fontoura.delta import WithDelta
from tamis.lab.fontoura.expressions import Branch, Conjunction
from tamis.lab.fontoura.kernels.dewey import evaluate_dewey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.kernels.arrays import Int32, Int64, Starts
    from tamis.lab.fontoura.annotated import Keys
    from tamis.lab.fontoura.expressions import Expression

ID_BITS = 32  # bits of a Dewey ID (§5.3)


class Layouts(NamedTuple):
    """How the ids of each expression are stored.

    If all ids fit the field, it holds a fixed number of bits for each step. Otherwise the field is
    the id's position among those of its expression, and the steps are stored separately.
    """

    step_bits: npt.NDArray[np.uint8]  # [n_expressions]; 0 if steps are stored separately
    first_ids: Int64  # [n_expressions], the first id stored separately
    step_starts: Starts  # [n_ids written out + 1]
    steps: Int32  # twice the child's number, plus 1 for the last child


def alternate(node: Expression, operator: int = AND) -> Expression:
    """The expression with alternating AND and OR, starting with `operator`, or a conjunction
    (§2).
    """
    if isinstance(node, Conjunction):
        return node
    if node.operator != operator:
        return Branch(operator, (alternate(node, node.operator),))
    below: list[Expression] = []
    for child in node.children:
        if isinstance(child, Branch) and child.operator == operator:
            inner = alternate(child, operator)
            below.extend(inner.children if isinstance(inner, Branch) else (inner,))
        elif isinstance(child, Branch):
            below.append(alternate(child, child.operator))
        else:
            below.append(child)
    return Branch(operator, tuple(below))


def dewey_ids(
    node: Expression, steps: tuple[int, ...] = ()
) -> Iterator[tuple[Conjunction, tuple[int, ...]]]:
    """The conjunctions from left to right, each with the steps that lead to it (§3.1).

    A step is twice the number of the child, counted from 1, plus 1 if it is the last (the paper's
    *).
    """
    if isinstance(node, Conjunction):
        yield node, steps
        return
    for number, child in enumerate(node.children, start=1):
        is_last = number == len(node.children)
        yield from dewey_ids(child, (*steps, 2 * number + is_last))


class DeweyPart(AnnotatedPart):
    """The conjunctions with their Dewey IDs in their expressions."""

    def annotate(
        self, expressions: Iterable[Expression]
    ) -> Iterator[Iterable[tuple[Conjunction, int]]]:
        """Give each conjunction its Dewey ID, or its position if the ids are too long."""
        step_bits: list[int] = []
        first_ids: list[int] = []
        written: list[tuple[int, ...]] = []
        longest = 1
        for expression in expressions:
            labelled = list(dewey_ids(with_and_root(expression)))
            length = max((len(steps) for _, steps in labelled), default=0)
            bits = max((max(steps) for _, steps in labelled), default=0).bit_length()
            longest = max(longest, length)
            first_ids.append(len(written))
            if length * bits <= ID_BITS:
                step_bits.append(bits)
                yield [(one, pack(steps, bits)) for one, steps in labelled]
            else:
                step_bits.append(0)
                written.extend(steps for _, steps in labelled)
                yield [(one, place) for place, (one, _) in enumerate(labelled)]
        self._layouts = Layouts(
            np.array(step_bits, dtype=np.uint8),
            np.array(first_ids if written else [0] * len(first_ids), dtype=np.int64),
            run_starts(np.array([len(steps) for steps in written], dtype=np.int64)),
            np.array([step for steps in written for step in steps], dtype=np.int32),
        )
        self._stack = np.zeros((4, longest + 2), dtype=np.int32)

    def evaluate(self, starts: Int64, keys: Keys, found_starts: Int64, found: Int32) -> None:
        """The Dewey evaluation algorithm (Algorithms 1–3)."""
        evaluate_dewey(starts, keys, self._layouts, self._stack, found_starts, found)

    @property
    def n_bytes(self) -> int:
        """The memory of the index, the annotations database, and the ids stored separately."""
        return super().n_bytes + sum(array.nbytes for array in self._layouts)


def with_and_root(expression: Expression) -> Expression:
    """The expression with an AND at the root (§3.1, 1); the levels below alternate."""
    if isinstance(expression, Conjunction):
        return Branch(AND, (expression,))
    return alternate(expression, AND)


def pack(steps: tuple[int, ...], bits: int) -> int:
    """The steps in one field, the first in the highest bits, so that ids sort as numbers."""
    packed = 0
    for step in steps:
        packed = packed << bits | step
    return packed << (ID_BITS - bits * len(steps))


class Dewey(WithDelta):
    """Dewey ID: each true conjunction is propagated upwards until its path joins that of the
    previous one.
    """

    name: ClassVar = "Dewey ID"
    paper: ClassVar = "Fontoura 2010, §3"
    part: ClassVar = DeweyPart
