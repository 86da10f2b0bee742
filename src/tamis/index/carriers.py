"""Carriers: the flat form of typed values between reading and coding.

| carrier | types | values |
|---|---|---|
| INTEGERS | boolean, integer, date (days), timestamp (microseconds) | int64[n] |
| FLOATS | float, double | float64[n], without -0.0 |
| DECIMALS | decimal | int64[n, 2]: 128-bit integers in units of the last digit, low word first |
| NUMBERS | number | records of `NUMBER_RECORD`[n] |
| TEXTS | string, ip (32 hexadecimal digits) | Arrow large strings without NULL |
| OBJECTS | struct | `Objects`: what the fields are read from |
| OTHERS | any | none: only presence is tested |
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.language.types import INT64_MAX, INT64_MIN, MAX_DECIMAL_DIGITS
from tamis.language.types.addresses import ADDRESS_DIGITS
from tamis.language.types.moments import (
    FIRST_DAY,
    FIRST_INSTANT,
    LAST_DAY,
    LAST_INSTANT,
    from_days,
    from_microseconds,
    to_days,
    to_microseconds,
)
from tamis.language.types.numbers import to_double

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.kernels.arrays import Int64, UInt8
    from tamis.language.types import Type

INTEGERS: Final = "integers"
FLOATS: Final = "floats"
DECIMALS: Final = "decimals"
NUMBERS: Final = "numbers"
TEXTS: Final = "texts"
OBJECTS: Final = "objects"
OTHERS: Final = "others"

# The kinds of a number: a double, an integer of 64 bits, or another exact number.
KIND_DOUBLE: Final = 0
KIND_WHOLE: Final = 1
KIND_EXACT: Final = 2
NUMBER_RECORD: Final = np.dtype(
    [
        ("double", np.float64),  # all numbers, rounded to a double; without -0.0
        ("whole", np.int64),  # integers of 64 bits
        ("kind", np.uint8),
        ("exact", object),  # other exact numbers: an int or a Decimal
    ],
    align=True,
)

LARGE_STRING: Final = pa.large_string()
_WIDE: Final = Context(prec=2 * MAX_DECIMAL_DIGITS)


class Carriage(NamedTuple):
    """How the values of one type travel, and how its constants come back from arrays."""

    carrier: str
    # INTEGERS only: a value as a number of 64 bits that compares as the value does, and back.
    to_number: Callable[[Any], int] = int
    from_number: Callable[[int], Any] = int
    limits: tuple[int, int] = (INT64_MIN, INT64_MAX)  # the least and the greatest number
    pattern: str = ""  # TEXTS only: the regular expression of all values, if not any text is one


# How each type travels: the one thing that the index adds to what the language knows of a type.
CARRIAGES: Final = {
    "boolean": Carriage(INTEGERS, from_number=bool, limits=(0, 1)),
    "integer": Carriage(INTEGERS),
    "date": Carriage(INTEGERS, to_days, from_days, limits=(FIRST_DAY, LAST_DAY)),
    "timestamp": Carriage(
        INTEGERS, to_microseconds, from_microseconds, limits=(FIRST_INSTANT, LAST_INSTANT)
    ),
    "float": Carriage(FLOATS),
    "double": Carriage(FLOATS),
    "decimal": Carriage(DECIMALS),
    "number": Carriage(NUMBERS),
    "string": Carriage(TEXTS),
    "ip": Carriage(TEXTS, pattern=ADDRESS_DIGITS),
    "struct": Carriage(OBJECTS),
    "any": Carriage(OTHERS),
}


def carrier_of(type_: Type) -> str:
    """The carrier of a type's values; for an array, of its elements."""
    return CARRIAGES[(type_.element or type_).name].carrier


def to_carrier(values: Sequence[Any], type_: Type) -> Any:
    """Values from `read_value`, in the carrier of their scalar type."""
    carriage = CARRIAGES[type_.name]
    match carriage.carrier:
        case "integers":
            return np.fromiter(map(carriage.to_number, values), np.int64, len(values))
        case "floats":
            return np.array(values, dtype=np.float64)
        case "decimals":
            return to_wides([scale_decimal(value, type_.scale)[0] for value in values])
        case "numbers":
            return to_numbers(values)
        case "texts":
            return pa.array(values, LARGE_STRING)
        case _:
            return None


def from_carrier(values: Any, type_: Type) -> list[Any]:
    """The values in a carrier."""
    if isinstance(values, pa.Array):
        texts: list[Any] = values.to_pylist()
        return texts
    carriage = CARRIAGES[type_.name]
    match carriage.carrier:
        case "integers":
            return list(map(carriage.from_number, values.tolist()))
        case "decimals":
            return [Decimal(own).scaleb(-type_.scale, _WIDE) for own in from_wides(values)]
        case "numbers":
            return [
                double if kind == KIND_DOUBLE else whole if kind == KIND_WHOLE else exact
                for double, whole, kind, exact in values.tolist()
            ]
        case _:
            numbers: list[Any] = values.tolist()
            return numbers


def to_numbers(values: Sequence[Any]) -> np.ndarray:
    """Ints, floats and Decimals as records."""
    records = np.empty(len(values), NUMBER_RECORD)
    for at, value in enumerate(values):
        double = to_double(value) + 0.0  # -0.0 + 0.0 is 0.0
        if isinstance(value, float):
            records[at] = (double, 0, KIND_DOUBLE, None)
        elif isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
            records[at] = (double, value, KIND_WHOLE, None)
        else:
            records[at] = (double, 0, KIND_EXACT, value)
    return records


def doubles_as_numbers(doubles: np.ndarray) -> np.ndarray:
    """Doubles as records."""
    records = np.empty(len(doubles), NUMBER_RECORD)
    records["double"] = doubles + 0.0  # -0.0 + 0.0 is 0.0
    records["whole"] = 0
    records["kind"] = KIND_DOUBLE
    return records


def integers_as_numbers(integers: np.ndarray) -> np.ndarray:
    """Integers of 64 bits as records."""
    records = np.empty(len(integers), NUMBER_RECORD)
    records["double"] = integers
    records["whole"] = integers
    records["kind"] = KIND_WHOLE
    return records


def scale_decimal(value: Decimal, scale: int) -> tuple[int, bool]:
    """`value` in units of 10 ** -scale, rounded down, and whether that is exact."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "finite decimals only"
    number = int("".join(map(str, digits)))
    number = -number if sign else number
    if exponent + scale >= 0:
        return number * 10 ** (exponent + scale), True
    rounded, rest = divmod(number, 10 ** -(exponent + scale))
    return rounded, rest == 0


def to_wides(numbers: Sequence[int]) -> Int64:
    """Integers of 128 bits as rows of two words, as Arrow stores decimals."""
    data = b"".join([number.to_bytes(16, "little", signed=True) for number in numbers])
    return np.frombuffer(data, dtype=np.int64).reshape(-1, 2)


def from_wides(wides: Int64) -> list[int]:
    """The integers that `to_wides` stored."""
    lows, highs = wides[:, 0].astype(np.uint64).tolist(), wides[:, 1].tolist()
    return [(high << 64) | low for low, high in zip(lows, highs, strict=True)]


def widen(numbers: Int64) -> Int64:
    """64-bit integers as 128-bit ones."""
    wides = np.empty((len(numbers), 2), dtype=np.int64)
    wides[:, 0] = numbers
    wides[:, 1] = numbers >> 63
    return wides


def are_within(wides: Int64, limit: int) -> np.ndarray:
    """Where -limit < value < limit."""
    lows, highs = wides[:, 0].astype(np.uint64), wides[:, 1]
    top, bottom = to_wides([limit])[0], to_wides([-limit])[0]
    is_below = (highs < top[1]) | ((highs == top[1]) & (lows < np.uint64(top[0])))
    is_above = (highs > bottom[1]) | ((highs == bottom[1]) & (lows > np.uint64(bottom[0])))
    within: np.ndarray = is_below & is_above
    return within


def frozen(array: np.ndarray) -> np.ndarray:
    """The same array, read-only: kernels are compiled for one kind."""
    array.flags.writeable = False
    return array


def view_buffer(
    buffer: pa.Buffer | None, dtype: Any, count: int = -1, offset: int = 0
) -> np.ndarray:
    """The numbers in an Arrow buffer, read-only, from a byte offset on; an empty buffer may be
    absent.
    """
    return frozen(np.frombuffer(b"" if buffer is None else buffer, dtype, count, offset))


def texts_of(offsets: Int64, data: UInt8) -> pa.LargeStringArray:
    """The texts with these buffers, without a copy."""
    buffers = (pa.py_buffer(offsets), pa.py_buffer(data))
    return pa.LargeStringArray.from_buffers(len(offsets) - 1, *buffers)


def text_buffers(texts: pa.Array) -> tuple[Int64, UInt8]:
    """Offsets [n + 1] and bytes of large strings without NULL, read-only."""
    _, offsets, data = texts.buffers()
    if len(texts) == 0:
        return view_buffer(pa.py_buffer(bytes(8)), np.int64), view_buffer(None, np.uint8)
    starts = view_buffer(offsets, np.int64, len(texts) + 1, 8 * texts.offset)
    return starts, view_buffer(data, np.uint8)
