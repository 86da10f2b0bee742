"""Events as CSV or TSV: a header of attribute names, and fields that spell values."""

from __future__ import annotations

import csv
import io
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from tamis.batches import batched, first_repeated
from tamis.errors import InputError
from tamis.events.arrow import read_spelled_table
from tamis.index.carriers import LARGE_STRING
from tamis.language.names import parse_path
from tamis.language.spelled import SpelledEvent
from tamis.records import RowError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.language.schema import Path
    from tamis.language.types import Type


class _Row(NamedTuple):
    fields: list[str]
    error: str | None = None  # then no field is to be believed


class CsvRows(NamedTuple):
    """Some rows of a file."""

    header: list[str]
    rows: list[_Row]
    table: AttributeTable

    def read(self, rejects: Rejects) -> EventValues:
        """Their attributes, typed."""
        return read_csv_rows(self.header, self.rows, self.table, rejects)

    def hold(self) -> list[Any]:
        """The rows as mappings; an error where there is none."""
        paths = [parse_path(name) if name else (name,) for name in self.header]
        types = dict(zip(self.table.paths, self.table.types, strict=True))
        return [_to_event(row, paths, types) for row in self.rows]


def _to_event(row: _Row, paths: list[Path], types: Mapping[Path, Type]) -> Any:
    if row.error is not None:
        return RowError("bad-csv", row.error)
    event = SpelledEvent()
    for path, text in zip(paths, row.fields, strict=True):
        if text:
            event.put(path, text, types.get(path))
    return event


def split_csv(
    stream: IO[bytes], name: str, table: AttributeTable, n_rows: int, delimiter: str = ","
) -> Iterator[CsvRows]:
    """The rows of a file, some at a time."""
    # Undecodable bytes become lone surrogates here, and errors of their rows below.
    text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
    # The default limit on one field is 128 KiB.
    csv.field_size_limit(2**31 - 1)
    rows = csv.reader(text, strict=True, delimiter=delimiter)
    try:
        header = _read_header(rows, name)
        checked = _check_rows(rows, len(header))
        for batch in batched(checked, n_rows, lambda row: sum(map(len, row.fields))):
            yield CsvRows(header, batch, table)
    finally:
        text.detach()  # the stream belongs to the caller


def read_csv_rows(
    header: list[str], rows: list[_Row], table: AttributeTable, rejects: Rejects
) -> EventValues:
    """The attributes of some rows; an empty field is a missing attribute."""
    for number, row in enumerate(rows):
        if row.error is not None:
            rejects.add_row(number, row.fields, row.error)
    columns = {
        name: pa.array(
            [None if row.error else row.fields[at] or None for row in rows], LARGE_STRING
        )
        for at, name in enumerate(header)
        if name in table.spellings
    }
    # A column that nobody asks for, so that a batch without others has its rows.
    columns[""] = pa.nulls(len(rows))
    return read_spelled_table(pa.table(columns), table, rejects)


def _read_header(rows: Any, name: str) -> list[str]:
    try:
        header: list[str] = next((row for row in rows if row), [])
    except csv.Error as error:
        raise InputError(f"{name}: the header line cannot be read: {error}") from None
    if not header:
        raise InputError(f"{name} is empty; a CSV file begins with a header line")
    twice = first_repeated(header)
    if twice is not None:
        raise InputError(f'{name} has two columns "{twice}"; each needs a name of its own')
    return header


def _check_rows(rows: Any, n_fields: int) -> Iterator[_Row]:
    """All rows but blank ones, with what is wrong with them."""
    while True:
        try:
            fields = next(rows, None)
        except csv.Error as error:
            yield _Row([], f"not CSV: {error}")
            continue
        if fields is None:
            return
        if not fields:
            continue
        if len(fields) != n_fields:
            yield _Row(fields, f"{len(fields)} fields; the header has {n_fields}")
        elif not _is_text(fields):
            yield _Row(fields, "not UTF-8")
        else:
            yield _Row(fields)


def _is_text(fields: list[str]) -> bool:
    try:
        "".join(fields).encode()
    except UnicodeEncodeError:
        return False
    return True
