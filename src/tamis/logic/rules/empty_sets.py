"""a IN () is never true; a NOT IN () is true if a is present."""

from __future__ import annotations

from tamis.language.ast import Condition, In
from tamis.logic.leaves import FALSE, is_null
from tamis.logic.rules.rule import Preserves, Rule


def rewrite(node: Condition) -> Condition:
    """Replace tests against the empty set."""
    if isinstance(node, In) and not node.values:
        return is_null(node.operand, negated=True) if node.negated else FALSE
    return node


RULE = Rule("empty sets", Preserves.TRUTH, rewrite)
