"""Weights as users write them: numbers, or texts of numbers, as in CSV."""

from __future__ import annotations

import math
import re
from numbers import Integral
from typing import Any, Final

WEIGHT: Final = "weight"  # the attribute of a subscription
# Text, as in CSV: the digits 0 to 9, without underscores.
_NUMBER: Final = re.compile(r" *[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)? *")
SHOWN: Final = 60  # characters of an invalid weight


def read_weight(value: Any) -> float | None:
    """The weight that a value stands for, None for NULL; the `ValueError` of an invalid one says
    why."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    is_wrong = isinstance(value, bool) or (isinstance(value, str) and not _NUMBER.fullmatch(value))
    try:
        weight = math.nan if is_wrong else float(value)
    except (TypeError, ValueError, OverflowError):
        weight = math.nan
    if not math.isfinite(weight):
        raise ValueError(f"the weight is {_show(value)}; allowed: a finite number")
    whole = _read_whole(value)
    if whole is not None and whole != int(weight):
        raise ValueError(
            f"the weight is {_show(value)}, which a double cannot hold exactly; "
            "allowed: whole numbers up to 2^53"
        )
    return weight


def _read_whole(value: Any) -> int | None:
    """A whole number without rounding; None for one written with a point or an exponent."""
    if isinstance(value, str):
        digits = value.strip()
        return int(digits) if digits.lstrip("+-").isdigit() else None
    return int(value) if isinstance(value, Integral) else None


def _show(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN else shown[: SHOWN - 1] + "…"
