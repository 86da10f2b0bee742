"""How far the batches of a stream have been taken.

Each batch that delivers something is an entry of the archive, or several if it is large, and each
of these entries has the position after it: both are on disk, or neither is. The store has the
position too, a moment later, because the archive removes old entries. The larger one is true.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson
from sqlalchemy import insert, select, update

from tamis.archive import Answer
from tamis.broker.tables import STREAMS

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from tamis.archive import Archive
    from tamis.subscriptions import SubscriptionStore
    from tamis.versions.stream_output import BatchRecord

NONE_TAKEN = -1


class StreamPosition(NamedTuple):
    """The last batch that was taken, and how much of the next one."""

    stream: str
    batch: int = NONE_TAKEN  # this batch and all before it
    n_events: int = 0  # of the next batch
    written: str = ""  # which run of the last batch was taken; empty if that is not known
    n_matches: int = 0  # rows of the last batch

    def after_part(self, n_events: int) -> StreamPosition:
        """The position after the first events of the next batch."""
        return self._replace(n_events=n_events)

    def after(self, record: BatchRecord) -> StreamPosition:
        """The position after a batch."""
        return StreamPosition(record.stream, record.batch, 0, record.written, record.n_matches)

    def to_answer(self) -> Answer:
        """What an entry of the archive has; the key is the same for all entries of a stream."""
        spelled = orjson.dumps(self._asdict())
        return Answer(_key(self.stream), hashlib.sha256(spelled).digest(), spelled)


def _key(stream: str) -> bytes:
    return hashlib.sha256(f"position of the stream {stream}".encode()).digest()


def find_stored(archive: Archive, stream: str) -> StreamPosition | None:
    """The position that the archive has; None if it has none, or no longer."""
    answer = archive.find_answer(_key(stream), at_any_age=True)
    return None if answer is None else StreamPosition(**orjson.loads(answer.answer))


class StreamPositions:
    """The positions in the store, and the folder of each stream."""

    def __init__(self, store: SubscriptionStore, archive: Archive) -> None:
        self._store = store
        self._archive = archive

    def of_folder(self, folder: str) -> StreamPosition | None:
        """The position of the stream whose output is in a folder."""
        return self._find(STREAMS.c.folder == folder)

    def of_stream(self, stream: str) -> StreamPosition | None:
        """The position of a stream."""
        return self._find(STREAMS.c.stream == stream)

    def _find(self, where: Any) -> StreamPosition | None:
        with self._store.read() as connection:
            row = connection.execute(select(STREAMS).where(where)).one_or_none()
        if row is None:
            return None
        position = StreamPosition(**orjson.loads(row.position))
        stored = find_stored(self._archive, position.stream)
        return position if stored is None else max(position, stored, key=_order)

    def write(self, position: StreamPosition, folder: str) -> None:
        """Store a position; it is on disk when this returns."""
        last_event = self._archive.last_event

        def write(connection: Connection) -> None:
            _write(connection, position, folder, last_event)

        self._store.run(write)


def reconcile(connection: Connection, archive: Archive) -> None:
    """Let the store forget batches that are not in the archive: a backup was restored in which the
    store is newer than the archive.
    """
    for row in connection.execute(select(STREAMS).where(STREAMS.c.event > archive.last_event)):
        found = find_stored(archive, row.stream) or StreamPosition(row.stream)
        _write(connection, found, row.folder, archive.last_event)


def _write(connection: Connection, position: StreamPosition, folder: str, event: int) -> None:
    row = {
        "folder": folder,
        "position": orjson.dumps(position._asdict()).decode(),
        "event": event,
    }
    statement = update(STREAMS).where(STREAMS.c.stream == position.stream).values(row)
    if not connection.execute(statement).rowcount:
        connection.execute(insert(STREAMS), {"stream": position.stream, **row})


def _order(position: StreamPosition) -> tuple[int, int]:
    return position.batch, position.n_events
