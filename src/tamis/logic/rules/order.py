"""Operands are sorted by their content digests, so that P OR Q equals Q OR P."""

from __future__ import annotations

from tamis.language.ast import NARY as NARY_NODES
from tamis.language.ast import AtLeast, Condition, children
from tamis.logic.digest import digest
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Sort the operands."""
    if not isinstance(node, NARY_NODES):
        return node
    operands = tuple(sorted(children(node), key=digest))
    if operands == node.operands:
        return node
    return AtLeast(node.k, operands) if isinstance(node, AtLeast) else type(node)(operands)


RULE = Rule("order", Preserves.VALUE, rewrite)
