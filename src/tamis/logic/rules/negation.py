"""Negation normal form: NOT is pushed to the leaves, where it becomes the opposite test.

Exact in three-valued logic: De Morgan's laws hold, NOT at_least(k of n) is at_least(n - k + 1) of
the negations, NOT XOR is XNOR, and each comparison has an exact opposite.
"""

from __future__ import annotations

from tamis.language.ast import And, AtLeast, Condition, IsNull, Literal, Not, Or, Xnor, Xor
from tamis.logic.leaves import inverse


def push_negation(
    node: Condition, *, is_negated: bool = False, is_signed: bool = False
) -> Condition:
    """`node`, or its negation, with NOT on leaves only.

    With `is_signed`, leaves keep their test under a NOT, for the mode in which a negated test on a
    missing attribute is true: there `NOT a < 1` differs from `a >= 1`.
    """

    def below(operand: Condition, *, flip: bool) -> Condition:
        return push_negation(operand, is_negated=flip, is_signed=is_signed)

    match node:
        case Not():
            return below(node.operand, flip=not is_negated)
        case And() | Or():
            operands = tuple(below(operand, flip=is_negated) for operand in node.operands)
            return And(operands) if isinstance(node, And) != is_negated else Or(operands)
        case AtLeast():
            operands = tuple(below(operand, flip=is_negated) for operand in node.operands)
            return AtLeast(len(operands) - node.k + 1 if is_negated else node.k, operands)
        case Xor() | Xnor():
            operands = tuple(below(operand, flip=False) for operand in node.operands)
            return Xor(operands) if isinstance(node, Xor) != is_negated else Xnor(operands)
        case _ if not is_negated:
            return node
        case IsNull() | Literal():  # never undefined, so their opposites are valid in both modes
            return inverse(node)
        case _:
            return Not(node) if is_signed else inverse(node)
