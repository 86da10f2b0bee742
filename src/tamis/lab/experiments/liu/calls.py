"""Calls per event by schedule, varying one parameter of Table 1 at a time.

The algorithms are the paper's, over the gates that matching with operators uses; `adaptive` is the
product's. Calls are counted, so the results are the same on any machine.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    PROCESS_BYTES,
    Chart,
    Experiment,
    Scale,
    Sweep,
    series,
)
from tamis.lab.experiments.liu.schedules import play_all
from tamis.lab.experiments.sentences import does
from tamis.lab.liu import SCHEDULES
from tamis.lab.workloads.overlaps import OverlapParams, Overlaps, packing_bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.lab.experiments.experiment import Row, Setting

    Judge: TypeAlias = Callable[[list[Row]], list[str]]

PAPER: Final = "Liu 2007"
CALLS: Final = "calls per event"
SHARE: Final = "% of naive"
OVERHEAD: Final = "microseconds per call"
FLOOR: Final = "floor"  # the minimum number of calls per event of any schedule
IN_USE: Final = "predicates in use"  # by any subscription: no schedule makes more calls
NAIVE, SEQUENTIAL, SUB_ORDER, ADAPTIVE = "naive", "sequential", "sub_order", "adaptive"
UNIFORM: Final = 0.0  # exponent of popularity

N_EVENTS: Final = {Scale.TINY: 3, Scale.SMALL: 20, Scale.FULL: 1_000}
SHRUNK: Final = {Scale.TINY: 100, Scale.SMALL: 1, Scale.FULL: 1}  # subscriptions and predicates


def setting_of(scale: Scale, **parameters: Any) -> Setting:
    """A setting; parameters that are not given are those of Table 1."""
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
    """A row for each schedule, over the same events."""
    workload = Overlaps(
        OverlapParams(
            setting["subscriptions"],
            setting["predicates"],
            setting["zipf"] or None,
            (3, setting["longest"]),
            seed=seed,
        )
    )
    played = play_all(workload, setting["events"])
    naive = next(one.calls for one in played if one.name == NAIVE)
    starts, calls = workload.conjunctions
    shared = {
        FLOOR: round(packing_bound(starts, calls, setting["predicates"])),
        IN_USE: len(np.unique(calls)),
    }
    return [
        {
            ALGORITHM: one.name,
            CALLS: one.calls,
            SHARE: 100 * one.calls / naive,
            "matches": one.matches,
            OVERHEAD: one.microseconds,
            **shared,
        }
        for one in played
    ]


def estimate(setting: Setting) -> int:
    """Bytes that a setting needs."""
    return PROCESS_BYTES + 2_000 * int(setting["subscriptions"])


# ── verdicts ────────────────────────────────────────────────────────────────────────────────


def judge(x: str, figures: tuple[Row, ...], more: Judge, rows: list[Row]) -> list[str]:
    """Verdicts on a sweep over `x`."""
    made = {name: series(rows, x, CALLS, name) for name in SCHEDULES}
    last = max(made[NAIVE])
    fewer = {name: 1 - own[last] / made[NAIVE][last] for name, own in made.items()}
    floor, in_use = (series(rows, x, what, NAIVE)[last] for what in (FLOOR, IN_USE))
    is_below = all(made[SUB_ORDER][at] <= made[SEQUENTIAL][at] for at in made[NAIVE])
    sentences = [
        (
            f"At {x} {last:,} Sequential makes {fewer[SEQUENTIAL]:.0%} fewer calls than naive, "
            f"Sub-Order {fewer[SUB_ORDER]:.0%}, adaptive {fewer[ADAPTIVE]:.0%}. No schedule can "
            f"make fewer than {floor:,.0f} of naive's {made[NAIVE][last]:,.0f} calls here: "
            f"{1 - floor / made[NAIVE][last]:.0%} fewer."
        ),
        (
            f"From {x} {min(made[NAIVE]):,} on calls grow "
            + ", ".join(
                f"{own[last] / own[min(own)]:.2f} times with {n}" for n, own in made.items()
            )
            + "."
        ),
        f"That Sub-Order is at or below Sequential everywhere {does(is_below)}.",
    ]
    sentences += [_describe_published(row, x, floor, in_use) for row in figures if row[x] == last]
    return sentences + more(rows)


def _describe_published(row: Row, x: str, floor: float, in_use: float) -> str:
    """The verdict on a figure of the paper."""
    named = f"The paper's {row[CALLS]:,} calls of {row[ALGORITHM]} at {x} {row[x]:,}"
    if row[CALLS] < floor:
        return f"{named} are fewer than the {floor:,.0f} that no schedule can go below."
    if row[CALLS] > in_use:
        return f"{named} are more than the {in_use:,.0f} predicates that any subscription has."
    return f"{named} are between the {floor:,.0f} and {in_use:,.0f} that are possible here."


# The paper's statements on Figure 7, as rules.
GROWN: Final = 1.2  # Sequential, from the shortest to the longest: 1,784 of 1,593 is 1.12
NEAR: Final = 0.9  # of all predicates, called by naive


def describe_lengths(rows: list[Row]) -> list[str]:
    """How calls depend on the length of subscriptions."""
    naive, sequential, sub_order = (
        series(rows, "longest", CALLS, name) for name in (NAIVE, SEQUENTIAL, SUB_ORDER)
    )
    first, last = min(naive), max(naive)
    growth = sequential[last] / sequential[first]
    shares = [naive[at] / n for at, n in series(rows, "longest", "predicates", NAIVE).items()]
    gaps = [sequential[at] - sub_order[at] for at in (first, last)]
    parts = [gap / sequential[at] for gap, at in zip(gaps, (first, last), strict=True)]
    return [
        (
            f"Sequential goes from {sequential[first]:,.0f} calls to {sequential[last]:,.0f}, "
            f"{growth:.2f} times (paper: 1,593 to 1,784, 1.12 times); that it rises (to {GROWN} "
            f"times at most) {does(1 <= growth <= GROWN)}."
        ),
        (
            f"Naive makes {min(shares):.0%} to {max(shares):.0%} as many calls as there are "
            f"predicates; that it is near their number everywhere ({NEAR:.0%} or more) "
            f"{does(min(shares) >= NEAR)}."
        ),
        (
            f"Sub-Order is {gaps[0]:,.0f} calls below Sequential at first and {gaps[1]:,.0f} at "
            f"last, {parts[0]:.1%} and {parts[1]:.1%} of Sequential's; that the gap shrinks (in "
            f"calls and as a share) {does(gaps[1] < gaps[0] and parts[1] < parts[0])}."
        ),
    ]


def describe_no_more(rows: list[Row]) -> list[str]:
    """No verdict beyond those on every figure."""
    return []


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
    claim: str = "",
    more: Judge = describe_no_more,
) -> Experiment:
    """One figure."""
    return Experiment(
        f"liu-figure-{number}",
        PAPER,
        title,
        Sweep(f"liu-{name}", settings, measure, estimate),
        (x, ALGORITHM, CALLS, SHARE, FLOOR, OVERHEAD),
        partial(judge, x, figures, more),
        published=figures,
        claim=claim,
        charts=(Chart(x, CALLS),),
        ours=ADAPTIVE,
        measure=CALLS,
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
        claim="The trend of Figure 4; Sequential and Sub-Order do even better.",
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
        claim="Sequential hardly grows with the length; naive is near the number of predicates, "
        "5,000, in all cases; the gap between Sequential and Sub-Order shrinks.",
        more=describe_lengths,
    ),
    make(
        8,
        "Calls by popularity",
        "zipf",
        "popularity",
        sweep_popularity,
        claim="Sequential and Sub-Order do much better than with uniform popularity, and better "
        "still as the exponent grows.",
    ),
)
