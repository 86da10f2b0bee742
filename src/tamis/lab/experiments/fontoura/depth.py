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
    estimate,
    run,
    spread,
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


def growth(rows: list[Row], column: str, algorithm: str) -> float:
    """The last of a series over its first."""
    values = list(series(rows, "depth", column, algorithm).values())
    return values[-1] / values[0]


# ── Table 2: memory ─────────────────────────────────────────────────────────────────────────


def judge_memory(rows: list[Row]) -> list[str]:
    """Whether annotations stay small, and normal forms do not."""
    dewey, interval, dnf, scan = (
        series(rows, "depth", "megabytes", name) for name in (DEWEY, INTERVAL, DNF, SCAN)
    )
    per_level = growth(rows, "megabytes", INTERVAL) ** (1 / (len(interval) - 1))
    told = [
        (
            f"Dewey takes {spread(dewey[d] / interval[d] for d in interval)} Interval's memory (paper: "
            f"the same), and Interval {per_level:.1f} times as much with each level (paper: 1.9 to 2)."
        )
    ]
    ran_out = [row["depth"] for row in rows if row[ALGORITHM] == DNF and "ran out" in row]
    if 2 in dnf:
        told.append(
            f"The normal form takes {dnf[2] / interval[2]:.1f} times Interval's memory at depth 2 "
            f"(paper: 28)"
            + (f" and runs out at depth {ran_out[0]} (paper: 3)." if ran_out else ".")
        )
    told.append(
        f"Scan's trees take {spread(scan[d] / interval[d] for d in scan)} Interval's memory "
        "(paper: 38 to 46): the direction reproduces; the paper's trees of objects were larger, "
        "ours are flat arrays."
    )
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
    slow, fast = (series(rows, "depth", MICROSECONDS, name) for name in (SCAN, INTERVAL))
    listed = series(rows, "depth", MICROSECONDS, SCAN_CONJUNCTIONS)
    batch = series(rows, "depth", MICROSECONDS, BATCH)
    n = rows[0]["expressions"]
    reads = {d: read / n for d, read in series(rows, "depth", "annotations", INTERVAL).items()}
    looks = {d: read / n for d, read in series(rows, "depth", "trees", SCAN_CONJUNCTIONS).items()}
    ratio = min(slow[d] / fast[d] for d in fast)
    verb = "reproduces" if ratio >= 10 else "reproduces in direction only" if ratio > 1 else "fails"
    return [
        (
            f"Interval is {spread(slow[d] / fast[d] for d in fast)} as fast as Scan (paper: orders of "
            f"magnitude): this {verb}. Here both are compiled loops over arrays, and Interval reads "
            f"{max(reads.values()):.1f} annotations of an expression on average."
        ),
        (
            f"Scan with conjunction match takes {spread(listed[d] / slow[d] for d in slow)} as long as "
            f"Scan: it evaluates {min(looks.values()):.0%} of the trees or more."
        ),
        f"Tamis in batches is {spread(fast[d] / batch[d] for d in fast)} as fast as Interval.",
    ]


def judge_dnf(rows: list[Row]) -> list[str]:
    """Whether normal forms keep up at depth 1 only."""
    dnf, interval = (series(rows, "depth", MICROSECONDS, name) for name in (DNF, INTERVAL))
    told = [
        (
            f"At depth 1 DNF expansion takes {dnf[1] / interval[1]:.2f} times Interval's time (paper: "
            "as good)."
        )
    ]
    if 2 in dnf:
        verb = "" if dnf[2] > interval[2] else " not"
        told.append(
            f"At depth 2 it takes {dnf[2] / interval[2]:.2f} times Interval's, so it does{verb} "
            f"fall behind there; its own time grows {dnf[2] / dnf[1]:.1f} times from depth 1 to 2, "
            f"Interval's {interval[2] / interval[1]:.1f} times."
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
    ("depth", ALGORITHM, MICROSECONDS, RATIO, "postings", "conjunctions"),
    judge_dnf,
    told="DNF expansion is as good at depth 1 and does not scale even to depth 2.",
    charts=(Chart("depth", MICROSECONDS),),
    shows=lambda row: row["depth"] <= 2 and row[ALGORITHM] in (DNF, *ANNOTATED, *PRODUCT),
)

# ── Figures 10 and 11: Dewey and Interval ───────────────────────────────────────────────────


def judge_total(rows: list[Row]) -> list[str]:
    """Whether Interval is no slower than Dewey, and where the time goes."""
    dewey, interval = (series(rows, "depth", MICROSECONDS, name) for name in ANNOTATED)
    sort = series(rows, "depth", SORT, INTERVAL)
    index = series(rows, "depth", INDEX, INTERVAL)
    is_ahead = all(interval[d] <= dewey[d] for d in interval)
    last = max(interval)
    return [
        (
            f"Interval is {'no slower than' if is_ahead else 'not always as fast as'} Dewey: Dewey "
            f"takes {spread(dewey[d] / interval[d] for d in interval)} its time."
        ),
        (
            f"At depth {last} the index takes {index[last] / interval[last]:.0%} of Interval's time "
            f"and sorting {sort[last] / interval[last]:.0%}."
        ),
    ]


def judge_evaluation(rows: list[Row]) -> list[str]:
    """Whether Interval's cost for an annotation does not depend on the depth."""
    told = []
    for name in ANNOTATED:
        took = series(rows, "depth", EVALUATE, name)
        read = series(rows, "depth", "annotations", name)
        each = {d: 1000 * took[d] / read[d] for d in took}
        first, last = min(each), max(each)
        told.append(
            f"{name}: {each[first]:.1f} ns per annotation at depth {first}, "
            f"{each[last]:.1f} ns at depth {last}."
        )
    dewey, interval = (series(rows, "depth", EVALUATE, name) for name in ANNOTATED)
    grown = [own[max(own)] - own[min(own)] for own in (dewey, interval)]
    verb = "reproduces" if grown[1] < grown[0] else "does not reproduce"
    told.append(
        f"From depth {min(dewey)} to {max(dewey)} evaluation grows by {grown[0]:,.0f} µs "
        f"with Dewey and by {grown[1]:,.0f} µs with Interval: that Interval scales better {verb}."
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
