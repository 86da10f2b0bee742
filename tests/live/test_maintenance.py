"""The work in the background: what is due, what fails, and what goes on then."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import warnings
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from unittest.mock import patch

import pytest

from tamis.errors import HistoryError, InputError, StoreError, TamisWarning
from tamis.live import LiveIndex, chores, live_set, maintenance, merging, worker
from tamis.live.chores import Chore
from tests.live.places import by_hand
from tests.subscriptions.places import START, Clock
from tests.waiting import wait_until


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "people.live"


# ── one chore ───────────────────────────────────────────────────────────────────────────────


class FailingChore:
    """A chore that fails as long as there are errors, and a clock that the test moves."""

    def __init__(self, *errors: Exception, is_closing: bool = False) -> None:
        self.errors = list(errors)
        self.now = 1000.0
        self.times: list[float] = []  # of all calls
        self.chore = Chore(self.work, lambda: "it is tried again", lambda: is_closing, 5.0, 300.0)

    def work(self) -> bool:
        self.times.append(self.now)
        if self.errors:
            raise self.errors.pop(0)
        return True

    def run(self, seconds: float) -> None:
        """Let the thread look for some time."""
        with patch.object(chores.time, "monotonic", lambda: self.now):
            end = self.now + seconds
            while self.now < end:
                self.chore.run()
                self.now += 2.5


def test_pauses_grow_and_failures_are_reported_once():
    failing = FailingChore(*(StoreError(f"failure {n}") for n in range(9)))
    with pytest.warns(TamisWarning) as given:
        failing.run(1_300)
    assert [str(one.message) for one in given] == ["failure 0; it is tried again"]
    gaps = [later - earlier for earlier, later in pairwise(failing.times)]
    assert gaps[:9] == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    assert set(gaps[9:]) == {2.5}
    assert (failing.chore.n_failures, failing.chore.last_failure) == (9, "failure 8")


def test_a_failure_after_a_success_is_reported_again():
    failing = FailingChore(StoreError("full"))
    with pytest.warns(TamisWarning, match="full"):
        failing.run(20)
    failing.errors = [OSError("full again")]
    with pytest.warns(TamisWarning, match="full again"):
        failing.run(20)
    assert failing.chore.n_failures == 2


def test_failures_while_closing_do_not_count():
    failing = FailingChore(StoreError("the process has ended"), is_closing=True)
    failing.run(20)
    assert failing.chore.n_failures == 0


def test_the_thread_goes_on_where_warnings_are_errors(monkeypatch):
    shown = []
    monkeypatch.setattr(threading, "excepthook", shown.append)
    failing = FailingChore(MemoryError(), KeyError("s1"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        failing.run(20)
    (own,) = shown
    assert own.exc_type is TamisWarning
    assert str(own.exc_value).startswith("MemoryError (")
    assert failing.chore.n_failures == 2
    assert failing.chore.last_failure.startswith("KeyError: 's1' (")
    assert "test_maintenance.py, line" in failing.chore.last_failure


# ── in an index ─────────────────────────────────────────────────────────────────────────────


@contextmanager
def busy(**constants):
    """The thread looks all the time, and the newest part is small."""
    with (
        by_hand(has_thread=True),
        patch.object(live_set, "MOST_NEWEST", 4),
        patch.multiple(maintenance, INTERVAL=0.001, PAUSE=0.001, MOST_PAUSE=0.002, **constants),
    ):
        yield


def fill(live: LiveIndex, n_groups: int = 3) -> None:
    """Parts enough to be merged."""
    for group in range(n_groups):
        live.add_many({f"s{group}-{n}": "a = 1" for n in range(5)})


@pytest.mark.parametrize("error", [MemoryError(), ZeroDivisionError("in a merge")])
def test_a_merge_that_fails_is_counted_and_tried_again(folder, monkeypatch, error):
    merge, left = merging.Merger.merge, [error] * 4

    def fail_first(self, *args):
        if left:
            raise left.pop()
        return merge(self, *args)

    monkeypatch.setattr(merging.Merger, "merge", fail_first)
    with (
        warnings.catch_warnings(record=True) as given,
        busy(),
        LiveIndex.open(folder) as live,
    ):
        warnings.simplefilter("always")
        assert live.stats() == (0, 0, ((0, 0),), 0, 0, None)
        fill(live)
        wait_until(lambda: live.stats().n_merges, "the parts are merged")
        assert len(live.match({"a": 1})) == 15
        live.add("more", "a = 1")
        assert len(live.match({"a": 1})) == 16
        stats = live.stats()
    assert stats.n_failures == 4
    assert stats.last_failure.startswith(type(error).__name__)
    assert stats.change == 16
    assert sum(part.n_shown for part in stats.parts) == 16
    (own,) = (str(one.message) for one in given)
    assert own.endswith("it is tried again. Changes and answers are not affected")


def test_a_merge_that_always_fails_stops_nothing_else(folder, monkeypatch):
    """Leases end, versions are saved, changes and answers go on."""

    def fail(self, *_):
        raise KeyError("s1")

    monkeypatch.setattr(merging.Merger, "merge", fail)
    clock = Clock()
    with (
        warnings.catch_warnings(record=True) as given,
        busy(SAVED_AFTER=10, EXPIRY_INTERVAL=0.001),
        LiveIndex.open(folder, clock=clock) as live,
    ):
        warnings.simplefilter("always")
        fill(live)
        wait_until(lambda: live.stats().n_failures > 2, "merges fail")
        live.add("leased", "a = 1", valid_until=START + timedelta(seconds=10))
        clock.move(20)
        wait_until(lambda: "leased" not in live, "the lease is ended")
        for n in range(12):
            live.add(f"t{n}", "a = 1")
        wait_until(lambda: live.stats().saved_change >= 20, "a version is saved")
        assert len(live.match({"a": 1})) == 27
        assert live.stats().n_merges == 0
    assert str(given[0].message).startswith("KeyError: 's1'")


def test_an_interrupted_merge_does_not_answer_the_next_one(folder):
    """Ctrl-C while the other process works: its answer must not be read later."""

    class Interrupted:
        def __init__(self, stream) -> None:
            self.stream = stream

        def readline(self) -> str:
            raise KeyboardInterrupt

        def __getattr__(self, name: str):
            return getattr(self.stream, name)

    with LiveIndex.open(folder) as live:
        live.add_many({"a": "x = 1", "b": "x = 1"})
        live.remove("a")
        process = live._maintenance._merger._start()
        process.stdout = Interrupted(process.stdout)
        with pytest.raises(KeyboardInterrupt):
            live.compact()
        assert process.poll() is not None
        live.add_many({"c": "x = 1", "d": "x = 1"})
        live.compact()
        assert sorted(live.match({"x": 1})) == ["b", "c", "d"]


def test_the_process_that_merges_reports_any_error(monkeypatch):
    def fail(job):
        raise MemoryError("no room")

    jobs = "".join(f"{json.dumps({'is_last': is_last})}\n" for is_last in (False, True))
    answers = io.StringIO()
    monkeypatch.setattr(worker, "merge", fail)
    monkeypatch.setattr(worker, "_watch_parent", lambda _: None)
    monkeypatch.setattr(os, "nice", lambda _: None)
    monkeypatch.setattr(sys, "stdin", io.StringIO(jobs))
    monkeypatch.setattr(sys, "stdout", answers)
    worker.run()
    assert answers.getvalue().splitlines() == ['{"error": "MemoryError: no room"}'] * 2


# ── parts with hidden subscriptions ─────────────────────────────────────────────────────────


def test_only_large_parts_are_rewritten_for_what_is_hidden(folder):
    n_least = merging.LEAST_WORN
    with by_hand(), LiveIndex.open(folder) as live:
        live.add_many({f"s{n}": "a = 1" for n in range(n_least)})
        live.compact()
        live.remove_many([f"s{n}" for n in range(n_least // 5)])
        (part,) = live._committer.current.parts
        with patch.object(merging, "LEAST_WORN", n_least):
            assert not merging.choose_run(live._committer.current)  # not more than a fifth
            live.remove(f"s{n_least - 1}")
            (part,) = merging.choose_run(live._committer.current)
            assert part.n_hidden == n_least // 5 + 1
        with patch.object(merging, "LEAST_WORN", n_least + 1):
            assert not merging.choose_run(live._committer.current)


# ── the log ─────────────────────────────────────────────────────────────────────────────────


def test_the_log_is_kept_as_long_as_the_folder_says(folder):
    clock = Clock()
    with by_hand():
        with LiveIndex.open(folder, clock=clock, keep_log=timedelta(days=30)) as live:
            live.add("s", "a = 1")
            live.replace("s", "a = 2")
            clock.move(timedelta(days=20).total_seconds())
            live.replace("s", "a = 3")
            live._maintenance.step()
            assert live.store.horizon == 0
        with LiveIndex.open(folder, clock=clock) as live:  # the folder remembers it
            clock.move(timedelta(days=11).total_seconds())
            live._maintenance.step()
            assert live.store.horizon == 2
            assert live.match({"a": 3}) == ["s"]
            assert live.as_of(2).match({"a": 2}) == ["s"]
            with pytest.raises(HistoryError):
                live.as_of(1)
        with LiveIndex.open(folder, clock=clock, keep_log=timedelta.max) as live:
            clock.move(timedelta(days=90).total_seconds())
            live._maintenance.step()
            assert live.store.horizon == 2
            assert live.prune(timedelta(days=1)) == 1
            assert live.store.horizon == 3
        with pytest.raises(InputError, match="keep_log is 30; a timedelta"):
            LiveIndex.open(folder, keep_log=30)
