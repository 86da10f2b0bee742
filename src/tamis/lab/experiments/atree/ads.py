"""§6.5, Table 4: all algorithms on advertisements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.atree.construction import WHY_NOT
from tamis.lab.experiments.atree.task import (
    A_TREE,
    BDDS,
    BOP,
    BUILD,
    DEWEY,
    DEWEY_2010,
    EVERY,
    INTERVAL,
    INTERVAL_2010,
    LEFT_OUT,
    MEGABYTES,
    PAPER,
    RAN_OUT,
    SCAN,
    TRANSLATION,
    estimate,
    run,
)
from tamis.lab.experiments.experiment import (
    ALGORITHM,
    MICROSECONDS,
    SINGLE,
    Experiment,
    Scale,
    Sweep,
)
from tamis.lab.experiments.sentences import does, times

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.lab.experiments.experiment import Row, Setting

SIZES: Final = {Scale.TINY: (120, 6), Scale.SMALL: (20_000, 512), Scale.FULL: (300_000, 512)}
X: Final = "workload"
N_PUBLISHED: Final = 1_392_196  # advertisements
# Microseconds of matching, seconds of construction, megabytes; Translation's two parts summed.
PUBLISHED: Final = {
    A_TREE: (1_600, 2.9, 205),
    BDDS: (11_500, 25.6, 823),
    TRANSLATION: (13_700, 11.1 + 14.6, 320 + 4592),
    BOP: (44_100, 8.6, 684),
    INTERVAL: (53_600, 12.2, 1775),
    DEWEY: (62_700, 14.8, 1887),
    SCAN: (529_100, None, None),
}


def settings(scale: Scale) -> list[Setting]:
    """One workload."""
    n_expressions, n_events = SIZES[scale]
    return [{X: "ads", "expressions": n_expressions, "events": n_events}]


def measure(setting: Setting, seed: int) -> list[Row]:
    """Measure all algorithms."""
    return run(setting, seed, EVERY)


SWEEP: Final = Sweep("atree-ads", settings, measure, estimate)


def values_of(rows: list[Row], column: str) -> dict[str, float]:
    """The measurements of each algorithm."""
    return {row[ALGORITHM]: row[column] for row in rows if row.get(column) is not None}


def describe_ratios(rows: list[Row], column: str) -> str:
    """Each algorithm's value relative to A-Tree's, here and in the paper."""
    ours = values_of(rows, column)
    theirs = {row[ALGORITHM]: row[column] for row in published(column)}
    ratios = [
        f"{name} {ours[name] / ours[A_TREE]:,.1f} ({theirs[name] / theirs[A_TREE]:,.1f})"
        for name in theirs
        if name in ours and name != A_TREE
    ]
    return f"Ratios to A-Tree's {column}, here and in the paper: {', '.join(ratios)}."


def judge_matching(rows: list[Row]) -> list[str]:
    """Whether A-Tree is first, and by how much."""
    took = values_of(rows, MICROSECONDS)
    is_first = took[A_TREE] == min(took[name] for name in PUBLISHED if name in took)
    return [
        describe_ratios(rows, MICROSECONDS),
        f"That A-Tree is the fastest of the paper's algorithms {does(is_first)}.",
        describe_each(rows),
        describe_counts(rows),
        (
            f"Fontoura's Interval and Dewey, over an index of conjunctions, take "
            f"{times(took[INTERVAL_2010] / took[A_TREE])} and "
            f"{times(took[DEWEY_2010] / took[A_TREE])} A-Tree's time."
        ),
    ]


def describe_each(rows: list[Row]) -> str:
    """The cost of an advertisement for each algorithm, here and in the paper."""
    took = values_of(rows, MICROSECONDS)
    n = rows[0]["expressions"] - next(row[LEFT_OUT] for row in rows)
    ratios = ", ".join(
        f"{name} {1e3 * took[name] / n:,.1f} ({1e3 * PUBLISHED[name][0] / N_PUBLISHED:,.1f})"
        for name in PUBLISHED
        if name in took
    )
    return (
        f"Nanoseconds for each of {n:,} advertisements, here and for each of the paper's "
        f"{N_PUBLISHED:,}: {ratios}."
    )


def judge_by(column: str) -> Callable[[list[Row]], list[str]]:
    """Whether A-Tree takes the least."""

    def judge(rows: list[Row]) -> list[str]:
        ours = {name: v for name, v in values_of(rows, column).items() if name in PUBLISHED}
        least = min(ours, key=lambda name: ours[name])
        more = "" if least == A_TREE else f": {least} has less"
        sentences = [describe_ratios(rows, column)]
        sentences.append(f"That A-Tree has the least {column} {does(least == A_TREE)}{more}.")
        return sentences if least == A_TREE or column != BUILD else [*sentences, WHY_NOT]

    return judge


def describe_counts(rows: list[Row]) -> str:
    """The work done for an event."""
    counts = {row[ALGORITHM]: row for row in rows}
    tree, bop, scan = counts[A_TREE], counts[BOP], counts[SCAN]
    return (
        f"For an event A-Tree evaluates {tree['nodes']:,.0f} nodes; BoP reads "
        f"{bop['postings']:,.0f} postings and evaluates {bop['candidates']:,.0f} candidates of "
        f"{bop['nodes']:,.0f} nodes, Scan {scan['nodes']:,.0f} nodes, "
        f"{scan['nodes'] / scan['expressions']:.1f} of an advertisement; {scan['matches']:,.0f} "
        "match."
    )


def published(column: str) -> tuple[Row, ...]:
    """A column of Table 4."""
    place = (MICROSECONDS, BUILD, MEGABYTES).index(column)
    rows = [(name, values[place]) for name, values in PUBLISHED.items()]
    return tuple({X: "ads", ALGORITHM: name, column: v} for name, v in rows if v is not None)


def table(part: str, column: str, judge: Callable[[list[Row]], list[str]]) -> Experiment:
    """Table 4, one of its columns."""
    counts = ("nodes", "candidates", "annotations") if column == MICROSECONDS else ()
    return Experiment(
        f"atree-table-4-{part}",
        PAPER,
        f"Advertisements: {part} (1,392,196 of them in the paper)",
        SWEEP,
        (X, ALGORITHM, column, *counts, RAN_OUT),
        judge,
        published=published(column),
        shows=lambda row: row[ALGORITHM] != SINGLE or column == MICROSECONDS,
        measure=column,
    )


EXPERIMENTS: Final = (
    table("matching", MICROSECONDS, judge_matching),
    table("construction", BUILD, judge_by(BUILD)),
    table("memory", MEGABYTES, judge_by(MEGABYTES)),
)
