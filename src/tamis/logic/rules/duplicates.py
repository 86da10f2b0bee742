"""p AND p is p; p OR p is p. (at_least counts each operand, so it keeps duplicates.)"""

from __future__ import annotations

from tamis.language.ast import And, Condition, Or
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Remove duplicate operands of AND and OR."""
    if not isinstance(node, And | Or):
        return node
    unique = tuple(dict.fromkeys(node.operands))
    if len(unique) == len(node.operands):
        return node
    return type(node)(unique) if len(unique) > 1 else unique[0]


RULE = Rule("duplicates", Preserves.VALUE, rewrite)
