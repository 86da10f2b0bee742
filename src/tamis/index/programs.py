"""Programs: expressions as postfix instructions over numbered leaves, many in one set of arrays.

The fast reader (`kernels.scan`) makes them from text. Expressions that it does not read are parsed,
typed and brought into negation normal form in Python, and converted here. The kernels that make
nodes of programs fold both (`kernels.folding`).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.index.kernels import scan
from tamis.language.ast import And, AtLeast, Condition, Not, Or, Xnor, Xor, children
from tamis.logic.canonical import to_nnf
from tamis.logic.rules import empty_sets

if TYPE_CHECKING:
    from tamis.index.dag_builder import DagBuilder
    from tamis.kernels.arrays import Int32, Int64, UInt8
    from tamis.logic.evaluate import Missing


class Programs(NamedTuple):
    """Program i is instructions starts[i] to starts[i + 1]."""

    starts: Int64  # [n_programs + 1]
    operators: UInt8  # of `kernels.scan`
    operands: Int32  # number of the leaf, or of operands
    required: Int32  # at_least's k
    is_left: UInt8  # [n_programs], 1 for a program to skip


def write_programs(conditions: list[Condition], builder: DagBuilder, missing: Missing) -> Programs:
    """The programs of typed conditions, from their negation normal forms."""
    starts = array("q", (0,))
    operators, operands, required = array("B"), array("i"), array("i")

    def write(node: Condition, *, is_exact: bool = False) -> None:
        below = children(node)
        if not below or (isinstance(node, Not) and not children(node.operand)):
            # Under XOR the leaf's opposite is wanted too, which is undefined where the leaf is.
            emit(scan.STEP_LEAF, builder.leaf(node if is_exact else empty_sets.rewrite(node)), 0)
            return
        is_exact = is_exact or isinstance(node, Xor | Xnor)
        for operand in below:
            write(operand, is_exact=is_exact)
        emit(_OPERATORS[type(node)], len(below), node.k if isinstance(node, AtLeast) else 0)

    def emit(operator: int, operand: int, need: int) -> None:
        operators.append(operator)
        operands.append(operand)
        required.append(need)

    for condition in conditions:
        write(to_nnf(condition, missing))
        starts.append(len(operators))
    return Programs(
        np.array(starts, dtype=np.int64),
        np.array(operators, dtype=np.uint8),
        np.array(operands, dtype=np.int32),
        np.array(required, dtype=np.int32),
        np.zeros(len(conditions), dtype=np.uint8),
    )


_OPERATORS = {
    Not: scan.STEP_NOT,
    And: scan.STEP_AND,
    Or: scan.STEP_OR,
    Xor: scan.STEP_XOR,
    Xnor: scan.STEP_XNOR,
    AtLeast: scan.STEP_AT_LEAST,
}
