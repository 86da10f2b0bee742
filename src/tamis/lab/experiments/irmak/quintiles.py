"""Figures 3.6 and 4.4: queries with few matches and queries with many."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

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
from tamis.lab.experiments.irmak.task import (
    BEST,
    PAPER,
    POSTINGS,
    PRIMITIVE,
    SPLIT,
    STEPS,
    draw,
    estimate,
    measure,
    overlap,
    pick,
)
from tamis.lab.irmak import CLUSTERINGS, IrmakIndex
from tamis.lab.workloads.keywords import KeywordParams, Keywords

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

SIZES: Final = {  # queries, documents, documents that say how often a query matches
    Scale.TINY: (1_000, 20, 60),
    Scale.SMALL: (100_000, 512, 2_000),
    Scale.FULL: (1_077_958, 512, 10_000),
}
QUINTILE: Final = "quintile"  # 1 has the fewest matches


def settings(scale: Scale) -> list[Setting]:
    """The five quintiles."""
    queries, documents, judged = SIZES[scale]
    shared = {"queries": queries, "base": queries, "documents": documents, "judged": judged}
    return [{QUINTILE: quintile, **shared} for quintile in range(1, 6)]


def run(setting: Setting, seed: int) -> list[Row]:
    """All algorithms over the queries of one quintile."""
    task = draw(setting, seed)
    order = np.argsort(count_matches(setting, seed), kind="stable")
    own = np.sort(np.array_split(order, 5)[setting[QUINTILE] - 1])
    clustered = {f"superqueries, {method}": overlap(1, method) for method in CLUSTERINGS}
    return measure(pick(task, own), STEPS | clustered)


def count_matches(setting: Setting, seed: int) -> np.ndarray:
    """How many other documents each query matches."""
    n_documents, n_judged = setting["documents"], setting["judged"]
    workload = Keywords(KeywordParams(setting["queries"], seed=seed))
    starts, terms = workload.documents(n_documents + n_judged)
    others = starts[n_documents:] - starts[n_documents]
    index = IrmakIndex(*workload.queries(), overlap())
    _, found = index.match(others, terms[starts[n_documents] :])
    return np.bincount(found, minlength=setting["queries"])


SWEEP: Final = Sweep("irmak-quintiles", settings, run, estimate)


def judge_with(slow: str, fast: str, rows: list[Row]) -> list[str]:
    """Whether queries with many matches are dearer."""
    told = []
    for name in (slow, fast, BATCH):
        own = list(series(rows, QUINTILE, MICROSECONDS, name).values())
        told.append(f"{own[-1] / own[0]:.1f} times for {name}")
    is_dearer = all(float(one.split()[0]) > 1 for one in told)
    verb = "reproduces" if is_dearer else "does not reproduce for all"
    return [
        (
            f"The queries with most matches take, over those with fewest, {', '.join(told)}: "
            "that many "
            f"matches are dearer {verb}."
        )
    ]


FIGURE_3_6: Final = Experiment(
    "irmak-figure-3.6",
    PAPER,
    "Time by the selectivity of queries",
    SWEEP,
    (QUINTILE, ALGORITHM, MICROSECONDS, RATIO, POSTINGS),
    lambda rows: judge_with(PRIMITIVE, SPLIT, rows),
    told="Queries with many matches are more costly; partitions gain nothing at this size.",
    charts=(Chart(QUINTILE, MICROSECONDS, is_log=True),),
    shows=lambda row: "superqueries," not in row[ALGORITHM],
)
FIGURE_4_4: Final = Experiment(
    "irmak-figure-4.4",
    PAPER,
    "Clustering by the selectivity of queries",
    SWEEP,
    (QUINTILE, ALGORITHM, MICROSECONDS, RATIO, "superqueries"),
    lambda rows: judge_with("superqueries, random", "superqueries, overlap", rows),
    told="Queries with many results are more expensive to match.",
    charts=(Chart(QUINTILE, MICROSECONDS),),
    shows=lambda row: row[ALGORITHM] not in (PRIMITIVE, SPLIT, BEST),
)
