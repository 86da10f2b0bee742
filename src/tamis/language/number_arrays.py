"""Arithmetic on arrays of integers of 64 bits and of doubles. An argument may be one constant.

A `Partial` tells where there is no result. Doubles are without -0.0.
"""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Context, Decimal
from typing import Any, Final

from tamis.language.overloads import Partial
from tamis.language.types import INT64_MAX, INT64_MIN, decimal_digits
from tamis.language.types.numbers import to_double

# For all digits of the largest and the smallest doubles.
WIDE: Final = Context(prec=1100)
_HALF: Final = 2**31  # a product of two smaller integers has at most 62 bits


def _doubles(value: Any) -> Any:
    return value.astype("float64") if hasattr(value, "astype") else to_double(value)


def _silent() -> Any:
    import numpy as np

    return np.errstate(all="ignore")


def round_half_up(value: Any, n_digits: int = 0) -> Any:
    """A number rounded as in Spark: half up, of a double the digits that it prints as."""
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            return value
        return float(_round_decimal(Decimal(repr(value)), n_digits)) + 0.0
    return _round_decimal(value, n_digits)


def _round_decimal(value: Decimal, n_digits: int) -> Decimal:
    if decimal_digits(value)[1] <= n_digits:
        return value
    return value.quantize(Decimal(1).scaleb(-n_digits), ROUND_HALF_UP, WIDE) or Decimal(0)


# ── integers ────────────────────────────────────────────────────────────────────────────────


def _add(left: Any, right: Any) -> Any:
    import numpy as np

    left, right = np.int64(left), np.int64(right)
    with _silent():
        total = left + right
    return _partial(total, ((left ^ total) & (right ^ total)) >= 0)


def _subtract(left: Any, right: Any) -> Any:
    import numpy as np

    left, right = np.int64(left), np.int64(right)
    with _silent():
        difference = left - right
    return _partial(difference, ((left ^ right) & (left ^ difference)) >= 0)


def _multiply(left: Any, right: Any) -> Any:
    import numpy as np

    left, right = np.broadcast_arrays(np.int64(left), np.int64(right))
    is_short = (left > -_HALF) & (left < _HALF) & (right > -_HALF) & (right < _HALF)
    with _silent():
        product = left * right
    is_good = np.ones(len(product), dtype=np.bool_)
    for at in np.flatnonzero(~is_short).tolist():
        is_good[at] = INT64_MIN <= int(left[at]) * int(right[at]) <= INT64_MAX
    return _partial(product, is_good)


def remainder_of_wholes(left: Any, right: Any) -> Any:
    """The remainders, with the sign of the dividend."""
    import numpy as np

    left, right = np.broadcast_arrays(np.int64(left), np.int64(right))
    # By -1 it is 0, as by 1; processors cannot divide the smallest integer by -1.
    is_trivial = (right == 0) | (right == -1)
    return _partial(np.fmod(left, np.where(is_trivial, 1, right)), right != 0)


def absolute(values: Any) -> Any:
    """The absolute values of integers or doubles."""
    import numpy as np

    with _silent():
        found = np.abs(values)
    return found if values.dtype.kind == "f" else _partial(found, values != INT64_MIN)


def negative(values: Any) -> Any:
    """The opposite integers or doubles."""
    with _silent():
        found = -values
    return found + 0.0 if values.dtype.kind == "f" else _partial(found, values != INT64_MIN)


# ── doubles ─────────────────────────────────────────────────────────────────────────────────


def _add_doubles(left: Any, right: Any) -> Any:
    with _silent():
        return _doubles(left) + _doubles(right) + 0.0


def _subtract_doubles(left: Any, right: Any) -> Any:
    with _silent():
        return _doubles(left) - _doubles(right) + 0.0


def _multiply_doubles(left: Any, right: Any) -> Any:
    with _silent():
        return _doubles(left) * _doubles(right) + 0.0


def divide(left: Any, right: Any) -> Any:
    """The quotients of doubles."""
    import numpy as np

    left, right = np.broadcast_arrays(_doubles(left), _doubles(right))
    with _silent():
        return _partial(left / right + 0.0, right != 0)


def remainder_of_doubles(left: Any, right: Any) -> Any:
    """The remainders of doubles, with the sign of the dividend."""
    import numpy as np

    left, right = np.broadcast_arrays(_doubles(left), _doubles(right))
    with _silent():
        return _partial(np.fmod(left, right) + 0.0, right != 0)


def round_doubles(values: Any, n_digits: int = 0) -> Any:
    """Doubles rounded half up to the nearest integers; others are rounded one by one."""
    import numpy as np

    if n_digits:
        return np.array([round_half_up(own, n_digits) for own in values.tolist()])
    # A double of 2 ** 52 or more is whole. Below, adding a half is exact unless the sum has more
    # bits than the number, as for the largest double below a half.
    with _silent():
        found = np.copysign(np.floor(np.abs(values) + 0.5), values) + 0.0
    return np.where(np.abs(values) < 0.5, 0.0, np.where(np.abs(values) < 2.0**52, found, values))


def floor(values: Any) -> Any:
    """The integers below; 0 for NaN, as in Spark."""
    import numpy as np

    return _to_whole(np.floor(values))


def ceil(values: Any) -> Any:
    """The integers above; 0 for NaN."""
    import numpy as np

    return _to_whole(np.ceil(values))


def _to_whole(values: Any) -> Any:
    import numpy as np

    is_within = (values >= -(2.0**63)) & (values < 2.0**63)
    found = np.where(is_within, values, 0.0).astype(np.int64)
    return _partial(found, is_within | np.isnan(values))


def _partial(values: Any, is_good: Any) -> Any:
    return values if is_good.all() else Partial(values, is_good)


WHOLE: Final = {"+": _add, "-": _subtract, "*": _multiply}
DOUBLE: Final = {"+": _add_doubles, "-": _subtract_doubles, "*": _multiply_doubles}
