"""Events as callers hand them over, encoded: at once, or, of a stream, a part at a time."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import TamisWarning
from tamis.events.sources import split_source
from tamis.input.events import EventStream, open_events

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.events.encoder import EncodedEvents, EventEncoder
    from tamis.events.rejects import Reject


def encode_parts(encoder: EventEncoder, events: Any, *, keep: bool) -> Iterator[EncodedEvents]:
    """The events in codes, with their source if it is to be kept.

    A stream is read a part at a time. What cannot be read of it is reported when it ends: nobody
    else will see it.
    """
    opened = open_events(events)
    if not isinstance(opened, EventStream):
        yield encoder.encode(opened)
        return
    n_rejects, first = 0, None
    for batch in encoder.encode_batches(opened.source, keep=keep):
        n_rejects += len(batch.rejects)
        first = first or next(iter(batch.rejects), None)
        yield batch
    if first is not None:
        _warn(n_rejects, first)


def encode_whole(
    encoder: EventEncoder, events: Any, *, column: str | None, strict: bool, keep: bool
) -> EncodedEvents:
    """All events in codes, a stream's too."""
    opened = open_events(events)
    if isinstance(opened, EventStream):
        opened = _hold(encoder, opened, column, keep=keep)
    return encoder.encode(opened, column=column, strict=strict)


def _hold(encoder: EventEncoder, stream: EventStream, column: str | None, *, keep: bool) -> Any:
    """The events of a stream in memory."""
    table = encoder.table
    parts = split_source(stream.source, table, column=column, all_columns=keep)
    held = [part.hold() for part in parts]
    if held and not isinstance(held[0], list):
        tables = (
            pa.Table.from_batches([own]) if isinstance(own, pa.RecordBatch) else own for own in held
        )
        return pa.concat_tables(tables, promote_options="permissive")
    return [event for own in held for event in own]


def _warn(n_rejects: int, first: Reject) -> None:
    things = "value or row was" if n_rejects == 1 else "values and rows were"
    warnings.warn(
        f"{n_rejects:,} {things} not read and treated as missing, for example {first}; "
        "index.encode(events).rejects lists them",
        TamisWarning,
        stacklevel=caller_level(),
    )


def caller_level() -> int:
    """How far up the stack of whoever asks the first frame outside of this package is."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("tamis."):
        frame, level = frame.f_back, level + 1
    return level
