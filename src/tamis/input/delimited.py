"""Rows of CSV and TSV: a header of names, and fields that are texts."""

from __future__ import annotations

import csv
import io
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import InputError, RowError
from tamis.input.batches import first_repeated
from tamis.input.formats import DELIMITERS
from tamis.input.rows import Rows
from tamis.input.sniffing import read_head, refuse_delimiter, refuse_json
from tamis.language.names import parse_path
from tamis.language.spelled import SpelledEvent

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.input.rows import Columns, Types, Values, Wanted
    from tamis.input.sources import Stream
    from tamis.language.schema import Path


class _Fields(NamedTuple):
    file_line: int
    fields: list[str]
    error: RowError | None = None  # then the fields are meaningless


def read_rows(stream: Stream, wanted: Wanted) -> Iterator[FieldRows]:
    """The rows of a stream in batches."""
    head = read_head(stream.file, stream.name, stream.file_format)
    # Undecodable bytes become lone surrogates here, and errors of their rows below.
    text = io.TextIOWrapper(stream.file, "utf-8-sig", "surrogateescape", newline="")
    # The default limit on one field is 128 KiB; expressions have their own limit.
    csv.field_size_limit(2**31 - 1)
    delimiter = DELIMITERS[stream.file_format]
    reader = csv.reader(text, strict=True, delimiter=delimiter)
    try:
        refuse_delimiter(head, stream.name, delimiter)
        header = Header(_read_header(reader, stream.name, wanted))
        for batch in wanted.gather(stream, _read_fields(reader, header, wanted.hint), _weigh):
            yield FieldRows(header, batch)
    finally:
        text.detach()  # the stream belongs to the caller


def _weigh(row: _Fields) -> int:
    return sum(map(len, row.fields))


def _read_header(reader: Any, name: str, wanted: Wanted) -> list[str]:
    try:
        names: list[str] = next((row for row in reader if row), [])
    except csv.Error as error:
        raise InputError(f"{name}: the header line cannot be read: {error}") from None
    if not names:
        raise InputError(f"{name} is empty; a CSV file begins with a header line")
    refuse_json(names, name)
    wanted.choose(names)
    twice = first_repeated(names)
    if twice is not None:
        raise InputError(f'{name} has two columns "{twice}"; each needs a different name')
    return names


def _read_fields(reader: Any, header: Header, hint: str | None) -> Iterator[_Fields]:
    """All rows except blank ones."""
    n_fields = len(header.names)
    while True:
        file_line = reader.line_num + 1
        try:
            fields = next(reader, None)
        except csv.Error as error:
            yield _Fields(file_line, [], _refuse_row(error, hint))
            continue
        if fields is None:
            return
        if fields:
            yield _Fields(file_line, fields, _find_error(fields, n_fields, hint))


def _refuse_row(error: csv.Error, hint: str | None) -> RowError:
    if "unexpected end" in str(error):
        message = "a double quote opened in this row is not closed before the end of the file"
    else:
        message = f"not CSV: {error}"
    return RowError("bad-csv", message, hint=hint)


def _find_error(fields: list[str], n_fields: int, hint: str | None) -> RowError | None:
    if len(fields) != n_fields:
        message = f"{len(fields)} fields; the header has {n_fields}"
        return RowError("bad-csv", message, hint=hint if len(fields) > n_fields else None)
    try:
        "".join(fields).encode()
    except UnicodeEncodeError as error:
        byte = ord(error.object[error.start]) & 0xFF
        message = f"not UTF-8: byte 0x{byte:02X}"
        return RowError("bad-encoding", message, hint="save the file as UTF-8")
    return None


class Header:
    """The names of the columns."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    @cached_property
    def paths(self) -> list[Path]:
        """The attributes of the names."""
        return [parse_path(name) if name else ("",) for name in self.names]


class FieldRows(Rows):
    """Rows of texts. As events, an empty field is a missing attribute."""

    def __init__(self, header: Header, rows: Sequence[_Fields]) -> None:
        self._header = header
        self._rows = rows
        self.lines = [row.file_line for row in rows]
        self._events: list[Any] | None = None

    def __len__(self) -> int:
        return len(self._rows)

    def read(self, table: AttributeTable, rejects: Rejects) -> EventValues:
        import pyarrow as pa

        from tamis.events.arrow import read_spelled_table

        for at, row in enumerate(self._rows):
            if row.error is not None:
                rejects.add_row(at, row.fields, row.error)
        columns = {
            name: pa.array(
                [None if row.error else row.fields[at] or None for row in self._rows],
                pa.large_string(),
            )
            for at, name in enumerate(self._header.names)
            if name in table.spellings or table.strings is not None
        }
        # An unused column, so that a batch without other columns has rows.
        columns[""] = pa.nulls(len(self._rows))
        return read_spelled_table(pa.table(columns), table, rejects)

    def hold(self, types: Types) -> Any:
        return self.to_mappings(types)

    def to_mappings(self, types: Types, names: Collection[str] | None = None) -> list[Any]:
        if self._events is None:
            self._events = [row.error or self._to_event(row, types) for row in self._rows]
        return self._events

    def _to_event(self, row: _Fields, types: Types) -> SpelledEvent:
        event = SpelledEvent()
        for path, text in zip(self._header.paths, row.fields, strict=True):
            if text:
                event.put(path, text, types.get(path))
        return event

    def to_records(self, columns: Columns) -> Iterable[Values | RowError]:
        names = self._header.names
        return (row.error or dict(zip(names, row.fields, strict=True)) for row in self._rows)

    def take(self, places: Sequence[int]) -> FieldRows:
        return FieldRows(self._header, [self._rows[at] for at in places])
