"""The thread that merges parts, ends leases and saves versions."""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Final

from tamis.errors import InputError
from tamis.live import checkpoints, merging
from tamis.live.chores import Chore
from tamis.live.merging import Merger, choose_run, choose_slow, measure_parts
from tamis.live.stats import LiveStats, part_stats

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tamis.live.committer import Committer
    from tamis.live.live_set import LivePart, LiveSet
    from tamis.live.sampling import EventSample
    from tamis.match.view import View
    from tamis.subscriptions import SubscriptionStore
    from tamis.versions.manifest import Part, Version

INTERVAL: Final = 0.25  # seconds between two looks at the set
EXPIRY_INTERVAL: Final = 1.0
MEASURE_INTERVAL: Final = 5.0
PRUNE_INTERVAL: Final = 3_600.0
MEASURED: Final = 50  # events with which parts are measured
SAVED_AFTER: Final = 20_000  # changes: more would take long to read again when the set is opened
FEW: Final = 1_000  # changes: these are read again sooner than a version is written
PAUSE: Final = 5.0  # seconds after a failure; twice as long after each further one
MOST_PAUSE: Final = 300.0


class Maintenance:
    """Keeps a live set in good shape, in the background."""

    def __init__(  # noqa: PLR0913 - all that it looks after
        self,
        folder: Path,
        store: SubscriptionStore,
        committer: Committer,
        sample: EventSample,
        saved_change: int,
        find_view: Callable[[], View],
        keep_log: timedelta | None = None,
    ) -> None:
        """`saved_change` is the last change that a saved version includes; `keep_log` is how long
        the log is kept, None for ever.
        """
        self._folder = folder
        self._store = store
        self._committer = committer
        self._sample = sample
        self._find_view = find_view
        self._keep_log = keep_log
        self._merger = Merger(folder)
        self._saved: Version | None = None
        self._saved_change = saved_change
        self._has_merged = False  # since the last save
        self._n_merges = 0
        self._saving = Lock()
        self._merging = Lock()
        self._wake = Condition()
        self._is_closed: bool = False
        self._next_expiry = 0.0
        self._next_measure = 0.0
        self._next_prune = 0.0
        self._measured_change = committer.current.change
        # Each for itself: a merge that always fails stops neither the others nor the thread.
        self._chores = [
            Chore(work, _describe_outlook, self._closes, PAUSE, MOST_PAUSE)
            for work in (
                self._catch_up,
                self._expire,
                self._merge_due,
                self._save_due,
                self._prune_due,
            )
        ]
        self._thread = Thread(target=self._run, name="tamis-live-maintenance", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread, and a merge that is running; the set stays as it is."""
        with self._wake:
            self._is_closed = True
            self._wake.notify_all()
        self._merger.close()
        self._thread.join()

    def compact(self) -> None:
        """Merge all parts into one."""
        with self._merging:
            sealed = self._committer.run(lambda live_set: replace(live_set, newest=None))
            if len(sealed.parts) > 1 or sealed.parts[0].n_hidden:
                self._merge(sealed, sealed.parts)
        self.save(self._committer.current)

    def save(self, live_set: LiveSet) -> Version:
        """Save the set as a version, unless it is saved already."""
        with self._saving:
            if self._saved is not None and self._saved_change == live_set.change:
                return self._saved
            version, written = checkpoints.save(live_set, self._folder, self._store)
            self._saved, self._saved_change = version, live_set.change
            self._has_merged = False
            if written and not self._is_closed:
                self._committer.run(lambda now: _with_stored(now, written))
            return version

    def save_last(self, live_set: LiveSet, *, saves_few: bool) -> None:
        """Save the set if no version has its changes or its merged parts."""
        n_changes = live_set.change - self._saved_change
        if self._has_merged or n_changes > (0 if saves_few else FEW):
            self.save(live_set)

    def tidy(self) -> None:
        """Merge parts until there are few."""
        while len(self._committer.current.parts) >= merging.FAN_IN and self.step():
            pass

    def _run(self) -> None:
        pause = INTERVAL  # a command that opens the set for one change is done by then
        while not self._wait(pause):
            has_more = [chore.run() for chore in self._chores]
            pause = 0.0 if any(has_more) else INTERVAL

    def _wait(self, seconds: float) -> bool:
        """Wait; returns whether the index was closed."""
        with self._wake:
            if not self._is_closed and seconds:
                self._wake.wait(seconds)
            return self._is_closed

    def step(self) -> bool:
        """Do what is due; returns whether parts were merged, so that more may be due."""
        self._catch_up()
        self._expire()
        has_merged = self._merge_due()
        self._save_due()
        self._prune_due()
        return has_merged

    def stats(self) -> LiveStats:
        """The state of the set and of the work in the background."""
        current = self._committer.current
        failed = [chore for chore in self._chores if chore.n_failures]
        return LiveStats(
            current.change,
            self._saved_change,
            part_stats(current),
            self._n_merges,
            sum(chore.n_failures for chore in failed),
            "; ".join(str(chore.last_failure) for chore in failed) or None,
        )

    def _merge_due(self) -> bool:
        with self._merging:
            current = self._committer.current
            run = choose_run(current) or self._choose_slow(current)
            if run:
                self._merge(current, run)
        return bool(run)

    def _save_due(self) -> bool:
        current = self._committer.current
        if current.change - self._saved_change >= SAVED_AFTER:
            self.save(current)
        return False

    def _prune_due(self) -> bool:
        now = time.monotonic()
        if self._keep_log is not None and now >= self._next_prune:
            self._next_prune = now + PRUNE_INTERVAL
            self.prune(self._keep_log)
        return False

    def prune(self, keep: timedelta) -> int:
        """Delete what only older states need from the log; returns how many entries."""
        if not isinstance(keep, timedelta):
            raise InputError(f"keep is {keep!r}; a timedelta is expected")
        try:
            oldest = self._store.moment - keep
        except OverflowError:
            return 0
        before = self._store.change_at(oldest)
        return self._store.prune(before) if before > self._store.horizon else 0

    def _choose_slow(self, live_set: LiveSet) -> Sequence[LivePart]:
        """The parts that make matching slow, measured now and then with recent events."""
        now = time.monotonic()
        if now < self._next_measure or live_set.change == self._measured_change:
            return ()
        events = self._sample.some(MEASURED)
        if len(events) < MEASURED:
            return ()
        self._next_measure, self._measured_change = now + MEASURE_INTERVAL, live_set.change
        return choose_slow(live_set, measure_parts(self._find_view(), events))

    def _closes(self) -> bool:
        with self._wake:
            return self._is_closed

    def _merge(self, live_set: LiveSet, run: Sequence[LivePart]) -> None:
        part = self._merger.merge(live_set, run, self._sample.to_table())
        self._committer.run(lambda now: now.swap(run, part))
        self._has_merged = True
        self._n_merges += 1

    def _catch_up(self) -> bool:
        if self._committer.is_behind():
            self._committer.read_changes()
        return False

    def _expire(self) -> bool:
        now = time.monotonic()
        if now >= self._next_expiry:
            self._next_expiry = now + EXPIRY_INTERVAL
            self.end_leases()
        return False

    def end_leases(self) -> None:
        """Write the ends of leases to the log, and drop their subscriptions."""
        if any(map(_is_timed, self._committer.current.parts)):
            self._committer.expire()


def _describe_outlook() -> str:
    return "it is tried again. Changes and answers are not affected"


def _is_timed(part: LivePart) -> bool:
    return bool(len(part.contents.validity.ordinals))


def _with_stored(live_set: LiveSet, written: dict[int, Part]) -> LiveSet:
    parts = tuple(
        part._replace(stored=written[id(part.contents)]) if id(part.contents) in written else part
        for part in live_set.parts
    )
    return replace(live_set, parts=parts)
