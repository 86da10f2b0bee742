"""Reads across segments: events, matches, counts."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from tamis.archive.model import ArchivedEvent, EventPage, Match, MatchPage
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tamis.archive.closed_segment import AnswerFile
    from tamis.archive.entry_table import EntryTable
    from tamis.archive.postings import Hits

SCHEMA: Final = pa.schema(
    [
        pa.field("number", pa.int64(), nullable=False),
        pa.field("moment", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("change", pa.int64(), nullable=False),
        pa.field("event", pa.string(), nullable=False),
    ]
)


class Segment(Protocol):
    """Neighbouring events, their texts, matches and answers."""

    serial: int
    first_event: int
    last_moment: int  # of its last entry

    @property
    def next_event(self) -> int:
        """The number after the last one."""

    @property
    def n_bytes(self) -> int:
        """The size of its files."""

    @property
    def entries(self) -> EntryTable:
        """Its entries."""

    def find_matches(self, wanted: np.ndarray, after: int, up_to: int, limit: int) -> Hits:
        """The matches of some subscriptions by the events in (after, up_to]; at least the first
        `limit` events of each.
        """

    def count_matches(self, wanted: np.ndarray, after: int, up_to: int, counts: np.ndarray) -> None:
        """Add the number of matches of each subscription to its count."""

    def read_texts(self, events: np.ndarray) -> dict[int, bytes]:
        """The JSON texts of those of the events, in ascending order, that have one."""

    def scan(self, after: int, up_to: int) -> Iterator[tuple[np.ndarray, Any]]:
        """The numbers and the texts of the events in (after, up_to] that have one, in order."""


class ArchiveView(NamedTuple):
    """What readers see: it never changes, except that the last segment grows."""

    segments: tuple[Segment, ...]
    last_event: int
    answers: tuple[AnswerFile, ...] = ()  # of closed segments, also of removed ones

    @property
    def first_event(self) -> int:
        """The number of the first event that is held."""
        return self.segments[0].first_event

    def overlapping(self, after: int, up_to: int) -> Iterator[Segment]:
        """The segments that have events in (after, up_to]."""
        begin = bisect_right(self.segments, after + 1, key=lambda own: own.first_event) - 1
        for segment in self.segments[max(0, begin) :]:
            if segment.first_event > up_to:
                return
            if segment.next_event > after + 1:
                yield segment

    def missed(self, after: int, up_to: int) -> range | None:
        """The events in (after, up_to] that are no longer held."""
        return range(after + 1, min(self.first_event, up_to + 1)) or None


class _Stamps(NamedTuple):
    moments: list[int]
    changes: list[int]


def _stamp(segment: Segment, events: np.ndarray) -> _Stamps:
    places = segment.entries.find(events)
    rows = segment.entries.rows()
    return _Stamps(rows[1, places].tolist(), rows[2, places].tolist())


# ── events ──────────────────────────────────────────────────────────────────────────────────


def read_events(view: ArchiveView, after: int, limit: int) -> EventPage:
    """The events after a cursor."""
    missed = view.missed(after, view.last_event)
    begin = missed.stop if missed else after + 1
    end = min(begin + limit, view.last_event + 1)
    found: list[ArchivedEvent] = []
    for segment in view.overlapping(begin - 1, end - 1):
        low, high = max(begin, segment.first_event), min(end, segment.next_event)
        numbers = np.arange(low, high)
        texts, stamps = segment.read_texts(numbers), _stamp(segment, numbers)
        found += [
            ArchivedEvent(number, from_microseconds(moment), change, texts.get(number))
            for number, moment, change in zip(numbers.tolist(), *stamps, strict=True)
        ]
    return EventPage(found, max(after, begin - 1, end - 1), missed)


def get_archived(view: ArchiveView, numbers: Iterable[int]) -> list[ArchivedEvent]:
    """Those of the events that are held, in order of their numbers."""
    wanted = np.unique(np.fromiter(numbers, np.int64))
    found: list[ArchivedEvent] = []
    for segment in view.overlapping(0, view.last_event):
        end = min(segment.next_event, view.last_event + 1)
        low, high = np.searchsorted(wanted, (segment.first_event, end)).tolist()
        if low < high:
            own = wanted[low:high]
            texts, stamps = segment.read_texts(own), _stamp(segment, own)
            found += [
                ArchivedEvent(number, from_microseconds(moment), change, texts.get(number))
                for number, moment, change in zip(own.tolist(), *stamps, strict=True)
            ]
    return found


def get_texts(view: ArchiveView, numbers: Iterable[int]) -> dict[int, bytes]:
    """The JSON texts of those of the events that are archived."""
    wanted = np.unique(np.fromiter(numbers, np.int64))
    texts: dict[int, bytes] = {}
    for segment in view.overlapping(0, view.last_event):
        end = min(segment.next_event, view.last_event + 1)
        low, high = np.searchsorted(wanted, (segment.first_event, end)).tolist()
        if low < high:
            texts.update(segment.read_texts(wanted[low:high]))
    return texts


def scan(view: ArchiveView, after: int, up_to: int) -> Iterator[pa.RecordBatch]:
    """The archived events in (after, up_to], in order, some thousand at a time."""
    for segment in view.overlapping(after, up_to):
        for numbers, texts in segment.scan(after, up_to):
            moments, changes = _stamp(segment, numbers)
            columns = [
                pa.array(numbers),
                pa.array(moments, SCHEMA.field("moment").type),
                pa.array(changes, pa.int64()),
                texts if isinstance(texts, pa.Array) else as_strings(texts),
            ]
            yield pa.record_batch(columns, schema=SCHEMA)


def as_strings(texts: Sequence[bytes]) -> pa.Array:
    """The texts unchanged, also those that are not UTF-8."""
    data = pa.array(texts, pa.binary())
    return pa.Array.from_buffers(pa.string(), len(data), data.buffers())


def event_at(view: ArchiveView, moment: int) -> int:
    """The last event at or before a moment; the one before all that are held if there is none."""
    for segment in reversed(view.segments):
        entries = segment.entries
        n_before = entries.last_at(moment)
        if n_before:
            firsts = entries.rows()[0]
            is_last = n_before >= len(firsts)
            following = segment.next_event if is_last else int(firsts[n_before])
            return min(following - 1, view.last_event)
    return view.first_event - 1


def last_before_change(view: ArchiveView, change: int) -> int:
    """The last event that was matched before a change; changes never go back."""
    for segment in reversed(view.segments):
        rows = segment.entries.rows()
        n_before = int(np.count_nonzero(rows[2] < change))
        if n_before:
            is_last = n_before >= rows.shape[1]
            following = segment.next_event if is_last else int(rows[0, n_before])
            return min(following - 1, view.last_event)
    return view.first_event - 1


# ── matches ─────────────────────────────────────────────────────────────────────────────────


def read_matches(
    view: ArchiveView, subscriptions: Iterable[int], after: int, limit: int, up_to: int | None
) -> MatchPage:
    """The events after a cursor that some subscriptions matched."""
    end = view.last_event if up_to is None else min(up_to, view.last_event)
    missed = view.missed(after, end)
    cursor = missed.stop - 1 if missed else after
    if cursor >= end:
        return MatchPage([], cursor, missed)
    wanted = _sort_wanted(subscriptions)
    found: list[Match] = []
    for segment in view.overlapping(cursor, end) if len(wanted) else ():
        hits = segment.find_matches(wanted, cursor, end, limit - len(found))
        found += _group(segment, hits, limit - len(found))
        if len(found) == limit:
            return MatchPage(found, found[-1].event, missed)
    return MatchPage(found, end, missed)


def _sort_wanted(subscriptions: Iterable[int]) -> np.ndarray:
    wanted: np.ndarray = np.unique(np.fromiter(subscriptions, np.int64))
    return wanted


def _group(segment: Segment, hits: Hits, limit: int) -> list[Match]:
    """The first `limit` events, each with its subscriptions."""
    if len(hits.events) == 0:
        return []
    order = np.lexsort((hits.subscriptions, hits.events))
    events, subscriptions = hits.events[order], hits.subscriptions[order]
    starts = np.flatnonzero(np.diff(events, prepend=-1))
    bounds = np.append(starts, len(events))[: limit + 1].tolist()
    numbers = events[starts[:limit]]
    names = subscriptions.tolist()
    stamps = _stamp(segment, numbers)
    return [
        Match(number, from_microseconds(moment), change, tuple(names[begin:end]))
        for number, moment, change, begin, end in zip(
            numbers.tolist(), *stamps, bounds[:-1], bounds[1:], strict=True
        )
    ]


def count_matches(
    view: ArchiveView, subscriptions: Iterable[int], after: int, up_to: int | None
) -> dict[int, int]:
    """The number of matches of each subscription after a cursor."""
    end = view.last_event if up_to is None else min(up_to, view.last_event)
    wanted = _sort_wanted(subscriptions)
    counts = np.zeros(len(wanted), np.int64)
    for segment in view.overlapping(after, end):
        segment.count_matches(wanted, after, end, counts)
    return dict(zip(wanted.tolist(), counts.tolist(), strict=True))
