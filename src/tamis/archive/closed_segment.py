"""A closed segment: files that never change."""

from __future__ import annotations

import zlib
from collections import OrderedDict
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.archive.array_file import ArrayFile
from tamis.archive.entry_table import EntryTable
from tamis.archive.folder import ANSWERS, EVENTS, INDEX, MATCHES
from tamis.archive.model import DIGEST_BYTES, Answer
from tamis.archive.postings import Hits, Postings, count_hits, find_hits
from tamis.errors import StoreFormatError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tamis.archive.folder import SegmentName

CACHED_BYTES: Final = 32 << 20
CACHED_FILES: Final = 32


class Cache:
    """The values that were used last, as many as fit; of all segments of an archive."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._held: OrderedDict[Any, tuple[Any, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

    def get(self, key: Any, make: Callable[[], Any], measure: Callable[[Any], int]) -> Any:
        """The value of a key, which is made if it is not there."""
        with self._lock:
            if key in self._held:
                self._held.move_to_end(key)
                return self._held[key][0]
        value = make()  # two threads may do so: the last one stays
        size = measure(value)
        with self._lock:
            self._size += size - self._held.pop(key, (None, 0))[1]
            self._held[key] = value, size
            while self._size > self._most and len(self._held) > 1:
                self._size -= self._held.popitem(last=False)[1][1]
        return value


class Caches(NamedTuple):
    """What the segments of an archive keep in memory."""

    groups: Cache  # row groups of events
    files: Cache  # open files of events

    @classmethod
    def make(cls) -> Caches:
        """Empty ones."""
        return cls(Cache(CACHED_BYTES), Cache(CACHED_FILES))


class ClosedSegment:
    """The events of a closed segment; any number of threads read it."""

    def __init__(self, root: Path, name: SegmentName, caches: Caches) -> None:
        """Raises FileNotFoundError if a file is missing."""
        self.name = name
        self.serial = name.serial
        self.first_event = name.first_event
        self.next_event = name.last_event + 1
        self._index = ArrayFile(name.path(root, INDEX))
        self.last_moment: int = self._index.facts["last_moment"]
        self.n_matches: int = self._index.facts["n_matches"]
        self._events_path = name.path(root, EVENTS)
        self._caches = caches
        sizes = [name.path(root, kind).stat().st_size for kind in (EVENTS, MATCHES)]
        self.n_bytes = self._index.n_bytes + sum(sizes)

    @cached_property
    def entries(self) -> EntryTable:
        """Its entries."""
        arrays = self._index.arrays
        names = ("entry_firsts", "entry_moments", "entry_changes")
        return EntryTable(np.stack([arrays[name] for name in (*names, names[0])]))

    @cached_property
    def _postings(self) -> Postings:
        arrays = self._index.arrays
        return Postings(arrays["subscriptions"], arrays["starts"], arrays["events"])

    def find_matches(self, wanted: np.ndarray, after: int, up_to: int, limit: int) -> Hits:
        """The matches of some subscriptions by the events in (after, up_to]; at least the first
        `limit` events of each.
        """
        found = find_hits(self._postings, wanted, *self._bounds(after, up_to), limit)
        return found._replace(events=found.events + self.first_event)

    def count_matches(self, wanted: np.ndarray, after: int, up_to: int, counts: np.ndarray) -> None:
        """Add the number of matches of each subscription to its count."""
        count_hits(self._postings, wanted, *self._bounds(after, up_to), counts)

    def _bounds(self, after: int, up_to: int) -> tuple[int, int]:
        end = min(up_to + 1, self.next_event)
        return max(0, after + 1 - self.first_event), end - self.first_event

    # ── texts ───────────────────────────────────────────────────────────────────────────────

    def read_texts(self, events: np.ndarray) -> dict[int, bytes]:
        """The JSON texts of those of the events, in ascending order, that have one."""
        texts: dict[int, bytes] = {}
        file = self._file()
        groups = np.searchsorted(file.firsts, events, side="right") - 1
        for group in np.unique(groups[groups >= 0]).tolist():
            numbers, column = self._read_group(group)
            wanted = events[groups == group]
            places = np.searchsorted(numbers, wanted)
            places[places == len(numbers)] = 0
            places = places[numbers[places] == wanted]
            found = column.take(pa.array(places)).cast(pa.binary()).to_pylist()
            texts.update(zip(numbers[places].tolist(), found, strict=True))
        return texts

    def scan(self, after: int, up_to: int) -> Iterator[tuple[np.ndarray, pa.Array]]:
        """The numbers and the texts of the events in (after, up_to] that have one, in order."""
        firsts = self._file().firsts
        begin, end = np.searchsorted(firsts, (after + 1, up_to), side="right").tolist()
        for group in range(max(0, begin - 1), end):
            numbers, column = self._file().read(group)
            low, high = np.searchsorted(numbers, (after, up_to), side="right").tolist()
            if low < high:
                yield numbers[low:high], column.slice(low, high - low)

    def _read_group(self, group: int) -> tuple[np.ndarray, pa.Array]:
        found: tuple[np.ndarray, pa.Array] = self._caches.groups.get(
            (self.serial, group),
            lambda: self._file().read(group),
            lambda own: own[0].nbytes + own[1].nbytes,
        )
        return found

    def _file(self) -> _EventFile:
        found: _EventFile = self._caches.files.get(
            self.serial, lambda: _EventFile(self._events_path, self._index.arrays), lambda _: 1
        )
        return found


class _EventFile:
    """An open Parquet file of events, mapped into memory."""

    def __init__(self, path: Path, arrays: dict[str, np.ndarray]) -> None:
        """`arrays` are those of the index: they have the checksums of the file."""
        self._path = path
        self._starts, self._checksums = arrays["group_starts"], arrays["group_checksums"]
        self._data = pa.memory_map(str(path)).read_buffer()
        n_groups = len(self._checksums) - 1
        if self._data.size != self._starts[-1]:
            raise self._damaged(f"it has {self._data.size} bytes instead of {self._starts[-1]}")
        self._check(n_groups)  # the footer
        self._file = pq.ParquetFile(pa.BufferReader(self._data))
        groups = (self._file.metadata.row_group(own) for own in range(n_groups))
        firsts = [own.column(0).statistics.min for own in groups]
        self.firsts = np.array(firsts, np.int64)  # the first event of each row group
        self._lock = Lock()

    def read(self, group: int) -> tuple[np.ndarray, pa.Array]:
        """The numbers and the texts of a row group."""
        self._check(group)
        with self._lock:
            table = self._file.read_row_group(group, columns=["number", "event"], use_threads=False)
        table = table.combine_chunks()
        return table["number"].to_numpy(), table["event"].chunk(0)

    def _check(self, group: int) -> None:
        begin, end = self._starts[group : group + 2].tolist()
        if zlib.crc32(self._data[begin:end]) != self._checksums[group]:
            raise self._damaged(f"the checksum of the bytes {begin} to {end} is wrong")

    def _damaged(self, error: str) -> StoreFormatError:
        return StoreFormatError(
            f"{self._path} is damaged: {error}",
            hint="restore the archive from a backup, then call renew_epoch()",
        )


class AnswerFile:
    """The answers of a closed segment; it stays when the segment is removed."""

    def __init__(self, root: Path, name: SegmentName) -> None:
        self.serial = name.serial
        self._file = ArrayFile(name.path(root, ANSWERS))
        self.path = self._file.path
        self.last_moment: int = self._file.facts["last_moment"]

    def find(self, key: bytes, since: int) -> Answer | None:
        """The answer that was stored under a key, unless it is older."""
        if self.last_moment < since:
            return None
        arrays = self._file.arrays
        keys, wanted = arrays["keys"], np.array(key, f"S{DIGEST_BYTES}")
        at = int(np.searchsorted(keys, wanted))
        if at == len(keys) or keys[at] != wanted or arrays["moments"][at] < since:
            return None
        begin, end = arrays["starts"][at : at + 2].tolist()
        request = arrays["requests"][DIGEST_BYTES * at : DIGEST_BYTES * (at + 1)]
        return Answer(key, request.tobytes(), arrays["texts"][begin:end].tobytes())
