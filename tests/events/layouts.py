"""The same events in every layout that an encoder takes, with what the reference should see."""

from __future__ import annotations

import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.language.names import print_path
from tamis.language.types import KINDS, WrongTypeError, read_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from random import Random

    from tamis.language.schema import Path, Schema
    from tamis.language.types import Type

Event = dict[str, Any]


def value_at(event: Mapping[str, Any] | None, path: Path) -> Any:
    """What the reference evaluator finds at a path."""
    value: Any = event
    for name in path:
        value = value.get(name) if hasattr(value, "get") else None
    return value


def typed_at(event: Event, path: Path, type_: Type) -> Any:
    """The typed value at a path; None where it is missing or wrong."""
    value = value_at(event, path)
    try:
        typed = None if value is None else read_value(value, type_)
    except WrongTypeError:
        return None
    show = KINDS[(type_.element or type_).name].show
    if show is None or typed is None:
        return typed
    known = (own if own is None else show(own) for own in typed)
    return tuple(known) if type_.element else show(typed)


def nest(values: Mapping[Path, Any]) -> Event:
    """The event that has these values at these paths."""
    event: Event = {}
    for path, value in values.items():
        inner = event
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return event


# ── Arrow columns ───────────────────────────────────────────────────────────────────────────

ARROW_TYPES: dict[str, list[pa.DataType]] = {
    "boolean": [pa.bool_()],
    "integer": [
        *(pa.int64(), pa.int64(), pa.int32(), pa.int16(), pa.int8()),
        *(pa.uint64(), pa.uint32(), pa.uint16(), pa.uint8()),
    ],
    "float": [pa.float32(), pa.float64(), pa.float16(), pa.int64(), pa.decimal128(38, 10)],
    "double": [pa.float64(), pa.float64(), pa.float32(), pa.int64(), pa.decimal128(38, 10)],
    "number": [pa.int64(), pa.float64(), pa.decimal128(38, 10), pa.uint64(), pa.int32()],
    "decimal": [pa.int64(), pa.float64(), pa.decimal128(20, 5), pa.decimal256(60, 20)],
    "string": [pa.string(), pa.large_string(), pa.string_view(), pa.string()],
    "ip": [pa.string(), pa.large_string(), pa.string_view()],
    "date": [pa.date32(), pa.date64(), pa.string()],
    "timestamp": [
        *(pa.timestamp("us"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Oslo")),
        *(pa.timestamp("s"), pa.timestamp("ns", "UTC"), pa.string()),
    ],
}


def arrow_types(type_: Type) -> list[pa.DataType]:
    """Arrow types that can hold some or all values of a type."""
    if type_.element is not None:
        return [
            make(element)
            for element in arrow_types(type_.element)
            for make in (pa.list_, pa.large_list, pa.list_view)
        ]
    if type_.fields:
        return [pa.struct([(name, arrow_types(field)[0]) for name, field in type_.fields])]
    own = [pa.decimal128(type_.precision, type_.scale)] * 4 if type_.name == "decimal" else []
    return own + ARROW_TYPES[type_.name]


def arrow_array(rng: Random, values: Sequence[Any], type_: Type) -> pa.Array:
    """Typed values in a column of one of the types that hold them; what does not fit is NULL."""
    arrow_type = rng.choice(arrow_types(type_))
    fitted = [_fit(value, arrow_type) for value in values]
    array = pa.array(fitted, arrow_type)
    is_list = type_.element is not None
    if not is_list and not pa.types.is_string_view(arrow_type) and rng.random() < 0.15:
        try:
            return array.dictionary_encode()
        except pa.ArrowNotImplementedError:
            return array
    return array


def _fit(value: Any, arrow_type: pa.DataType) -> Any:
    """The value, or None where the Arrow type cannot hold it as it is."""
    if isinstance(value, tuple):
        return [_fit(element, arrow_type.value_type) for element in value]
    if isinstance(value, dict):
        fields = {field.name: field.type for field in arrow_type}
        return {name: _fit(own, fields[name]) for name, own in value.items() if name in fields}
    if value is None:
        return None
    if _is_text(arrow_type) and isinstance(value, date):
        return value.isoformat()
    if getattr(arrow_type, "tz", None) not in (None, "UTC") and value.year in (1, 9999):
        return None  # Arrow has it, but Python has not in that zone
    if pa.types.is_decimal(arrow_type) and isinstance(value, float):
        value = Decimal(value) if math.isfinite(value) else None
    if pa.types.is_integer(arrow_type) and isinstance(value, float | Decimal):
        value = int(value) if math.isfinite(value) else None
    if pa.types.is_floating(arrow_type) and isinstance(value, int | Decimal):
        value = float(value)
    try:
        pa.array([value], arrow_type)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return None
    return value


def _is_text(arrow_type: pa.DataType) -> bool:
    is_ = pa.types
    return any(
        test(arrow_type) for test in (is_.is_string, is_.is_large_string, is_.is_string_view)
    )


def wrong_array(rng: Random, length: int) -> pa.Array:
    """A column of some type, which may be none that the attribute takes."""
    pool = rng.choice(
        (
            (pa.string(), ["5", "text", "2024-01-15", "", "true"]),
            (pa.int32(), [0, 1, 5, -1]),
            (pa.float64(), [0.5, math.nan, 1.0, math.inf]),
            (pa.bool_(), [True, False]),
            (pa.date32(), [date(2024, 1, 15)]),
            (pa.timestamp("us"), [datetime(2024, 1, 15, 10, 30)]),
            (pa.decimal128(10, 3), [Decimal("1.500"), Decimal("1.505")]),
            (pa.binary(), [b"bytes"]),
            (pa.list_(pa.int64()), [[], [1], [None], [1, 2]]),
            (pa.list_(pa.string()), [["a"], [], [None, "b"]]),
            (pa.struct({"b": pa.int64()}), [{"b": 1}, {"b": None}]),
            (pa.time64("us"), [0, 5]),
            (pa.duration("s"), [1]),
            (pa.null(), [None]),
            (pa.uint64(), [2**63, 2**64 - 1, 7]),
        )
    )
    arrow_type, values = pool
    return pa.array([rng.choice([None, *values]) for _ in range(length)], arrow_type)


def arrow_struct(
    rng: Random, events: Sequence[Event], schema: Schema, *, nulls: float = 0.1
) -> pa.StructArray:
    """The events as structs of typed columns; some columns are of other types, or missing."""
    tree: dict[str, Any] = {}
    for path in schema:
        if rng.random() < 0.1:
            continue  # a column that is missing from the table
        values = [typed_at(event, path, schema[path]) for event in events]
        inner = tree
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        if rng.random() < 0.15:
            inner[path[-1]] = wrong_array(rng, len(events))
        else:
            inner[path[-1]] = arrow_array(rng, values, schema[path])
    tree["nobody asks for this"] = pa.nulls(len(events))
    return _make_struct(rng, tree, len(events), nulls)


def _make_struct(rng: Random, tree: dict[str, Any], length: int, nulls: float) -> pa.StructArray:
    fields = {
        name: _make_struct(rng, inner, length, 0.1) if isinstance(inner, dict) else inner
        for name, inner in tree.items()
    }
    mask = pa.array([rng.random() < nulls for _ in range(length)], pa.bool_())
    return pa.StructArray.from_arrays(list(fields.values()), list(fields), mask=mask)


def cut(rng: Random, array: pa.Array) -> pa.ChunkedArray:
    """The same array in several chunks, each a slice with an offset."""
    bounds = sorted((0, len(array), *(rng.randint(0, len(array)) for _ in range(3))))
    chunks = [array.slice(begin, end - begin) for begin, end in pairwise(bounds)]
    return pa.chunked_array(chunks, array.type)


def to_rows(array: pa.Array | pa.ChunkedArray) -> list[Event | None]:
    """What the reference evaluator is to see."""
    return [_plain(row) for row in array.to_pylist()]


def _plain(value: Any) -> Any:
    """Without pandas' timestamps, which Arrow makes of nanoseconds."""
    if isinstance(value, dict):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    if hasattr(value, "to_pydatetime"):
        assert value.nanosecond == 0
        return value.to_pydatetime()
    return value


# ── text ────────────────────────────────────────────────────────────────────────────────────


def spell(value: Any) -> str:
    """A typed value as a text that reads back as the same."""
    match value:
        case bool():
            return "true" if value else "false"
        case float() if not math.isfinite(value):
            return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        case Decimal():
            return format(value, "f")
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
        case tuple() | list():
            return to_json(list(value))
        case _:
            return str(value)


def to_json(value: Any) -> str:
    """JSON in which decimals are numbers with all their digits."""
    match value:
        case dict():
            inner = (f"{json.dumps(str(name))}: {to_json(own)}" for name, own in value.items())
            return "{" + ", ".join(inner) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(to_json, value)) + "]"
        case Decimal() if value.is_finite():
            return format(value, "f") if abs(value.adjusted()) < 50 else str(value)
        case str() | bool() | None | float():
            return json.dumps(value)
        case int() if abs(value) < 10**4000:
            return json.dumps(value)
        case date():
            return json.dumps(value.isoformat())
        case _:
            return json.dumps("something else")


def flat_texts(rng: Random, event: Event, schema: Schema) -> list[tuple[str, str | None]]:
    """The event as pairs of a printed attribute name and a text; some of them are nonsense."""
    found: list[tuple[str, str | None]] = []
    for path in schema:
        typed = typed_at(event, path, schema[path])
        if rng.random() < 0.1:
            found.append((print_path(path), rng.choice(NONSENSE)))
        if typed is not None:
            found.append((print_path(path), spell(typed)))
        elif rng.random() < 0.2:
            found.append((print_path(path), None))
    found.append(("nobody asks for this", "x"))
    return found


NONSENSE = (
    *(
        "",
        " ",
        "x",
        "5",
        "-5",
        "+5",
        "5.0",
        ".5",
        "5.",
        "1e3",
        "1E-3",
        "1_000",
        "0x10",
        "٣",
        "-",
        "+",
    ),
    *(
        "true",
        "TRUE",
        "nan",
        "NaN",
        "inf",
        "-Infinity",
        "2024-01-15",
        "2024-02-30",
        "1e400",
        "1e-400",
    ),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775808", "007", "1" * 50, "-0"),
    *(
        "2024-01-15T10:30",
        "2024-01-15 10:30:00.5Z",
        "2024-01-15T10:30:00+25:00",
        "[]",
        "[1",
        "[null]",
    ),
    *('["a", "b"]', "[1, 2]", "[0.10]", "{}", "null", "0.1000", "123456789012345678.5", "\x00"),
)


def last_of_each(pairs: Iterable[tuple[str, str | None]]) -> dict[str, str | None]:
    """Of equal keys the last one counts."""
    return dict(pairs)
