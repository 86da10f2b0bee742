"""The match server (Liu §2, Irmak §1.2) without a network: subscribe, publish, read.

folder/
    index/      the live index: subscriptions, their log, and the parts
    archive/    events and matches
    intake/     published events, if a Spark stream matches them
    secret      for keyed hashes
"""

from __future__ import annotations

import logging
import time
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tamis.archive import Archive, ArchiveSettings
from tamis.broker.audit import Auditor
from tamis.broker.history_reading import HistoryReader
from tamis.broker.hub import Hub
from tamis.broker.item_types import ORIGIN, find_contradictions, item_types
from tamis.broker.mail import Mailboxes
from tamis.broker.publishing import Publisher
from tamis.broker.retries import DEFAULT_POLICY, RetryPolicy
from tamis.broker.searching import Searcher
from tamis.broker.store import Broker, load_secret
from tamis.broker.taking import StreamTaker
from tamis.broker.version_publishing import VersionPublisher
from tamis.errors import InputError, StoreFormatError
from tamis.live import LiveIndex
from tamis.places import SERVED, is_index, is_live

if TYPE_CHECKING:
    import os
    from collections.abc import Callable
    from datetime import datetime
    from types import TracebackType
    from typing import Self

    from tamis.subscriptions import SubscriptionStore

INDEX = SERVED
ARCHIVE = "archive"
INTAKE = "intake"
_LOG: Final = logging.getLogger(__name__)
_HOW_TO_CHANGE: Final = (
    "such values are ignored. To change the type, export the subscriptions, correct them, and "
    "import them into another folder"
)
_NOT_AUDITED: Final = "a Spark stream matches the events: audit the version with tamis spark audit"


@dataclass(frozen=True)
class StreamSettings:
    """What a server shares with a Spark stream that matches for it."""

    matches: str | None = None  # the output of the stream, which is delivered
    versions: str | None = None  # where the set is published, for the stream
    versions_every: float = 60.0  # seconds between two versions, if the set has changed


@dataclass(frozen=True)
class MatchServerSettings:
    """What decides how a match server answers."""

    schema: Any = None
    missing: str | None = None
    operators: Any = ()
    store: str | None = None  # the address of a database; None for SQLite in the folder
    archive: ArchiveSettings = field(default_factory=ArchiveSettings)
    retries: RetryPolicy = DEFAULT_POLICY  # of webhooks
    audit_share: float = 0.0  # of the events that the reference evaluator judges again
    stream: StreamSettings = field(default_factory=StreamSettings)


class MatchServer:
    """Everything that a server has, opened together and closed together.

    Every method may be called from any thread.
    """

    is_follower = False  # whether it only reads

    def __init__(
        self,
        folder: Path,
        settings: MatchServerSettings,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        """Use `open`."""
        self.folder = folder
        self._expects_items = False
        self.opened_at = time.monotonic()
        self.hub = Hub()
        with ExitStack() as stack:
            self.live = _open_live(folder, settings, clock)
            stack.callback(self.live.close)
            self.secret = load_secret(folder, self.live.store)
            self.broker = Broker(self.live.store, self.secret, policy=settings.retries)
            self.broker.histories.conclude_all()
            self.archive = self._open_archive(stack, ARCHIVE, settings.archive)
            is_taken = settings.stream.matches is not None
            self.auditor = Auditor(settings.audit_share, off=_NOT_AUDITED if is_taken else None)
            stack.callback(self.auditor.close)
            self.taker: StreamTaker | None = None
            self.intake: Archive | None = None
            if settings.stream.matches is not None:
                # Spark reads the texts of all of them.
                everything = replace(settings.archive, keep="all")
                self.intake = self._open_archive(stack, INTAKE, everything)
            self.searcher = Searcher(self.live, self.published, is_writer=True)
            stack.callback(self.searcher.close)
            self.histories = self._open_histories()
            self.mailboxes = Mailboxes(self.broker, self.archive, self.histories)
            if settings.stream.matches is not None and self.intake is not None:
                self.taker = StreamTaker(
                    settings.stream.matches, self.live.store, self.archive, self.hub
                )
                self.intake.start()
                self.publisher = Publisher(self.live, self.intake, None)
            else:
                _warn_of_intake(folder / INTAKE)
                self.publisher = Publisher(
                    self.live, self.archive, self.hub, self.auditor, self.histories.list_open
                )
            stack.callback(self.publisher.close)
            self.archive.start()
            self.searcher.start()
            if self.taker is not None:
                stack.callback(self.taker.close)
                self.taker.start()
            self.versions = VersionPublisher(
                self.live, settings.stream.versions, settings.stream.versions_every
            )
            stack.callback(self.versions.close)
            self._opened = stack.pop_all()

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        settings: MatchServerSettings | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
    ) -> Self:
        """Open the match server in a folder, or create it. One process may open it.

        `clock` is by default that of the system.
        """
        path = Path(folder)
        if path.is_file():
            raise InputError(f"{path} is a file; a folder for a server is expected")
        if is_index(path) and not is_live(path / INDEX):
            raise InputError(
                f"{path} is an index; a server needs its own folder",
                hint="start it with another folder, and add the subscriptions to it: "
                f"tamis import-version FOLDER {path}; those of a live index: tamis sub export, "
                "tamis remote import",
            )
        return cls(path, settings or MatchServerSettings(), clock)

    def _open_archive(self, stack: ExitStack, name: str, settings: ArchiveSettings) -> Archive:
        """An archive of the folder, not started: what it knows is read before it removes it."""
        # One notion of time: leases, events and idempotency keys age by the store's clock.
        archive = Archive.open(
            self.folder / name,
            settings=settings,
            clock=self.live.store.now,
            is_started=False,
        )
        stack.callback(archive.close)
        _expect_same_history(self.live.store, archive)
        return archive

    def _open_histories(self) -> HistoryReader:
        """What reads matches; events that a stream matches later are not history."""
        searcher = self.searcher
        if self.intake is not None:
            searcher = Searcher(self.live, self.archive, is_writer=False)
        return HistoryReader(self.archive, self.broker.histories, searcher)

    @property
    def published(self) -> Archive:
        """All events that were published here, whether or not they matched."""
        return self.archive if self.intake is None else self.intake

    def expect_items(self) -> None:
        """Give the attributes of items of feeds their types: the server reads feeds."""
        if self._expects_items:
            return
        self.live.expect_types(item_types(), ORIGIN)
        self._expects_items = True
        for own in find_contradictions(self.live.settings):
            _LOG.warning("%s; %s", own.message, _HOW_TO_CHANGE)

    def close(self) -> None:
        """Answer what is waiting, and close everything."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _expect_same_history(store: SubscriptionStore, archive: Archive) -> None:
    """Raise a `StoreFormatError` if the archive knows changes that the store does not: their
    numbers would be used again, and new subscriptions would get the mail of others.
    """
    last_event, last_change = archive.last_event, store.last_change
    newest = archive.read_events(after=max(0, last_event - 1), limit=1).events
    if newest and newest[0].change > last_change:
        raise StoreFormatError(
            f"event {last_event:,} of {archive.folder} was matched as of change "
            f"{newest[0].change:,}, but the last change of the store at {store.where} is "
            f"{last_change:,}: it was lost, or replaced by an older one",
            hint="restore both from the same backup; to begin without them, name another folder",
        )


def _open_live(
    folder: Path, settings: MatchServerSettings, clock: Callable[[], datetime] | None
) -> LiveIndex:
    return LiveIndex.open(
        folder / INDEX,
        schema=settings.schema,
        missing=settings.missing,
        operators=settings.operators,
        store=settings.store,
        clock=clock,
    )


def _warn_of_intake(folder: Path) -> None:
    if folder.is_dir():
        _LOG.warning(
            "%s has events that were published for a Spark stream; without stream.matches, its "
            "matches are not delivered",
            folder,
        )
