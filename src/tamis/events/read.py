"""Events of any layout, as typed values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import InputError, suggest
from tamis.events.arrow import read_event_column, read_table
from tamis.events.mappings import read_json, read_mappings

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
    - an Arrow table or record batch (or what hands over an Arrow stream, as Polars and pandas
      do): typed columns, or with `column` one column that holds whole events;
    - an Arrow array of whole events: structs, maps from attribute names to values, JSON strings.
    """
    if isinstance(source, pa.Array | pa.ChunkedArray):
        return read_event_column(source, table, rejects)
    if not isinstance(source, pa.Table | pa.RecordBatch) and hasattr(source, "__arrow_c_stream__"):
        source = pa.table(source)
    if isinstance(source, pa.Table | pa.RecordBatch):
        if column is None:
            return read_table(source, table, rejects)
        return read_event_column(_find_column(source, column), table, rejects)
    return _read_iterable(source, table, rejects)


def _find_column(table: pa.Table | pa.RecordBatch, name: str) -> pa.Array | pa.ChunkedArray:
    number = table.schema.get_field_index(name)
    if number < 0:
        names = table.schema.names
        likely = suggest(name, names)
        hint = f'did you mean "{likely}"?' if likely else None
        problem = "two columns" if name in names else "no column"
        raise InputError(f'the events have {problem} "{name}"', hint=hint)
    return table.column(number)


def _read_iterable(source: Any, table: AttributeTable, rejects: Rejects) -> EventValues:
    if isinstance(source, Mapping | str | bytes) or not isinstance(source, Iterable):
        raise InputError(f"no events can be read from {type(source).__name__}", hint=ALLOWED)
    events = source if isinstance(source, list | tuple) else list(source)
    first = next((event for event in events if event is not None), None)
    if isinstance(first, str | bytes):
        return read_json(events, table, rejects)
    return read_mappings(events, table, rejects)
