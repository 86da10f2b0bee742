"""Figure 3.7: the gain of partitions, by their number."""

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
    ACCUMULATORS,
    BLOOM,
    PAPER,
    POSTINGS,
    STEPS,
    describe_behind,
    draw,
    estimate,
    measure_paper,
    measure_product,
)
from tamis.lab.experiments.sentences import does

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
    """Whether partitions gain, and which number gains most."""
    own = {row["partitions"]: row for row in rows if row[ALGORITHM] == BLOOM}
    took = {n: row[MICROSECONDS] for n, row in own.items()}
    best = min(took, key=lambda n: took[n])
    gain = took[1] / took[best]
    made = own[1][ACCUMULATORS]
    return [
        (
            f"{best} partitions are best, {gain:.2f} times as fast as one (paper: about 4); that "
            f"they gain {does(gain >= 1.2)}."
        ),
        (
            f"All read {own[1][POSTINGS]:,.0f} postings for a document. Partitions reduce "
            f"the table of {made:,.0f} accumulators, which takes 5 bytes for each and is at most "
            f"half full: {made * 10 / 1e3:,.0f} to {made * 20 / 1e3:,.0f} KB with its filter. "
            "Each partition looks up the document's words again."
        ),
    ]


FIGURE_3_7: Final = Experiment(
    "irmak-figure-3.7",
    PAPER,
    "Time by the number of partitions",
    SWEEP,
    ("queries", ALGORITHM, "partitions", MICROSECONDS),
    judge,
    claim="About a factor of 4 on the largest set and a machine with 512 KB of L2 cache.",
    charts=(Chart("partitions", MICROSECONDS, is_log=True),),
    behind=describe_behind,
)
