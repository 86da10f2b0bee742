"""The indexes of an archive: which there are, and which are to be built.

    archive/search/000000006-000000000000001-000000000000999.0123456789abcdef/

Each closed segment has at most one that is used. It has the texts whose words were ever searched
for, and the attributes that were ever compared with constants. The name ends with a digest of these
and of the versions of analysers, so that an index with others is built next to it and then replaces
it. An index can be lost: then the segment is scanned.
"""

from __future__ import annotations

import re
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis import durable
from tamis.search.fields import Field
from tamis.search.library import load_tantivy
from tamis.search.relaxing import list_sources
from tamis.search.scoring import Statistics
from tamis.search.segment_index import SegmentIndex, is_intact, read_facts
from tamis.search.segment_writer import digest_of, write_index
from tamis.search.sources import Sources

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tamis.archive import Archive, HeldSegment
    from tamis.search.query import Query
    from tamis.search.relaxing import Source

FOLDER: Final = "search"
MOST_COLUMNS: Final = 100  # that are added because of searches: each makes indexes larger
_NAME: Final = re.compile(r"(\d{9})-(\d{15})-(\d{15})\.[0-9a-f]{16}")


class Job(NamedTuple):
    """An index that is to be built."""

    segment: HeldSegment
    sources: Sources

    def target(self, root: Path) -> Path:
        """Its folder."""
        return root / f"{stem_of(self.segment)}.{digest_of(self.sources)}"

    def run(self, archive: Archive, root: Path) -> None:
        """Build it."""
        batches = archive.scan(after=self.segment.first_event - 1, up_to=self.segment.last_event)
        write_index(self.target(root), batches, self.sources)


def stem_of(segment: HeldSegment) -> str:
    """The name of a segment, as in the names of its files."""
    return f"{segment.serial:09}-{segment.first_event:015}-{segment.last_event:015}"


class SearchIndexes:
    """Finds indexes for searches, and says what is missing. Safe to use from several threads."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self.root = archive.folder / FOLDER
        self._lock = Lock()
        self._wanted: set[Source] = set()
        self._opened: dict[str, SegmentIndex | None] = {}  # by name of the folder
        self._names: dict[str, list[str]] = {}  # by stem of the segment
        self._stamp: int | None = None  # of the folder, when its names were read
        self.refresh()

    # ── reading ─────────────────────────────────────────────────────────────────────────────

    def look(self, query: Query) -> None:
        """Before a search: find what was built meanwhile, and note what should be built."""
        if load_tantivy() is None:
            return
        sources = set(list_sources(query.relaxed))
        if not sources <= self._wanted:
            with self._lock:
                self._want(sources)
        if self._stamp != self._read_stamp():  # another process may have built it
            self.refresh()

    def _want(self, sources: Iterable[Source]) -> None:
        n_left = MOST_COLUMNS - sum(not isinstance(own, Field) for own in self._wanted)
        for own in sources:
            if own not in self._wanted and (isinstance(own, Field) or n_left > 0):
                n_left -= not isinstance(own, Field)
                self._wanted.add(own)

    def open(self, segment: HeldSegment, query: Query) -> SegmentIndex | None:
        """The index that knows most of what a query wants to know; None if the segment must be
        scanned.
        """
        if not segment.is_closed:
            return None
        found = [
            index
            for name in self._names.get(stem_of(segment), ())
            if (index := self._load(name)) is not None
            and not query.prepare(index).narrowed.is_useless
        ]
        return max(found, key=lambda own: query.prepare(own).narrowed.is_exact, default=None)

    def statistics(self, query: Query) -> Statistics:
        """How often the words of a query occur in all events of closed segments that have an index
        of them.
        """
        pairs = {(own.field, word) for own in query.scored for word in own.words if word}
        fields = {field for field, _ in pairs}
        found = [self._first_with(fields, own) for own in self._closed()]
        known = [own for own in found if own is not None]
        return Statistics(
            sum(own.facts.n_events for own in known),
            sum(own.facts.n_words for own in known),
            {pair: sum(own.count_events(*pair) for own in known) for pair in pairs},
        )

    def _first_with(self, fields: set[Field], segment: HeldSegment) -> SegmentIndex | None:
        indexes = map(self._load, self._names.get(stem_of(segment), ()))
        return next((own for own in indexes if own is not None and own.has(fields)), None)

    def _load(self, name: str) -> SegmentIndex | None:
        with self._lock:
            if name in self._opened:
                return self._opened[name]
        folder = self.root / name
        facts = read_facts(folder)
        index = None
        if facts is not None and is_intact(folder, facts):
            index = SegmentIndex(folder, facts)
        with self._lock:
            return self._opened.setdefault(name, index)

    def _read_stamp(self) -> int | None:
        """What differs when indexes have come or gone."""
        try:
            return self.root.stat().st_mtime_ns
        except FileNotFoundError:
            return None

    def refresh(self) -> None:
        """Find the indexes that are there."""
        stamp = self._read_stamp()
        found: dict[str, list[str]] = {}
        if load_tantivy() is not None and self.root.is_dir():
            for path in sorted(self.root.iterdir()):
                if _NAME.fullmatch(path.name):
                    found.setdefault(path.name.partition(".")[0], []).append(path.name)
        with self._lock:
            self._names, self._stamp = found, stamp
            held = {name for names in found.values() for name in names}
            self._opened = {name: own for name, own in self._opened.items() if name in held}

    # ── building ────────────────────────────────────────────────────────────────────────────

    def plan(self) -> list[Job]:
        """The indexes that are to be built, those of the newest segments first."""
        if load_tantivy() is None:
            return []
        self.refresh()
        known = [own for names in self._names.values() for own in map(self._load, names) if own]
        with self._lock:
            self._wanted.update(source for own in known for source in own.facts.sources.all())
            sources = Sources.of(self._wanted)
        if not any(sources):
            return []
        jobs = [Job(own, sources) for own in self._closed()]
        return [job for job in reversed(jobs) if not self._is_there(job)]

    def _is_there(self, job: Job) -> bool:
        name = job.target(self.root).name
        names = self._names.get(stem_of(job.segment), ())
        return name in names and self._load(name) is not None

    def build(self, jobs: Iterable[Job]) -> None:
        """Build indexes in this process."""
        for job in jobs:
            self.prepare(job)
            job.run(self._archive, self.root)
        self.tidy()

    def prepare(self, job: Job) -> None:
        """Make room for an index: a damaged one may be in its place."""
        durable.make_directory(self.root)
        target = job.target(self.root)
        if target.exists():
            durable.remove_directory(target)
        with self._lock:
            self._opened.pop(target.name, None)

    def tidy(self) -> None:
        """Remove the indexes of segments that are gone, and those that others replace."""
        if not self.root.is_dir():
            return
        durable.sweep(self.root)
        self.refresh()
        held = {stem_of(own) for own in self._closed()}
        for stem, names in self._names.items():
            intact = [name for name in names if self._load(name) is not None]
            best = max(intact, key=self._n_sources, default=None)
            for name in names:
                if stem not in held or (name != best and best is not None):
                    durable.remove_directory(self.root / name)
        self.refresh()

    def _n_sources(self, name: str) -> int:
        index = self._load(name)
        return 0 if index is None else len([*index.facts.sources.all()])

    def _closed(self) -> list[HeldSegment]:
        segments = self._archive.segments()
        return [own for own in segments if own.is_closed and own.last_event >= own.first_event]
