"""§5.3: the depth of trees. One sweep, of which six tables and figures are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    BATCH,
    MICROSECONDS,
    RATIO,
    Chart,
    Experiment,
    Scale,
    Sweep,
    series,
)
from tamis.lab.experiments.fontoura.task import (
    ANNOTATED,
    DEWEY,
    DNF,
    EVALUATE,
    EVERY,
    INDEX,
    INTERVAL,
    PAPER,
    PRODUCT,
    SCAN,
    SCAN_CONJUNCTIONS,
    SELECTIVITY,
    SORT,
    does,
    estimate,
    run,
    times,
)

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

DEPTHS: Final = (1, 2, 3, 4)
SIZES: Final = {Scale.TINY: (120, 12), Scale.SMALL: (10_000, 200), Scale.FULL: (100_000, 500)}


def settings(scale: Scale) -> list[Setting]:
    """Trees of each depth, by all algorithms."""
    n_expressions, n_events = SIZES[scale]
    return [{"depth": d, "expressions": n_expressions, "events": n_events} for d in DEPTHS]


def measure(setting: Setting, seed: int) -> list[Row]:
    """All machines and the product."""
    return run(setting, seed, EVERY)


SWEEP: Final = Sweep("fontoura-depth", settings, measure, estimate)


# ── Table 2: memory ─────────────────────────────────────────────────────────────────────────


def judge_memory(rows: list[Row]) -> list[str]:
    """Whether annotations stay small, and normal forms do not."""
    dewey, interval, dnf, scan = (
        series(rows, "depth", "megabytes", name) for name in (DEWEY, INTERVAL, DNF, SCAN)
    )
    n_levels = max(interval) - min(interval)
    per_level = (interval[max(interval)] / interval[min(interval)]) ** (1 / n_levels)
    told = [
        f"Dewey takes {times(dewey, interval)} Interval's memory (paper: the same).",
        f"Interval takes {per_level:.1f} times as much with each level (paper: 1.9 to 2.0).",
        f"DNF expansion takes {times(dnf, interval)} Interval's memory (paper: 6 to 28).",
        f"Scan's trees take {times(scan, interval)} Interval's memory (paper: 38 to 46).",
    ]
    ran_out = [row for row in rows if row[ALGORITHM] == DNF and "ran out" in row]
    told += [f"DNF runs out at depth {row['depth']}: {row['ran out']}." for row in ran_out]
    is_so = per_level < 3 and (bool(ran_out) or dnf[max(dnf)] > 2 * interval[max(dnf)])
    told.append(f"That annotations grow with the leaves and normal forms blow up {does(is_so)}.")
    return told


def megabytes(algorithm: str, *by_depth: float) -> tuple[Row, ...]:
    """A column of Table 2; what is missing was not available (NA)."""
    return tuple(
        {"depth": depth, ALGORITHM: algorithm, "megabytes": value}
        for depth, value in zip(DEPTHS, by_depth, strict=False)
    )


TABLE_2: Final = Experiment(
    "fontoura-table-2",
    PAPER,
    "Memory by depth",
    SWEEP,
    ("depth", ALGORITHM, "megabytes", "ran out"),
    judge_memory,
    published=(
        *megabytes(DEWEY, 9.5, 18, 35, 70),
        *megabytes(INTERVAL, 9.5, 18, 35, 70),
        *megabytes(DNF, 55, 501),
        *megabytes(SCAN_CONJUNCTIONS, 373, 854),
        *megabytes(SCAN, 364, 836),
    ),
    charts=(Chart("depth", "megabytes", is_log=True),),
)

# ── Table 3: selectivity ────────────────────────────────────────────────────────────────────

PUBLISHED_SELECTIVITY: Final = {1: 22.85, 2: 57.97, 3: 10.97, 4: 49.23}


def judge_selectivity(rows: list[Row]) -> list[str]:
    """Whether the workload is like the paper's."""
    ours = series(rows, "depth", SELECTIVITY, BATCH)
    beside = ", ".join(f"{ours[d]:.1f}% ({PUBLISHED_SELECTIVITY[d]}%)" for d in ours)
    has_form = all((ours[d] < ours[d + 1]) == (d % 2 == 1) for d in ours if d + 1 in ours)
    verb = "go" if has_form else "do not go"
    return [f"By depth {beside} in the paper: they {verb} up and down with AND and OR as there."]


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
    scan, listed, interval, batch = (
        series(rows, "depth", MICROSECONDS, name)
        for name in (SCAN, SCAN_CONJUNCTIONS, INTERVAL, BATCH)
    )
    n = rows[0]["expressions"]
    looks = [read / n for read in series(rows, "depth", "trees", SCAN_CONJUNCTIONS).values()]
    nodes = [read / n for read in series(rows, "depth", "nodes", SCAN).values()]
    is_so = all(scan[d] >= 10 * interval[d] for d in interval)
    return [
        (
            f"Scan takes {times(scan, interval)} Interval's time, Scan with conjunction match "
            f"{times(listed, interval)}; that they are orders of magnitude behind {does(is_so)}."
        ),
        (
            f"By its counts Scan stops after {min(nodes):.1f} to {max(nodes):.1f} nodes of a tree, "
            f"and {min(looks):.0%} or more of the trees have a conjunction that holds."
        ),
        f"Tamis in batches is {times(interval, batch)} as fast as Interval.",
    ]


def judge_dnf(rows: list[Row]) -> list[str]:
    """Whether normal forms keep up at depth 1 only."""
    dnf, interval = (series(rows, "depth", MICROSECONDS, name) for name in (DNF, INTERVAL))
    read = series(rows, "depth", "postings", DNF)
    places = series(rows, "depth", "annotations", INTERVAL)
    held = series(rows, "depth", "conjunctions", INTERVAL)
    told = [f"At depth 1 DNF expansion takes {dnf[1] / interval[1]:.2f} times Interval's time."]
    told.append(f"That it is as good there {does(dnf[1] < 1.5 * interval[1])}.")
    if 2 in dnf:
        told.append(
            f"At depth 2 it takes {dnf[2] / interval[2]:.2f} times Interval's time, "
            f"{dnf[2] / dnf[1]:.1f} times its own at depth 1, and reads {read[2] / read[1]:.1f} "
            f"times the postings; that it falls behind there {does(dnf[2] > interval[2])}."
        )
        told.append(
            f"DNF reads {read[2]:,.0f} postings for an event; Interval sorts {places[2]:,.0f} "
            f"annotations, {places[2] / held[2]:,.0f} for each conjunction that holds."
        )
    return told


FIGURE_8: Final = Experiment(
    "fontoura-figure-8",
    PAPER,
    "Time of all algorithms, depths 1 and 2",
    SWEEP,
    ("depth", ALGORITHM, MICROSECONDS, RATIO, "postings", "conjunctions", "nodes"),
    judge_all,
    told="Scan and Scan with conjunction match are orders of magnitude behind the others.",
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
    told="DNF expansion is as good at depth 1 and does not scale even to depth 2.",
    charts=(Chart("depth", MICROSECONDS),),
    shows=lambda row: row["depth"] <= 2 and row[ALGORITHM] in (DNF, *ANNOTATED, *PRODUCT),
)

# ── Figures 10 and 11: Dewey and Interval ───────────────────────────────────────────────────


def judge_total(rows: list[Row]) -> list[str]:
    """Whether Interval is no slower than Dewey, and where the time goes."""
    dewey, interval = (series(rows, "depth", MICROSECONDS, name) for name in ANNOTATED)
    sort, index = (series(rows, "depth", phase, INTERVAL) for phase in (SORT, INDEX))
    batch = series(rows, "depth", MICROSECONDS, BATCH)
    is_so = all(interval[d] <= dewey[d] for d in interval)
    last = max(interval)
    return [
        (
            f"Dewey takes {times(dewey, interval)} Interval's time; "
            f"that Interval is no slower {does(is_so)}."
        ),
        (
            f"At depth {last} the index takes {index[last] / interval[last]:.0%} and sorting "
            f"{sort[last] / interval[last]:.0%} of Interval's time."
        ),
        f"Tamis in batches is {times(interval, batch)} as fast as Interval.",
    ]


def judge_evaluation(rows: list[Row]) -> list[str]:
    """Whether Interval's cost for an annotation does not depend on the depth."""
    told = []
    costs = {}  # of an annotation, in nanoseconds, by depth
    grown = {}
    for name in ANNOTATED:
        took = series(rows, "depth", EVALUATE, name)
        read = series(rows, "depth", "annotations", name)
        costs[name] = [1000 * took[d] / read[d] for d in took]
        grown[name] = took[max(took)] - took[min(took)]
        listed = ", ".join(f"{cost:.1f}" for cost in costs[name])
        told.append(
            f"{name} takes {listed} ns for an annotation at depths {min(took)} to {max(took)}."
        )
    is_flat = costs[INTERVAL][-1] <= 1.2 * costs[INTERVAL][0]
    told.append(f"That Interval's cost does not grow with depth {does(is_flat)}.")
    told.append(
        f"Over all depths an event's evaluation grows by {grown[DEWEY]:,.0f} µs with Dewey and by "
        f"{grown[INTERVAL]:,.0f} µs with Interval; "
        f"that Interval scales better {does(grown[INTERVAL] < grown[DEWEY])}."
    )
    return told


FIGURE_10: Final = Experiment(
    "fontoura-figure-10",
    PAPER,
    "Total time of Dewey and Interval by depth",
    SWEEP,
    ("depth", ALGORITHM, MICROSECONDS, RATIO, INDEX, SORT),
    judge_total,
    told="Both include the time of the index and of sorting, which are the same for both.",
    charts=(Chart("depth", MICROSECONDS),),
    shows=lambda row: row[ALGORITHM] in (*ANNOTATED, *PRODUCT),
)

FIGURE_11: Final = Experiment(
    "fontoura-figure-11",
    PAPER,
    "Time of expression evaluation by depth",
    SWEEP,
    ("depth", ALGORITHM, EVALUATE, "annotations"),
    judge_evaluation,
    told="Without index and sorting it is clearer that Interval scales better with depth.",
    charts=(Chart("depth", EVALUATE),),
    shows=lambda row: row[ALGORITHM] in ANNOTATED,
)
