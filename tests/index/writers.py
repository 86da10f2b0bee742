"""Processes that save to one path at once, or are killed while they save.

Run as a program by `test_saving`: `python -m tests.index.writers races FOLDER ROUNDS SEED` prints
what was seen as one line of JSON. Writers are forked from a process that has built their indexes.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import tamis

N_WRITERS = 3
EVENT = {"a": 0}  # each index has one subscription, which no other has, that matches it
FINISHED, EXISTED, FAILED = 0, 3, 4


def make_index(name: str, n_subscriptions: int = 400) -> tamis.Index:
    others = {f"{name}{n}": f"a = {n} AND b = '{name}{n}'" for n in range(1, n_subscriptions)}
    return tamis.build({name: "a = 0"} | others)


def whose(path: Path) -> str:
    (name,) = tamis.open(path).match(EVENT)
    return name


def save(index: tamis.Index, path: Path, *, overwrite: bool) -> int:
    try:
        index.save(path, overwrite=overwrite)
    except tamis.InputError as error:
        return EXISTED if error.message.endswith(" exists") else FAILED
    return FINISHED


def fork(run) -> int:
    pid = os.fork()
    if pid:
        return pid
    try:
        os._exit(run())
    except BaseException as error:
        print(repr(error), file=sys.stderr, flush=True)
        os._exit(FAILED)


def exit_code(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def leftovers(path: Path) -> list[str]:
    """Files next to the index or in it that do not belong to it."""
    named = json.loads((path / "manifest.json").read_text("utf-8"))["content"]["file"]
    neighbours = {one.name for one in path.parent.iterdir()} - {path.name}
    return sorted(neighbours | {one.name for one in path.iterdir()} - {"manifest.json", named})


# ── races ───────────────────────────────────────────────────────────────────────────────────


def read_until(path: Path, is_over: Path) -> int:
    """Open the index again and again; once it is there, it is always there."""
    while not path.exists():
        time.sleep(0)
    while not is_over.exists():
        whose(path)
    return FINISHED


def race(path: Path, indexes: dict[str, tamis.Index], *, overwrite: bool) -> Counter[str]:
    """All writers at once, and a reader; what came of it."""
    gate, opens = os.pipe()
    is_over = path.parent.parent / "is over"

    def write(name: str) -> int:
        os.close(opens)
        os.read(gate, 1)
        return save(indexes[name], path, overwrite=overwrite)

    writers = {name: fork(lambda name=name: write(name)) for name in indexes}
    os.close(gate)
    reader = fork(lambda: os.close(opens) or read_until(path, is_over))
    os.close(opens)
    codes = {name: exit_code(pid) for name, pid in writers.items()}
    is_over.touch()
    seen = Counter({"reader failed": exit_code(reader) != FINISHED})
    is_over.unlink()
    seen["writer failed"] += sum(code == FAILED for code in codes.values())
    n_finished = sum(code == FINISHED for code in codes.values())
    seen["wrong number of successes"] += n_finished != (len(codes) if overwrite else 1)
    try:
        seen["not a winner's"] += codes[whose(path)] != FINISHED
    except tamis.IndexFormatError:
        seen["gone"] += 1
    else:
        seen["left over"] += bool(leftovers(path))
    return seen


def races(folder: Path, n_rounds: int, seed: int) -> dict[str, Counter[str]]:
    """New saves and overwritings, as often as asked."""
    indexes = {name: make_index(name) for name in "xyz"[:N_WRITERS]}
    first = make_index("first")
    seen: dict[str, Counter[str]] = {}
    for kind in ("create", "create or overwrite", "overwrite"):
        seen[kind] = Counter(rounds=0)
        for _ in range(n_rounds):
            place = folder / "place"
            place.mkdir()
            if kind == "overwrite":
                first.save(place / "index")
            seen[kind] += race(place / "index", indexes, overwrite=kind != "create")
            seen[kind]["rounds"] += 1
            shutil.rmtree(place)
    return seen


# ── kills ───────────────────────────────────────────────────────────────────────────────────


def kill_one(path: Path, index: tamis.Index, after: float) -> bool:
    """Kill a writer some time after it began; whether it had not finished by then."""
    started, starts = os.pipe()

    def write() -> int:
        os.write(starts, b"!")
        return save(index, path, overwrite=True)

    pid = fork(write)
    os.read(started, 1)
    time.sleep(after)
    os.kill(pid, signal.SIGKILL)
    os.close(started)
    os.close(starts)
    return exit_code(pid) == -signal.SIGKILL


def kills(folder: Path, n_rounds: int, seed: int) -> dict[str, Counter[str]]:
    """Writers killed at random moments: first new ones, then overwriting ones."""
    rng = random.Random(seed)
    indexes = {name: make_index(name) for name in ("old", "new", "next")}
    began = time.monotonic()
    indexes["old"].save(folder / "timed")
    seconds = time.monotonic() - began
    seen: dict[str, Counter[str]] = {}
    for kind in ("create", "overwrite"):
        seen[kind] = Counter(rounds=0)
        for _ in range(n_rounds):
            place = folder / "place"
            place.mkdir()
            path = place / "index"
            if kind == "overwrite":
                indexes["old"].save(path)
            seen[kind]["killed"] += kill_one(path, indexes["new"], rng.random() * seconds)
            if kind == "overwrite" or path.exists():
                seen[kind][f"{whose(path)} was there"] += 1
                seen[kind]["left something"] += bool(leftovers(path))
            else:
                seen[kind]["left something"] += any(place.iterdir())
            indexes["next"].save(path, overwrite=True)
            seen[kind]["not saved"] += whose(path) != "next"
            seen[kind]["left over"] += bool(leftovers(path))
            seen[kind]["rounds"] += 1
            shutil.rmtree(place)
    return seen


if __name__ == "__main__":
    program, where, count, chosen = sys.argv[1:]
    print(json.dumps(globals()[program](Path(where), int(count), int(chosen))))
