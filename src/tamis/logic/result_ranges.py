"""Lint: comparisons that all results of a function satisfy, or none, such as hour(ts) > 24."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.ast import Between, Comparison, Condition, Derived, In, Literal
from tamis.language.comparators import Comparator
from tamis.language.names import print_path
from tamis.language.value_functions import FUNCTIONS
from tamis.logic.findings import Finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.overloads import Range


def find_outside_range(leaf: Condition) -> Iterator[Finding]:
    """Findings for constants beyond the results of the outermost function."""
    value, decided = _decide(leaf)
    if decided is None or value is None:
        return
    shown = print_path(value.path)
    hint = f"{shown} is {_describe(FUNCTIONS[value.function].range)}"
    if decided:
        message = f"true for every event that has {shown}"
        yield Finding("redundant", message, leaf.span, hint=hint)
    else:
        yield Finding("never-true", "never true: no result is in that range", leaf.span, hint=hint)


def _decide(leaf: Condition) -> tuple[Derived | None, bool | None]:
    """The value that is tested, and what the test is for all of its results; None if it depends."""
    match leaf:
        case Comparison(operator, Derived() as value, Literal() as constant):
            return value, _compare(operator, _range_of(value), constant.value)
        case Comparison(operator, Literal() as constant, Derived() as value):
            return value, _compare(operator.mirrored, _range_of(value), constant.value)
        case Between(Derived() as value, Literal() as low, Literal() as high):
            bounds = _range_of(value)
            above = _compare(Comparator.AT_LEAST, bounds, low.value)
            below = _compare(Comparator.AT_MOST, bounds, high.value)
            if False in (above, below):
                return value, leaf.negated
            # NOT BETWEEN may still hold where the value is missing.
            return value, True if above and below and not leaf.negated else None
        case In(Derived() as value, values):
            bounds = _range_of(value)
            if any(_compare(Comparator.EQUAL, bounds, own.value) is None for own in values):
                return value, None
            return value, leaf.negated
    return None, None


def _range_of(value: Derived) -> Range:
    return FUNCTIONS[value.function].range


def _compare(operator: Comparator, bounds: Range, constant: Any) -> bool | None:
    """What a comparison is for all results; None if it depends on the result."""
    low, high = bounds
    is_below_all = low is not None and constant < low
    is_above_all = high is not None and constant > high
    match operator:
        case Comparator.EQUAL | Comparator.SAME:
            return False if is_below_all or is_above_all else None
        case Comparator.NOT_EQUAL:
            return True if is_below_all or is_above_all else None
        case Comparator.BELOW:
            if is_below_all or constant == low:
                return False
            return True if is_above_all else None
        case Comparator.AT_MOST:
            if is_below_all:
                return False
            return True if is_above_all or constant == high else None
        case Comparator.ABOVE:
            if is_above_all or constant == high:
                return False
            return True if is_below_all else None
        case Comparator.AT_LEAST:
            if is_above_all:
                return False
            return True if is_below_all or constant == low else None


def _describe(bounds: Range) -> str:
    low, high = bounds
    return f"{low} or more" if high is None else f"{low} to {high}"
