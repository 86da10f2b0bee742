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
    other is rounded to a double first, as Spark does.
    """
    if type_ is not None and type_.is_floating:
        left, right = float(left), float(right)
        if math.isnan(left) or math.isnan(right):
            return int(math.isnan(left)) - int(math.isnan(right))
    return int(left > right) - int(left < right)
