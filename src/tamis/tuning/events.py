"""Events as `Index.match_batch` takes them, one by one as mappings."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from tamis.errors import InputError, RejectWarning, RowError, warn
from tamis.events.json_texts import parse_event
from tamis.input.batches import peek
from tamis.input.event_batches import split_events
from tamis.input.event_rows import read_events
from tamis.input.events import TAKEN, EventStream, is_event, open_events
from tamis.input.frames import is_frame
from tamis.input.paths import find_path
from tamis.input.rows import Wanted


def iterate_events(given: Any) -> Iterator[Mapping[str, Any]]:
    """The events; a warning counts those that cannot be read, and if none can, it is an error."""
    n_read = n_wrong = 0
    first = ""
    for number, event in enumerate(_iterate(given), 1):
        if isinstance(event, RowError):
            n_wrong += 1
            first = first or f"event {number}: {event.message}"
        else:
            n_read += 1
            yield event
    if n_wrong and not n_read:
        raise InputError(f"no event can be read, first {first}", hint=TAKEN)
    if n_wrong:
        events = "event was" if n_wrong == 1 else "events were"
        warn(f"{n_wrong:,} {events} not read and left out, first {first}", RejectWarning)


def _iterate(given: Any) -> Iterator[Mapping[str, Any] | RowError]:
    if isinstance(given, str | bytes | os.PathLike) and (path := find_path(given)) is not None:
        yield from (row.error or row.event for row in read_events(path))
        return
    if isinstance(given, Mapping):
        raise InputError(
            f"a {type(given).__name__} is one event, not a list of events",
            hint="put it into a list: [event]",
        )
    if isinstance(given, Iterator) and not hasattr(given, "read") and not is_frame(given):
        head, given = peek(given)
        if not isinstance(head, pa.RecordBatch | pa.Table):
            yield from map(_read, given)  # one at a time: there may be more than fit in memory
            return
    opened = open_events(given)
    source = opened.source if isinstance(opened, EventStream) else opened
    if isinstance(source, list | tuple):
        yield from map(_read, source)
        return
    if isinstance(source, pa.Array | pa.ChunkedArray):
        yield from (_read(event.as_py()) for event in source)
        return
    for rows in split_events(source, Wanted(as_they_come=True)):
        yield from map(_read, rows.to_mappings({}))


def _read(event: Any) -> Mapping[str, Any] | RowError:
    if isinstance(event, RowError):
        return event
    if isinstance(event, str | bytes):
        try:
            return parse_event(event)
        except RowError as error:
            return error
    if not is_event(event):
        kind = type(event).__name__
        return RowError("not-an-event", f"an event is a mapping of attributes, not {kind}")
    found: Mapping[str, Any] = event
    return found
