"""Rows as Arrow data: read by columns as events, and as Python values on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import InputError
from tamis.events.read import read_events
from tamis.input.formats import FORMATS
from tamis.input.rows import Rows, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tamis.errors import RowError
    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.input.rows import Columns, Types, Values
    from tamis.input.sources import Stream


class TableRows(Rows):
    """The rows of a table, a record batch or an array."""

    def __init__(self, data: Any, column: str | None = None) -> None:
        """`column` is the one that contains whole events, if any."""
        self.data = data
        self.column = column

    def __len__(self) -> int:
        return len(self.data)

    def read(self, table: AttributeTable, rejects: Rejects) -> EventValues:
        return read_events(self.data, table, rejects, column=self.column)

    def hold(self, types: Types) -> Any:
        return self.data

    def to_mappings(self, types: Types, names: Collection[str] | None = None) -> list[Any]:
        known = self.data.schema.names
        chosen = known if names is None else [name for name in known if name in names]
        if not chosen:
            return [{} for _ in range(len(self))]
        return batch_rows(self.data if len(chosen) == len(known) else self.data.select(chosen))

    def to_records(self, columns: Columns) -> Iterable[Values | RowError]:
        return batch_records(self.data, columns)

    def take(self, places: Sequence[int]) -> TableRows:
        return TableRows(self.data.take(pa.array(places, pa.int64())), self.column)


def reading_tables(stream: Stream, batches: Iterator[pa.RecordBatch]) -> Iterator[TableRows]:
    """The batches as rows; Arrow's errors for a damaged file become an `InputError`."""
    try:
        for batch in batches:
            yield TableRows(batch)
    except (pa.ArrowException, OSError, ValueError) as error:
        reason = str(error).strip().partition("\n")[0]
        title = FORMATS[stream.file_format].title
        raise InputError(f"{stream.name} cannot be read as {title}: {reason}") from None


def batch_rows(batch: pa.RecordBatch) -> list[Values]:
    """The rows of a table; a value that Python cannot represent is an `UnreadableError` in its
    place.
    """
    try:
        rows: list[Values] = batch.to_pylist()
    except Exception:  # a date of the year 20000, text that is not UTF-8, an unknown zone
        columns = {name: list(map(_to_python, batch.column(name))) for name in batch.schema.names}
        rows = [{name: own[at] for name, own in columns.items()} for at in range(len(batch))]
    return rows


def _to_python(scalar: pa.Scalar) -> Any:
    """The value; for one that Python cannot represent, a description, which is not a value of any
    type.
    """
    try:
        return scalar.as_py()
    except Exception as error:
        return UnreadableError(f"{scalar.type}: {error}")


def batch_records(batch: pa.RecordBatch, columns: Columns) -> Iterator[Values]:
    """The rows of a table of subscriptions."""
    named = [found for found in columns.find(batch.schema.names) if found]
    others = batch.drop_columns([name for name in named if name in batch.schema.names])
    values = [_to_values(batch.column(batch.schema.get_field_index(name))) for name in named]
    rest: list[Values] = batch_rows(others) if others.num_columns else []
    for at, row in enumerate(zip(*values, strict=True)):
        own = dict(zip(named, row, strict=True))
        yield rest[at] | own if rest else own


def _to_values(column: pa.Array) -> list[Any]:
    """The column's values; text that is not UTF-8 is returned as bytes, and its row is rejected."""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        values = column.cast(pa.large_binary()).to_pylist()
    return [_decode(value) if isinstance(value, bytes) else value for value in values]


def _decode(value: bytes) -> str | bytes:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value
