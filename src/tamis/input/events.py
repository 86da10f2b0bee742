"""Events as callers pass them: in memory, or a stream that is read in batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from tamis.errors import InputError, RowError, warn
from tamis.events.encoder import EncodedEvents
from tamis.events.json_source import join_texts, split_lines
from tamis.events.json_texts import is_json, parse_event
from tamis.events.names import SAMPLE, find_names
from tamis.events.repeated_keys import check_keys, describe_repeated
from tamis.input.batches import peek
from tamis.input.event_batches import split_events
from tamis.input.formats import KNOWN_ENDINGS
from tamis.input.frames import is_frame, to_arrow
from tamis.input.paths import find_path
from tamis.input.rows import Wanted

if TYPE_CHECKING:
    from tamis.language.schema import Path as AttributePath

TAKEN: Final = (
    "events are dicts, JSON texts, Arrow data, a pandas or Polars frame, an iterator of record "
    f"batches, or the path of a file ({KNOWN_ENDINGS})"
)
SHOWN: Final = 60  # characters shown of a text that is not an event


class EventStream(NamedTuple):
    """Events that are read in batches, by `event_batches`."""

    source: Any
    find_names: Callable[[], set[AttributePath]]  # in the first of them, once they are read


def open_events(given: Any) -> Any:
    """The events in the form of `events.read_events`, or an `EventStream`."""
    if isinstance(given, list | tuple | EncodedEvents | pa.Array | pa.ChunkedArray):
        is_batches = isinstance(given, list | tuple) and given and _is_batch(given[0])
        return _stream(given) if is_batches else given
    if isinstance(given, str | bytes | os.PathLike):
        path = find_path(given)
        return _read_text(given) if path is None else _stream(path)
    if hasattr(given, "iter_batches"):  # an open Parquet file
        return _stream(given.iter_batches())
    if hasattr(given, "read"):
        return _stream(_binary(given))
    frame = to_arrow(given, is_partial=True)
    if frame is not None:
        return _stream(frame) if isinstance(frame, pa.RecordBatchReader) else frame
    if isinstance(given, Mapping):
        raise InputError(
            f"a {type(given).__name__} is one event, not a list of events",
            hint="match one event by index.match(event), or put it into a list: [event]",
        )
    if not isinstance(given, Iterable):
        raise InputError(f"no events can be read from {type(given).__name__}", hint=TAKEN)
    first, events = peek(given)
    return _stream(events) if _is_batch(first) else list(events)


def is_event(given: Any) -> bool:
    """Whether it is one event that is not text: a dict, or another mapping of attributes."""
    return hasattr(given, "get") and not is_frame(given)


def read_event(
    given: Any, report_repeated: Callable[[str], None] | None = None
) -> Mapping[str, Any]:
    """One event: a mapping, or the JSON text of an object. A repeated key of it is a warning, if it
    is not reported otherwise.
    """
    if type(given) is dict:
        return given
    if isinstance(given, str | bytes):
        try:
            parsed = parse_event(given)
        except RowError as error:
            raise InputError(
                "an event is a mapping of attributes, or its JSON text; this text is not an "
                f"event: {error.message}"
            ) from None
        if (key := check_keys(given, parsed)) is not None:
            if report_repeated is None:
                warn(describe_repeated(key))
            else:
                report_repeated(key)
        return parsed
    if not is_event(given):
        raise InputError(
            f"an event is a mapping of attributes, not {type(given).__name__}",
            hint="match several events with match_batch",
        )
    event: Mapping[str, Any] = given
    return event


def expect_events(given: Any) -> Iterable[Any]:
    """Several events, each a mapping or JSON text."""
    if isinstance(given, str | bytes) or hasattr(given, "get") or not isinstance(given, Iterable):
        raise InputError(
            f"a list of events is expected, not {type(given).__name__}",
            hint="match one event by index.match(event), a frame or a file by index.match_batch",
        )
    return given


def _stream(source: Any) -> EventStream:
    if isinstance(source, Path):
        return EventStream(source, partial(_names_in_file, source))
    if isinstance(source, pa.RecordBatchReader):
        return EventStream(source, partial(find_names, source.schema.empty_table()))
    if hasattr(source, "read"):
        return EventStream(source, set)  # the part already read is lost
    first, batches = peek(source)
    return EventStream(batches, set if first is None else partial(find_names, first.slice(0, 0)))


def _names_in_file(path: Path) -> set[AttributePath]:
    return names_in_source(path, None)


def names_in_source(source: Path | str | bytes, file_format: str | None) -> set[AttributePath]:
    """The names in the first events of a source."""
    batches = split_events(source, Wanted(n_rows=SAMPLE), file_format=file_format)
    return next((find_names(rows.hold({})) for rows in batches), set())


def _is_batch(item: Any) -> bool:
    return isinstance(item, pa.RecordBatch | pa.Table)


def _binary(stream: Any) -> Any:
    """The stream, as bytes if it is a text stream."""
    return stream.buffer if hasattr(stream, "buffer") else stream


def _first_line(data: bytes) -> bytes:
    begin = len(data) - len(data.lstrip())
    end = data.find(b"\n", begin)
    return data[begin:] if end < 0 else data[begin:end]


def _read_text(text: Any) -> Sequence[Any]:
    """The events of a JSON text: one object, an array of objects, or an object on each line."""
    data: bytes = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if data.lstrip()[:1] not in (b"{", b"["):
        shown = text if len(text) <= SHOWN else text[:SHOWN]
        raise InputError(f"{shown!r} is neither the path of a file nor JSON", hint=TAKEN)
    if data.lstrip()[:1] == b"{":
        if is_json(_first_line(data)):
            return split_lines(data, len(data)).texts
        if is_json(data):  # one object over several lines
            return [data]
    batches = split_events(data, Wanted(n_rows=len(data)))
    return join_texts([rows.hold({}) for rows in batches])
