"""Figures 3.6 and 4.4: queries with few matches and queries with many."""

from __future__ import annotations

from functools import partial
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
    BLOOM,
    GAIN,
    PAPER,
    POSTINGS,
    PRIMITIVE,
    SPLIT,
    STEPS,
    describe_behind,
    draw,
    estimate,
    measure,
    overlap,
    pick,
)
from tamis.lab.experiments.sentences import does, over
from tamis.lab.irmak import CLUSTERINGS, IrmakIndex
from tamis.lab.workloads.keywords import KeywordParams, Keywords

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

SIZES: Final = {  # queries, documents, documents that determine how often a query matches
    Scale.TINY: (1_000, 20, 60),
    Scale.SMALL: (100_000, 512, 2_000),
    Scale.FULL: (1_077_958, 512, 10_000),
}
CLUSTERED: Final = {f"superqueries, {method}": overlap(1, method) for method in CLUSTERINGS}
QUINTILE: Final = "quintile"  # 1 has the fewest matches


def settings(scale: Scale) -> list[Setting]:
    """The five quintiles."""
    queries, documents, judged = SIZES[scale]
    shared = {"queries": queries, "base": queries, "documents": documents, "judged": judged}
    return [{QUINTILE: quintile, **shared} for quintile in range(1, 6)]


def run(setting: Setting, seed: int) -> list[Row]:
    """Measure all algorithms on the queries of one quintile."""
    task = draw(setting, seed)
    order = np.argsort(count_matches(setting, seed), kind="stable")
    own = np.sort(np.array_split(order, 5)[setting[QUINTILE] - 1])
    return measure(pick(task, own), STEPS | CLUSTERED)


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


def judge(names: tuple[str, ...], rows: list[Row]) -> list[str]:
    """Whether queries with many matches are more expensive."""
    dearer = {}
    for name in (*names, BATCH):
        own = series(rows, QUINTILE, MICROSECONDS, name)
        dearer[name] = own[max(own)] / own[min(own)]
    listed = ", ".join(f"{name} {ratio:.2f}" for name, ratio in dearer.items())
    matches = series(rows, QUINTILE, "matches", BATCH)
    is_so = all(dearer[name] > GAIN for name in names)
    return [
        (
            f"The last fifth of the queries has {matches[max(matches)]:,.1f} matches for a "
            f"document, the first {matches[min(matches)]:,.1f}. Its time over the first one's is "
            f"{listed}; that queries with many matches cost more {does(is_so)}."
        )
    ]


def judge_steps(rows: list[Row]) -> list[str]:
    """The same, and whether partitions gain nothing."""
    bloom, best = (series(rows, QUINTILE, MICROSECONDS, name) for name in (BLOOM, BEST))
    is_idle = all(bloom[at] < 1.2 * best[at] for at in bloom)
    return [
        *judge((PRIMITIVE, SPLIT, BLOOM), rows),
        (
            f"With partitions it is {over(bloom, best)} as fast as without; that they gain "
            f"nothing {does(is_idle)}."
        ),
    ]


FIGURE_3_6: Final = Experiment(
    "irmak-figure-3.6",
    PAPER,
    "Time by the selectivity of queries",
    SWEEP,
    (QUINTILE, ALGORITHM, MICROSECONDS, RATIO, POSTINGS),
    judge_steps,
    claim="Queries with many matches are more costly; partitions gain nothing at this size.",
    charts=(Chart(QUINTILE, MICROSECONDS, is_log=True),),
    shows=lambda row: row[ALGORITHM] not in CLUSTERED,
    behind=describe_behind,
)
FIGURE_4_4: Final = Experiment(
    "irmak-figure-4.4",
    PAPER,
    "Clustering by the selectivity of queries",
    SWEEP,
    (QUINTILE, ALGORITHM, MICROSECONDS, RATIO, "superqueries"),
    partial(judge, tuple(CLUSTERED)),
    claim="Queries with many results are more expensive to match.",
    charts=(Chart(QUINTILE, MICROSECONDS, is_log=True),),
    shows=lambda row: row[ALGORITHM] not in (PRIMITIVE, SPLIT, BEST),
    behind=describe_behind,
)
