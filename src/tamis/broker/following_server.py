"""A match server that only reads: another one has the same folder and the same store, and writes.

It answers questions, lists subscriptions, reads mailboxes and follows them live, a moment behind
the writer. Whatever changes something raises a `StoreError`: the store is open for reading only.
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, Final, cast

from tamis.archive import Archive, ArchiveSettings
from tamis.broker.audit import Auditor
from tamis.broker.hub import Hub
from tamis.broker.mail import Mailboxes
from tamis.broker.match_server import ARCHIVE, INDEX, INTAKE, MatchServer, MatchServerSettings
from tamis.broker.outcomes import PublishCounts
from tamis.broker.searching import Searcher
from tamis.broker.store import Broker, load_secret
from tamis.broker.version_publishing import VersionPublisher
from tamis.errors import InputError, StoreError
from tamis.live import follow

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future
    from datetime import datetime
    from pathlib import Path

    from tamis.broker.matching import Publication
    from tamis.broker.outcomes import Published
    from tamis.broker.publishing import Publisher
    from tamis.live import LiveIndex

INTERVAL: Final = 0.1  # seconds between two looks at the archive
_LOG: Final = logging.getLogger(__name__)


class FollowingServer(MatchServer):
    """As `MatchServer`, for reading. Any number of processes may open one folder."""

    is_follower = True

    def __init__(
        self,
        folder: Path,
        settings: MatchServerSettings,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Use `open`."""
        if not (folder / ARCHIVE).is_dir():
            raise InputError(
                f"{folder} has no server that could be followed",
                hint="start the server that writes first, with the same folder",
            )
        self.folder = folder
        self.opened_at = time.monotonic()
        self.hub = Hub()
        with ExitStack() as stack:
            live = follow(
                folder / INDEX, store=settings.store, operators=settings.operators, clock=clock
            )
            stack.callback(live.close)
            # It lacks what changes the set, which no caller of this server may do.
            self.live = cast("LiveIndex", live)
            self.secret = load_secret(folder, live.store)
            self.broker = Broker(live.store, self.secret, policy=settings.retries)
            self.archive = self._open_archive(stack, ARCHIVE, settings.archive)
            self.intake = None
            if (folder / INTAKE).is_dir():
                self.intake = self._open_archive(stack, INTAKE, settings.archive)
            self.searcher = Searcher(self.live, self.published, is_writer=False)
            self.taker = None
            self.histories = self._open_histories()
            self.mailboxes = Mailboxes(self.broker, self.archive, self.histories)
            self.auditor = Auditor(off="the server that writes judges its events")
            self.versions = VersionPublisher(self.live, None, 0.0)
            self.publisher = cast("Publisher", _NoPublisher())
            watcher = _Watcher(self.archive, self.hub)
            stack.callback(watcher.close)
            self._opened = stack.pop_all()

    def _open_archive(self, stack: ExitStack, name: str, settings: ArchiveSettings) -> Archive:
        return stack.enter_context(
            Archive.open(
                self.folder / name,
                settings=settings,
                clock=self.live.store.now,
                read_only=True,
            )
        )


class _NoPublisher:
    """What a follower has instead of a publisher."""

    is_running = True
    counts = PublishCounts()

    def publish(self, _asked: Publication) -> Future[Published]:
        raise StoreError("this server follows another one, which publishes events")


class _Watcher:
    """Wakes those who wait for matches, when the writer has stored events."""

    def __init__(self, archive: Archive, hub: Hub) -> None:
        self._archive = archive
        self._hub = hub
        hub.reached = archive.last_event
        self._closing = Event()
        self._error: str | None = None
        self._thread = Thread(target=self._run, name="tamis-follow-archive", daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._closing.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(INTERVAL):
            error: Any = None
            try:
                last_event = self._archive.last_event
                if last_event != self._hub.reached:
                    self._hub.notify_all(last_event)
            except Exception as raised:  # the thread must go on
                error = str(raised)
                if error != self._error:
                    _LOG.warning("the archive cannot be read: %s; it is tried again", error)
            self._error = error
