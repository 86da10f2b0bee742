"""The archive: a durable log of events and matches."""

from __future__ import annotations

import logging
from contextlib import suppress
from itertools import chain
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from tamis import durable
from tamis.archive import folder as files
from tamis.archive import reading
from tamis.archive.closed_segment import ClosedSegment
from tamis.archive.contents import Contents
from tamis.archive.failures import translated
from tamis.archive.journal_segment import Added, JournalSegment
from tamis.archive.maintenance import N_PENDING, Maintenance, microseconds, now
from tamis.archive.model import ArchiveSettings, ArrowEvents, HeldSegment
from tamis.archive.opening import create
from tamis.archive.records import check_entry, read_head, write_record
from tamis.archive.texts import count_not_finite
from tamis.arguments import expect_count
from tamis.errors import HistoryError, StoreError, StoreFormatError, StoreInUseError
from tamis.language.moments import read_at
from tamis.language.types.moments import to_microseconds

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import datetime

    import pyarrow as pa

    from tamis.archive.model import Answer, ArchivedEvent, Entry, EventPage, MatchPage
    from tamis.archive.reading import ArchiveView
    from tamis.archive.records import CheckedEntry

T = TypeVar("T")
LOCK: Final = ".archive.lock"
_log = logging.getLogger(__name__)


class Archive:
    """What was published, and whom it matched.

    One object writes; it may be used by many threads. Others, also in other processes, may be
    opened with `read_only=True`: before each answer they look for what is new.
    """

    def __init__(
        self,
        root: Path,
        settings: ArchiveSettings,
        lock: int | None,
        clock: Callable[[], int] | None,
    ) -> None:
        """For `open` only."""
        self.folder = root
        self.settings = settings
        self._lock = lock  # None if it is read-only
        self._clock = clock
        self._appending = RLock()
        self._is_closed = False
        self._n_not_finite = 0
        self._contents = Contents(root, read_only=lock is None)
        self._last_moment = max(own.last_moment for own in self._contents.view.segments)
        self._maintenance = Maintenance(self._contents, settings, self._appending)

    @classmethod
    def open(
        cls,
        folder: str | os.PathLike[str],
        *,
        settings: ArchiveSettings | None = None,
        read_only: bool = False,
        clock: Callable[[], int] | None = None,
        is_started: bool = True,
    ) -> Archive:
        """The archive in a folder, which is made if it does not exist.

        `clock` gives microseconds since 1970, by default those of the system. Without `is_started`,
        nothing is closed or removed in the background until `start` is called.

        Raises `StoreInUseError` if another object writes to it, `StoreFormatError` if it is
        damaged, and `StoreError` if the folder cannot be used.
        """
        root, settings = Path(folder), settings or ArchiveSettings()
        with translated(f"the archive {root} cannot be opened"):
            if read_only:
                files.read_facts(root)  # raises an error that says what is missing
                return cls(root, settings, None, clock)
            lock = _lock_folder(root)
            try:
                create(root)
                files.sweep(root)
                archive = cls(root, settings, lock, clock)
            except BaseException:
                durable.unlock(lock)
                raise
        if is_started:
            archive.start()
        return archive

    def start(self) -> None:
        """Close and remove segments in the background, as the settings say."""
        self._expect_writable()
        self._maintenance.start()
        self._maintenance.wake()

    # ── writing ─────────────────────────────────────────────────────────────────────────────

    def append(self, entries: Sequence[Entry]) -> list[int]:
        """Store entries together, with one write; returns the first event number of each.

        When it returns, they are on disk. If it raises an error, none of them is stored: an
        `InputError` if an entry is invalid, a `StoreError` if the disk is full or fails; then the
        next call may succeed.
        """
        checked = [check_entry(entry, self.settings.keep) for entry in entries]
        with self._appending:
            self._expect_writable()
            with translated(f"events were not stored in {self.folder}"):
                self._prepare_journal()
                segment = self._contents.open
                added, records = self._write_records(segment, entries, checked)
                segment.journal.append(records)
            segment.add(added)
            self._last_moment = max(self._last_moment, segment.last_moment)
            self._n_not_finite += sum(_count_not_finite(entry) for entry in entries)
            self._contents.publish()
            if segment.n_pending > N_PENDING:
                self._maintenance.wake()
            return [one.head.first_event for one in added]

    def _write_records(
        self, segment: JournalSegment, entries: Sequence[Entry], checked: Sequence[CheckedEntry]
    ) -> tuple[list[Added], bytes]:
        """The records of some entries, and what the segment has to know of them."""
        at = group_start = segment.journal.size
        number, moment = segment.next_event, self._last_moment
        added, parts = [], []
        for entry, own in zip(entries, checked, strict=True):
            moment = max(moment, entry.moment)
            answer = None if entry.make_answer is None else entry.make_answer(number)
            record = write_record(
                own,
                first_event=number,
                moment=moment,
                change=entry.change,
                group_start=group_start,
                answer=answer,
            )
            head = read_head(record[0])
            assert head is not None
            key = None if answer is None else answer.key
            added.append(Added(at, head, own.counts, own.matches, key))
            parts += record
            at += head.n_bytes
            number += own.n_events
        return added, b"".join(parts)

    def _prepare_journal(self) -> None:
        """Start another segment if this one is large, or cannot be written to any more."""
        journal = self._contents.open.journal
        is_large = journal.size >= self.settings.segment_bytes and len(self._contents.open.entries)
        if not is_large and not journal.is_broken:
            return
        try:
            self._contents.rotate()
        except OSError as error:
            if journal.is_broken:
                raise
            _log.warning("%s: no new segment was started: %s", self.folder, error)
        self._maintenance.wake()

    def renew_epoch(self) -> str:
        """Name a new history, after a backup was restored; returns the name.

        Cursors of the old history may be ahead of this one: their owners must start again.
        """
        self._expect_writable()
        with self._appending, translated(f"{self.folder} cannot be written"):
            self._contents.change_facts(self._contents.facts.renewed())
            return self.epoch

    # ── segments ────────────────────────────────────────────────────────────────────────────

    def seal(self) -> None:
        """Close the open segment, and wait until all its files are there."""
        self._expect_writable()
        with translated(f"a segment of {self.folder} was not closed"):
            self._maintenance.rotate()
            self._maintenance.close_waiting()

    def prune(self, *, before: int) -> int:
        """Remove closed segments whose events all come before one; returns the number of events
        that were removed.
        """
        self._expect_writable()
        expect_count(before, "before", least=0)
        with translated(f"events of {self.folder} were not removed"):
            return self._maintenance.prune(before)

    def maintain(self) -> None:
        """Close and remove segments as the settings say. A thread does so every ten seconds."""
        self._expect_writable()
        with translated(f"{self.folder} cannot be maintained"):
            self._maintenance.maintain()

    def backup(self, target: str | os.PathLike[str]) -> int:
        """Copy the archive as of now to a new folder, while it is used; returns the last event in
        the copy. Closed segments are hard links if possible.

        Call `renew_epoch` when you go on with a copy: the events after it will be others.
        """
        self._expect_writable()
        with translated(f"{self.folder} was not copied to {target}"):
            return self._maintenance.backup(Path(target))

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    @property
    def epoch(self) -> str:
        """The name of this history: event numbers of another one mean other events."""
        self._look()
        return self._contents.facts.epoch

    @property
    def first_event(self) -> int:
        """The number of the first event that is still held."""
        return self._look().first_event

    @property
    def last_event(self) -> int:
        """The number of the last event; 0 if there is none."""
        return self._look().last_event

    def read_events(self, *, after: int, limit: int, epoch: str | None = None) -> EventPage:
        """The events after a number, at most `limit`.

        Raises a `HistoryError` if the number is from another epoch.
        """
        expect_count(after, "after", least=0)
        expect_count(limit, "limit")
        self._expect_epoch(epoch)
        return self._read(lambda view: reading.read_events(view, after, limit))

    def get_archived(self, numbers: Sequence[int]) -> list[ArchivedEvent]:
        """Those of the events that are held, in order of their numbers."""
        return self._read(lambda view: reading.get_archived(view, numbers))

    def segments(self) -> list[HeldSegment]:
        """The segments, in order."""
        view = self._look()
        return [
            HeldSegment(
                own.serial,
                own.first_event,
                min(own.next_event - 1, view.last_event),
                isinstance(own, ClosedSegment),
            )
            for own in view.segments
        ]

    def get_events(self, numbers: Sequence[int]) -> dict[int, bytes]:
        """The JSON texts of those of the events that are archived."""
        return self._read(lambda view: reading.get_texts(view, numbers))

    def read_matches(
        self, subscriptions: Collection[int], *, after: int, limit: int, up_to: int | None = None
    ) -> MatchPage:
        """The events after a number that matched any of the subscriptions, at most `limit`."""
        expect_count(after, "after", least=0)
        expect_count(limit, "limit")
        return self._read(
            lambda view: reading.read_matches(view, subscriptions, after, limit, up_to)
        )

    def count_matches(
        self, subscriptions: Collection[int], *, after: int, up_to: int | None = None
    ) -> dict[int, int]:
        """The number of events after a number that each subscription matched."""
        expect_count(after, "after", least=0)
        return self._read(lambda view: reading.count_matches(view, subscriptions, after, up_to))

    def event_at(self, moment: datetime | str) -> int:
        """The number of the last event at or before a moment; that before the first one held if
        there is none.
        """
        instant = to_microseconds(read_at(moment))
        return self._read(lambda view: reading.event_at(view, instant))

    def last_before_change(self, change: int) -> int:
        """The number of the last event that was matched by a set before a change; that before the
        first one held if there is none.
        """
        return self._read(lambda view: reading.last_before_change(view, change))

    def scan(self, *, after: int = 0, up_to: int | None = None) -> Iterator[pa.RecordBatch]:
        """The archived events after a number, in order, some thousand at a time.

        The columns are `number`, `moment`, `change` and `event`, a JSON text. Raises a
        `HistoryError` if retention removes events before they were read.
        """
        expect_count(after, "after", least=0)
        view = self._look()
        end = view.last_event if up_to is None else min(up_to, view.last_event)
        return self._scan(view, after, end)

    def _scan(self, view: ArchiveView, after: int, end: int) -> Iterator[pa.RecordBatch]:
        try:
            yield from reading.scan(view, after, end)
        except FileNotFoundError as error:
            raise HistoryError(
                f"events of {self.folder} were removed while they were read: {error.filename}",
                hint="start again from the first event that is held",
            ) from None

    def find_answer(self, key: bytes, *, at_any_age: bool = False) -> Answer | None:
        """The last answer that was stored under a key in the last `settings.answers_for`.

        With `at_any_age`, also an older one, if its segment has not been removed.
        """
        moment = now() if self._clock is None else self._clock()
        since = 0 if at_any_age else moment - microseconds(self.settings.answers_for)

        def find(view: ArchiveView) -> Answer | None:
            journals = [own for own in view.segments if isinstance(own, JournalSegment)]
            held = (own.find_answer(key, since) for own in reversed(journals))
            stored = (own.find(key, since) for own in reversed(view.answers))
            return next((own for own in chain(held, stored) if own is not None), None)

        return self._read(find)

    def stats(self) -> dict[str, Any]:
        """Sizes and counts."""
        view = self._look()
        closed, waiting = self._contents.closed(), self._contents.waiting()
        return {
            "epoch": self.epoch,
            "first_event": view.first_event,
            "last_event": view.last_event,
            "segments": len(view.segments),
            "closed_segments": len(closed),
            "bytes": sum(own.n_bytes for own in view.segments),
            "open_bytes": self._contents.open.n_bytes,
            "waiting_segments": len(waiting),  # to be closed
            "waiting_events": sum(own.n_events for own in waiting),
            "maintenance_error": self._maintenance.error,
            "torn_bytes": self._contents.n_cut_bytes,  # found when it was opened
            "not_finite_values": self._n_not_finite,  # NaN and infinities, since it was opened
        }

    def _look(self) -> ArchiveView:
        if self._is_closed:
            raise StoreError(f"the archive {self.folder} is closed")
        if self._lock is None:
            with translated(f"{self.folder} cannot be read"):
                self._contents.follow()
        return self._contents.view

    def _read(self, read: Callable[[ArchiveView], T]) -> T:
        while True:
            view = self._look()
            try:
                with translated(f"{self.folder} cannot be read", but=FileNotFoundError):
                    return read(view)
            except FileNotFoundError as error:
                if view.segments is self._look().segments:  # otherwise it was removed meanwhile
                    raise StoreFormatError(
                        f"{error.filename} is missing",
                        hint="restore the archive from a backup, then call renew_epoch()",
                    ) from None

    def _expect_epoch(self, epoch: str | None) -> None:
        if epoch is not None and epoch != self.epoch:
            raise HistoryError(
                f"the events of epoch {epoch} are not in {self.folder}, which is in epoch "
                f"{self.epoch}",
                hint="start again from event 0",
            )

    def _expect_writable(self) -> None:
        self._look()
        if self._lock is None:
            raise StoreError(f"the archive {self.folder} was opened with read_only=True")

    # ── the end ─────────────────────────────────────────────────────────────────────────────

    def close(self) -> None:
        """Release the folder; everything is on disk already."""
        with self._appending:
            if self._is_closed:
                return
            self._is_closed = True
        self._maintenance.close()
        if self._lock is not None:
            durable.unlock(self._lock)

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _count_not_finite(entry: Entry) -> int:
    return count_not_finite(entry.events.batch) if isinstance(entry.events, ArrowEvents) else 0


def _lock_folder(root: Path) -> int:
    durable.make_directory(root)
    lock = durable.try_lock(root / LOCK)
    if lock is None:
        holder = ""
        with suppress(OSError):
            holder = f" (process {(root / LOCK).read_text().strip()})"
        raise StoreInUseError(
            f"another object writes to the archive {root}{holder}",
            hint="close it first, or open this one with read_only=True",
        )
    return lock
