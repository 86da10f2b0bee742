"""Figure 3.7: what partitions gain, by their number."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    MICROSECONDS,
    Chart,
    Experiment,
    Scale,
    Sweep,
)
from tamis.lab.experiments.irmak.growth import MULTIPLIERS, SIZES
from tamis.lab.experiments.irmak.task import (
    BLOOM,
    PAPER,
    STEPS,
    draw,
    estimate,
    measure_paper,
    measure_product,
)

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

NUMBERS: Final = (1, 2, 4, 8, 16, 32)


def settings(scale: Scale) -> list[Setting]:
    """The largest set of Figure 3.3."""
    base, n_documents = SIZES[scale]
    queries = base * MULTIPLIERS[scale][-1]
    return [{"queries": queries, "base": base, "documents": n_documents}]


def run(setting: Setting, seed: int) -> list[Row]:
    """The best algorithm of §3.3 with more and more partitions, and the product."""
    task = draw(setting, seed)
    wanted, rows = measure_product(task)
    options = STEPS[BLOOM]
    tried = [replace(options, n_partitions=n) for n in NUMBERS]
    return [measure_paper(BLOOM, one, task, wanted) for one in tried] + rows


SWEEP: Final = Sweep("irmak-partitions", settings, run, estimate)


def judge(rows: list[Row]) -> list[str]:
    """Whether partitions gain, and where most."""
    took = {row["partitions"]: row[MICROSECONDS] for row in rows if row[ALGORITHM] == BLOOM}
    best = min(took, key=lambda n: took[n])
    gain = took[1] / took[best]
    if gain < 1.1:
        return [
            (
                f"{best} partitions are best, {gain:.2f} times as fast as one, so this does not "
                "reproduce. The table of accumulators and the filter of one document fit into "
                "this machine's "
                "caches, which partitions are made for; what is left is the reading of the lists, "
                "and each partition looks its own up."
            )
        ]
    return [f"{best} partitions are best, {gain:.2f} times as fast as one (paper: about 4)."]


FIGURE_3_7: Final = Experiment(
    "irmak-figure-3.7",
    PAPER,
    "Time by the number of partitions",
    SWEEP,
    ("queries", ALGORITHM, "partitions", MICROSECONDS),
    judge,
    told="About a factor of 4 on the largest set and a machine with 512 KB of L2 cache.",
    charts=(Chart("partitions", MICROSECONDS),),
)
