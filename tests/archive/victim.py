"""Archives that are killed, and what they leave: `python -m … MODE FOLDER RUNS SEED`.

Each run forks a process that appends to an archive, closes and prunes segments, copies and reopens
it. It announces each group of entries before it appends it, and reports afterwards. It is killed:
before a chosen write (`writes`), or at a random moment (`moments`), when segments are closed by a
thread and another process. Then what was acknowledged must be there, of the group on its way a
beginning may be there, and nothing that was half done may remain.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

from tamis.archive import Archive, ArchiveSettings, converter, maintenance
from tests.archive.places import Model, draw_entry
from tests.live.killing import CALLS, counting

FOREVER = timedelta(days=40_000)  # moments of tests are soon after 1970
SETTINGS = ArchiveSettings(segment_bytes=3000, segment_age=FOREVER, answers_for=FOREVER)
N_ACTIONS = 14  # of a run that is killed before a write
ALL_CALLS = (*CALLS, "pwrite", "fdatasync", "ftruncate")


def open_archive(folder: Path) -> Archive:
    return Archive.open(folder / "archive", settings=SETTINGS)


def draw_group(seed: int):
    draw = random.Random(seed)
    return [draw_entry(draw, draw.randrange(1000)) for _ in range(draw.randint(1, 3))]


# ── the victim ──────────────────────────────────────────────────────────────────────────────


class Victim:
    """Does random things with an archive, and reports what was acknowledged."""

    def __init__(self, folder: Path, seed: int, report: Callable[[str, object], None]) -> None:
        self.folder, self.report = folder, report
        self.draw = random.Random(seed)
        self.archive = open_archive(folder)

    def act(self, at: int) -> None:
        """Entries, and something else now and then."""
        for _ in range(self.draw.randint(1, 3)):
            self.append()
        actions = (self.seal, self.rotate, self.reopen, self.prune, self.copy, self.maintain)
        actions[at % len(actions)]()

    def append(self) -> None:
        seed = self.draw.getrandbits(40)
        self.report("asked", seed)
        numbers = self.archive.append([entry for entry, _ in draw_group(seed)])
        self.report("acknowledged", numbers)

    def seal(self) -> None:
        self.archive.seal()

    def rotate(self) -> None:
        self.archive._maintenance.rotate()

    def maintain(self) -> None:
        self.archive.maintain()

    def prune(self) -> None:
        before = self.archive.last_event // 2
        self.report("pruned", before)
        self.archive.prune(before=before)

    def copy(self) -> None:
        self.archive.backup(self.folder / f"copy-{self.draw.getrandbits(40)}")

    def reopen(self) -> None:
        self.archive.close()
        self.archive = open_archive(self.folder)


def run_and_kill(folder: Path, seed: int, *, write: int | None, seconds: float | None) -> list:
    """What a victim reported before it was killed, before a write or after some seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            live_until_killed(folder, seed, writing, write)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as reports:
        lines = [reports.readline()]  # the archive is open
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        lines += reports.readlines()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), lines[-1:]
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


@contextmanager
def by_hand(*, has_thread: bool):
    """Without a thread and another process, unless they are wanted: then often."""
    with (
        patch.object(maintenance, "INTERVAL", 0.001),
        patch.object(converter, "SMALL", 0 if has_thread else 1 << 30),
        patch.object(maintenance.Maintenance, "start", _START if has_thread else lambda self: None),
    ):
        yield


_START = maintenance.Maintenance.start


def live_until_killed(folder: Path, seed: int, report: int, write: int | None) -> None:
    def tell(kind: str, what: object) -> None:
        os.write(report, json.dumps([kind, what]).encode() + b"\n")

    with by_hand(has_thread=write is None), counting(write, ALL_CALLS) as writes:
        victim = Victim(folder, seed, tell)
        tell("open", None)
        at = 0
        while write is None or at < N_ACTIONS:
            victim.act(at)
            at += 1
        victim.archive.close()
        tell("writes", writes.n_writes)
        os.kill(os.getpid(), signal.SIGKILL)


# ── what it leaves ──────────────────────────────────────────────────────────────────────────


def check(folder: Path, model: Model, reports: list, draw: random.Random) -> None:
    """Compare the archive with the reports; afterwards the model is what the archive has."""
    on_its_way, kept_from = [], model.first
    for kind, what in reports:
        if kind == "asked":
            on_its_way = draw_group(what)
        elif kind == "acknowledged":
            assert what == [model.append(*pair) for pair in on_its_way]
            on_its_way = []
        elif kind == "pruned":
            kept_from = max(kept_from, what)
    with by_hand(has_thread=False):
        archive = open_archive(folder)
        for pair in on_its_way:  # a beginning of them may be there
            is_there = len(model.events) < archive.last_event
            is_there |= not pair[1] and archive.find_answer(pair[0].make_answer(0).key) is not None
            if is_there:
                model.append(*pair)
        assert model.first <= archive.first_event <= max(kept_from, 1)
        model.first = archive.first_event
        model.expect(archive, draw)
        expect_no_leftovers(folder / "archive", archive)
        model.expect(archive, draw)
        archive.close()
        for place in folder.glob("copy-*"):
            expect_copy(place, model, draw)
            shutil.rmtree(place)


def expect_no_leftovers(folder: Path, archive: Archive) -> None:
    archive.seal()
    assert not list(folder.rglob(".tamis-*"))
    assert not list(folder.rglob("*.torn"))
    assert len(list((folder / "journals").iterdir())) == 1
    closed = {own.name.path(folder, kind) for own in archive._contents.closed() for kind in KINDS}
    found = {path for kind in KINDS for path in (folder / kind).iterdir()}
    assert found == closed


KINDS = ("events", "matches", "index")


def expect_copy(folder: Path, model: Model, draw: random.Random) -> None:
    """A copy, which is there completely, has the events up to some number."""
    with Archive.open(folder, settings=SETTINGS) as copy:
        same = Model()
        same.first = copy.first_event
        same.events = model.events[: copy.last_event]
        same.expect_events(copy, draw)
        same.expect_matches(copy, draw)


# ── runs ────────────────────────────────────────────────────────────────────────────────────


def kill_before_writes(folder: Path, n_runs: int, seed: int) -> None:
    """The same run, killed before one write after the other, or before some of them."""
    place = folder / "whole"
    place.mkdir()
    n_writes = dict(run_and_kill(place, seed, write=0, seconds=None))["writes"]
    draw = random.Random(seed)
    chosen = draw.sample(range(1, n_writes + 1), min(n_runs, n_writes))
    for write in sorted(chosen):
        place = folder / "run"
        place.mkdir()
        reports = run_and_kill(place, seed, write=write, seconds=None)
        try:
            check(place, Model(), reports, draw)
        except BaseException:
            print(f"killed before write {write} of {n_writes}", file=sys.stderr)
            raise
        shutil.rmtree(place)
    print(len(chosen), "runs", n_writes, "writes")


def kill_at_moments(folder: Path, n_runs: int, seed: int) -> None:
    """One life after the other in one folder, with a thread and other processes."""
    draw = random.Random(seed)
    model = Model()
    for run in range(n_runs):
        seconds = draw.random() * 0.8
        reports = run_and_kill(folder, seed + run, write=None, seconds=seconds)
        check(folder, model, reports, draw)
    print(n_runs, "runs", len(model.events), "events")


def main(mode: str, folder: str, n_runs: int, seed: int) -> None:
    path = Path(folder)
    path.mkdir(exist_ok=True)
    # Loads all that is loaded late, before processes are forked.
    (path / "first").mkdir()
    check(path / "first", Model(), [], random.Random(seed))
    shutil.rmtree(path / "first")
    modes = {"writes": kill_before_writes, "moments": kill_at_moments}
    modes[mode](path, n_runs, seed)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
