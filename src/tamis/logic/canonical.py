"""The canonical form: one tree for all spellings of the same condition.

Leaves are rewritten to one spelling, NOT is pushed to the leaves, and the rules are applied
bottom-up until nothing changes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tamis.language.ast import NARY, Condition, Not, Xnor, Xor
from tamis.logic.evaluate import Missing
from tamis.logic.rules import RULES, Preserves, empty_sets, order, spelling
from tamis.logic.rules.negation import push_negation

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.logic.rules import Rule

_EXACT = tuple(rule for rule in RULES if rule.preserves is Preserves.VALUE)


def canonicalize(
    condition: Condition, missing: Missing = Missing.UNDEFINED, *, is_exact: bool = False
) -> Condition:
    """The canonical form of a typed condition: negation normal, sorted, folded, merged.

    It is TRUE for the same events; with `is_exact` it is also undefined for the same events. If
    `missing` is SATISFIES_NEGATION, leaves keep their sign as NOT (leaf).
    """
    return simplify(to_nnf(condition, missing), missing, is_exact=is_exact)


def to_nnf(condition: Condition, missing: Missing = Missing.UNDEFINED) -> Condition:
    """Negation normal form with one spelling of each leaf; exact in three-valued logic."""
    spelled = _map_leaves(spelling.rewrite, condition)
    if missing is Missing.UNDEFINED:
        return push_negation(spelled)
    # Every test is true or false here, so tests against the empty set are constant.
    decided = _map_leaves(empty_sets.rewrite, spelled)
    return push_negation(decided, is_signed=True)


def simplify(
    node: Condition, missing: Missing = Missing.UNDEFINED, *, is_exact: bool = False
) -> Condition:
    """Apply the rules to a tree in negation normal form, children first."""
    return _simplify(node, missing, rules=_usable(_EXACT if is_exact else RULES, missing))


def _usable(rules: tuple[Rule, ...], missing: Missing) -> tuple[Rule, ...]:
    if missing is Missing.UNDEFINED:
        return rules
    return tuple(rule for rule in rules if not rule.uses_opposites)


def _map_leaves(rewrite: Callable[[Condition], Condition], node: Condition) -> Condition:
    if isinstance(node, NARY):
        return replace(node, operands=tuple(_map_leaves(rewrite, x) for x in node.operands))
    if isinstance(node, Not):
        return Not(_map_leaves(rewrite, node.operand))
    return rewrite(node)


def _simplify(node: Condition, missing: Missing, rules: tuple[Rule, ...]) -> Condition:
    if isinstance(node, NARY):
        # Inside XOR, false and undefined operands differ: only exact rules apply.
        below = _usable(_EXACT, missing) if isinstance(node, Xor | Xnor) else rules
        operands = tuple(_simplify(operand, missing, below) for operand in node.operands)
        if operands != node.operands:
            node = replace(node, operands=operands)
    for rule in rules:
        rewritten = rule.rewrite(node)
        if rewritten is not node:
            # A rule may have created new operands, or a NOT above an inner node: start again.
            is_signed = missing is Missing.SATISFIES_NEGATION
            return _simplify(push_negation(rewritten, is_signed=is_signed), missing, rules)
    return order.rewrite(node)
