"""Events of a file in chunks: as many at a time as the batch matcher likes, or as have come."""

from __future__ import annotations

import os
from itertools import islice
from queue import Empty, Queue
from stat import S_ISREG
from threading import Thread
from time import monotonic
from typing import IO, TYPE_CHECKING, Final

from tamis.cli.csv_events import read_csv_events
from tamis.files import EventRow, Format, detect_format, read_events

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
    rows = read_csv_events(source, types) if chosen is Format.CSV else read_events(source, chosen)
    if isinstance(source, str) or _is_file(source):
        while chunk := list(islice(rows, CHUNK)):
            yield chunk
    else:
        yield from _as_they_come(rows)


def _is_file(stream: IO[bytes]) -> bool:
    try:
        return S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # no file at all, as in tests
        return True


# ── pipes ───────────────────────────────────────────────────────────────────────────────────


def _as_they_come(rows: Iterator[EventRow]) -> Iterator[list[EventRow]]:
    """Chunks of what has come: full ones while the pipe is full, single events from a slow one."""
    arrived: Queue[EventRow | BaseException | None] = Queue(2 * CHUNK)

    def read() -> None:
        try:
            for row in rows:
                arrived.put(row)
            arrived.put(None)
        except BaseException as error:  # raised where the rows are taken
            arrived.put(error)

    # A daemon: a pipe that never ends must not keep the program from ending.
    Thread(target=read, daemon=True).start()
    is_open = True
    while is_open:
        chunk: list[EventRow] = []
        item = arrived.get()
        until = monotonic() + LINGER_SECONDS
        while isinstance(item, EventRow):
            chunk.append(item)
            if len(chunk) == CHUNK:
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
