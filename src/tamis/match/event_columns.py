"""What results say of events: the values of some of their attributes, or all of them."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.errors import InputError, warn
from tamis.events.rows import EventRows
from tamis.language.names import parse_path
from tamis.logic.evaluate import value_at

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tamis.events.encoder import EncodedEvents
    from tamis.language.schema import Schema

WHOLE: Final = "*"  # among the names of event columns: the whole event
ATTRIBUTES: Final = "attributes"  # what that column is called
_SCALARS = (bool, int, float, str)


class EventColumn:
    """Reads one column from one batch of events after another, all as one type."""

    def __init__(self, name: str, schema: Schema, asked_by: str) -> None:
        """`name` is that of an attribute, or `WHOLE`; `asked_by` is the argument that has it."""
        self.type: pa.DataType | None = None  # known from the first batch on
        self.name = ATTRIBUTES if name == WHOLE else name
        self._path = None if name == WHOLE else parse_path(name)
        self._schema = schema
        self._asked_by = asked_by
        self._n_events = self._n_named = 0

    def read(self, batch: EncodedEvents) -> pa.Array:
        """The value of each event; NULL where it has none."""
        if batch.source is None:
            raise InputError(
                "these events were encoded without being kept: results cannot name what they have",
                hint=f"hand over the events themselves with {self._asked_by}",
            )
        values = self._find_texts(batch) if self._path is None else self._find(batch, self._path)
        self._n_events += len(values)
        self._n_named += len(values) - values.null_count
        if self.type is None or pa.types.is_null(self.type):
            self.type = values.type
        if values.type == self.type:
            return values
        try:
            return values.cast(self.type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise InputError(
                f'the values of "{self.name}" are of type {self.type} first, and of type '
                f"{values.type} later",
                hint=f'write all values of "{self.name}" as text',
            ) from None

    def report(self) -> None:
        """Warn if no event had a value."""
        if self._n_events and not self._n_named:
            warn(
                f'none of the {self._n_events:,} events has the attribute "{self.name}", '
                f"which {self._asked_by} names: all values are NULL"
            )

    def _find(self, batch: EncodedEvents, path: tuple[str, ...]) -> pa.Array:
        source = batch.source
        if isinstance(source, pa.Table | pa.RecordBatch) and batch.column is None:
            return _column_at(source, path)
        return to_array(
            [None if event is None else value_at(event, path) for event in self._events(batch)]
        )

    def _find_texts(self, batch: EncodedEvents) -> pa.Array:
        """Whole events as JSON."""
        spelled = [None if event is None else _to_json(event) for event in self._events(batch)]
        return pa.array(spelled, pa.string())

    def _events(self, batch: EncodedEvents) -> Iterator[Any]:
        rows = EventRows(batch.source, batch.column, self._schema)
        return (rows[row] for row in range(batch.n_rows))


def _to_json(event: Mapping[str, Any]) -> str:
    return json.dumps(dict(event), default=_plain, ensure_ascii=False)


class EventValues:
    """Reads the same columns from one event after another, as values that JSON has."""

    def __init__(self, names: Sequence[str], taken: Sequence[str]) -> None:
        self._paths = {
            ATTRIBUTES if name == WHOLE else name: None if name == WHOLE else parse_path(name)
            for name in read_names(names, taken)
        }
        self._n_events = 0
        self._missing = {name for name, path in self._paths.items() if path}

    def read(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The value of each column; None where the event has none."""
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
    def missing(self) -> list[str]:
        """The columns that no event has had, if there were events."""
        return sorted(self._missing) if self._n_events else []


def _plain(value: Any) -> Any:
    """What JSON has instead of a value that it does not have."""
    if isinstance(value, Decimal | np.floating):
        return float(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def read_names(names: Sequence[str], taken: Sequence[str]) -> list[str]:
    """The names of event columns; refuses one that the result has already."""
    if isinstance(names, str):
        raise InputError(f"event_columns is the text {names!r}", hint=f"write [{names!r}]")
    columns = [ATTRIBUTES if name == WHOLE else name for name in names]
    for at, name in enumerate(columns):
        if name in taken or name in columns[:at]:
            raise InputError(
                f'the result has a column "{name}" already; event_columns cannot add another',
                hint="ask for one of them, and for the other in a second call",
            )
    return list(names)


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
