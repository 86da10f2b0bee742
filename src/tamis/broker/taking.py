"""Takes the matches that a Spark stream writes, and stores them for delivery.

Each event of a batch that matched someone becomes an event of the archive, with its own number,
as if it had been published and matched here. Batches are taken in the order of their numbers,
each exactly once (`stream_positions`). A batch that cannot be read holds up those after it,
and is tried again. A batch that is gone is counted, and the next one is taken.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.archive import Entry, JsonEvents
from tamis.broker.stream_entries import TakenEvents, choose_events, split_batch
from tamis.broker.stream_positions import StreamPosition, StreamPositions
from tamis.broker.stream_rows import BatchRows, read_rows
from tamis.errors import InputError, TamisError
from tamis.language.types.moments import to_microseconds
from tamis.versions.storage import Storage
from tamis.versions.stream_output import RECORD, BatchRecord, folder_of, list_batches

if TYPE_CHECKING:
    from tamis.archive import Archive
    from tamis.broker.hub import Hub
    from tamis.kernels.arrays import Int64
    from tamis.subscriptions import SubscriptionStore
    from tamis.versions.log_position import LogPosition

POLL_SECONDS: Final = 0.5
LISTED_EVERY: Final = 20  # polls
_LOOKED_UP: Final = 10_000  # ids of subscriptions that are looked up at once
_LOG: Final = logging.getLogger(__name__)

# Why a match is not delivered.
ENDED, UNKNOWN, FOREIGN, NO_EVENT = REASONS = ("ended", "unknown", "foreign", "no-event")
_TEXTS: Final = {
    ENDED: "of subscriptions that have ended",
    UNKNOWN: "of ids that the log of subscriptions does not have",
    FOREIGN: "of a version that was not published from this server's subscriptions",
    NO_EVENT: "without an event that can be read",
}


@dataclass
class TakenCounts:
    """What was taken since the server started; changed by one thread only."""

    n_batches: int = 0
    n_events: int = 0
    n_matches: int = 0
    n_lost_batches: int = 0  # gone before they were taken
    n_repeated_batches: int = 0  # written again after they were taken
    n_failures: int = 0
    undelivered: Counter[str] = field(default_factory=Counter)  # by reason


class StreamTaker:
    """Takes the output of one stream. `take_all` may be called by one thread at a time."""

    def __init__(self, folder: str, store: SubscriptionStore, archive: Archive, hub: Hub) -> None:
        self._storage = Storage(folder)
        self._where = self._storage.address
        self._store = store
        self._archive = archive
        self._hub = hub
        hub.reached = archive.last_event
        self._positions = StreamPositions(store, archive)
        # Read now: later, the archive may have removed what it knows.
        self._position = self._positions.of_folder(self._where)
        self._seen = ""  # the run of the last batch that was looked at
        self._counted = ""  # the run whose undelivered matches were counted
        self._taking = Lock()
        self._closing = Event()
        self._thread: Thread | None = None
        self.counts = TakenCounts()
        self.problem: str | None = None  # why no batch is taken now
        self.last: BatchRecord | None = None

    def start(self) -> None:
        """Take batches as they come."""
        self._thread = Thread(target=self._run, name="tamis-take", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, after the batch that it is taking."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def is_running(self) -> bool:
        """Whether batches are taken."""
        return self._thread is not None and self._thread.is_alive()

    def describe(self) -> dict[str, Any]:
        """The numbers so far, and what holds it up."""
        own, position = self.counts, self._position
        return {
            "folder": self._storage.uri.partition("?")[0],
            "stream": None if position is None else position.stream,
            "batch": None if position is None or position.batch < 0 else position.batch,
            "version": None if self.last is None else self.last.version,
            "problem": self.problem,
            "n_batches": own.n_batches,
            "n_events": own.n_events,
            "n_matches": own.n_matches,
            "n_lost_batches": own.n_lost_batches,
            "n_repeated_batches": own.n_repeated_batches,
            "n_failures": own.n_failures,
            "undelivered": {reason: own.undelivered[reason] for reason in REASONS},
        }

    def _run(self) -> None:
        n_polls = 0
        while not self._closing.is_set():
            # A folder may have very many batches: it is listed seldom.
            if n_polls % LISTED_EVERY == 0 or self._has_next():
                self.take_all()
            n_polls += 1
            self._closing.wait(POLL_SECONDS)

    def _has_next(self) -> bool:
        """Whether the next batch is complete, or that is not known."""
        position = self._position
        if position is None or self.problem is not None:
            return True
        with suppress(TamisError, OSError):
            return self._storage.exists(f"{folder_of(position.batch + 1)}/{RECORD}")
        return True

    def take_all(self) -> int:
        """Take the batches that are complete; returns how many. What fails is tried again by the
        next call.
        """
        n_taken = 0
        with self._taking:
            try:
                while not self._closing.is_set() and self._take_next():
                    n_taken += 1
                self._report(None)
            except (TamisError, OSError) as error:
                self._report(str(error))
            except Exception as error:  # the thread must go on
                _LOG.exception("a batch of %s was not taken; it is tried again", self._where)
                self._report(repr(error))
        return n_taken

    def _report(self, problem: str | None) -> None:
        if problem is not None:
            self.counts.n_failures += 1
            if problem != self.problem:
                _LOG.error("no batch is taken: %s", problem)
        self.problem = problem

    # ── which batch ─────────────────────────────────────────────────────────────────────────

    def _take_next(self) -> bool:
        record = self._find_next()
        if record is None:
            return False
        assert self._position is not None
        for lost in range(self._position.batch + 1, record.batch):
            self.counts.n_lost_batches += 1
            where = self._storage.where(folder_of(lost))
            _LOG.error("%s is gone, and its matches are not delivered", where)
        if record.batch > self._position.batch + 1:
            self._position = self._position._replace(batch=record.batch - 1, n_events=0)
        self._take(record)
        return True

    def _find_next(self) -> BatchRecord | None:
        """The next batch, if it is complete."""
        numbers = list_batches(self._storage)
        if not numbers:
            return None
        # A new stream begins with the batch 0, also where another one has been taken.
        first = BatchRecord.read(self._storage, numbers[0])
        if self._position is None:
            if first is None:
                self._expect_last(numbers[0])
                return None
            self._begin(first.stream)
        assert self._position is not None
        self._expect_own(first)
        self._look_for_repetition()
        for number in numbers:
            if number > self._position.batch:
                return self._read_next(number)
        return None

    def _begin(self, stream: str) -> None:
        """Take a stream that was never seen in this folder."""
        position = self._positions.of_stream(stream) or StreamPosition(stream)
        # In the store first: then what the archive knows is found after a crash.
        self._positions.write(position, self._where)
        self._position = position
        _LOG.info("batches of stream %s are taken, after batch %d", stream, position.batch)

    def _read_next(self, number: int) -> BatchRecord | None:
        assert self._position is not None
        record = BatchRecord.read(self._storage, number)
        if record is None:
            self._expect_last(number)
            return None
        self._expect_own(record)
        if number > self._position.batch + 1:
            # The list may be older than the record: a batch that is there is never skipped.
            between = range(self._position.batch + 1, number)
            if any(own in between for own in list_batches(self._storage)):
                return None
        return record

    def _expect_last(self, number: int) -> None:
        """Raise an `InputError` unless a batch without a record is being written."""
        if any(own > number for own in list_batches(self._storage)):
            name = f"{folder_of(number)}/{RECORD}"
            raise InputError(
                f"{self._storage.where(name)} is missing, but there is a later batch",
                hint="it was written by an older program, or files were lost: restore it; or "
                "delete the folder, to go on without its matches",
            )

    def _expect_own(self, record: BatchRecord | None) -> None:
        assert self._position is not None
        if record is not None and record.stream != self._position.stream:
            raise InputError(
                f"{self._storage.where(folder_of(record.batch))} was written by stream "
                f"{record.stream}; the batches before it were written by {self._position.stream}",
                hint="a stream with a new checkpoint matches all events again: give it another "
                "output, and name that as --matches",
            )

    def _look_for_repetition(self) -> None:
        """Recognise that Spark has written the last batch again."""
        position = self._position
        assert position is not None
        if position.batch < 0 or not position.written:
            return
        again = BatchRecord.read(self._storage, position.batch)
        if again is None or again.written in (position.written, self._seen):
            return
        self._seen = again.written
        self.counts.n_repeated_batches += 1
        same = again.n_matches == position.n_matches
        _LOG.log(
            logging.INFO if same else logging.ERROR,
            "batch %d was written again with %d rows; the %d rows that were taken stay",
            position.batch,
            again.n_matches,
            position.n_matches,
        )

    # ── one batch ───────────────────────────────────────────────────────────────────────────

    def _take(self, record: BatchRecord) -> None:
        assert self._position is not None
        rows = read_rows(self._storage, record)
        numbers, reasons = self._find_numbers(rows.ids, record.position)
        if self._counted != record.written:  # it may be tried several times
            self._count_undelivered(record, rows, numbers, reasons)
            self._counted = record.written
        done = self._position.n_events
        for end in split_batch(rows, done):
            taken = choose_events(rows, numbers, done, end)
            is_last = end == len(rows.texts)
            after = self._position.after(record) if is_last else self._position.after_part(end)
            if len(taken.matches):
                self._append(taken, record, after)
            done = end
        self._position = self._position.after(record)
        self._positions.write(self._position, self._where)
        self.counts.n_batches += 1
        self.last = record

    def _append(self, taken: TakenEvents, record: BatchRecord, after: StreamPosition) -> None:
        """Store events, their matches, and the position after them: all of it or nothing."""
        answer = after.to_answer()
        change = 0 if record.position is None else record.position.change
        moment = min(_read_moment(record), self._store.now())  # the clock of Spark may be ahead
        events = JsonEvents(taken.buffer, taken.ends - taken.lengths, taken.ends)
        entry = Entry(
            events, moment, change, taken.match_starts, taken.matches, lambda _first: answer
        )
        self._archive.append([entry])
        self._position = after  # at once: nothing that follows may lead to a second time
        self.counts.n_events += len(taken.ends)
        self.counts.n_matches += len(taken.matches)
        self._hub.notify(taken.matches, self._archive.last_event)

    def _find_numbers(
        self, ids: list[str], position: LogPosition | None
    ) -> tuple[Int64, list[str]]:
        """The number of the subscription that each id named in the version, 0 if that does not
        exist any more; and why not.
        """
        numbers, reasons = np.zeros(len(ids), np.int64), [FOREIGN] * len(ids)
        if position is None or position.epoch != self._store.epoch:
            return numbers, reasons
        now = self._store.now()
        for start in range(0, len(ids), _LOOKED_UP):
            page = ids[start : start + _LOOKED_UP]
            found = self._store.latest_rows(page)
            for at, name in enumerate(page, start):
                row = found.get(name)
                reasons[at] = UNKNOWN if row is None else ENDED
                # An id that was used again after the version belongs to somebody else.
                if row is None or row.created is None or row.created > position.change:
                    continue
                if not row.has_ended(now):
                    numbers[at] = row.created
        return numbers, reasons

    def _count_undelivered(
        self, record: BatchRecord, rows: BatchRows, numbers: Int64, reasons: list[str]
    ) -> None:
        lost: Counter[str] = Counter()
        examples: dict[str, str] = {}
        is_read = rows.has_text()[rows.event_of]
        per_id = np.bincount(rows.id_of[is_read], minlength=len(rows.ids))
        for at in np.flatnonzero((numbers == 0) & (per_id > 0)).tolist():
            lost[reasons[at]] += int(per_id[at])
            examples.setdefault(reasons[at], rows.ids[at])
        if not is_read.all():
            lost[NO_EVENT] = int(np.count_nonzero(~is_read))
            examples[NO_EVENT] = rows.ids[int(rows.id_of[np.argmin(is_read)])]
        for reason, n_matches in lost.items():
            self.counts.undelivered[reason] += n_matches
            _LOG.warning(
                "batch %d: %d matches %s are not delivered, such as that of subscription %r",
                record.batch,
                n_matches,
                _TEXTS[reason],
                examples[reason],
            )


def _read_moment(record: BatchRecord) -> int:
    return to_microseconds(datetime.fromisoformat(record.moment))
