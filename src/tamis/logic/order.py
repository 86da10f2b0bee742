"""The order of values, as Spark has it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.language.types import Type


def compare(left: Any, right: Any, type_: Type | None) -> int:
    """-1, 0 or 1 as `left` is before, equal to or after `right`.

    Strings compare by code point, which is the order of their UTF-8 bytes. Floats and doubles
    have a total order: NaN equals itself and is above everything. When one side is floating the
    other is rounded to a double first, as Spark does; of a number, the value itself tells.
    """
    if type_ is not None and (
        type_.is_floating
        or (type_.name == "number" and (isinstance(left, float) or isinstance(right, float)))
    ):
        left, right = to_double(left), to_double(right)
        if math.isnan(left) or math.isnan(right):
            return int(math.isnan(left)) - int(math.isnan(right))
    return int(left > right) - int(left < right)


def to_double(value: Any) -> float:
    """The nearest double; infinite where the number is beyond them."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def common_type(one: Type | None, other: Type | None) -> Type | None:
    """The type that numbers of two types are compared as.

    As Spark: a float or double on either side makes both doubles. With a number, each pair of
    values tells.
    """
    for type_ in (one, other):
        if type_ is not None and type_.is_floating:
            return type_
    return other if other is not None and other.name == "number" else one
