"""Exclusions: what a rule should no longer match, tried on events before it is published."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.language.ast import And, AtLeast, IsNull, Or, leaves, tested_attributes
from tamis.language.check import check
from tamis.language.parser import parse
from tamis.language.printer import print_expression
from tamis.logic.canonical import to_nnf

if TYPE_CHECKING:
    from tamis.language.ast import Condition
    from tamis.language.schema import Schema


class ExclusionReport(NamedTuple):
    """A rule with an exclusion, on the same events."""

    rule_id: str
    exclusion: str
    expression: str  # of the rule with the exclusion
    n_before: int
    n_after: int
    removed: list[dict[str, Any]]  # examples of events that no longer fire


def add_exclusion(expression: str, exclusion: str, schema: Schema) -> str:
    """The expression without the events for which the exclusion is TRUE.

    An exclusion on an attribute that an event lacks excludes nothing: each of its tests is
    preceded by one for presence.
    """
    condition = to_nnf(check(parse(exclusion), schema))
    return f"({expression}) AND NOT ({print_expression(_guard(condition))})"


def _guard(node: Condition) -> Condition:
    """The condition with FALSE instead of undefined; it is in negation normal form."""
    if isinstance(node, And | Or | AtLeast):
        return replace(node, operands=tuple(map(_guard, node.operands)))
    if isinstance(node, IsNull):
        return node
    values = dict.fromkeys(value for leaf in leaves(node) for value in tested_attributes(leaf))
    present = tuple(IsNull(value, negated=True) for value in values)
    return And((*present, node)) if present else node
