"""Tests of one attribute are merged.

Under AND their sets are intersected (a > 3 AND a > 5 is a > 5, a = 1 AND a = 2 is a IN ()); under
OR they are united, as the opposite of the intersection of the opposites. A missing attribute stays
undefined, so the rule is exact. Arrays are not merged: two of their elements may satisfy two tests.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tamis.language.ast import And, Attribute, Comparison, Condition, In, Literal, Or
from tamis.language.comparators import IndexTest, bound_by
from tamis.logic.comparing import compare
from tamis.logic.leaves import inverse, one_of, scalar_attribute
from tamis.logic.rules.rule import Preserves, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(slots=True)
class ValueSet:
    """The values that satisfy a conjunction of scalar tests of one attribute."""

    attribute: Attribute
    low: tuple[Literal, bool] | None = None  # bound, whether it is inclusive
    high: tuple[Literal, bool] | None = None
    included: dict[Any, Literal] | None = None  # None: all values
    excluded: dict[Any, Literal] = field(default_factory=dict)

    def intersect(self, leaf: Condition) -> None:
        """Intersect the set with one more test."""
        if isinstance(leaf, In):
            self._intersect_members(leaf.values, is_negated=leaf.negated)
            return
        assert isinstance(leaf, Comparison)
        assert isinstance(leaf.right, Literal)
        bound, signed = leaf.right, leaf.operator.signed_test
        is_closed = signed.is_closed
        if signed.test is IndexTest.EQUAL:
            self._intersect_members((bound,), is_negated=signed.is_negated)
        elif signed.is_upper:
            if self.high is None or self._is_tighter(bound, is_closed, self.high, sign=-1):
                self.high = (bound, is_closed)
        elif self.low is None or self._is_tighter(bound, is_closed, self.low, sign=1):
            self.low = (bound, is_closed)

    def _intersect_members(self, members: Iterable[Literal], *, is_negated: bool) -> None:
        values = {literal.value: literal for literal in members}
        if is_negated:
            self.excluded |= values
        elif self.included is None:
            self.included = values
        else:
            self.included = {key: self.included[key] for key in self.included.keys() & values}

    def _is_tighter(
        self, bound: Literal, is_closed: bool, current: tuple[Literal, bool], *, sign: int
    ) -> bool:
        order = sign * self._compare(bound, current[0])
        return order > 0 or (order == 0 and current[1] and not is_closed)

    def _compare(self, left: Literal, right: Literal) -> int:
        return compare(left.value, right.value, self.attribute.type)

    def _holds(self, literal: Literal) -> bool:
        if self.low is not None:
            order = self._compare(literal, self.low[0])
            if order < 0 or (order == 0 and not self.low[1]):
                return False
        if self.high is not None:
            order = self._compare(literal, self.high[0])
            if order > 0 or (order == 0 and not self.high[1]):
                return False
        return True

    def leaves(self) -> list[Condition]:
        """The fewest scalar leaves whose conjunction is this set."""
        attribute = self.attribute
        if self.included is not None:
            kept = [x for key, x in self.included.items() if key not in self.excluded]
            return [one_of(attribute, filter(self._holds, kept))]
        if self.low is not None and self.high is not None:
            order = self._compare(self.low[0], self.high[0])
            if order > 0 or (order == 0 and not (self.low[1] and self.high[1])):
                return [one_of(attribute, ())]
            if order == 0:
                is_out = self.low[0].value in self.excluded
                return [one_of(attribute, () if is_out else (self.low[0],))]
        found: list[Condition] = []
        if self.low is not None:
            above = bound_by(is_upper=False, is_closed=self.low[1])
            found.append(Comparison(above, attribute, self.low[0]))
        if self.high is not None:
            below = bound_by(is_upper=True, is_closed=self.high[1])
            found.append(Comparison(below, attribute, self.high[0]))
        inside = [literal for literal in self.excluded.values() if self._holds(literal)]
        if inside or not found:
            found.append(one_of(attribute, inside, is_negated=True))
        return found


def rewrite(node: Condition) -> Condition:
    """Merge the scalar leaves of each attribute."""
    if not isinstance(node, And | Or):
        return node
    groups: dict[Attribute, list[Condition]] = defaultdict(list)
    for operand in node.operands:
        attribute = scalar_attribute(operand)
        if attribute is not None:
            groups[attribute].append(operand)
    joined: dict[Attribute, list[Condition]] = {}
    for attribute, group in groups.items():
        if len(group) > 1:
            leaves = _join(attribute, group, is_or=isinstance(node, Or))
            if set(leaves) != set(group):
                joined[attribute] = leaves
    if not joined:
        return node
    operands: list[Condition] = []
    for operand in node.operands:
        attribute = scalar_attribute(operand)
        if attribute is None or attribute not in joined:
            operands.append(operand)
        else:
            operands.extend(joined[attribute])
            joined[attribute] = []
    return type(node)(tuple(operands)) if len(operands) > 1 else operands[0]


def _join(attribute: Attribute, group: list[Condition], *, is_or: bool) -> list[Condition]:
    values = ValueSet(attribute)
    for leaf in group:
        values.intersect(inverse(leaf) if is_or else leaf)
    return [inverse(leaf) if is_or else leaf for leaf in values.leaves()]


RULE = Rule("value sets", Preserves.VALUE, rewrite, uses_opposites=True)
