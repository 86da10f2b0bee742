"""Whether a server can do its work: found out by doing it, on a small scale."""

from __future__ import annotations

import errno
import shutil
import time
from concurrent.futures import TimeoutError as FutureTimeoutError
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from sqlalchemy import update

from tamis import durable
from tamis.broker.tables import BROKER
from tamis.errors import TamisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from sqlalchemy import Connection

    from tamis.broker.match_server import MatchServer

FRESH_SECONDS: Final = 1.0  # an answer is given again for so long
PATIENCE: Final = 10.0  # seconds that the store may take, and that the set may be behind it
PROBE: Final = ".writable"
_PROBE_BYTES: Final = 4_096


class Readiness:
    """Asks the disk, the store, the archive and the live index. May be used by many threads."""

    def __init__(
        self,
        match_server: MatchServer,
        least_free: int = 0,
        *,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        """Below `least_free` bytes on a disk, the server is not ready."""
        self._server = match_server
        self._least_free = least_free
        self._timer = timer
        self._lock = Lock()
        self._found: list[str] = []
        self._looked: float | None = None
        self._behind_since: float | None = None
        self._first: Callable[[], str | None] = lambda: None

    def await_first(self, find_reason: Callable[[], str | None]) -> None:
        """Something else that the server waits for when it starts."""
        self._first = find_reason

    def find_reasons(self) -> list[str]:
        """Why the server is not ready; empty if it is."""
        with self._lock:
            if self._looked is None or self._timer() - self._looked >= FRESH_SECONDS:
                self._found = list(self._look())
                self._looked = self._timer()
            return self._found

    def recall(self) -> list[str] | None:
        """As `find_reasons`, without waiting; None if it must be found out."""
        looked = self._looked
        is_fresh = looked is not None and self._timer() - looked < FRESH_SECONDS
        return self._found if is_fresh else None

    def _look(self) -> Iterator[str]:
        server = self._server
        first = self._first()
        if first is not None:
            yield first
        if server.is_follower:
            yield from self._look_at_set()
            yield from self._look_at_followed()
            return
        for folder in (server.live.folder, server.archive.folder):
            yield from self._look_at_folder(folder)
        yield from self._look_at_store()
        yield from self._look_at_archive()
        yield from self._look_at_set()

    def _look_at_folder(self, folder: Path) -> Iterator[str]:
        try:
            free = shutil.disk_usage(folder).free
            if free < self._least_free:
                yield f"the disk of {folder} has {free:,} free bytes, not {self._least_free:,}"
            probe = folder / PROBE
            durable.replace_file(probe, [bytes(_PROBE_BYTES)])
            with suppress(FileNotFoundError):
                probe.unlink()
        except OSError as error:
            is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            what = "the disk is full" if is_full else error.strerror or str(error)
            yield f"{folder} cannot be written: {what}"

    def _look_at_store(self) -> Iterator[str]:
        try:
            self._server.live.store.submit_task(_write_same).result(PATIENCE)
        except FutureTimeoutError:
            yield f"the store has not answered for {PATIENCE:g} s"
        except TamisError as error:
            yield error.message

    def _look_at_archive(self) -> Iterator[str]:
        if not self._server.publisher.is_running:
            yield "publishing has ended"
        if self._server.taker is not None and not self._server.taker.is_running:
            yield "taking matches of the stream has ended"
        for archive in {self._server.archive, self._server.published}:
            try:
                archive.append([])  # no events, but all that storing them needs
            except TamisError as error:
                yield error.message

    def _look_at_followed(self) -> Iterator[str]:
        """Whether the archive of the writer can be read."""
        try:
            self._server.archive.read_events(after=self._server.archive.last_event, limit=1)
        except TamisError as error:
            yield error.message

    def _look_at_set(self) -> Iterator[str]:
        """Whether the live index has the changes of the store, which another server may write."""
        try:
            n_behind = self._server.live.store.last_change - self._server.live.change
        except TamisError as error:
            yield error.message
            return
        if n_behind <= 0:
            self._behind_since = None
        elif self._behind_since is None:
            self._behind_since = self._timer()
        elif self._timer() - self._behind_since > PATIENCE:
            yield f"the set is {n_behind:,} changes behind the store"


def _write_same(connection: Connection) -> None:
    """Write what is there already."""
    connection.execute(update(BROKER).values(last_number=BROKER.c.last_number))
