"""Columns of events in results: the values of some attributes, or all of them."""

from __future__ import annotations

import json
from base64 import b64encode
from contextlib import contextmanager
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.arguments import expect_distinct, expect_names
from tamis.errors import InputError, warn
from tamis.events.arrow_arrays import expect_readable, plain_array
from tamis.events.rows import EventRows
from tamis.index.attributes import plain_number
from tamis.language.names import parse_path
from tamis.language.types import Written
from tamis.logic.evaluate import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tamis.events.encoder import EncodedEvents
    from tamis.language.schema import Schema

WHOLE_EVENT: Final = "*"  # among the names of event columns: the whole event
ATTRIBUTES: Final = "attributes"  # the name of that column
MOST_DIGITS: Final = 38  # digits of a decimal in Arrow and Spark
_SCALARS = (bool, int, float, str)
_SCALAR_KINDS: Final = frozenset((*_SCALARS, Decimal))


class EventColumn:
    """Reads one column from successive batches of events, all as one type."""

    def __init__(self, name: str, schema: Schema, asked_by: str) -> None:
        """`name`: an attribute, or `WHOLE_EVENT`; `asked_by`: the argument that names it."""
        self.type: pa.DataType | None = None  # known from the first batch on
        self.name = ATTRIBUTES if name == WHOLE_EVENT else name
        self._path = None if name == WHOLE_EVENT else parse_path(name)
        self._schema = schema
        self._asked_by = asked_by
        self._n_events = self._n_named = self._n_rounded = 0

    def read(self, batch: EncodedEvents) -> pa.Array:
        """The value of each event; NULL if it has none."""
        if batch.source is None:
            raise InputError(
                (
                    "these events were encoded without the original events: results cannot "
                    "contain their values"
                ),
                hint=f"pass the events themselves with {self._asked_by}",
            )
        values = self._find_texts(batch) if self._path is None else self._find(batch, self._path)
        self._n_events += len(values)
        self._n_named += len(values) - values.null_count
        if self.type is None or pa.types.is_null(self.type):
            self.type = values.type
        if values.type == self.type:
            return values
        if pa.types.is_float64(self.type) and _is_exact(values.type):
            rounded = values.cast(self.type, safe=False)
            self._n_rounded += _count_rounded(values, rounded)
            return rounded
        try:
            return values.cast(self.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f'the values of "{self.name}" are of type {self.type} first, and of type '
                f"{values.type} later",
                hint=f'write all values of "{self.name}" as strings',
            ) from None

    def report(self) -> None:
        """Warn if no event had a value, or if values had to be rounded."""
        if self._n_rounded:
            things = "value" if self._n_rounded == 1 else "values"
            warn(
                f'{self._n_rounded:,} {things} of "{self.name}" were rounded to doubles: the first '
                "events have doubles. Write the values as strings to keep all digits"
            )
        if self._n_events and not self._n_named:
            warn(
                f'none of the {self._n_events:,} events has the attribute "{self.name}", '
                f"which {self._asked_by} names: all values are NULL"
            )

    def _find(self, batch: EncodedEvents, path: tuple[str, ...]) -> pa.Array:
        source = batch.source
        if isinstance(source, pa.Table | pa.RecordBatch) and batch.column is None:
            return _column_at(source, path)
        found = [None if event is None else value_at(event, path) for event in self._events(batch)]
        with _naming_column(self.name):
            return to_array(found)

    def _find_texts(self, batch: EncodedEvents) -> pa.Array:
        """Whole events as JSON."""
        with _naming_column(self.name):
            spelled = [None if event is None else _to_json(event) for event in self._events(batch)]
            return pa.array(spelled, pa.string())

    def _events(self, batch: EncodedEvents) -> Iterator[Any]:
        rows = EventRows(batch.source, batch.column, self._schema)
        return (rows[row] for row in range(batch.n_rows))


@contextmanager
def _naming_column(name: str) -> Iterator[None]:
    """Raise an error that names the column whose values cannot be written: they contain themselves,
    or unusual keys.
    """
    try:
        yield
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f'the values of "{name}" in the events cannot be written: {error}',
            hint="name single attributes in event_columns, without those that cannot be written",
        ) from None


def _to_json(event: Mapping[str, Any]) -> str:
    return json.dumps(dict(event), default=_plain, ensure_ascii=False)


class EventColumnReader:
    """Reads the same columns from successive events, as JSON values."""

    def __init__(self, names: Sequence[str], taken: Sequence[str], columns: Sequence[str]) -> None:
        self._paths = {
            ATTRIBUTES if name == WHOLE_EVENT else name: None
            if name == WHOLE_EVENT
            else parse_path(name)
            for name in read_names(names, taken, columns)
        }
        self._n_events = 0
        self._missing = {name for name, path in self._paths.items() if path}

    def read(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The value of each column; None if the event has none."""
        values = {
            name: event if path is None else value_at(event, path)
            for name, path in self._paths.items()
        }
        self._n_events += 1
        if self._missing:
            self._missing -= {name for name, value in values.items() if value is not None}
        found: dict[str, Any] = json.loads(_to_json(values))
        return found

    @property
    def first_names(self) -> frozenset[str] | None:
        """The first names of the attributes that are read; None for all."""
        if None in self._paths.values():
            return None
        return frozenset(path[0] for path in self._paths.values() if path)

    @property
    def missing(self) -> list[str]:
        """The columns that no event had, if there were events."""
        return sorted(self._missing) if self._n_events else []


def _plain(value: Any) -> Any:
    """The JSON form of a value that JSON does not have."""
    if isinstance(value, Decimal):
        return plain_number(value)
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, bytes):  # as Spark's to_json writes them
        return b64encode(value).decode()
    return value.isoformat() if isinstance(value, date) else str(value)


def read_names(names: Sequence[str], taken: Sequence[str], columns: Sequence[str]) -> list[str]:
    """The names of event columns; raises an error for one that the result has already.

    `taken` are the result's columns, `columns` those of subscriptions.
    """
    found = expect_names(names, "event_columns")
    shown = [ATTRIBUTES if name == WHOLE_EVENT else name for name in found]
    hint = "rename the attribute of the events, or request whole events: event_columns=['*']"
    expect_distinct(shown, taken, "event_columns", hint)
    hint = "request one of them, and the other in a second call"
    expect_distinct(shown, columns, "event_columns", hint)
    return found


def _column_at(table: Any, path: tuple[str, ...]) -> pa.Array:
    """The column of a path, through structs; NULLs if there is none."""
    if path[0] not in table.schema.names:
        return pa.nulls(len(table))
    expect_readable(table.schema.field(path[0]))
    found = table.column(path[0])
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    for name in path[1:]:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(name) < 0:
            return pa.nulls(len(table))
        found = pa.compute.struct_field(found, [name])
    # Arrow has no `take` for string views, as Polars uses them.
    return plain_array(found) if _is_view(found.type) else found


def _is_view(type_: pa.DataType) -> bool:
    values = type_.value_type if pa.types.is_dictionary(type_) else type_
    return bool(pa.types.is_string_view(values))


def to_array(values: Sequence[Any]) -> pa.Array:
    """Values as one column: of their common type, else as strings; never rounded.

    A number with a fraction in JSON or CSV becomes a double if that spells the same number.
    Decimals stay decimals, and numbers of several kinds become decimals.
    """
    plain = [_to_double(value) if isinstance(value, Written) else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    if not kinds <= _SCALAR_KINDS:
        _refuse_endless(plain)
    try:
        if Decimal in kinds and kinds <= {int, float, Decimal}:
            return _to_decimals(plain)
        if kinds <= {int, float} or len(kinds) <= 1:
            return pa.array(plain)
    except (pa.ArrowException, OverflowError):  # too many digits, uneven lists
        pass
    return pa.array([_spell(value) for value in plain], pa.string())


def _refuse_endless(values: Sequence[Any]) -> None:
    """Raise a ValueError for a list or dict that contains itself, on which Arrow crashes."""
    for value in values:
        if isinstance(value, list | tuple | dict):
            json.dumps(value, default=str, skipkeys=True)


def _to_double(value: Written) -> float | Decimal:
    found = plain_number(value)
    return found if isinstance(found, float) else Decimal(value)


def _to_decimals(values: Sequence[Any]) -> pa.Array:
    """The numbers with as many digits after the point as the longest of them."""
    # A double is the number that it prints as.
    exact = [Decimal(repr(v)) if isinstance(v, float) else v for v in values]
    exponents = [v.as_tuple().exponent for v in exact if isinstance(v, Decimal)]
    scale = max((-e for e in exponents if isinstance(e, int)), default=0)
    return pa.array(exact, pa.decimal128(MOST_DIGITS, max(0, scale)))


def _is_exact(type_: pa.DataType) -> bool:
    return bool(pa.types.is_decimal(type_) or pa.types.is_int64(type_))


def _count_rounded(values: pa.Array, rounded: pa.Array) -> int:
    pairs = zip(values.to_pylist(), rounded.to_pylist(), strict=True)
    return sum(own is not None and Decimal(repr(other)) != own for own, other in pairs)


def spell_array(values: pa.Array) -> pa.Array:
    """The values as strings."""
    return pa.array([_spell(value) for value in values.to_pylist()], pa.string())


def _spell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return (
        json.dumps(value, default=str) if isinstance(value, (*_SCALARS, list, dict)) else str(value)
    )
