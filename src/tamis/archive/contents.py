"""What an archive holds: its facts, its segments, and the one that is open."""

from __future__ import annotations

from threading import RLock
from typing import TYPE_CHECKING, NamedTuple

from tamis.archive import folder as files
from tamis.archive.closed_segment import AnswerFile, Caches, ClosedSegment
from tamis.archive.journal import Journal
from tamis.archive.journal_segment import JournalSegment
from tamis.archive.opening import open_segments
from tamis.archive.reading import ArchiveView
from tamis.errors import StoreFormatError

if TYPE_CHECKING:
    from pathlib import Path

    from tamis.archive.folder import ArchiveFacts, SegmentName
    from tamis.archive.reading import Segment


class Contents:
    """The segments of an archive.

    Readers take `view`, which never changes. Whoever replaces it holds `changing`, for a moment.
    """

    def __init__(self, root: Path, *, read_only: bool) -> None:
        self.root = root
        self.read_only = read_only
        self.changing = RLock()
        self.caches = Caches.make()
        self._load()

    def _load(self) -> None:
        """Find everything that is in the folder."""
        stamp = _Stamp.read(self.root)
        facts = files.read_facts(self.root)
        opened = open_segments(self.root, facts, self.caches, read_only=self.read_only)
        self.n_cut_bytes = opened.n_cut_bytes
        self.open: JournalSegment = opened.open
        self.view = ArchiveView(opened.segments, self.open.next_event - 1, opened.answers)
        self.facts: ArchiveFacts = facts
        self._stamp = stamp  # last: what could not be read is looked for again

    def follow(self) -> None:
        """Look for what another process has written."""
        with self.changing:
            following = files.journal_path(self.root, self.open.serial + 1)
            if following.exists() or self._stamp != _Stamp.read(self.root):
                self._load_again()
                return
            journal, known = self.open.journal, self.open.journal.size
            mark = journal.header().mark
            if mark > known:
                try:
                    journal.size = min(mark, journal.length())
                    self.open.load(mark=mark)
                except BaseException:
                    journal.size = known  # the next look tries again
                    raise
                self.publish()

    def _load_again(self) -> None:
        """Find everything; files may come and go meanwhile."""
        while True:
            before = _Stamp.read(self.root)
            try:
                self._load()
                return
            except (FileNotFoundError, StoreFormatError):
                if before == _Stamp.read(self.root):
                    raise

    def publish(self) -> None:
        """Show readers what was added to the open segment."""
        with self.changing:
            self.view = self.view._replace(last_event=self.open.next_event - 1)

    def rotate(self) -> None:
        """Start another segment; the open one then waits to be closed."""
        serial = self.open.serial + 1
        path = files.journal_path(self.root, serial)
        journal = Journal.create(path, self.facts.epoch, serial, self.open.next_event)
        segment = JournalSegment(journal)
        with self.changing:
            self.open = segment
            self.view = self.view._replace(segments=(*self.view.segments, segment))

    def waiting(self) -> list[JournalSegment]:
        """The segments that wait to be closed."""
        segments = self.view.segments[:-1]
        return [own for own in segments if isinstance(own, JournalSegment)]

    def journals(self) -> list[JournalSegment]:
        """The segments that are not closed."""
        return [own for own in self.view.segments if isinstance(own, JournalSegment)]

    def closed(self) -> list[ClosedSegment]:
        """The closed segments."""
        return [own for own in self.view.segments if isinstance(own, ClosedSegment)]

    def replace(self, old: JournalSegment, name: SegmentName) -> None:
        """Read a segment from its closed files, and remove its journal."""
        new, answers = ClosedSegment(self.root, name, self.caches), AnswerFile(self.root, name)
        with self.changing:
            segments: list[Segment] = [new if own is old else own for own in self.view.segments]
            self.view = self.view._replace(
                segments=tuple(segments), answers=(*self.view.answers, answers)
            )
        old.journal.path.unlink()

    def remove(self, segments: list[ClosedSegment]) -> None:
        """Remove the oldest segments; their answers stay."""
        with self.changing:
            kept = self.view.segments[len(segments) :]
            self.change_facts(self.facts._replace(kept_from=kept[0].first_event))
            self.view = self.view._replace(segments=kept)
        for segment in segments:
            for kind in files.ENDINGS.keys() - {files.ANSWERS}:
                segment.name.path(self.root, kind).unlink(missing_ok=True)

    def remove_answers(self, before: int) -> None:
        """Remove the answers of removed segments that are older than a moment."""
        held = {own.serial for own in self.view.segments}
        old = [o for o in self.view.answers if o.last_moment < before and o.serial not in held]
        with self.changing:
            kept = tuple(own for own in self.view.answers if own not in old)
            self.view = self.view._replace(answers=kept)
        for own in old:
            own.path.unlink(missing_ok=True)

    def change_facts(self, facts: ArchiveFacts) -> None:
        """Replace the facts, durably."""
        with self.changing:
            files.write_facts(self.root, facts)
            self.facts = facts


class _Stamp(NamedTuple):
    """What differs when segments were closed or removed, or the epoch was renewed.

    Names, because the clock of a file system is too coarse for the time of a folder's last change.
    """

    facts: tuple[int, int]
    journals: tuple[Path, ...]

    @classmethod
    def read(cls, root: Path) -> _Stamp:
        facts = (root / files.FACTS).stat()
        return cls((facts.st_ino, facts.st_mtime_ns), tuple(files.list_journals(root)))
