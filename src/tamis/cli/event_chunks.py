"""Events of a file in chunks: as many at a time as the batch matcher likes, or as have come, and
never more than fit in memory."""

from __future__ import annotations

import os
from queue import Empty, Queue
from stat import S_ISREG
from threading import Condition, Thread
from time import monotonic
from typing import IO, TYPE_CHECKING, Final

from tamis.batches import MOST_BYTES, batched
from tamis.cli.csv_events import read_csv_events
from tamis.files import EventRow, Format, detect_format, read_events
from tamis.records import DELIMITERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.language.schema import Path as AttributePath
    from tamis.language.types import Type

CHUNK: Final = 4_096  # events: some blocks of the batch matcher
LINGER_SECONDS: Final = 0.05  # how long a pipe is given to fill a chunk


def read_event_chunks(
    source: str | IO[bytes], file_format: Format | None, types: Mapping[AttributePath, Type]
) -> Iterator[list[EventRow]]:
    """The events of a file, or of a stream as they come; `types` say what the texts of CSV are."""
    chosen = file_format or detect_format(str(source))
    if chosen in DELIMITERS:
        rows = read_csv_events(source, types, DELIMITERS[chosen])
    else:
        rows = read_events(source, chosen)
    if isinstance(source, str) or _is_file(source):
        yield from batched(rows, CHUNK, _weigh)
    else:
        yield from _as_they_come(rows)


def _weigh(row: EventRow) -> int:
    return row.n_bytes


def _is_file(stream: IO[bytes]) -> bool:
    try:
        return S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # no file at all, as in tests
        return True


# ── pipes ───────────────────────────────────────────────────────────────────────────────────


def _as_they_come(rows: Iterator[EventRow]) -> Iterator[list[EventRow]]:
    """Chunks of what has come: full ones while the pipe is full, single events from a slow one."""
    arrived: Queue[EventRow | BaseException | None] = Queue(2 * CHUNK)
    waiting = _Waiting()

    def read() -> None:
        try:
            for row in rows:
                waiting.add(row.n_bytes)
                arrived.put(row)
            arrived.put(None)
        except BaseException as error:  # raised where the rows are taken
            arrived.put(error)

    # A daemon: a pipe that never ends must not keep the program from ending.
    Thread(target=read, daemon=True).start()
    is_open = True
    while is_open:
        chunk: list[EventRow] = []
        n_bytes = 0
        item = arrived.get()
        until = monotonic() + LINGER_SECONDS
        while isinstance(item, EventRow):
            chunk.append(item)
            waiting.take(item.n_bytes)
            n_bytes += item.n_bytes
            if len(chunk) == CHUNK or n_bytes >= MOST_BYTES:
                break
            try:
                item = arrived.get(timeout=max(0, until - monotonic()))
            except Empty:
                break
        else:
            is_open = False
        if chunk:
            yield chunk
        if isinstance(item, BaseException):
            raise item


class _Waiting:
    """How many bytes of events have come and are not yet taken; more wait outside."""

    def __init__(self) -> None:
        self._n_bytes = 0
        self._changed = Condition()

    def add(self, n_bytes: int) -> None:
        """Wait until there is room for so many more, or none are there."""
        with self._changed:
            self._changed.wait_for(lambda: self._n_bytes + n_bytes <= max(MOST_BYTES, n_bytes))
            self._n_bytes += n_bytes

    def take(self, n_bytes: int) -> None:
        """Make room for others."""
        with self._changed:
            self._n_bytes -= n_bytes
            self._changed.notify()
