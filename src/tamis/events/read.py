"""Reads events of any layout as typed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import InputError, RowError, suggest
from tamis.events.arrow import read_event_column, read_table
from tamis.events.arrow_arrays import expect_readable
from tamis.events.json_events import read_json
from tamis.events.json_source import JsonSpans
from tamis.events.mappings import read_mappings

if TYPE_CHECKING:
    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects

ALLOWED = "allowed: dicts, JSON texts, an Arrow table, record batch or array"


def read_events(
    source: Any, table: AttributeTable, rejects: Rejects, *, column: str | None = None
) -> EventValues:
    """The known attributes of all events of `source`, typed.

    `source` is one of:
    - an iterable of mappings, or of JSON texts (`str` or `bytes`), one for each event;
    - an Arrow table or record batch (or an object that provides an Arrow stream, like frames of
      Polars and pandas): typed columns, or with `column` one column that contains whole events;
    - an Arrow array of whole events: structs, maps from attribute names to values, JSON strings.
    """
    source = hold_events(source)
    if isinstance(source, pa.Array | pa.ChunkedArray):
        return read_event_column(source, table, rejects)
    if isinstance(source, pa.Table | pa.RecordBatch):
        if column is None:
            return read_table(source, table, rejects)
        return read_event_column(_find_column(source, column), table, rejects)
    if isinstance(source, JsonSpans):
        return read_json(source, table, rejects)
    first = next((event for event in source if not isinstance(event, NoneType | RowError)), None)
    if isinstance(first, str | bytes):
        return read_json(source, table, rejects)
    return read_mappings(source, table, rejects)


def hold_events(source: Any) -> Any:
    """The same events, in a form that can be read more than once."""
    if isinstance(source, pa.Array | pa.ChunkedArray | pa.Table | pa.RecordBatch):
        return source
    if isinstance(source, list | tuple | JsonSpans):
        return source
    if hasattr(source, "__arrow_c_stream__"):
        return pa.table(source)
    if isinstance(source, Mapping | str | bytes) or not isinstance(source, Iterable):
        raise InputError(f"no events can be read from {type(source).__name__}", hint=ALLOWED)
    return list(source)


def _find_column(table: pa.Table | pa.RecordBatch, name: str) -> pa.Array | pa.ChunkedArray:
    number = table.schema.get_field_index(name)
    if number < 0:
        names = table.schema.names
        likely = suggest(name, names)
        hint = f'did you mean "{likely}"?' if likely else None
        problem = "two columns" if name in names else "no column"
        raise InputError(f'the events have {problem} "{name}"', hint=hint)
    expect_readable(table.schema.field(number))
    return table.column(number)
