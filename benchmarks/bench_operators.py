"""How many expensive calls does an event cost? Liu's Table 1, with his numbers next to ours.

Calls per event are counts and hold on any machine; `TAMIS_BENCH_SIZE` chooses how many events and
settings. Every schedule must find the same matches. `floor` is a number that no schedule can go
below, `in use` counts the calls that any subscription has. Overhead is CPU
time of choosing and deciding, per call that was made: in one kernel, and driven step by step from
Python as matching does. Ratios to the optimum are over small random instances with drawn costs and
selectivities.
"""

from __future__ import annotations

import os
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.errors import TamisError
from tamis.lab.experiments.liu.schedules import draw_results, play_all
from tamis.lab.liu import SCHEDULES, make_schedule
from tamis.lab.liu.optimum import expected_cost, optimal_cost
from tamis.lab.workloads.overlaps import OverlapParams, Overlaps, packing_bound
from tamis.operators.schedule import Gates
from tamis.operators.schedule.kernels.gates import TRUE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.operators.schedule import EventRun, Schedule

TITLE = "expensive calls per event by schedule (Liu, Table 1)"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    n_events: int
    scale: float  # of subscriptions and calls
    n_subscriptions: tuple[int, ...]
    n_calls: tuple[int, ...]
    n_optima: int  # small instances that are searched
    n_processes: int = 1  # that share the settings


SIZES: Final = {
    "tiny": Size(5, 0.01, (2_000, 80_000), (30_000,), 5),
    "small": Size(20, 1.0, (2_000, 20_000, 80_000), (5_000, 30_000), 40),
    "full": Size(
        1_000,
        1.0,
        (2_000, 10_000, 20_000, 40_000, 80_000),
        (2_000, 5_000, 10_000, 20_000, 30_000),
        200,
        os.cpu_count() or 1,
    ),
}

# Calls per event as the paper's text has them, by (subscriptions, calls, zipf, longest): §5.3.
PUBLISHED: Final[dict[tuple[int, int, float | None, int], dict[str, int]]] = {
    (80_000, 40_000, None, 5): {"sequential": 7_761, "sub_order": 7_037},
    (20_000, 30_000, 1.0, 5): {"naive": 16_251, "sequential": 3_267, "sub_order": 1_977},
    (20_000, 5_000, 1.0, 5): {"sequential": 1_593},
    (20_000, 5_000, 1.0, 11): {"sequential": 1_784},
}


def run() -> list[Row]:
    """A row per setting, schedule and kind of selectivities; then ratios to the optimum."""
    chosen = os.environ.get("TAMIS_BENCH_SIZE", "small")
    if chosen not in SIZES:
        raise TamisError(f"TAMIS_BENCH_SIZE is {chosen!r}; allowed: {', '.join(SIZES)}")
    size = SIZES[chosen]
    return measure_all(size) + measure_optima(size.n_optima)


def measure_all(size: Size) -> list[Row]:
    """The rows of all settings, in their order."""
    every = list(settings(size))
    if size.n_processes == 1:
        return [row for params in every for row in measure(params, size)]
    # Spawned: no process inherits what Numba or another library has started.
    spawning = get_context("spawn")
    with ProcessPoolExecutor(size.n_processes, mp_context=spawning) as pool:
        found = list(pool.map(measure, every, repeat(size)))
    return [row for rows in found for row in rows]


def settings(size: Size) -> Iterator[OverlapParams]:
    """Figures 4 to 8, one parameter at a time; what two figures share comes once."""
    base = OverlapParams()
    fewer = replace(base, n_subscriptions=20_000, zipf=1.0)
    small = replace(fewer, n_calls=5_000)
    every = [
        replace(base, n_subscriptions=n, zipf=z) for z in (None, 1.0) for n in size.n_subscriptions
    ]
    every += [replace(base, zipf=zipf) for zipf in (0.8, 0.9, 1.2)]
    every += [replace(fewer, n_calls=n) for n in size.n_calls]
    every += [replace(small, n_calls_of_one=(3, longest)) for longest in (5, 7, 9, 11)]
    every += [replace(small, zipf=zipf) for zipf in (None, 0.8, 1.0, 1.2)]
    for params in dict.fromkeys(every):
        yield params
        if published(params):
            yield replace(params, selectivity="equal")


def published(params: OverlapParams) -> dict[str, int]:
    """The paper's numbers for a setting, if its text has any."""
    key = (params.n_subscriptions, params.n_calls, params.zipf, params.n_calls_of_one[1])
    return PUBLISHED.get(key, {})


def measure(params: OverlapParams, size: Size) -> list[Row]:
    """One row per schedule."""
    n_subscriptions = max(20, int(params.n_subscriptions * size.scale))
    n_calls = max(20, int(params.n_calls * size.scale))
    scaled = replace(params, n_subscriptions=n_subscriptions, n_calls=n_calls)
    workload = Overlaps(scaled)
    starts, calls = workload.conjunctions
    shared = {
        "subscriptions": n_subscriptions,
        "calls": n_calls,
        "popularity": "uniform" if params.zipf is None else f"Zipf {params.zipf:g}",
        "length": "{}–{}".format(*params.n_calls_of_one),
        "selectivity": params.selectivity,
        "in use": len(np.unique(calls)),
        "floor": round(packing_bound(starts, calls, n_calls)),
    }
    played = play_all(workload, size.n_events)
    return [
        {
            **shared,
            "schedule": one.name,
            "calls/event": one.calls,
            "paper": published(params).get(one.name) if size.scale == 1.0 else None,
            "% of naive": 100 * one.calls / played[0].calls,
            "match %": 100 * one.matches / n_subscriptions,
            "build s": one.build_seconds,
            "µs/call, kernel": one.microseconds,
            "µs/call, steps": step_all(one.schedule, workload),
        }
        for one in played
    ]


def step_all(schedule: Schedule, workload: Overlaps) -> float:
    """CPU µs per call when each result is recorded from Python; the least of a few events."""
    event = schedule.new_run()
    return min(step_one(event, draw_results(workload, at)) for at in range(5))


def step_one(event: EventRun, results: np.ndarray) -> float:
    answers = (results == TRUE).tolist()
    begin = time.process_time()
    event.start()
    call = event.next_call()
    while call >= 0:
        call = event.record_result(call, answers[call])
    return 1e6 * (time.process_time() - begin) / max(1, event.made.size)


def measure_optima(n_instances: int) -> list[Row]:
    """Expected cost over the least possible, on average and at worst."""
    ratios: dict[str, list[float]] = {name: [] for name in SCHEDULES}
    for seed in range(n_instances):
        rng = np.random.default_rng((1, seed))
        workload = Overlaps(OverlapParams(12, 9, None if seed % 2 else 1.0, (2, 4), seed=seed))
        gates = Gates.conjunctions(*workload.conjunctions, 9)
        costs, chances = rng.uniform(0.5, 4.0, 9), rng.random(9)
        best = optimal_cost(gates, costs, chances)
        for name, found in ratios.items():
            schedule = make_schedule(name, gates, costs, chances)
            found.append(expected_cost(schedule, costs, chances) / best)
    return [
        {
            "subscriptions": 12,
            "calls": 9,
            "popularity": "uniform, Zipf 1",
            "length": "2–4",
            "selectivity": "[0, 1]",
            "schedule": name,
            "× optimum": float(np.mean(found)),
            "× optimum, worst": float(np.max(found)),
        }
        for name, found in ratios.items()
    ]
