"""p AND NOT p is never true. (p OR NOT p is not always true: it is undefined if p is.)"""

from __future__ import annotations

from tamis.language.ast import And, Condition, IsNull, Not, Or, children
from tamis.logic.leaves import FALSE, TRUE, inverse
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Replace operands among which are a leaf and its opposite."""
    if isinstance(node, And):
        operands = set(node.operands)
        leaves = (x for x in node.operands if not children(x) or isinstance(x, Not))
        return FALSE if any(inverse(leaf) in operands for leaf in leaves) else node
    if isinstance(node, Or):
        # IS NULL is never undefined: together with its opposite it covers all events.
        tests = {(x.operand.path, x.negated) for x in node.operands if isinstance(x, IsNull)}
        return TRUE if any((path, not negated) in tests for path, negated in tests) else node
    return node


RULE = Rule("complements", Preserves.TRUTH, rewrite)
