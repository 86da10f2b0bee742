"""kill -9 at any moment and before any write: nothing acknowledged is lost, no leftovers stay."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import pytest

import tamis
from tamis.errors import StoreError
from tamis.live import LiveIndex, checkpoints, maintenance, merging
from tests.effort import examples
from tests.live.places import by_hand
from tests.live.victim import RETENTION, expect_named_parts_only
from tests.scripts import run_script
from tests.subscriptions.places import new_folder
from tests.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder():
    made = new_folder()
    yield made
    shutil.rmtree(made)


def run_victims(mode: str, folder: Path, n_runs: int, seed: int) -> None:
    out = run_script("-m", "tests.live.victim", mode, folder, n_runs, seed)
    assert re.match(r"\d+ runs", out)


def test_killed_before_a_write(folder, seed):
    run_victims("writes", folder, 12, seed)


@pytest.mark.slow
def test_killed_before_hundreds_of_writes(folder, seed):
    run_victims("writes", folder, examples(20), seed + 1000)


def test_killed_while_types_are_fixed(folder, seed):
    run_victims("types", folder, 8, seed)


@pytest.mark.slow
def test_killed_before_each_write_while_types_are_fixed(folder, seed):
    run_victims("types", folder, 1_000, seed)


def test_killed_at_a_moment(folder, seed):
    run_victims("moments", folder, 8, seed)


@pytest.mark.slow
def test_killed_at_hundreds_of_moments(folder, seed):
    run_victims("moments", folder, examples(15), seed + 1000)


# ── the process that merges ─────────────────────────────────────────────────────────────────


def fill(live: LiveIndex, n_parts: int = 9) -> None:
    """Parts enough to be merged."""
    for part in range(n_parts):
        live.add_many({f"s{part}-{n}": f"a = {n % 7} AND b > {n}" for n in range(600)})


def test_a_killed_merge_is_tried_again(folder, monkeypatch):
    monkeypatch.setattr(maintenance, "PAUSE", 0.01)
    killed = []
    ask = merging.Merger._ask

    def kill_once(self, job):
        if not killed:
            killed.append(self._start().pid)
            os.kill(killed[0], signal.SIGKILL)
        return ask(self, job)

    monkeypatch.setattr(merging.Merger, "_ask", kill_once)
    with warnings.catch_warnings(record=True) as given, LiveIndex.open(folder / "live") as live:
        warnings.simplefilter("always")
        fill(live)
        before = sorted(live.match({"a": 1, "b": 9}))
        wait_until(lambda: len(live.view.engines) < 9, "the parts are merged")
        assert sorted(live.match({"a": 1, "b": 9})) == before
        assert len(live) == 9 * 600
    (own,) = [str(one.message) for one in given if "has ended" in str(one.message)]
    assert "it is tried again. Changes and answers are not affected" in own
    assert killed
    assert not list((folder / "live").glob(".tamis-*"))


class Merges:
    """A live index whose merges are killed before a write."""

    def __init__(self, folder: Path, monkeypatch) -> None:
        self.folder, self.counted = folder / "live", folder / "counted"
        self.killed_before: int | None = None
        start = subprocess.Popen

        def start_counted(command, **options):
            assert command[-1] == "tamis.live.worker"
            name = "tests.live.counted_worker"
            write = [] if self.killed_before is None else [str(self.killed_before)]
            return start([*command[:-1], name, self.counted, *write], cwd=ROOT, **options)

        monkeypatch.setattr(merging.subprocess, "Popen", start_counted)
        self.live = LiveIndex.open(self.folder)
        fill(self.live, 2)
        for n in range(60):  # merges learn from a sample of so many
            self.live.match({"a": n % 7, "b": n})
        self.live.compact()
        self.n_all = int(self.counted.read_text())

    def merge(self, write: int) -> None:
        """Kill a merge before its write; what it leaves is removed when the next one is saved."""
        live = self.live
        live.replace("s0-9", f"a = 2 AND b > {write}")
        before = [sorted(live.match({"a": a, "b": 99})) for a in range(7)]
        live._maintenance._merger._end()
        self.killed_before = write
        with pytest.raises(StoreError, match="has ended"):
            live.compact()
        assert [sorted(live.match({"a": a, "b": 99})) for a in range(7)] == before
        for path in (self.folder / "parts").rglob("*"):  # leftovers go when they are old
            os.utime(path, (0, 0))
        with by_hand():
            live.compact()
        assert len(live.view.engines) == 1
        assert [sorted(live.match({"a": a, "b": 99})) for a in range(7)] == before
        expect_named_parts_only(self.folder)


def kill_merges(folder: Path, monkeypatch, n_runs: int, seed: int) -> None:
    monkeypatch.setattr(checkpoints, "RETENTION", RETENTION)
    with by_hand(has_process=True):
        merges = Merges(folder, monkeypatch)
        assert merges.n_all > 10
        writes = range(1, merges.n_all + 1)
        for write in sorted(random.Random(seed).sample(writes, min(n_runs, merges.n_all))):
            merges.merge(write)
        names = sorted(merges.live)
        merges.live.close()
        with LiveIndex.open(merges.folder) as live:
            assert sorted(live) == names


def test_a_merge_killed_before_a_write(folder, monkeypatch, seed):
    kill_merges(folder, monkeypatch, 3, seed)


@pytest.mark.slow
def test_a_merge_killed_before_each_write(folder, monkeypatch, seed):
    kill_merges(folder, monkeypatch, 1_000, seed)


def test_a_merge_that_ends_in_its_answer(folder, monkeypatch):
    """Its process is killed while it writes the line: that is no answer."""
    answers = iter(['{"part": {"id"', ""])

    class Torn:
        stdin = stdout = type("", (), {"write": lambda *_: None, "flush": lambda *_: None})()
        stdout.readline = lambda: next(answers)
        kill = communicate = staticmethod(lambda: None)

    monkeypatch.setattr(merging.Merger, "_start", lambda self: Torn)
    with pytest.raises(StoreError, match=r"the process that merges parts of .* has ended"):
        merging.Merger(folder)._ask({})


ORPHAN = """
import os, signal, sys
from tamis.live import LiveIndex, merging
live = LiveIndex.open(sys.argv[1])
live.add_many({f"s{n}": f"a = {n}" for n in range(600)})
live.remove("s1")
ask = merging.Merger._ask
def die(self, job):
    import json
    process = self._start()
    print(process.pid, flush=True)
    process.stdin.write(json.dumps(job) + chr(10))
    process.stdin.flush()
    os.kill(os.getpid(), signal.SIGKILL)
merging.Merger._ask = die
live.compact()
"""


def test_the_merge_ends_with_a_killed_parent(folder):
    place = folder / "live"
    parent = subprocess.run(
        [sys.executable, "-c", ORPHAN, place], stdout=subprocess.PIPE, cwd=ROOT, check=False
    )
    assert parent.returncode == -signal.SIGKILL
    child = Path("/proc", parent.stdout.decode().strip())
    if child.parent.is_dir():
        wait_until(lambda: not is_running(child), "the process that merges ends")
    with LiveIndex.open(place) as live:
        assert len(live) == 599
        assert live.match({"a": 1}) == []
        live.compact()
    assert not list(place.glob(".tamis-*"))


def is_running(process: Path) -> bool:
    try:
        return (process / "stat").read_text().rpartition(") ")[2][0] != "Z"
    except OSError:
        return False


# ── closing ─────────────────────────────────────────────────────────────────────────────────


def test_closing_finishes_what_waits(folder):
    """The end must not be taken from the queue together with the jobs before it."""
    live = LiveIndex.open(folder / "live")
    is_held = threading.Event()

    def hold(live_set):
        is_held.wait()
        return live_set

    threading.Thread(target=lambda: live._committer.run(hold)).start()
    waiting = [live._committer.submit([tamis.live.index.Subscribe(f"s{n}", "a = 1")]) for n in "ab"]
    closing = threading.Thread(target=live.close)
    closing.start()
    wait_until(lambda: live._committer._is_closed, "the index closes")
    is_held.set()
    closing.join(HANG_SECONDS)
    assert not closing.is_alive()
    assert [len(future.result()) for future in waiting] == [1, 1]
    with LiveIndex.open(folder / "live") as live:
        assert sorted(live) == ["sa", "sb"]


def test_a_closed_index_starts_no_merge(folder):
    """The process that merges must not be started while the index closes: nobody would end it."""
    merger = merging.Merger(folder)
    merger._start()
    merger.close()
    assert merger._process is None
    with pytest.raises(StoreError, match="has ended"):
        merger._ask({})
    assert merger._process is None
