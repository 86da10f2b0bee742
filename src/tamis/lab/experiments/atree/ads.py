"""§6.5, Table 4: all algorithms on advertisements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.atree.task import (
    A_TREE,
    BDDS,
    BOP,
    BUILD,
    DEWEY,
    EVERY,
    INTERVAL,
    MEGABYTES,
    PAPER,
    RAN_OUT,
    SCAN,
    TRANSLATION,
    estimate,
    run,
    tell_product,
    times,
)
from tamis.lab.experiments.experiment import (
    ALGORITHM,
    MICROSECONDS,
    RATIO,
    Experiment,
    Scale,
    Sweep,
    series,
)

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

SIZES: Final = {Scale.TINY: (120, 6), Scale.SMALL: (20_000, 100), Scale.FULL: (300_000, 200)}
X: Final = "expressions"
# Milliseconds of matching, seconds of construction, megabytes; Translation's two parts together.
PUBLISHED: Final = {
    A_TREE: (1.6, 2.9, 205),
    BDDS: (11.5, 25.6, 823),
    TRANSLATION: (13.7, 11.1 + 14.6, 320 + 4592),
    BOP: (44.1, 8.6, 684),
    INTERVAL: (53.6, 12.2, 1775),
    DEWEY: (62.7, 14.8, 1887),
    SCAN: (529.1, None, None),
}
N_PUBLISHED: Final = 1_392_196


def settings(scale: Scale) -> list[Setting]:
    """One workload."""
    n_expressions, n_events = SIZES[scale]
    return [{"workload": "ads", X: n_expressions, "events": n_events}]


def measure(setting: Setting, seed: int) -> list[Row]:
    """All algorithms."""
    return run(setting, seed)


def judge(rows: list[Row]) -> list[str]:
    """How far A-Tree is ahead, beside how far it is in the paper."""
    took, memory, built = (
        {name: v for name in EVERY for v in series(rows, X, column, name).values()}
        for column in (MICROSECONDS, MEGABYTES, BUILD)
    )
    paper = {name: PUBLISHED[name][0] / PUBLISHED[A_TREE][0] for name in EVERY}
    beside = [
        f"{name} {took[name] / took[A_TREE]:,.1f} ({paper[name]:,.1f})"
        for name in EVERY
        if name in took and name != A_TREE
    ]
    behind = [name for name in (BOP, INTERVAL, DEWEY, SCAN) if took[name] < 10 * took[A_TREE]]
    verb = "reproduces" if not behind else f"does not reproduce for {', '.join(behind)}"
    return [
        f"Times A-Tree's matching time, here and in the paper: {', '.join(beside)}.",
        f"A-Tree ahead of BoP, Interval, Dewey and Scan by an order of magnitude: this {verb}.",
        _tell_counts(rows),
        (
            f"It takes {memory[A_TREE]:.2f} MB and {built[A_TREE]:.2f} s to build, BoP "
            f"{times(memory[BOP] / memory[A_TREE])} the memory (paper: 3.3) and "
            f"{times(built[BOP] / built[A_TREE])} the time (paper: 3.0)."
        ),
        tell_product(rows, X),
    ]


def _tell_counts(rows: list[Row]) -> str:
    """What is looked at for an event."""
    counts = {row[ALGORITHM]: row for row in rows}
    tree, bop, scan = counts[A_TREE], counts[BOP], counts[SCAN]
    return (
        f"For an event A-Tree evaluates {tree['nodes']:,.0f} nodes; BoP reads "
        f"{bop['postings']:,.0f} postings and evaluates {bop['candidates']:,.0f} candidates of "
        f"{bop['nodes']:,.0f} nodes, Scan {scan['nodes']:,.0f} nodes; {scan['matches']:,.0f} "
        "expressions match."
    )


TABLE_4: Final = Experiment(
    "atree-table-4",
    PAPER,
    "All algorithms on advertisements",
    Sweep("atree-ads", settings, measure, estimate),
    (X, ALGORITHM, MICROSECONDS, RATIO, BUILD, MEGABYTES, "nodes", "candidates", RAN_OUT),
    judge,
    published=tuple(
        {X: N_PUBLISHED, ALGORITHM: name, MICROSECONDS: 1000 * took, BUILD: built, MEGABYTES: size}
        for name, (took, built, size) in PUBLISHED.items()
    ),
)

EXPERIMENTS: Final = (TABLE_4,)
