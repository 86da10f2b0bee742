"""§4: superqueries. One sweep, of which Tables 4.1 to 4.4 and Figures 4.3 and 4.5 are made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    BATCH,
    MICROSECONDS,
    RATIO,
    SINGLE,
    Experiment,
    Scale,
    Sweep,
)
from tamis.lab.experiments.irmak.task import (
    ACCUMULATORS,
    BEST,
    DOCUMENTS_PER_SECOND,
    PAPER,
    PRIMITIVE,
    PRODUCT,
    STEPS,
    draw,
    estimate,
    measure,
    overlap,
    ratio_of,
)
from tamis.lab.irmak import CLUSTERINGS
from tamis.lab.irmak.containment import count_contained

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting
    from tamis.lab.irmak import IrmakOptions

SIZES: Final = {Scale.TINY: (1_000, 20), Scale.SMALL: (200_000, 512), Scale.FULL: (3_069_916, 512)}
BY_METHOD: Final = {method: f"superqueries, {method}" for method in CLUSTERINGS}
OVERLAP: Final = BY_METHOD["overlap"]
BY_WIDTH: Final = {bits: f"superqueries, {bits} bits" for bits in (64, 96, 128)}
STATISTICS: Final = "the queries"  # the row that describes the workload


def settings(scale: Scale) -> list[Setting]:
    """The combined set of queries."""
    queries, documents = SIZES[scale]
    return [{"queries": queries, "base": queries, "documents": documents}]


def run(setting: Setting, seed: int) -> list[Row]:
    """All steps, all clusterings, all widths of the mask, and the product."""
    task = draw(setting, seed)
    steps: dict[str, IrmakOptions] = dict(STEPS)
    steps |= {name: overlap(1, method) for method, name in BY_METHOD.items()}
    steps |= {name: overlap(bits // 32) for bits, name in BY_WIDTH.items()}
    starts, terms = task.queries
    contained, with_first = count_contained(starts, terms)
    described: Row = {
        ALGORITHM: STATISTICS,
        "terms": len(np.unique(terms)),
        "postings of all": len(terms),
        "contained %": 100 * contained / (len(starts) - 1),
        "contained, same first term %": 100 * with_first / (len(starts) - 1),
    }
    return [described, *measure(task, steps)]


SWEEP: Final = Sweep("irmak-clusters", settings, run, estimate)


def find(rows: list[Row], algorithm: str) -> Row:
    """The row of an algorithm."""
    return next(row for row in rows if row[ALGORITHM] == algorithm)


def is_described(row: Row) -> bool:
    """Whether the row describes the workload."""
    return bool(row[ALGORITHM] == STATISTICS)


def judge_containment(rows: list[Row]) -> list[str]:
    """Whether the drawn queries contain each other as real ones do."""
    own = find(rows, STATISTICS)
    return [
        (
            f"{own['contained %']:.1f}% of the queries are contained in another one (paper: "
            "25.3%), "
            f"{own['contained, same first term %']:.1f}% in one with the same least frequent term "
            "(paper: 20.7%): the workload is drawn to be like this at 1.08 million queries."
        )
    ]


def judge_statistics(rows: list[Row]) -> list[str]:
    """What the queries are like."""
    own = find(rows, STATISTICS)
    length = own["postings of all"] / own["queries"]
    return [f"{length:.2f} terms per query (paper: {9_239_690 / 3_069_916:.2f})."]


def judge_methods(rows: list[Row]) -> list[str]:
    """Whether overlap is best, and what clustering spares."""
    took = {method: find(rows, name)[MICROSECONDS] for method, name in BY_METHOD.items()}
    best = find(rows, BEST)[MICROSECONDS]
    fastest = min(took, key=lambda method: took[method])
    verb = "reproduces" if fastest == "overlap" else "does not reproduce in time"
    listed = ", ".join(f"{method} {best / one:.2f}" for method, one in took.items())
    return [
        (
            f"Times as fast as without clustering: {listed}; {fastest} is fastest, so that overlap "
            f"outperforms all others {verb}."
        )
    ]


def judge_counts(rows: list[Row]) -> list[str]:
    """Whether clustering spares postings and accumulators."""
    best, clustered = find(rows, BEST), find(rows, OVERLAP)
    postings = 100 * (1 - clustered["index postings"] / best["index postings"])
    fewer = best[ACCUMULATORS] / max(clustered[ACCUMULATORS], 1e-9)
    order = [
        find(rows, BY_METHOD[m])["index postings"] for m in ("random", "alphabetical", "overlap")
    ]
    verb = "reproduces" if order == sorted(order, reverse=True) else "does not reproduce"
    return [
        (
            f"Overlap makes {postings:.0f}% fewer postings (paper: 40%) and {fewer:.0f} times "
            "fewer "
            f"accumulators (paper: 20). The order random, alphabetical, overlap {verb}."
        )
    ]


def judge_widths(rows: list[Row]) -> list[str]:
    """Whether wider masks gain."""
    took = {32: find(rows, OVERLAP)[MICROSECONDS]}
    took |= {bits: find(rows, name)[MICROSECONDS] for bits, name in BY_WIDTH.items()}
    listed = ", ".join(f"{bits} bits {took[32] / one:.2f}" for bits, one in took.items())
    return [f"Times as fast as 32 bits: {listed} (paper: 1.03 with 64 bits, no more beyond)."]


def judge_all(rows: list[Row]) -> list[str]:
    """Whether all techniques together gain a factor of 20."""
    whole = ratio_of(rows, PRIMITIVE, OVERLAP)
    batch = ratio_of(rows, PRIMITIVE, BATCH)
    single = ratio_of(rows, PRIMITIVE, SINGLE)
    assert whole is not None
    verb = "reproduces" if whole > 20 else "does not reproduce"
    primitive = find(rows, PRIMITIVE)
    clustered = find(rows, OVERLAP)
    each = 1e3 * primitive[MICROSECONDS] / max(primitive["postings"], 1)
    read = clustered["postings"] / max(primitive["postings"], 1)
    made = clustered[ACCUMULATORS] / max(primitive[ACCUMULATORS], 1)
    return [
        (
            f"From primitive to superqueries by overlap: {whole:.1f} times (paper: more than "
            "20); this "
            f"{verb}. The primitive algorithm takes {each:.1f} ns per posting here; the "
            "clustered one "
            f"reads {read:.0%} of its postings and makes {made:.2%} of its accumulators."
        ),
        (
            f"Tamis: {batch:.1f} times the primitive algorithm in batches of documents that are "
            "read, "
            f"{single:.1f} times with one text at a time, reading included."
        ),
    ]


def published(method: str, superqueries: int, postings: int, accumulators: int) -> Row:
    """A line of Table 4.3; its accumulators are those of 10,000 documents."""
    return {
        ALGORITHM: BY_METHOD.get(method, method),
        "superqueries": superqueries,
        "index postings": postings,
        ACCUMULATORS: accumulators / 10_000,
    }


TABLE_4_1: Final = Experiment(
    "irmak-table-4.1",
    PAPER,
    "Queries contained in others",
    SWEEP,
    ("queries", "contained %", "contained, same first term %"),
    judge_containment,
    published=({"queries": 1_077_958, "contained %": 25.3, "contained, same first term %": 20.7},),
    shows=is_described,
)
TABLE_4_2: Final = Experiment(
    "irmak-table-4.2",
    PAPER,
    "Statistics of the combined queries",
    SWEEP,
    ("queries", "terms", "postings of all"),
    judge_statistics,
    published=({"queries": 3_069_916, "terms": 922_699, "postings of all": 9_239_690},),
    shows=is_described,
)
FIGURE_4_3: Final = Experiment(
    "irmak-figure-4.3",
    PAPER,
    "Time by clustering",
    SWEEP,
    (ALGORITHM, MICROSECONDS, RATIO),
    judge_methods,
    told="Even the most naive clustering gains much, and overlap outperforms all others.",
    shows=lambda row: row[ALGORITHM] in (BEST, *BY_METHOD.values(), *PRODUCT),
)
TABLE_4_3: Final = Experiment(
    "irmak-table-4.3",
    PAPER,
    "Superqueries, postings and accumulators by clustering",
    SWEEP,
    (ALGORITHM, "superqueries", "index postings", ACCUMULATORS),
    judge_counts,
    published=(
        published("random", 957_366, 6_089_165, 8_870_966),
        published("alphabetical", 948_417, 5_784_684, 7_670_446),
        published("overlap", 939_779, 5_522_510, 6_543_883),
        published(BEST, 3_069_916, 9_239_690, 130_691_462),
    ),
    shows=lambda row: row[ALGORITHM] in (BEST, *BY_METHOD.values()),
)
TABLE_4_4: Final = Experiment(
    "irmak-table-4.4",
    PAPER,
    "Masks of 32 to 128 bits",
    SWEEP,
    (ALGORITHM, MICROSECONDS, "superqueries", "index postings", ACCUMULATORS),
    judge_widths,
    told="15.05 seconds for 10,000 documents with 32 bits, 14.59 with 64, 14.61 with 96, 14.68 "
    "with 128; 939,779, 900,359, 890,258 and 886,101 superqueries.",
    shows=lambda row: row[ALGORITHM] in (OVERLAP, *BY_WIDTH.values()),
)
FIGURE_4_5: Final = Experiment(
    "irmak-figure-4.5",
    PAPER,
    "Documents per second, all techniques",
    SWEEP,
    (ALGORITHM, DOCUMENTS_PER_SECOND, RATIO),
    judge_all,
    told="Throughput increases by more than a factor of 20 when all techniques are combined.",
    shows=lambda row: row[ALGORITHM] != STATISTICS,
)
