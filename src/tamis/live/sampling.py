"""A sample of the events that a live index has matched lately."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.input.events import read_event

if TYPE_CHECKING:
    from collections.abc import Mapping

EVENT: Final = "event"  # the column of the sample
SIZE: Final = 1_000  # events
EVERY: Final = 16  # one event of this many replaces an older one
LEAST: Final = 50  # fewer events say too little


class EventSample:
    """Keeps a few of the events that were matched one by one.

    Merges choose access children by them (A-Tree §5.2.2), which batches do not use.
    """

    def __init__(self) -> None:
        self._events: deque[Any] = deque(maxlen=SIZE)
        self._numbers = count()

    def add(self, event: Any) -> None:
        """Look at one event."""
        if len(self._events) < SIZE or next(self._numbers) % EVERY == 0:
            self._events.append(event)

    def some(self, n: int) -> list[Mapping[str, Any]]:
        """A few of the events, to be matched."""
        kept = list(self._events)[-n:]
        return [read_event(event) for event in kept]

    def to_table(self) -> pa.Table | None:
        """The events in a column of JSON texts; None if there are too few."""
        import orjson

        texts = []
        for event in list(self._events):
            try:
                is_text = isinstance(event, str | bytes)
                text = event if is_text else orjson.dumps(dict(event), default=str)
                texts.append(text if isinstance(text, str) else text.decode())
            except (RuntimeError, TypeError, ValueError):  # changed meanwhile, or not JSON
                continue  # it is only a sample
        return pa.table({EVENT: texts}) if len(texts) >= LEAST else None
