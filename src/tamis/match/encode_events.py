"""Encodes events in any supported form: at once, or for a stream, in batches."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import InputError, RejectWarning, warn
from tamis.events.encoder import EncodedEvents
from tamis.events.json_source import JsonSpans, join_texts
from tamis.events.names import find_names
from tamis.input.event_batches import encode_batches, split_events, wanted_columns
from tamis.input.events import EventStream, open_events, read_event
from tamis.input.rows import Wanted
from tamis.match.unseen import Watch, describe_no_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.events.encoder import EventEncoder
    from tamis.language.schema import Path as AttributePath
    from tamis.match.unseen import NeededAttributes


def encode_parts(
    encoder: EventEncoder, events: Any, asked: NeededAttributes, *, keep: bool
) -> Iterator[EncodedEvents]:
    """The encoded events, with their source if it is kept. Encoded events are returned unchanged.

    A stream is read in batches. At the end, values that could not be read are reported, and
    problems of the events as a whole.
    """
    if isinstance(events, EncodedEvents):
        yield _expect_own(encoder, events)
        return
    opened = open_events(events)
    watch = Watch(asked)
    if not isinstance(opened, EventStream):
        batch = encoder.encode(opened)
        watch.add(batch)
        yield _release(batch, keep=keep)
        _report(watch, lambda: find_names(batch.source))
        return
    for batch in encode_batches(encoder, opened.source, keep=keep):
        watch.add(batch)
        yield _release(batch, keep=keep)
    _report(watch, opened.find_names, is_whole=isinstance(opened.source, Path))
    if watch.is_idle and isinstance(opened.source, Path):
        warn(describe_no_events(str(opened.source)))


def report_missing(encoder: EventEncoder, events: list[Any], asked: NeededAttributes) -> None:
    """Warn of attributes that none of these single events has."""
    batch = encoder.encode([read_event(event) for event in events])
    watch = Watch(asked)
    watch.add(batch)
    note = watch.describe_missing(lambda: find_names(batch.source))
    if note is not None:
        warn(note)


def _report(
    watch: Watch, find_names: Callable[[], set[AttributePath]], *, is_whole: bool = False
) -> None:
    unread = watch.describe_unread()
    if unread is not None:
        warn(unread, RejectWarning)
    missing = watch.describe_missing(find_names, is_whole=is_whole)
    for note in (watch.describe_unreadable(), missing, *watch.describe_oddities()):
        if note is not None:
            warn(note)


def encode_whole(
    encoder: EventEncoder, events: Any, *, column: str | None, strict: bool, keep: bool
) -> EncodedEvents:
    """All events encoded, including those of a stream, with their source if it is kept."""
    if isinstance(events, EncodedEvents):
        return _expect_own(encoder, events)
    opened = open_events(events)
    if isinstance(opened, EventStream):
        opened = _hold(encoder, opened, column, keep=keep)
    return _release(encoder.encode(opened, column=column, strict=strict), keep=keep)


def _release(batch: EncodedEvents, *, keep: bool) -> EncodedEvents:
    # Operators get the events themselves; otherwise they are no longer needed.
    return batch if keep else batch._replace(source=None)


def _expect_own(encoder: EventEncoder, events: EncodedEvents) -> EncodedEvents:
    own = encoder.columns
    is_ours = len(own) == len(events.columns)
    if not is_ours or any(a is not b for a, b in zip(own, events.columns, strict=True)):
        raise InputError(
            "these events were encoded by another index",
            hint="encode them with the index that is to match them: index.encode(events)",
        )
    return events


def _hold(encoder: EventEncoder, stream: EventStream, column: str | None, *, keep: bool) -> Any:
    """The events of a stream in memory."""
    table = encoder.table
    wanted = Wanted(None if keep else wanted_columns(table, column))
    batches = split_events(stream.source, wanted, column=column)
    held = [rows.hold(table.by_path) for rows in batches]
    if held and not isinstance(held[0], list | JsonSpans):
        tables = (
            pa.Table.from_batches([own]) if isinstance(own, pa.RecordBatch) else own for own in held
        )
        return pa.concat_tables(tables, promote_options="permissive")
    return join_texts(held)
