"""Events in CSV and TSV: texts, typed as the index asks for them."""

from __future__ import annotations

import csv
import io
from typing import IO, TYPE_CHECKING, Any, Final

from tamis.batches import first_repeated
from tamis.cli.console import print_note
from tamis.errors import InputError
from tamis.files import EventRow, Format, RowError
from tamis.language.names import parse_path, print_path
from tamis.language.spelled import SpelledEvent
from tamis.records import expect_utf8, opened
from tamis.sniffing import peeking, read_head, refuse_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.language.schema import Path as AttributePath
    from tamis.language.types import Type

SHOWN_NAMES: Final = 5


def read_csv_events(
    source: str | IO[bytes], types: Mapping[AttributePath, Type], delimiter: str = ","
) -> Iterator[EventRow]:
    """The events of a CSV file: an attribute for each column, missing where the field is empty."""
    name = source if isinstance(source, str) else "stdin"
    with opened(source) as stream, peeking(stream) as buffered:
        read_head(buffered, name, Format.CSV)
        # Undecodable bytes become lone surrogates here, and errors of their rows below.
        text = io.TextIOWrapper(buffered, "utf-8-sig", "surrogateescape", newline="")
        try:
            yield from _read_rows(text, name, types, delimiter)
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror}") from None
        finally:
            text.detach()  # the stream belongs to the caller


def _read_rows(
    text: io.TextIOWrapper, name: str, types: Mapping[AttributePath, Type], delimiter: str
) -> Iterator[EventRow]:
    csv.field_size_limit(2**31 - 1)
    lines = csv.reader(text, strict=True, delimiter=delimiter)
    paths = _read_header(lines, name)
    if types and types.keys().isdisjoint(paths):
        _warn_of_header(paths, name, types)
    number = 0
    while True:
        file_line = lines.line_num + 1
        try:
            fields = next(lines, None)
            if fields is None:
                return
            if not fields:  # a blank line
                continue
            event = _to_event(fields, paths, types)
        except csv.Error as problem:
            error = RowError("bad-csv", f"not CSV: {problem}")
        except RowError as problem:
            error = problem
        else:
            number += 1
            yield EventRow(number, file_line, event, n_bytes=sum(map(len, fields)))
            continue
        number += 1
        yield EventRow(number, file_line, {}, error)


def _read_header(lines: Any, name: str) -> list[AttributePath]:
    try:
        header: list[str] = next((row for row in lines if row), [])
    except csv.Error as error:
        raise InputError(f"{name}: the header line cannot be read: {error}") from None
    if not header:
        raise InputError(f"{name} is empty; a CSV file begins with a header line")
    refuse_json(header, name)
    twice = first_repeated(header)
    if twice is not None:
        raise InputError(f'{name} has two columns "{twice}"; each needs a name of its own')
    return [parse_path(column) if column else ("",) for column in header]


def _warn_of_header(
    paths: list[AttributePath], name: str, types: Mapping[AttributePath, Type]
) -> None:
    """Most likely the header line is missing, or the index is another one's."""
    found, wanted = (", ".join(_shorten(list(map(print_path, x)))) for x in (paths, types))
    print_note(
        f"{name}: the header names no attribute of the index, so all are missing from all events; "
        f"it names {found}; the index asks for {wanted}"
    )


def _shorten(names: list[str]) -> list[str]:
    return names if len(names) <= SHOWN_NAMES else [*names[:SHOWN_NAMES], "…"]


def _to_event(
    fields: list[str], paths: list[AttributePath], types: Mapping[AttributePath, Type]
) -> dict[str, Any]:
    if len(fields) != len(paths):
        raise RowError("bad-csv", f"{len(fields)} fields; the header has {len(paths)}")
    event = SpelledEvent()
    for path, text in zip(paths, fields, strict=True):
        if text:
            expect_utf8(text)
            event.put(path, text, types.get(path))
    return event
