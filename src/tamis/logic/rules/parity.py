"""Each operand of XOR gets a fixed sign: a XOR b <> 1 is a XNOR b = 1."""

from __future__ import annotations

from tamis.language.ast import Condition, Not, Xnor, Xor, children
from tamis.logic.digest import digest
from tamis.logic.leaves import inverse
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Replace each leaf by itself or its opposite, whichever has the smaller digest."""
    if not isinstance(node, Xor | Xnor):
        return node
    n_turns = 0
    operands: list[Condition] = []
    for operand in node.operands:
        if not children(operand) or isinstance(operand, Not):
            opposite = inverse(operand)
            if digest(opposite) < digest(operand):
                n_turns += 1
                operands.append(opposite)
                continue
        operands.append(operand)
    if n_turns == 0:
        return node
    is_turned = isinstance(node, Xnor) ^ (n_turns % 2 == 1)
    return Xnor(tuple(operands)) if is_turned else Xor(tuple(operands))


RULE = Rule("parity", Preserves.VALUE, rewrite, uses_opposites=True)
