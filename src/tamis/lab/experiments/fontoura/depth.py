"""§5.3: the depth of trees. Six tables and figures are made from one sweep."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    BATCH,
    MICROSECONDS,
    PRODUCT,
    RATIO,
    SINGLE,
    Chart,
    Experiment,
    Scale,
    Sweep,
    series,
)
from tamis.lab.experiments.fontoura.size import PUBLISHED_MEGABYTES
from tamis.lab.experiments.fontoura.task import (
    ANNOTATED,
    DEWEY,
    DNF,
    EVALUATE,
    EVERY,
    INTERVAL,
    PAPER,
    SCAN,
    SCAN_CONJUNCTIONS,
    SELECTIVITY,
    estimate,
    run,
)
from tamis.lab.experiments.fontoura.totals import show_evaluation, show_total
from tamis.lab.experiments.sentences import does, over, times

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

DEPTHS: Final = (1, 2, 3, 4)
SIZES: Final = {Scale.TINY: (120, 12), Scale.SMALL: (8_000, 200), Scale.FULL: (100_000, 500)}


def settings(scale: Scale) -> list[Setting]:
    """Trees of each depth, with all algorithms."""
    n_expressions, n_events = SIZES[scale]
    return [{"depth": d, "expressions": n_expressions, "events": n_events} for d in DEPTHS]


def measure(setting: Setting, seed: int) -> list[Row]:
    """All machines and the product."""
    return run(setting, seed, EVERY)


SWEEP: Final = Sweep("fontoura-depth", settings, measure, estimate)


# ── Table 2: memory ─────────────────────────────────────────────────────────────────────────


PUBLISHED: Final[dict[str, tuple[float, ...]]] = {  # megabytes at depths 1, 2, …
    DEWEY: (9.5, 18, 35, 70),
    INTERVAL: (9.5, 18, 35, 70),
    DNF: (55, 501),
    SCAN_CONJUNCTIONS: (373, 854),
    SCAN: (364, 836),
}
# The paper does not give the number of expressions. In its Table 4, one of depth 2 takes as much:
BYTES_OF_ONE: Final = 1e6 * PUBLISHED_MEGABYTES[100_000] / 100_000


def judge_memory(rows: list[Row]) -> list[str]:
    """Whether annotations stay small and normal forms do not."""
    dewey, interval, dnf = (
        series(rows, "depth", "megabytes", name) for name in (DEWEY, INTERVAL, DNF)
    )
    n_levels = max(interval) - min(interval)
    per_level = (interval[max(interval)] / interval[min(interval)]) ** (1 / n_levels)
    ran_out = [row for row in rows if row[ALGORITHM] == DNF and "ran out" in row]
    blows_up = bool(ran_out) or dnf[max(dnf)] > 2 * interval[max(dnf)]
    return [
        f"Dewey takes {over(dewey, interval)} Interval's memory (paper: the same).",
        (
            f"Interval takes {per_level:.1f} times as much with each level (paper: 1.9 to 2.0); "
            f"that annotations grow with the leaves {does(1.5 < per_level < 3)}."
        ),
        *(f"DNF runs out at depth {row['depth']}: {row['ran out']}." for row in ran_out),
        f"That normal forms blow up {does(blows_up)}.",
        _describe_bytes(rows),
    ]


def _describe_bytes(rows: list[Row]) -> str:
    """Bytes per expression at depth 2: why ours are closer together than the paper's."""
    n_theirs = 1e6 * PUBLISHED[INTERVAL][1] / BYTES_OF_ONE
    ours = {
        row[ALGORITHM]: 1e6 * row["megabytes"] / row["expressions"]
        for row in rows
        if row["depth"] == 2 and "megabytes" in row
    }
    compared = ", ".join(
        f"{name} {ours[name]:,.0f} ({1e6 * PUBLISHED[name][1] / n_theirs:,.0f})"
        for name in (INTERVAL, DNF, SCAN)
    )
    return (
        f"Bytes for an expression of depth 2, here and in the paper if {BYTES_OF_ONE:.0f} are "
        f"Interval's, as in its Table 4: {compared}. Here all forms are flat arrays of four-byte "
        "numbers, and an attribute with its value is one number: the paper "
        "does not report what else its DNF and Scan store."
    )


TABLE_2: Final = Experiment(
    "fontoura-table-2",
    PAPER,
    "Memory by depth",
    SWEEP,
    ("depth", ALGORITHM, "megabytes", "ran out"),
    judge_memory,
    published=tuple(
        {"depth": depth, ALGORITHM: name, "megabytes": value}
        for name, column in PUBLISHED.items()
        for depth, value in zip(DEPTHS, column, strict=False)
    ),
    charts=(Chart("depth", "megabytes", is_log=True),),
    shows=lambda row: row[ALGORITHM] != SINGLE,
    measure="megabytes",
)

# ── Table 3: selectivity ────────────────────────────────────────────────────────────────────

PUBLISHED_SELECTIVITY: Final = {1: 22.85, 2: 57.97, 3: 10.97, 4: 49.23}


def judge_selectivity(rows: list[Row]) -> list[str]:
    """Whether the workload resembles the paper's."""
    ours = series(rows, "depth", SELECTIVITY, BATCH)
    compared = ", ".join(f"{ours[d]:.1f}% ({PUBLISHED_SELECTIVITY[d]}%)" for d in ours)
    has_form = all((ours[d] < ours[d + 1]) == (d % 2 == 1) for d in ours if d + 1 in ours)
    shares = f"By depth, here and in the paper: {compared}"
    return [f"{shares}; that it goes up and down with AND and OR {does(has_form)}."]


TABLE_3: Final = Experiment(
    "fontoura-table-3",
    PAPER,
    "Selectivity by depth",
    SWEEP,
    ("depth", SELECTIVITY),
    judge_selectivity,
    published=tuple({"depth": d, SELECTIVITY: v} for d, v in PUBLISHED_SELECTIVITY.items()),
    shows=lambda row: row[ALGORITHM] == BATCH,
)

# ── Figures 8 and 9: all algorithms ─────────────────────────────────────────────────────────


def judge_all(rows: list[Row]) -> list[str]:
    """Whether the scans are far behind."""
    scan, listed, interval = (
        series(rows, "depth", MICROSECONDS, name) for name in (SCAN, SCAN_CONJUNCTIONS, INTERVAL)
    )
    n = rows[0]["expressions"]
    looks = [read / n for read in series(rows, "depth", "trees", SCAN_CONJUNCTIONS).values()]
    nodes = series(rows, "depth", "nodes", SCAN)
    places = series(rows, "depth", "annotations", INTERVAL)
    is_so = all(scan[d] >= 10 * interval[d] for d in interval)
    sentences = [
        (
            f"Scan takes {over(scan, interval)} Interval's time, Scan with conjunction match "
            f"{over(listed, interval)}; that they are orders of magnitude behind {does(is_so)}."
        )
    ]
    if not is_so:
        sentences.append(
            f"By counts they cannot be: Scan looks at {over(nodes, places)} as many nodes as "
            f"Interval sorts annotations. It stops after {min(nodes.values()) / n:.1f} to "
            f"{max(nodes.values()) / n:.1f} nodes of a tree, and {min(looks):.0%} or more of the "
            "trees have a conjunction that holds, so the index excludes few of them."
        )
    return sentences


def judge_dnf(rows: list[Row]) -> list[str]:
    """Whether normal forms keep up at depth 1 only."""
    dnf, interval = (series(rows, "depth", MICROSECONDS, name) for name in (DNF, INTERVAL))
    read = series(rows, "depth", "postings", DNF)
    places = series(rows, "depth", "annotations", INTERVAL)
    held = series(rows, "depth", "conjunctions", INTERVAL)
    sentences = [
        (
            f"At depth 1 DNF expansion takes {dnf[1] / interval[1]:.2f} times Interval's time; "
            f"that it is as good there {does(dnf[1] < 1.5 * interval[1])}."
        )
    ]
    if 2 in dnf:
        sentences.append(
            f"At depth 2 it takes {dnf[2] / interval[2]:.2f} times Interval's time, "
            f"{times(dnf[2] / dnf[1])} its own at depth 1, and reads {times(read[2] / read[1])} "
            f"the postings; that it falls behind there {does(dnf[2] > interval[2])}."
        )
        sentences.append(
            f"DNF reads {read[2]:,.0f} postings for an event, {1e3 * dnf[2] / read[2]:.1f} ns "
            f"each; Interval sorts {places[2]:,.0f} annotations, {places[2] / held[2]:,.0f} for "
            f"each conjunction that holds, {1e3 * interval[2] / places[2]:.1f} ns each, index "
            "and evaluation included."
        )
    return sentences


FIGURE_8: Final = Experiment(
    "fontoura-figure-8",
    PAPER,
    "Time of all algorithms, depths 1 and 2",
    SWEEP,
    ("depth", ALGORITHM, MICROSECONDS, RATIO, "postings", "conjunctions", "nodes"),
    judge_all,
    claim="Scan and Scan with conjunction match are orders of magnitude behind the others.",
    charts=(Chart("depth", MICROSECONDS, is_log=True),),
    shows=lambda row: row["depth"] <= 2,
)

FIGURE_9: Final = Experiment(
    "fontoura-figure-9",
    PAPER,
    "Time of DNF expansion, Dewey and Interval, depths 1 and 2",
    SWEEP,
    ("depth", ALGORITHM, MICROSECONDS, RATIO, "postings", "conjunctions", "annotations"),
    judge_dnf,
    claim="DNF expansion is as good at depth 1 and does not scale even to depth 2.",
    charts=(Chart("depth", MICROSECONDS, is_log=True),),
    shows=lambda row: row["depth"] <= 2 and row[ALGORITHM] in (DNF, *ANNOTATED, *PRODUCT),
)

# ── Figures 10 and 11: Dewey and Interval ───────────────────────────────────────────────────


def judge_evaluation(rows: list[Row]) -> list[str]:
    """Whether Interval's cost per annotation is independent of the depth."""
    sentences = []
    costs = {}  # of an annotation, in nanoseconds, by depth
    grown = {}
    for name in ANNOTATED:
        took = series(rows, "depth", EVALUATE, name)
        read = series(rows, "depth", "annotations", name)
        costs[name] = [1000 * took[d] / read[d] for d in took]
        grown[name] = took[max(took)] - took[min(took)]
        listed = ", ".join(f"{cost:.1f}" for cost in costs[name])
        sentences.append(
            f"{name} takes {listed} ns for an annotation at depths {min(took)} to {max(took)}."
        )
    is_flat = costs[INTERVAL][-1] <= 1.2 * costs[INTERVAL][0]
    sentences.append(f"That Interval's cost does not grow with depth {does(is_flat)}.")
    sentences.append(
        f"Over all depths an event's evaluation grows by {grown[DEWEY]:,.0f} µs with Dewey and by "
        f"{grown[INTERVAL]:,.0f} µs with Interval; "
        f"that Interval scales better {does(grown[INTERVAL] < grown[DEWEY])}."
    )
    return sentences


FIGURE_10: Final = show_total(
    "fontoura-figure-10",
    "depth",
    "depth",
    SWEEP,
    "Both include the time of the index and of sorting, which are the same for both.",
)
FIGURE_11: Final = show_evaluation(
    "fontoura-figure-11",
    "depth",
    "depth",
    SWEEP,
    "Without index and sorting it is clearer that Interval scales better with depth.",
    judge_evaluation,
)
