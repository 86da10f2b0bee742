"""A sample of the events that a live index has matched lately."""

from __future__ import annotations

from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

EVENT: Final = "event"  # the column of the sample
SIZE: Final = 1_000  # events
EVERY: Final = 16  # one event of this many replaces an older one
LEAST: Final = 50  # fewer events say too little


class EventSample:
    """Keeps a few of the events; merges choose access children by them (A-Tree §5.2.2)."""

    def __init__(self) -> None:
        self._events: deque[Any] = deque(maxlen=SIZE)
        self._numbers = count()

    def add(self, event: Any) -> None:
        """Look at one event."""
        if len(self._events) < SIZE or next(self._numbers) % EVERY == 0:
            self._events.append(event)

    def add_some(self, events: Sequence[Any]) -> None:
        """Look at a batch of events."""
        self._events.extend(events[::EVERY])

    def to_table(self) -> pa.Table | None:
        """The events in a column of JSON texts; None if there are too few."""
        import orjson

        texts = []
        for event in list(self._events):
            try:
                is_text = isinstance(event, str | bytes)
                text = event if is_text else orjson.dumps(dict(event), default=str)
                texts.append(text if isinstance(text, str) else text.decode())
            except (TypeError, ValueError):
                continue  # it is only a sample
        return pa.table({EVENT: texts}) if len(texts) >= LEAST else None
