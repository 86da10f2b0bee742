"""The statements of §6.4.2 on the panels of Figure 12, each with the rule that judges it."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeAlias

from tamis.lab.experiments.atree.task import (
    A_TREE,
    BDDS,
    BOP,
    COMPARED,
    INTERVAL,
    SCAN,
    TRANSLATION,
)
from tamis.lab.experiments.experiment import MICROSECONDS, series
from tamis.lab.experiments.sentences import does, does_but
from tamis.lab.experiments.tables import show

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tamis.lab.experiments.experiment import Row

    Statement: TypeAlias = Callable[[str, list[Row]], str]

CHANGED: Final = 2  # smaller factors are noise within one workload
RANKING: Final = (A_TREE, TRANSLATION, BDDS, BOP, INTERVAL, SCAN)  # of the paper


def times_of(x: str, rows: list[Row]) -> dict[str, dict[float, float]]:
    """The time of each compared algorithm by `x`, without those that ran out everywhere."""
    took = {name: series(rows, x, MICROSECONDS, name) for name in COMPARED}
    return {name: own for name, own in took.items() if own}


def growth_of(own: dict[float, float]) -> float:
    """The time at the last `x` over the time at the first."""
    return own[max(own)] / own[min(own)]


def describe_ends(x: str, rows: list[Row]) -> str:
    """The time of each algorithm at the first and the last `x`."""
    took = times_of(x, rows)
    first, last = min(took[A_TREE]), max(took[A_TREE])
    ends = "; ".join(
        f"{name} {own[min(own)]:,.1f} to {own[max(own)]:,.1f} µs, {show(growth_of(own))} times"
        + (f" at {x} {max(own):,}, its last" if max(own) < last else "")
        for name, own in took.items()
    )
    return f"From {x} {first:,} to {last:,}: {ends}."


def rise(*names: str) -> Statement:
    """Judge that these take longer as `x` grows."""

    def judge(x: str, rows: list[Row]) -> str:
        took = times_of(x, rows)
        out = [name for name in names if name in took and growth_of(took[name]) < CHANGED]
        rule = f"rise with {x} ({CHANGED} times or more from the first to the last)"
        return f"That the times of {_list(names)} {rule} {does_but(_plain(out))}."

    return judge


def fall(*names: str) -> Statement:
    """Judge that these take less time as `x` grows."""

    def judge(x: str, rows: list[Row]) -> str:
        took = times_of(x, rows)
        out = [name for name in names if name in took and growth_of(took[name]) > 1 / CHANGED]
        rule = f"fall with {x} (to 1/{CHANGED} or less from the first to the last)"
        return f"That the times of {_list(names)} {rule} {does_but(_plain(out))}."

    return judge


def stay(*names: str) -> Statement:
    """Judge that `x` does not affect these."""

    def judge(x: str, rows: list[Row]) -> str:
        took = times_of(x, rows)
        out = [
            name
            for name in names
            if name in took and not 1 / CHANGED < growth_of(took[name]) < CHANGED
        ]
        rule = f"do not change with {x} (by {CHANGED} times from the first to the last)"
        return f"That the times of {_list(names)} {rule} {does_but(_plain(out))}."

    return judge


def scale_linearly(x: str, rows: list[Row]) -> str:
    """Judge that all times grow linearly with `x`."""
    shares = {name: growth_of(own) * min(own) / max(own) for name, own in times_of(x, rows).items()}
    bent = [name for name, share in shares.items() if not 1 / CHANGED < share < CHANGED]
    listed = "; ".join(f"{name} {share:.2f}" for name, share in shares.items())
    return (
        f"Growth of the time over growth of {x}, 1 is linear: {listed}. That all scale linearly "
        f"(1/{CHANGED} to {CHANGED}) {does_but(_plain(bent))}."
    )


def only_a_tree_scales(x: str, rows: list[Row]) -> str:
    """Judge that A-Tree's time grows least, by far."""
    took = times_of(x, rows)
    tree = took[A_TREE]
    others = {name: own for name, own in took.items() if name != A_TREE}
    out = [
        name
        for name, own in others.items()
        if growth_of(own) < CHANGED * growth_of({at: tree[at] for at in own})
    ]
    return (
        f"That only A-Tree scales well (the time of each other grows {CHANGED} times as much or "
        f"more, over the settings of {x} that it completes) {does_but(_plain(out))}."
    )


def falls_less(x: str, rows: list[Row]) -> str:
    """Judge that BDD's time falls, but less than A-Tree's."""
    took = times_of(x, rows)
    tree, diagram = growth_of(took[A_TREE]), growth_of(took[BDDS])
    return f"That BDD's time falls, and less than A-Tree's, {does(tree < diagram < 1)}."


def are_similar(x: str, rows: list[Row]) -> str:
    """Judge that Interval and BoP take about as long."""
    took = times_of(x, rows)
    ratios = [took[BOP][at] / took[INTERVAL][at] for at in took[BOP]]
    is_so = all(1 / CHANGED < ratio < CHANGED for ratio in ratios)
    return (
        f"BoP takes {min(ratios):.1f} to {max(ratios):.1f} times as long as Interval; that they "
        f"are very similar (within {CHANGED} times) {does(is_so)}."
    )


def are_behind_scan(x: str, rows: list[Row]) -> str:
    """Judge that Interval and BoP take longer than Scan at the last `x`."""
    took = times_of(x, rows)
    last = max(took[SCAN])
    ahead = [name for name in (INTERVAL, BOP) if took[name][last] <= took[SCAN][last]]
    return f"That Interval and BoP take longer than Scan at {x} {last:,} {does_but(_plain(ahead))}."


def keep_ranking(x: str, rows: list[Row]) -> str:
    """Judge the paper's ranking at every `x`."""
    took = times_of(x, rows)
    ranked = [name for name in RANKING if name in took]
    out = [
        f"{slow} ahead of {fast}"
        for fast, slow in combinations(ranked, 2)
        if any(took[fast][at] > CHANGED * took[slow][at] for at in took[fast] if at in took[slow])
    ]
    return (
        f"That the ranking at each setting is {_list(ranked)} (none is ahead of an earlier one by "
        f"more than {CHANGED} times) {does_but(_plain(out))}."
    )


def _list(names: Iterable[str]) -> str:
    return ", ".join(_plain(names))


def _plain(names: Iterable[str]) -> list[str]:
    """Names without commas, for use in a list."""
    return [name.replace(",", "") for name in names]
