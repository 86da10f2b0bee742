"""p AND (p OR q) is p; p OR (p AND q) is p."""

from __future__ import annotations

from tamis.language.ast import And, Condition, Or
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Drop operands that contain one of their siblings."""
    if not isinstance(node, And | Or):
        return node
    dual = Or if isinstance(node, And) else And
    siblings = set(node.operands)
    kept = tuple(
        operand
        for operand in node.operands
        if not (isinstance(operand, dual) and not siblings.isdisjoint(operand.operands))
    )
    if len(kept) == len(node.operands):
        return node
    return type(node)(kept) if len(kept) > 1 else kept[0]


RULE = Rule("absorption", Preserves.VALUE, rewrite)
