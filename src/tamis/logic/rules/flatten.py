"""(p AND q) AND r is p AND q AND r; likewise OR and XOR."""

from __future__ import annotations

from tamis.language.ast import And, Condition, Or, Xnor, Xor
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Lift the operands of operands with the same connective."""
    if isinstance(node, And | Or):
        kind = type(node)
        if not any(isinstance(operand, kind) for operand in node.operands):
            return node
        return kind(tuple(_lifted(node, kind)))
    if isinstance(node, Xor | Xnor) and any(isinstance(x, Xor | Xnor) for x in node.operands):
        # Each XNOR among them negates the whole.
        n_turns = sum(isinstance(x, Xnor) for x in (node, *node.operands))
        operands = tuple(_lifted(node, (Xor, Xnor)))
        return Xor(operands) if n_turns % 2 == 0 else Xnor(operands)
    return node


def _lifted(node: And | Or | Xor | Xnor, kind: type | tuple[type, ...]) -> list[Condition]:
    operands: list[Condition] = []
    for operand in node.operands:
        if isinstance(operand, kind):
            operands.extend(operand.operands)  # type: ignore[union-attr]
        else:
            operands.append(operand)
    return operands


RULE = Rule("flatten", Preserves.VALUE, rewrite)
