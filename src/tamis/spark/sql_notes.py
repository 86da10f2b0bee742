"""Notes of the SQL functions on the standard error of the worker, since SQL has no warnings."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from tamis.events.names import find_names
from tamis.match.unseen import Watch

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.events.encoder import EncodedEvents
    from tamis.match.index import Index

HINT: Final = "tamis.spark.event_rejects lists what cannot be read"
_printed: set[tuple[str, str]] = set()  # of this worker: function and kind


def print_notes(function: str, index: Index, events: EncodedEvents, source: Any) -> None:
    """Print notes about unusual values of a batch of events, whose original form is `source`; each
    kind once per worker.
    """
    for kind, note in _find_notes(index, events, source):
        if note is not None and (function, kind) not in _printed:
            _printed.add((function, kind))
            sys.stderr.write(f"{function}: in a batch of events, {note} ({HINT})\n")
            sys.stderr.flush()


def _find_notes(
    index: Index, events: EncodedEvents, source: Any
) -> Iterator[tuple[str, str | None]]:
    watch = Watch(index.view.asked)
    watch.add(events)
    yield "unread", watch.describe_unread()
    yield "unreadable", watch.describe_unreadable()
    yield "missing", watch.describe_missing(lambda: find_names(source))
    yield from (("odd", note) for note in watch.describe_oddities())
