"""What events are called in results: the values of one of their attributes."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import InputError, warn
from tamis.events.rows import EventRows
from tamis.language.names import parse_path, print_path
from tamis.logic.evaluate import value_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.events.encoder import EncodedEvents
    from tamis.language.schema import Schema

_SCALARS = (bool, int, float, str)


class EventIds:
    """Reads the ids of one batch of events after another, all as one type."""

    def __init__(self, name: str, schema: Schema) -> None:
        self.type: pa.DataType | None = None  # known from the first batch on
        self._path = parse_path(name)
        self._schema = schema
        self._n_events = self._n_named = 0

    def read(self, batch: EncodedEvents) -> pa.Array:
        """The id of each event; NULL where it has none."""
        ids = self._find(batch)
        self._n_events += len(ids)
        self._n_named += len(ids) - ids.null_count
        if self.type is None or pa.types.is_null(self.type):
            self.type = ids.type
        if ids.type == self.type:
            return ids
        try:
            return ids.cast(self.type)
        except pa.ArrowInvalid:
            raise InputError(
                f"the ids of events are of type {self.type} first, and of type {ids.type} later",
                hint=f'write all values of "{print_path(self._path)}" as text',
            ) from None

    def report(self) -> None:
        """Warn if no event had an id."""
        if self._n_events and not self._n_named:
            warn(
                f'none of the {self._n_events:,} events has the attribute "'
                f'{print_path(self._path)}", which event_id names: all ids are NULL'
            )

    def _find(self, batch: EncodedEvents) -> pa.Array:
        source = batch.source
        if isinstance(source, pa.Table | pa.RecordBatch) and batch.column is None:
            return _column_at(source, self._path)
        rows = EventRows(source, batch.column, self._schema)
        events = (rows[row] for row in range(batch.n_rows))
        return to_array(
            [None if event is None else value_at(event, self._path) for event in events]
        )


def _column_at(table: Any, path: tuple[str, ...]) -> pa.Array:
    """The column of a path, through structs; of NULLs where there is none."""
    if path[0] not in table.schema.names:
        return pa.nulls(len(table))
    found = table.column(path[0])
    if isinstance(found, pa.ChunkedArray):
        found = found.combine_chunks()
    for name in path[1:]:
        if not pa.types.is_struct(found.type) or found.type.get_field_index(name) < 0:
            return pa.nulls(len(table))
        found = pa.compute.struct_field(found, [name])
    return found


def to_array(values: Sequence[Any]) -> pa.Array:
    """Values as one column: of their own type if they have one, else as text."""
    plain = [float(value) if isinstance(value, Decimal) else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    if kinds <= {int, float} or len(kinds) <= 1:
        try:
            return pa.array(plain)
        except (pa.ArrowException, OverflowError):  # integers beyond 64 bits, uneven lists
            pass
    return pa.array([_spell(value) for value in plain], pa.string())


def spell_array(values: pa.Array) -> pa.Array:
    """The values as texts."""
    return pa.array([_spell(value) for value in values.to_pylist()], pa.string())


def _spell(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return (
        json.dumps(value, default=str) if isinstance(value, (*_SCALARS, list, dict)) else str(value)
    )
