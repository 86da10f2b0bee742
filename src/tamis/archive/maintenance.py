"""Closes segments, removes old ones, and copies the archive; in the background, or when asked."""

from __future__ import annotations

import logging
import os
import shutil
import time
from datetime import timedelta
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Final

from tamis import durable
from tamis.archive import folder as files
from tamis.archive.converter import Converter
from tamis.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

    from tamis.archive.closed_segment import ClosedSegment
    from tamis.archive.contents import Contents
    from tamis.archive.journal_segment import JournalSegment
    from tamis.archive.model import ArchiveSettings

INTERVAL: Final = 10.0  # seconds between two looks
N_PENDING: Final = 1 << 18  # matches: so many are sorted before a reader asks for them
_log = logging.getLogger(__name__)


def now() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1000


def microseconds(duration: timedelta) -> int:
    """The duration in microseconds."""
    return duration // timedelta(microseconds=1)


class Maintenance:
    """One thread does what has to be done; others may ask for it and then do it themselves."""

    def __init__(self, contents: Contents, settings: ArchiveSettings, appending: RLock) -> None:
        self._contents = contents
        self._settings = settings
        self._appending = appending
        self._working = RLock()  # segments are closed, removed and copied one after the other
        self._converter = Converter(contents.root)
        self._is_wanted = Event()
        self._is_closed = False
        self.error: str | None = None  # of the last attempt
        self._thread = Thread(target=self._run, name="tamis-archive", daemon=True)

    def start(self) -> None:
        """Look from time to time."""
        self._thread.start()

    def wake(self) -> None:
        """Look now."""
        self._is_wanted.set()

    def close(self) -> None:
        """End the thread, and what it does; nothing is lost."""
        self._is_closed = True
        self._converter.close()
        self.wake()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._is_wanted.wait(INTERVAL)
            self._is_wanted.clear()
            try:
                self.maintain()
            except Exception as error:  # the thread must go on
                if not self._is_closed and self.error != str(error):
                    _log.warning("%s: %s; it is tried again", self._contents.root, error)
                self.error = str(error)

    def maintain(self) -> None:
        """Sort what waits, close segments, and remove what is too old or too much."""
        if self._is_closed:
            return
        if self._contents.open.n_pending > N_PENDING:
            self._contents.open.index()
        if self._is_old(self._contents.open):
            self.rotate()
        self.close_waiting()
        self.apply_retention()
        self.error = None

    # ── closing ─────────────────────────────────────────────────────────────────────────────

    def _is_old(self, segment: JournalSegment) -> bool:
        moments = segment.entries.rows()[1]
        age = microseconds(self._settings.segment_age)
        return len(moments) > 0 and int(moments[0]) < now() - age

    def rotate(self) -> None:
        """Start another segment if the open one has anything."""
        with self._appending:
            if len(self._contents.open.entries):
                self._contents.rotate()

    def close_waiting(self) -> None:
        """Close the segments that wait for it."""
        with self._working:
            for segment in self._contents.waiting():
                if self._is_closed:
                    raise StoreError("the archive is closed")
                name = self._converter.convert(
                    segment.serial, segment.next_event, segment.journal.size
                )
                self._contents.replace(segment, name)

    # ── removing ────────────────────────────────────────────────────────────────────────────

    def prune(self, before: int) -> int:
        """Remove the closed segments whose events all come before one; returns how many events
        were removed.
        """
        with self._working:
            old = []
            for segment in self._contents.closed():
                if segment.next_event > before:
                    break
                old.append(segment)
            return self._remove(old)

    def apply_retention(self) -> None:
        """Remove what is too old or too much."""
        with self._working:
            closed = self._contents.closed()
            n_old = max(self._count_old(closed), self._count_excess(closed))
            self._remove(closed[:n_old])
            self._contents.remove_answers(now() - microseconds(self._settings.answers_for))

    def _count_old(self, closed: list[ClosedSegment]) -> int:
        if self._settings.retain_for is None:
            return 0
        oldest = now() - microseconds(self._settings.retain_for)
        return next((at for at, own in enumerate(closed) if own.last_moment >= oldest), len(closed))

    def _count_excess(self, closed: list[ClosedSegment]) -> int:
        if self._settings.retain_bytes is None:
            return 0
        n_bytes = sum(own.n_bytes for own in self._contents.view.segments)
        n_removed = 0
        while n_bytes > self._settings.retain_bytes and n_removed < len(closed):
            n_bytes -= closed[n_removed].n_bytes
            n_removed += 1
        return n_removed

    def _remove(self, segments: list[ClosedSegment]) -> int:
        if segments:
            self._contents.remove(segments)
        return sum(own.next_event - own.first_event for own in segments)

    # ── copying ─────────────────────────────────────────────────────────────────────────────

    def backup(self, target: Path) -> int:
        """Copy the archive as of now to a new folder; returns the last event in it."""
        with self._working, durable.new_directory(target) as draft:
            with self._appending:
                view, facts = self._contents.view, self._contents.facts
                sizes = [(own.journal, own.journal.size) for own in self._contents.journals()]
            files.make_folders(draft)
            for journal, size in sizes:
                journal.copy(files.journal_path(draft, journal.serial), size)
            for segment in self._contents.closed():
                for kind in files.ENDINGS.keys() - {files.ANSWERS}:
                    _link(segment.name.path(self._contents.root, kind), draft / kind)
            for answers in view.answers:
                _link(answers.path, draft / files.ANSWERS)
            for kind in files.ENDINGS:
                durable.sync_directory(draft / kind)
            files.write_facts(draft, facts)
            return view.last_event


def _link(path: Path, folder: Path) -> None:
    """Give a file that never changes a second name; copy it if that is not possible."""
    try:
        os.link(path, folder / path.name)
    except OSError:
        shutil.copyfile(path, folder / path.name)
        with (folder / path.name).open("rb") as file:
            os.fsync(file.fileno())
