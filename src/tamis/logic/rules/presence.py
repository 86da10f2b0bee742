"""Tests of presence next to tests that require presence.

a IS NOT NULL AND a < 5 is a < 5; a IS NULL AND a < 5 is never true; a IS NOT NULL OR a < 5 is a IS
NOT NULL.
"""

from __future__ import annotations

from tamis.language.ast import And, Condition, IsNull, Or
from tamis.logic.leaves import FALSE, required_attributes
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Drop tests that presence makes redundant, and fold those that absence makes impossible."""
    if not isinstance(node, And | Or):
        return node
    if not any(isinstance(operand, IsNull) for operand in node.operands):
        return node
    return _rewrite_and(node) if isinstance(node, And) else _rewrite_or(node)


def _rewrite_and(node: And) -> Condition:
    required = frozenset[tuple[str, ...]]().union(*map(required_attributes, node.operands))
    kept = []
    for operand in node.operands:
        if isinstance(operand, IsNull) and operand.operand.path in required:
            if not operand.negated:
                return FALSE
            continue
        kept.append(operand)
    if len(kept) == len(node.operands):
        return node
    return And(tuple(kept)) if len(kept) > 1 else kept[0]


def _rewrite_or(node: Or) -> Condition:
    present = {
        operand.operand.path
        for operand in node.operands
        if isinstance(operand, IsNull) and operand.negated
    }
    kept = tuple(
        operand for operand in node.operands if present.isdisjoint(required_attributes(operand))
    )
    if len(kept) == len(node.operands):
        return node
    return Or(kept) if len(kept) > 1 else kept[0]


RULE = Rule("presence", Preserves.TRUTH, rewrite)
