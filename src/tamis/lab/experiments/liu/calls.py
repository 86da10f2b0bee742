"""Calls per event by schedule, as one parameter of Table 1 moves at a time.

The algorithms are the product's schedules: what the paper describes is what matching with operators
does. `adaptive` is the product's own. Calls are counts, and hold on any machine.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    Chart,
    Experiment,
    Scale,
    Sweep,
    series,
)
from tamis.lab.experiments.measure import DisagreementError
from tamis.lab.workloads.overlaps import OverlapParams, Overlaps, packing_bound
from tamis.operators.schedules import SCHEDULES, Gates, make_schedule
from tamis.operators.schedules.kernels.gates import FALSE, TRUE

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.lab.experiments.experiment import Row, Setting
    from tamis.operators.schedules import Schedule

PAPER: Final = "Liu 2007"
CALLS: Final = "calls per event"
SHARE: Final = "% of naive"
OVERHEAD: Final = "microseconds per call"
FLOOR: Final = "floor"  # calls per event that no schedule can go below
NAIVE, SEQUENTIAL, SUB_ORDER, ADAPTIVE = "naive", "sequential", "sub_order", "adaptive"
UNIFORM: Final = 0.0  # as the exponent of popularity

N_EVENTS: Final = {Scale.TINY: 3, Scale.SMALL: 20, Scale.FULL: 1_000}
SHRUNK: Final = {Scale.TINY: 100, Scale.SMALL: 1, Scale.FULL: 1}  # subscriptions and predicates


def setting_of(scale: Scale, **parameters: Any) -> Setting:
    """A setting; what is not given is as in Table 1."""
    base = {"subscriptions": 20_000, "predicates": 5_000, "zipf": 1.0, "longest": 5}
    setting = base | parameters
    for name in ("subscriptions", "predicates"):
        setting[name] = max(40, setting[name] // SHRUNK[scale])
    return setting | {"events": N_EVENTS[scale]}


def sweep_subscriptions(zipf: float) -> Callable[[Scale], list[Setting]]:
    """Figures 4 and 5."""
    return lambda scale: [
        setting_of(scale, subscriptions=n, predicates=40_000, zipf=zipf)
        for n in (2_000, 10_000, 20_000, 40_000, 80_000)
    ]


def sweep_predicates(scale: Scale) -> list[Setting]:
    """Figure 6."""
    numbers: tuple[int, ...] = (2_000, 5_000, 10_000, 20_000, 30_000)
    if scale is Scale.TINY:
        numbers = (5_000, 30_000)
    return [setting_of(scale, predicates=n) for n in numbers]


def sweep_lengths(scale: Scale) -> list[Setting]:
    """Figure 7."""
    return [setting_of(scale, longest=longest) for longest in (5, 7, 9, 11)]


def sweep_popularity(scale: Scale) -> list[Setting]:
    """Figure 8."""
    return [setting_of(scale, zipf=zipf) for zipf in (UNIFORM, 0.8, 1.0, 1.2)]


# ── measuring ───────────────────────────────────────────────────────────────────────────────


def measure(setting: Setting, seed: int) -> list[Row]:
    """A row for each schedule, over the same events; all must find the same matches."""
    workload = Overlaps(
        OverlapParams(
            setting["subscriptions"],
            setting["predicates"],
            setting["zipf"] or None,
            (3, setting["longest"]),
            seed=seed,
        )
    )
    starts, calls = workload.conjunctions
    gates = Gates.conjunctions(starts, calls, setting["predicates"])
    shared = {
        FLOOR: round(packing_bound(starts, calls, setting["predicates"])),
        "predicates in use": len(np.unique(calls)),
    }
    rows: list[Row] = []
    for name in SCHEDULES:
        row = play(make_schedule(name, gates, 1.0, workload.selectivities), workload, setting)
        rows.append({ALGORITHM: name, **row, **shared})
        if row["matches"] != rows[0]["matches"]:
            raise DisagreementError(
                f"{name} finds {row['matches']} matches of an event, and not {rows[0]['matches']}"
            )
    naive = next(row[CALLS] for row in rows if row[ALGORITHM] == NAIVE)
    return [row | {SHARE: 100 * row[CALLS] / naive} for row in rows]


def play(schedule: Schedule, workload: Overlaps, setting: Setting) -> Row:
    """What one schedule costs."""
    n_events = setting["events"]
    event = schedule.new_run()
    n_made, n_matched, seconds = 0, 0, 0.0
    for at in range(-1, n_events):  # the first warms up
        results = np.where(workload.is_true(max(at, 0)), TRUE, FALSE).astype(np.int32)
        begun = time.process_time()
        event.start()
        event.play(results)
        if at >= 0:
            seconds += time.process_time() - begun
            n_made += event.made.size
            n_matched += event.matched.size
    return {
        CALLS: n_made / n_events,
        "matches": n_matched / n_events,
        OVERHEAD: 1e6 * seconds / max(1, n_made),
    }


def estimate(setting: Setting) -> int:
    """Bytes that a setting needs."""
    return (300 << 20) + 2_000 * int(setting["subscriptions"])


# ── verdicts ────────────────────────────────────────────────────────────────────────────────


def judge(x: str) -> Callable[[list[Row]], list[str]]:
    """Verdicts on a sweep over `x`."""

    def tell(rows: list[Row]) -> list[str]:
        made = {name: series(rows, x, CALLS, name) for name in SCHEDULES}
        last = list(made[NAIVE])[-1]
        below = [100 * (1 - made[name][last] / made[NAIVE][last]) for name in SCHEDULES]
        spelled = dict(zip(SCHEDULES, below, strict=True))
        is_below = all(made[SUB_ORDER][at] <= made[SEQUENTIAL][at] for at in made[NAIVE])
        is_best = all(made[ADAPTIVE][at] <= made[SUB_ORDER][at] for at in made[NAIVE])
        floors = series(rows, x, FLOOR, NAIVE)
        return [
            (
                f"At {x} {last:,} Sequential makes {spelled[SEQUENTIAL]:.0f}% fewer calls than "
                "naive, "
                f"Sub-Order {spelled[SUB_ORDER]:.0f}%, adaptive {spelled[ADAPTIVE]:.0f}% (paper, "
                "at "
                "80,000 subscriptions: almost 80%). No schedule can make fewer than "
                f"{floors[last]:,.0f} of naive's {made[NAIVE][last]:,.0f} calls here."
            ),
            (
                f"Sub-Order at or below Sequential everywhere: {'yes' if is_below else 'no'} "
                "(paper: "
                f"yes). Adaptive at or below Sub-Order everywhere: {'yes' if is_best else 'no'}."
            ),
        ]

    return tell


def published(x: str, value: float, **calls: int) -> tuple[Row, ...]:
    """The paper's calls per event for one setting."""
    return tuple({x: value, ALGORITHM: name, CALLS: made} for name, made in calls.items())


def make(  # noqa: PLR0913 - what differs between the figures
    number: int,
    title: str,
    x: str,
    name: str,
    settings: Callable[[Scale], list[Setting]],
    *figures: Row,
    told: str = "",
) -> Experiment:
    """One figure."""
    return Experiment(
        f"liu-figure-{number}",
        PAPER,
        title,
        Sweep(f"liu-{name}", settings, measure, estimate),
        (x, ALGORITHM, CALLS, SHARE, FLOOR, OVERHEAD),
        judge(x),
        published=figures,
        told=told,
        charts=(Chart(x, CALLS),),
        ours=ADAPTIVE,
    )


EXPERIMENTS: Final = (
    make(
        4,
        "Calls by the number of subscriptions, uniform popularity",
        "subscriptions",
        "subscriptions-uniform",
        sweep_subscriptions(UNIFORM),
        *published("subscriptions", 80_000, sequential=7_761, sub_order=7_037),
    ),
    make(
        5,
        "Calls by the number of subscriptions, Zipf popularity",
        "subscriptions",
        "subscriptions-zipf",
        sweep_subscriptions(1.0),
        told="The trend of Figure 4; Sequential and Sub-Order do even better.",
    ),
    make(
        6,
        "Calls by the number of predicates",
        "predicates",
        "predicates",
        sweep_predicates,
        *published("predicates", 30_000, naive=16_251, sequential=3_267, sub_order=1_977),
    ),
    make(
        7,
        "Calls by the longest subscription",
        "longest",
        "lengths",
        sweep_lengths,
        *published("longest", 5, sequential=1_593),
        *published("longest", 11, sequential=1_784),
    ),
    make(
        8,
        "Calls by popularity",
        "zipf",
        "popularity",
        sweep_popularity,
        told="Sequential and Sub-Order do much better than with uniform popularity, and better "
        "still as the exponent grows.",
    ),
)
