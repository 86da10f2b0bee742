"""Arrow rows as JSON texts that the engine reads to the same values.

| Arrow | JSON |
|---|---|
| NULL, an invalid UTF-8 string | nothing: the attribute is missing |
| integers, decimals | the exact number |
| float, double | the shortest number that reads back as the same value of that width |
| half float | the exact number, as a double |
| NaN, infinities | `NaN`, `Infinity`, `-Infinity`: not JSON, but read by Tamis and by Spark |
| dates, timestamps | ISO 8601; in UTC with `Z` if the column has a zone, else without a zone |
| binary | Base64; fixed-size binary too |
| lists, structs, maps with string keys | lists and objects |
| others (times, durations) | as Arrow prints them, as a string |

So the text matches the same subscriptions as the row, with these exceptions: a NUMBER attribute
reads decimals of a text as doubles, and half floats without rounding; a DOUBLE attribute reads a
32-bit 0.1 of a text as 0.1; a STRING attribute reads dates, timestamps and binary values, which
are strings in a text.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Iterable

_is = pa.types
_NOT_FINITE: Final = {
    "inf": orjson.Fragment(b"Infinity"),
    "-inf": orjson.Fragment(b"-Infinity"),
    "nan": orjson.Fragment(b"NaN"),
}
_DIGITS: Final = {"s": 0, "ms": 3, "us": 6, "ns": 9}
_YEARS_1_TO_9999: Final = range(-62_135_596_800, 253_402_300_800)  # in seconds since 1970


def to_json(batch: pa.RecordBatch) -> list[bytes]:
    """A JSON object for each row."""
    names = batch.schema.names
    columns = [_list_values(column) for column in batch.columns]
    if not columns:
        return [b"{}"] * batch.num_rows
    return [
        orjson.dumps(_omit_missing(zip(names, row, strict=True)))
        for row in zip(*columns, strict=True)
    ]


def count_not_finite(batch: pa.RecordBatch) -> int:
    """The number of NaN and infinite values in the columns."""
    columns = [own for own in batch.columns if _is.is_floating(own.type)]
    return sum(len(own) - own.null_count - _count_finite(own) for own in columns)


def _count_finite(array: pa.Array) -> int:
    return pc.sum(pc.is_finite(array)).as_py() or 0


def _omit_missing(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in pairs if value is not None}


def _list_values(array: pa.Array) -> list[Any]:
    """The values as objects that orjson writes as this module says; None for a missing one."""
    array = _plain(array)
    arrow_type = array.type
    if _is.is_null(arrow_type):
        return [None] * len(array)
    if _is.is_boolean(arrow_type) or _is.is_integer(arrow_type):
        return array.to_pylist()  # type: ignore[no-any-return]
    if _is.is_floating(arrow_type):
        return _list_floats(array)
    if _is.is_decimal(arrow_type):
        return _list_fragments(array.cast(pa.string()))
    if _is.is_string(arrow_type) or _is.is_large_string(arrow_type):
        return _list_strings(array)
    if _is.is_date(arrow_type) or _is.is_timestamp(arrow_type):
        return _list_moments(array)
    if _is.is_binary(arrow_type) or _is.is_large_binary(arrow_type):
        return [None if own is None else b64encode(own).decode() for own in array.to_pylist()]
    if _is.is_struct(arrow_type):
        return _list_structs(array)
    if _is.is_map(arrow_type):
        return _list_maps(array)
    if _is_list(arrow_type):
        return _list_lists(array)
    return [_show(own) if own.is_valid else None for own in array]


def _show(value: pa.Scalar) -> str:
    try:
        return str(value)
    except (pa.ArrowException, ValueError, OverflowError):  # Python cannot represent it
        return str(value.type)


def _plain(array: pa.Array) -> pa.Array:
    """The array without wrappers and unusual widths."""
    while True:
        arrow_type = array.type
        if _is.is_dictionary(arrow_type):
            values = _plain(array.dictionary)
            array = pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
        elif _is.is_run_end_encoded(arrow_type):
            array = pc.run_end_decode(array)
        elif _is.is_string_view(arrow_type):
            array = array.cast(pa.large_string())
        elif _is.is_binary_view(arrow_type) or _is.is_fixed_size_binary(arrow_type):
            array = array.cast(pa.large_binary())
        elif isinstance(array, pa.ExtensionArray):
            array = array.storage
        else:
            return array


def _list_floats(array: pa.Array) -> list[Any]:
    if _is.is_float32(array.type):
        # As it prints: that is what FLOAT and NUMBER attributes read.
        return [_print_float(own) for own in array.to_pylist()]
    array = array.cast(pa.float64())
    values = array.to_pylist()
    if not pc.all(pc.is_finite(array), min_count=0).as_py():
        values = [_NOT_FINITE.get(str(own), own) for own in values]
    return values  # type: ignore[no-any-return]


def _print_float(value: float | None) -> Any:
    if value is None:
        return None
    return _NOT_FINITE.get(str(value)) or float(str(np.float32(value)))


def _list_fragments(texts: pa.Array) -> list[Any]:
    return [None if own is None else orjson.Fragment(own) for own in texts.to_pylist()]


def _list_strings(array: pa.Array) -> list[Any]:
    try:
        array.validate(full=True)
    except pa.ArrowInvalid:  # the engine rejects the values that are not UTF-8
        return [_decode(own) for own in array.cast(pa.large_binary()).to_pylist()]
    return array.to_pylist()  # type: ignore[no-any-return]


def _decode(data: bytes | None) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _list_moments(array: pa.Array) -> list[Any]:
    if _is.is_date(array.type):
        days = array.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if own is None else _print_moment(own * 86_400, 0)[:10] for own in days]
    n_digits, zone = _DIGITS[array.type.unit], "" if array.type.tz is None else "Z"
    ticks = array.cast(pa.int64()).to_pylist()
    return [None if own is None else _print_moment(own, n_digits) + zone for own in ticks]


def _print_moment(ticks: int, n_digits: int) -> str:
    """The moment so many ticks after 1970, of which 10^n_digits are a second."""
    seconds, fraction = divmod(ticks, 10**n_digits)
    if seconds not in _YEARS_1_TO_9999:  # no moment for the engine, in Arrow and in a text
        return f"{seconds} s after 1970"
    text = str(np.datetime64(seconds, "s"))
    if not fraction:
        return text
    if n_digits == 9 and fraction % 1000 == 0:  # the engine reads at most six digits
        fraction, n_digits = fraction // 1000, 6
    return f"{text}.{fraction:0{n_digits}}"


# ── nested values ───────────────────────────────────────────────────────────────────────────


def _is_list(arrow_type: pa.DataType) -> bool:
    tests = (_is.is_list, _is.is_large_list, _is.is_fixed_size_list)
    return any(test(arrow_type) for test in (*tests, _is.is_list_view, _is.is_large_list_view))


def _list_lists(array: pa.Array) -> list[Any]:
    lengths = pc.list_value_length(array).to_pylist()
    values = iter(_list_values(pc.list_flatten(array)))
    return [None if own is None else [next(values) for _ in range(own)] for own in lengths]


def _list_structs(array: pa.Array) -> list[Any]:
    arrow_type = array.type
    names = [arrow_type.field(number).name for number in range(arrow_type.num_fields)]
    if not names:
        return [{} if is_there else None for is_there in array.is_valid().to_pylist()]
    fields = [_list_values(own) for own in array.flatten()]  # NULL where the struct is
    rows = zip(*fields, strict=True)
    return [
        _omit_missing(zip(names, row, strict=True)) if is_there else None
        for is_there, row in zip(array.is_valid().to_pylist(), rows, strict=True)
    ]


def _list_maps(array: pa.Array) -> list[Any]:
    starts = array.offsets.to_pylist()
    keys, items = _list_values(array.keys), _list_values(array.items)
    is_text = _is.is_string(array.type.key_type) or _is.is_large_string(array.type.key_type)
    if not is_text:
        keys = [str(own) for own in keys]
    first = starts[0] if starts else 0
    if len(keys) < (starts[-1] if starts else 0):  # of a slice, without what lies before it
        starts = [own - first for own in starts]
    return [
        # Of equal keys the last one counts, also if its value is NULL.
        _omit_missing(dict(zip(keys[begin:end], items[begin:end], strict=True)).items())
        if is_there
        else None
        for is_there, begin, end in zip(
            array.is_valid().to_pylist(), starts[:-1], starts[1:], strict=True
        )
    ]
