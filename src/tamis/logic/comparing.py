"""The order of values, as in Spark."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tamis.language.types.numbers import to_double

if TYPE_CHECKING:
    from tamis.language.types import Type


def compare(left: Any, right: Any, type_: Type | None) -> int:
    """-1, 0 or 1 as `left` is before, equal to or after `right`.

    Strings compare by code point, which is the order of their UTF-8 bytes. Floats and doubles have
    a total order: NaN equals itself and is above everything. If one side is a float or a double,
    the other is first rounded to a double, as in Spark; for type NUMBER this depends on each value.
    """
    if type_ is not None and (
        type_.is_floating
        or (type_.name == "number" and (isinstance(left, float) or isinstance(right, float)))
    ):
        left, right = to_double(left), to_double(right)
        if math.isnan(left) or math.isnan(right):
            return int(math.isnan(left)) - int(math.isnan(right))
    return int(left > right) - int(left < right)


def common_type(one: Type | None, other: Type | None) -> Type | None:
    """The type in which numbers of two types are compared.

    As in Spark, a float or double on either side makes both doubles. With type NUMBER this depends
    on each pair of values.
    """
    for type_ in (one, other):
        if type_ is not None and type_.is_floating:
            return type_
    return other if other is not None and other.name == "number" else one
