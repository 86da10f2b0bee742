"""TRUE and FALSE operands are folded; a connective with one operand is replaced by it."""

from __future__ import annotations

from tamis.language.ast import And, AtLeast, Condition, Literal, Not, Or, Xnor, Xor
from tamis.logic.leaves import FALSE, TRUE
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Fold constants."""
    match node:
        case And():
            return _fold(node, neutral=True)
        case Or():
            return _fold(node, neutral=False)
        case AtLeast():
            return _fold_at_least(node)
        case Xor() | Xnor():
            return _fold_xor(node)
        case _:
            return node


def _fold(node: And | Or, *, neutral: bool) -> Condition:
    operands = []
    for operand in node.operands:
        if isinstance(operand, Literal):
            if operand.value is not neutral:
                return operand
        else:
            operands.append(operand)
    if len(operands) == len(node.operands) > 1:
        return node
    if len(operands) == 1:
        return operands[0]
    return type(node)(tuple(operands)) if operands else (TRUE if neutral else FALSE)


def _fold_at_least(node: AtLeast) -> Condition:
    n_true = sum(operand == TRUE for operand in node.operands)
    operands = tuple(operand for operand in node.operands if not isinstance(operand, Literal))
    k = node.k - n_true
    if k <= 0:
        return TRUE
    if k > len(operands):
        return FALSE
    if len(operands) == 1:
        return operands[0]
    if k == 1:
        return Or(operands)
    if k == len(operands):
        return And(operands)
    return AtLeast(k, operands) if len(operands) < len(node.operands) else node


def _fold_xor(node: Xor | Xnor) -> Condition:
    operands = tuple(operand for operand in node.operands if not isinstance(operand, Literal))
    if len(operands) == len(node.operands) > 1:
        return node
    is_odd = sum(operand == TRUE for operand in node.operands) % 2 == 1
    is_turned = isinstance(node, Xnor) ^ is_odd
    if not operands:
        return TRUE if is_turned else FALSE
    if len(operands) == 1:
        return Not(operands[0]) if is_turned else operands[0]
    return Xnor(operands) if is_turned else Xor(operands)


RULE = Rule("constants", Preserves.VALUE, rewrite)
