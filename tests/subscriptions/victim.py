"""Writers that are killed at random moments, and what they leave: `python -m … PLACE RUNS SEED`.

Each run forks a writer, which announces each group of requests before it applies it, and reports
afterwards. It is killed; then what it reported must be in the store, and the group on its way must
be there wholly or not at all.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterable
from contextlib import suppress

from tamis.errors import StoreInUseError
from tamis.subscriptions import Accepted, Replace, Subscribe, SubscriptionStore, Unsubscribe, sqlite
from tests.waiting import HANG_SECONDS

Group = list[tuple[str, str | None]]  # ids, and their expressions afterwards

# Small logs: kills also meet checkpoints.
sqlite._PRAGMAS = (*sqlite._PRAGMAS, "wal_autocheckpoint = 8")


def draw_group(draw: random.Random, held: dict[str, str]) -> Group:
    names = draw.sample([f"s{n}" for n in range(200)], draw.choice([1, 2, 20, 60]))
    return [
        (name, None if name in held and draw.random() < 0.4 else f"x = {draw.random()}" * 9)
        for name in names
    ]


def to_request(name: str, expression: str | None, held: dict[str, str]):
    if expression is None:
        return Unsubscribe(name)
    return Replace(name, expression) if name in held else Subscribe(name, expression, owner=name)


def update(held: dict[str, str], group: Iterable[tuple[str, str | None]]) -> None:
    for name, expression in group:
        held.pop(name, None)
        if expression is not None:
            held[name] = expression


def write_until_killed(place: str, seed: int, report: int) -> None:
    draw = random.Random(seed)
    with SubscriptionStore.open(place) as store:
        held = {one.id: one.expression for one in store.state_at(store.last_change)}
        os.write(report, b"[]\n")
        while True:
            group = draw_group(draw, held)
            os.write(report, json.dumps(["asked", group]).encode() + b"\n")
            results = store.apply([to_request(*one, held) for one in group])
            assert all(isinstance(result, Accepted) for result in results), results
            os.write(report, json.dumps(["acknowledged", results[-1].number]).encode() + b"\n")
            update(held, group)
            if draw.random() < 0.1:
                store.prune(before=store.last_change)


def run_and_kill(place: str, seed: int, seconds: float) -> list:
    """What a writer reported before it was killed."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        try:
            write_until_killed(place, seed, writing)
        finally:
            os._exit(1)
    os.close(writing)
    with open(reading, "rb") as reports:
        lines = [reports.readline()]  # the store is open
        time.sleep(seconds)
        os.kill(child, signal.SIGKILL)
        lines += reports.readlines()
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), lines[-1:]
    return [json.loads(line) for line in lines if line.endswith(b"\n")][1:]


def open_after_a_kill(place: str) -> SubscriptionStore:
    """The store, once the server knows that its writer is dead."""
    for _ in range(HANG_SECONDS):
        with suppress(StoreInUseError):
            return SubscriptionStore.open(place)
    raise AssertionError("a dead writer keeps its lock")


def check(place: str, held: dict[str, str], last: int, reports: list) -> tuple[dict, int]:
    """The set and its last change, after comparing them with the reports."""
    on_its_way: Group = []
    for kind, what in reports:
        if kind == "asked":
            on_its_way = what
        else:
            update(held, on_its_way)
            on_its_way, last = [], what
    with open_after_a_kill(place) as store:
        assert store.last_change in {last, last + len(on_its_way)}, (store.last_change, last)
        if store.last_change > last:
            update(held, on_its_way)
        found = {one.id: one.expression for one in store.state_at(store.last_change)}
        assert found == held
        assert store.count() == len(held)
        return held, store.last_change


def main(place: str, n_runs: int, seed: int) -> None:
    draw = random.Random(seed)
    held, last, n_reports = {}, 0, 0
    for run in range(n_runs):
        reports = run_and_kill(place, seed + run, draw.random() * 0.06)
        held, last = check(place, held, last, reports)
        n_reports += len(reports)
    print(n_runs, "runs", last, "changes", n_reports, "reports")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
