"""How calls are timed, and the size of a run."""

from __future__ import annotations

import gc
import os
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import tamis
from tamis.errors import TamisError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

Size = TypeVar("Size")

N_REPEATS: Final = 5
N_CLOCK: Final = 1_000  # readings of the clock, to know what one costs
DEFAULT_SIZE: Final = "small"


def choose_size(sizes: Mapping[str, Size]) -> tuple[str, Size]:
    """The size that TAMIS_BENCH_SIZE names, and what belongs to it."""
    name = os.environ.get("TAMIS_BENCH_SIZE", DEFAULT_SIZE)
    if name not in sizes:
        raise TamisError(f"TAMIS_BENCH_SIZE is {name!r}; allowed: {', '.join(sizes)}")
    return name, sizes[name]


# ── calls ───────────────────────────────────────────────────────────────────────────────────


def time_each(call: Callable[[Any], Any], events: Sequence[Any]) -> float:
    """The median time of a call in microseconds of CPU, the best of a few passes; the clock's own
    time is subtracted.
    """
    best = float("inf")
    for _ in range(N_REPEATS):
        gc.collect()
        times = []
        for event in events:
            start = time.thread_time_ns()
            call(event)
            times.append(time.thread_time_ns() - start)
        best = min(best, statistics.median(times))
    return max(0.0, best - time_clock()) / 1000


def time_clock() -> float:
    """The nanoseconds that reading the clock of `time_each` takes."""
    times = []
    for _ in range(N_CLOCK):
        start = time.thread_time_ns()
        times.append(time.thread_time_ns() - start)
    return statistics.median(times)


def time_whole(call: Callable[[], Any], n_events: int) -> float:
    """The best time of a call for all events, in microseconds of CPU per event."""
    return time_in_turn({"": call}, n_events)[""]


def time_in_turn(
    ways: Mapping[str, Callable[[], Any]], n_events: int, n_repeats: int = N_REPEATS
) -> dict[str, float]:
    """The best time of each way, in microseconds of CPU per event."""
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(n_repeats):
        for way, call in ways.items():
            gc.collect()
            start = time.process_time()
            call()
            best[way] = min(best[way], 1e6 * (time.process_time() - start) / n_events)
    return best


# ── commands ────────────────────────────────────────────────────────────────────────────────


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def run_tamis(*arguments: str, output: Path | None = None) -> Spent:
    """What a `tamis` command takes with this version of Tamis, its start included."""
    source = str(Path(tamis.__file__).parents[1])
    paths = [source, *filter(None, [os.environ.get("PYTHONPATH")])]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    with (output or Path(os.devnull)).open("wb") as file:
        subprocess.run(
            [sys.executable, "-m", "tamis", *arguments],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
            stdout=file,
            stderr=subprocess.DEVNULL,
            check=True,
        )
    wall = time.perf_counter() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return Spent(wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
