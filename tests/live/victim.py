"""Live indexes that are killed, and what they leave: `python -m … MODE FOLDER RUNS SEED`.

Each run forks a process that changes, merges, publishes and reopens a live index. It announces each
group of requests before it submits it, and reports afterwards. It is killed: before a chosen write
(`writes`), or at a random moment (`moments`). Then what it reported must be there, the group on its
way must be there wholly or not at all, and nothing that was half done may remain.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from contextlib import contextmanager, nullcontext
from datetime import timedelta
from pathlib import Path
from unittest.mock import patch

import tamis
from tamis.errors import RejectWarning
from tamis.live import LiveIndex, checkpoints, maintenance
from tamis.logic.evaluate import Missing
from tamis.subscriptions import Accepted, Replace, Subscribe, Unsubscribe, sqlite
from tamis.versions.store import IndexStore, Retention
from tests.live.killing import counting
from tests.live.places import by_hand, step
from tests.match.examples import draw_example, reference

Held = dict[str, str]  # ids, and the names of their expressions
Group = list[tuple[str, str | None]]  # the same after a group of requests

# Versions go at once, so that kills also meet their removal; small logs, so that they meet
# checkpoints of the database.
RETENTION = Retention(versions=2, replaced_within=timedelta(0), leftovers_for=timedelta(hours=1))
EXAMPLE = draw_example(5, 60, n_events=6)
N_ACTIONS = 12  # of a run that is killed before a write


@contextmanager
def small():
    """Small steps: merges of two parts, frequent checkpoints, short retention."""
    pragmas = (*sqlite._PRAGMAS, "wal_autocheckpoint = 8")
    with (
        patch.object(sqlite, "_PRAGMAS", pragmas),
        patch.object(checkpoints, "RETENTION", RETENTION),
        patch.object(maintenance, "SAVED_AFTER", 30),
        patch.object(maintenance, "INTERVAL", 0.0001),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error", tamis.TamisWarning)
        # What is said of random events is right.
        warnings.simplefilter("ignore", RejectWarning)
        warnings.filterwarnings("ignore", ".*(missing in every event|no usable value|a blank)")
        yield


def open_live(folder: Path) -> LiveIndex:
    return LiveIndex.open(folder / "live", schema=EXAMPLE.schema)


# ── the victim ──────────────────────────────────────────────────────────────────────────────


class Victim:
    """Does random things with a live index, and reports what was acknowledged."""

    def __init__(self, folder: Path, seed: int, report: Callable[[str, object], None]) -> None:
        self.folder, self.report = folder, report
        self.draw = random.Random(seed)
        self.live = open_live(folder)
        self.held: Held = {}
        for one in self.live.store.state_at(self.live.store.last_change):
            self.held[one.id] = one.attributes["name"]

    def act(self, at: int) -> None:
        """Changes, and something else now and then."""
        self.change()
        actions = (self.maintain, self.compact, self.publish, self.reopen, self.forget)
        actions[at % len(actions)]()

    def change(self) -> None:
        group = self.draw_group()
        self.report("asked", group)
        requests = [self.to_request(*one) for one in group]
        results = self.live._committer.submit(requests).result()
        assert all(isinstance(result, Accepted) for result in results), results
        self.report("acknowledged", results[-1].number)
        update(self.held, group)

    def draw_group(self) -> Group:
        names = self.draw.sample([f"n{n}" for n in range(90)], self.draw.choice([1, 2, 9, 40]))
        return [
            (name, None if name in self.held and self.draw.random() < 0.4 else self.draw_text())
            for name in names
        ]

    def draw_text(self) -> str:
        return f"s{self.draw.randrange(60)}"

    def to_request(self, name: str, text: str | None):
        if text is None:
            return Unsubscribe(name)
        kind = Replace if name in self.held else Subscribe
        return kind(name, EXAMPLE.texts[text], attributes={"name": text})

    def maintain(self) -> None:
        while step(self.live):
            pass

    def compact(self) -> None:
        self.live.compact()

    def publish(self) -> None:
        self.live.publish(self.folder / "published")

    def reopen(self) -> None:
        self.live.close()
        self.live = open_live(self.folder)

    def forget(self) -> None:
        self.live.store.prune(before=self.live.change)


def update(held: Held, group: Group) -> None:
    for name, text in group:
        held.pop(name, None)
        if text is not None:
            held[name] = text


def run_and_kill(
    folder: Path,
    seed: int,
    *,
    write: int | None,
    seconds: float | None,
    life: Callable[[Path, int, int, int | None], None] | None = None,
) -> list:
    """What a victim reported before it was killed, before a write or after some seconds."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            (life or live_until_killed)(folder, seed, writing, write)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as reports:
        lines = [reports.readline()]  # the index is open
        if seconds is not None:
            time.sleep(seconds)
            os.kill(child, signal.SIGKILL)
        lines += reports.readlines()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), lines[-1:]
    return [json.loads(line) for line in lines if line.endswith(b"\n")]


def live_until_killed(folder: Path, seed: int, report: int, write: int | None) -> None:
    def tell(kind: str, what: object) -> None:
        os.write(report, json.dumps([kind, what]).encode() + b"\n")

    hand = nullcontext() if write is None else counting(write)
    with small(), by_hand(has_thread=write is None), hand as writes:
        victim = Victim(folder, seed, tell)
        tell("open", None)
        at = 0
        while write is None or at < N_ACTIONS:
            victim.act(at)
            at += 1
        victim.live.close()
        tell("writes", writes.n_writes)
        os.kill(os.getpid(), signal.SIGKILL)


# The last one that is left cannot be read without the types that others have fixed.
TYPED_STEPS: Group = [
    ("price", "price > 10"),
    ("limit", "limit > 1"),
    ("both", "price < limit"),
    ("price", None),
    ("limit", None),
    ("never", "x = 1 AND x = 2"),
    ("x", "y = x OR y = 5"),
    ("never", None),
]


def fix_types_until_killed(folder: Path, _seed: int, report: int, write: int | None) -> None:
    """Without a declared schema: subscriptions fix types, and go."""

    def tell(kind: str, what: object) -> None:
        os.write(report, json.dumps([kind, what]).encode() + b"\n")

    with by_hand(), counting(write) as writes:
        live = LiveIndex.open(folder / "live")
        for at, (name, text) in enumerate(TYPED_STEPS):
            if text is None:
                live.remove(name)
            else:
                live.add(name, text)
            tell("done", at)
        tell("writes", writes.n_writes)
        os.kill(os.getpid(), signal.SIGKILL)


# ── what it leaves ──────────────────────────────────────────────────────────────────────────


def check(folder: Path, held: Held, last: int, reports: list) -> tuple[Held, int]:
    """The set and its last change, after comparing them with the reports."""
    on_its_way: Group = []
    for kind, what in reports:
        if kind == "asked":
            on_its_way = what
        elif kind == "acknowledged":
            update(held, on_its_way)
            on_its_way, last = [], what
    with small(), by_hand():
        live = open_live(folder)
        assert live.change in {last, last + len(on_its_way)}, (live.change, last, on_its_way)
        if live.change > last:
            update(held, on_its_way)
        expect(live, held)
        expect_no_leftovers(folder, live)
        last = live.change
        live.close()
    return held, last


def expect(live: LiveIndex, held: Held) -> None:
    """The index has these subscriptions, and answers as the reference evaluator."""
    assert {one.id for one in live.list(limit=200).subscriptions} == held.keys()
    assert sorted(live) == sorted(held)
    conditions = [EXAMPLE.conditions[text] for text in held.values()]
    truth = reference(conditions, EXAMPLE.events, Missing.UNDEFINED)
    lists = live.match_lists(EXAMPLE.events).to_pylist()
    for event, row, found in zip(EXAMPLE.events, truth, lists, strict=True):
        wanted = sorted(name for name, is_true in zip(held, row, strict=True) if is_true)
        assert sorted(found) == wanted
        assert sorted(live.match(event)) == wanted


def expect_types(folder: Path, n_done: int) -> None:
    """After so many steps, or one more, all that is left can be read and answers."""
    states: list[Held] = [{}]
    for step_ in TYPED_STEPS:
        states.append(dict(states[-1]))
        update(states[-1], [step_])
    with by_hand(), LiveIndex.open(folder / "live") as live:
        held = set(live)
        assert held in [state.keys() for state in states[n_done : n_done + 2]], (held, n_done)
        event = {"price": 11, "limit": 12, "x": 5, "y": 5}
        assert set(live.match(event)) == held - {"never"}
        live.compact()
        assert set(live.match(event)) == held - {"never"}
    assert not list(folder.rglob(".tamis-*"))


def expect_no_leftovers(folder: Path, live: LiveIndex) -> None:
    """The next version that is saved removes drafts, and parts that no version names once they
    are old enough.
    """
    for path in (folder / "live" / "parts").rglob("*"):
        os.utime(path, (0, 0))
    live.add("probe", EXAMPLE.texts["s0"])
    live.remove("probe")
    with tamis.open(folder / "published") if has_versions(folder) else nullcontext() as index:
        assert index is None or index.match_lists(EXAMPLE.events) is not None
    live.publish(folder / "published")
    with tamis.open(folder / "published") as index:
        assert sorted(index) == sorted(live)
    expect_named_parts_only(folder / "live")
    assert not list(Path(tempfile.gettempdir()).iterdir())


def expect_named_parts_only(folder: Path) -> None:
    """There are no drafts in the folder of a live index, and no parts that no version names."""
    assert not list(folder.rglob(".tamis-*")), list(folder.rglob("*"))
    named = {part.folder for version in IndexStore(folder).versions() for part in version.parts}
    found = {f"parts/{path.name}" for path in (folder / "parts").iterdir()}
    assert found == named, (found, named)


def has_versions(folder: Path) -> bool:
    return bool(IndexStore(folder / "published").numbers())


# ── runs ────────────────────────────────────────────────────────────────────────────────────


def kill_before_writes(folder: Path, n_runs: int, seed: int) -> None:
    """The same run, killed before one write after the other, or before some of them."""
    n_writes = dict(run_and_kill(folder / "whole", seed, write=0, seconds=None))["writes"]
    points = range(1, n_writes + 1)
    chosen = random.Random(seed).sample(points, min(n_runs, n_writes))
    for write in sorted(chosen):
        place = folder / "run"
        place.mkdir()
        reports = run_and_kill(place, seed, write=write, seconds=None)
        try:
            check(place, {}, 0, reports)
        except BaseException:
            print(f"killed before write {write} of {n_writes}", file=sys.stderr)
            raise
        shutil.rmtree(place)
    print(len(chosen), "runs", n_writes, "writes")


def kill_while_types_are_fixed(folder: Path, n_runs: int, seed: int) -> None:
    """The same few changes, killed before one write after the other, or before some of them."""
    life = fix_types_until_killed
    whole = run_and_kill(folder / "whole", seed, write=0, seconds=None, life=life)
    n_writes = dict(whole)["writes"]
    chosen = random.Random(seed).sample(range(1, n_writes + 1), min(n_runs, n_writes))
    for write in sorted(chosen):
        place = folder / "run"
        place.mkdir()
        reports = run_and_kill(place, seed, write=write, seconds=None, life=life)
        try:
            expect_types(place, sum(kind == "done" for kind, _ in reports))
        except BaseException:
            print(f"killed before write {write} of {n_writes}", file=sys.stderr)
            raise
        shutil.rmtree(place)
    print(len(chosen), "runs", n_writes, "writes")


def kill_at_moments(folder: Path, n_runs: int, seed: int) -> None:
    """One life after the other in one folder, with merges in the background."""
    draw = random.Random(seed)
    held, last, n_reports = {}, 0, 0
    for run in range(n_runs):
        seconds = draw.random() * 0.8
        reports = run_and_kill(folder, seed + run, write=None, seconds=seconds)
        held, last = check(folder, held, last, reports)
        n_reports += len(reports)
    print(n_runs, "runs", last, "changes", n_reports, "reports")


def main(mode: str, folder: str, n_runs: int, seed: int) -> None:
    path = Path(folder)
    (path / "tmp").mkdir()
    tempfile.tempdir = str(path / "tmp")
    (path / "whole").mkdir()
    modes = {
        "writes": kill_before_writes,
        "types": kill_while_types_are_fixed,
        "moments": kill_at_moments,
    }
    # Loads all that is loaded late, before processes are forked.
    check(path / "whole", {}, 0, [])
    shutil.rmtree(path / "whole")
    (path / "whole").mkdir()
    modes[mode](path, n_runs, seed)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
