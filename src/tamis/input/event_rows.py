"""Events of files one by one, as mappings of Python values."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING

from tamis.errors import InputError, RowError
from tamis.events.repeated_keys import check_keys
from tamis.input.formats import FORMATS, Format, read_rows
from tamis.input.json_lines import JsonRows
from tamis.input.rows import Values, Wanted
from tamis.input.sources import Source, open_stream

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class EventRow:
    """One row of a file of events; with an error, the event is empty."""

    number: int  # from 1; blank lines do not count
    file_line: int | None
    event: Values
    error: RowError | None = None
    repeated_key: str | None = None  # of an object of JSON; its last value counts


def read_events(source: Source, file_format: Format | None = None) -> Iterator[EventRow]:
    """The events of a source whose format has types, one at a time."""
    with open_stream(source, file_format) as stream:
        if not FORMATS[stream.file_format].is_typed:
            raise InputError(
                f"{stream.name}: events in {stream.file_format.upper()} have no types",
                hint="write them as JSON lines or Parquet",
            )
        for rows in read_rows(stream, Wanted(as_they_come=True)):
            lines = rows.lines or repeat(None)
            texts = rows.texts if isinstance(rows, JsonRows) else repeat(None)
            events = rows.to_mappings({})
            for number, line, text, event in zip(rows.numbers, lines, texts, events, strict=False):
                if isinstance(event, RowError):
                    yield EventRow(number, line, {}, event)
                else:
                    key = check_keys(text, event) if isinstance(text, str | bytes) else None
                    yield EventRow(number, line, event, repeated_key=key)
