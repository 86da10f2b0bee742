"""A segment that is still a journal: open, or waiting to be closed.

Texts and answers are read from the file. Matches are kept in memory, in the order in which they
came; the first reader that asks for them sorts them by subscription. The sorted *runs* grow
geometrically, as in a log-structured merge tree, so that each match is sorted a few times at most.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.archive.entry_table import EntryRow, EntryTable
from tamis.archive.journal import RECORDS_AT, find_records
from tamis.archive.postings import (
    NO_HITS,
    Hits,
    build_postings,
    count_hits,
    find_hits,
    merge_postings,
)
from tamis.archive.records import ARROW, HEAD_BYTES, JSON, Record, read_answer, read_head
from tamis.archive.texts import to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tamis.archive.journal import Journal
    from tamis.archive.model import Answer
    from tamis.archive.postings import Postings
    from tamis.archive.records import Head

N_BATCHES: Final = 4  # Arrow batches of a segment that are kept for the next reader
SCANNED_ROWS: Final = 4096


class Added(NamedTuple):
    """What a segment needs to know of a record that was written."""

    at: int
    head: Head
    counts: Any  # the section of the record
    matches: np.ndarray
    key: bytes | None  # of its answer


class _Run(NamedTuple):
    end: int  # the events before it are in this run, or in an earlier one
    size: int  # matches
    postings: Postings


class JournalSegment:
    """The events of a journal. One thread adds records; any number of threads read."""

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        self.serial = journal.serial
        self.first_event = journal.first_event
        self.next_event = journal.first_event  # the number after the last one
        self.last_moment = 0
        self.n_matches = 0
        self.entries = EntryTable()
        self._answers: dict[bytes, tuple[int, int, int]] = {}  # moment, place, length
        self._runs: tuple[_Run, ...] = ()
        self._pending: list[Added] = []
        self._indexing = Lock()
        self._batches: dict[int, tuple[pa.RecordBatch, np.ndarray]] = {}
        self._reading_batch = Lock()

    @property
    def n_bytes(self) -> int:
        """The size of the file."""
        return self.journal.size

    @property
    def n_events(self) -> int:
        """The number of events."""
        return self.next_event - self.first_event

    @property
    def n_pending(self) -> int:
        """The number of matches that are not sorted."""
        return self.n_matches - sum(run.size for run in self._runs)

    def add(self, added: Sequence[Added]) -> None:
        """Make records that are on disk visible to readers."""
        rows = []
        for one in added:
            head = one.head
            rows.append(EntryRow(head.first_event, head.moment, head.change, one.at))
            if one.key is not None:
                place = one.at + head.places().answer
                self._answers[one.key] = (head.moment, place, head.n_answer_bytes)
            self.n_matches += head.n_matches
        self.entries.extend(rows)
        self._pending.extend(added)
        if added:
            self.last_moment = head.moment
            self.next_event = head.first_event + head.n_events

    def load(self, *, mark: int, end_event: int | None = None) -> int:
        """Add the records that are in the file from where this left off; returns where the last
        one ends. Records from `end_event` on were never acknowledged.
        """
        size = self.journal.size
        begin = self._loaded_to()
        if max(size, mark) <= begin:
            return begin
        data = self.journal.map()
        added = []
        for at, head in find_records(
            data, self.journal.path, begin=begin, first_event=self.next_event, mark=mark
        ):
            if end_event is not None and head.first_event + head.n_events > end_event:
                break
            added.append(_describe(Record(data, at, head), at))
            begin = at + head.n_bytes
        self.add(added)
        return begin

    def _loaded_to(self) -> int:
        if not len(self.entries):
            return RECORDS_AT
        at = int(self.entries.rows()[3, -1])
        return at + self._head_at(at).n_bytes

    def _head_at(self, at: int) -> Head:
        head = read_head(self.journal.read(at, HEAD_BYTES))
        assert head is not None  # it was checked when it was added
        return head

    # ── matches ─────────────────────────────────────────────────────────────────────────────

    def find_matches(self, wanted: np.ndarray, after: int, up_to: int, limit: int) -> Hits:
        """The matches of some subscriptions by the events in (after, up_to]; at least the first
        `limit` events of each.
        """
        begin, end = self._bounds(after, up_to)
        found = [
            find_hits(run.postings, wanted, begin, end, limit)
            for run in self._indexed(end)
            if run.end > begin
        ]
        if not found:
            return NO_HITS
        events = np.concatenate([own.events for own in found]) + self.first_event
        return Hits(events, np.concatenate([own.subscriptions for own in found]))

    def count_matches(self, wanted: np.ndarray, after: int, up_to: int, counts: np.ndarray) -> None:
        """Add the number of matches of each subscription to its count."""
        begin, end = self._bounds(after, up_to)
        for run in self._indexed(end):
            if run.end > begin:
                count_hits(run.postings, wanted, begin, end, counts)

    def _bounds(self, after: int, up_to: int) -> tuple[int, int]:
        end = min(up_to + 1, self.next_event)
        return max(0, after + 1 - self.first_event), end - self.first_event

    def _indexed(self, end: int) -> tuple[_Run, ...]:
        """Runs that have all matches of the events before `end`."""
        runs = self._runs
        return runs if runs and runs[-1].end >= end else self.index()

    def index(self) -> tuple[_Run, ...]:
        """Sort the matches that are pending; returns all runs."""
        with self._indexing:
            pending, runs = self._pending[:], list(self._runs)
            if not pending:
                return self._runs
            runs.append(_sort(pending, self.first_event))
            while len(runs) > 1 and runs[-2].size <= runs[-1].size:
                last = runs.pop()
                both = merge_postings([runs[-1].postings, last.postings])
                runs[-1] = _Run(last.end, runs[-1].size + last.size, both)
            self._runs = tuple(runs)
            del self._pending[: len(pending)]
            return self._runs

    # ── texts and answers ───────────────────────────────────────────────────────────────────

    def read_texts(self, events: np.ndarray) -> dict[int, bytes]:
        """The JSON texts of those of the events, in ascending order, that have one."""
        texts: dict[int, bytes] = {}
        records = self.entries.rows()[3]
        places = self.entries.find(events)
        bounds = np.flatnonzero(np.diff(places, prepend=-1, append=-1))
        for begin, end in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
            texts.update(self._read_record_texts(int(records[places[begin]]), events[begin:end]))
        return texts

    def _read_record_texts(self, at: int, events: np.ndarray) -> Iterator[tuple[int, bytes]]:
        head = self._head_at(at)
        rows = (events - head.first_event).tolist()
        if head.text_kind == ARROW:
            yield from self._read_arrow_texts(at, head, rows)
        elif head.text_kind == JSON:
            places = head.places()
            spans = self.journal.read(at + places.spans, places.texts - places.spans)
            starts, ends = np.frombuffer(spans, "<u4", 2 * head.n_events).reshape(2, -1)
            for row in rows:
                if ends[row]:
                    start, length = int(starts[row]), int(ends[row] - starts[row])
                    text = self.journal.read(at + places.texts + start, length)
                    yield head.first_event + row, text

    def _read_arrow_texts(
        self, at: int, head: Head, rows: list[int]
    ) -> Iterator[tuple[int, bytes]]:
        batch, numbers = self._batch_at(at)
        kept = [row for row in rows if numbers[row]]
        texts = to_json(batch.take(pa.array(numbers[kept].astype(np.int64) - 1)))
        for row, text in zip(kept, texts, strict=True):
            yield head.first_event + row, text

    def _batch_at(self, at: int) -> tuple[pa.RecordBatch, np.ndarray]:
        """The batch of the record at a place, and the row of each event in it."""
        with self._reading_batch:
            if at not in self._batches:
                record = self.read_record(at)
                while len(self._batches) >= N_BATCHES:
                    del self._batches[next(iter(self._batches))]
                self._batches[at] = record.batch(), record.rows()
            return self._batches[at]

    def read_record(self, at: int) -> Record:
        """The record at a place."""
        head = self._head_at(at)
        return Record(self.journal.read(at, head.n_bytes), 0, head)

    def scan(self, after: int, up_to: int) -> Iterator[tuple[np.ndarray, list[bytes]]]:
        """The numbers and the texts of the events in (after, up_to] that have one, in order."""
        begin, end = max(after + 1, self.first_event), min(up_to + 1, self.next_event)
        for low in range(begin, end, SCANNED_ROWS):
            texts = self.read_texts(np.arange(low, min(end, low + SCANNED_ROWS)))
            if texts:
                yield np.fromiter(texts, np.int64, len(texts)), list(texts.values())

    def find_answer(self, key: bytes, since: int) -> Answer | None:
        """The answer that was stored under a key, unless it is older."""
        moment, place, length = self._answers.get(key, (0, 0, 0))
        return read_answer(self.journal.read(place, length)) if length and moment >= since else None


def _describe(record: Record, at: int) -> Added:
    answer = record.answer() if record.head.n_answer_bytes else None
    return Added(
        at,
        record.head,
        record.counts().copy(),
        record.matches().copy(),
        None if answer is None else answer.key,
    )


def _sort(pending: list[Added], first_event: int) -> _Run:
    counts = np.concatenate([one.counts for one in pending])
    matches = np.concatenate([one.matches for one in pending])
    begin = pending[0].head.first_event - first_event
    events = np.repeat(np.arange(begin, begin + len(counts), dtype=np.uint32), counts)
    return _Run(begin + len(counts), len(matches), build_postings(matches, events))
