"""§3.4: the core processor, step by step, for a growing number of queries. One sweep, three
figures.
"""

from __future__ import annotations

from itertools import pairwise
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
from tamis.lab.experiments.irmak.task import (
    ACCUMULATORS,
    BEST,
    BLOOM,
    DOCUMENTS_PER_SECOND,
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
    ratio_of,
)
from tamis.lab.experiments.sentences import does, does_but, times

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

MULTIPLIERS: Final = {
    Scale.TINY: (1, 2),
    Scale.SMALL: (1, 2, 4, 8),
    Scale.FULL: (1, 2, 4, 8),
}
SIZES: Final = {  # queries of the smallest set, documents
    Scale.TINY: (500, 20),
    Scale.SMALL: (50_000, 512),
    Scale.FULL: (1_077_958, 512),
}

LINEAR: Final = 1.2  # factor by which growth may deviate, up or down


def settings(scale: Scale) -> list[Setting]:
    """Growing numbers of queries."""
    base, n_documents = SIZES[scale]
    return [
        {"queries": base * times, "base": base, "documents": n_documents}
        for times in MULTIPLIERS[scale]
    ]


def run(setting: Setting, seed: int) -> list[Row]:
    """The four steps and the product."""
    return measure(draw(setting, seed), STEPS)


SWEEP: Final = Sweep("irmak-growth", settings, run, estimate)


def judge_steps(rows: list[Row]) -> list[str]:
    """Whether each step gains."""
    most = max(row["queries"] for row in rows)
    at_most = [row for row in rows if row["queries"] == most]
    gains = {
        (before, after): ratio_of(at_most, before, after)
        for before, after in pairwise((PRIMITIVE, SPLIT, BLOOM, BEST))
    }
    listed = "; ".join(f"from {a} to {b} {gain:.2f} times" for (a, b), gain in gains.items())
    idle = [after for (_, after), gain in gains.items() if gain < GAIN]
    whole = ratio_of(at_most, PRIMITIVE, BEST)
    sentences = [
        f"At {most:,} queries, {listed} as fast; that each step gains {does_but(idle)}.",
        f"All steps together: {times(whole)} (paper: 5 to 10 times); this {does(whole >= 5)}.",
    ]
    own = {row[ALGORITHM]: row for row in at_most}
    costs = ", ".join(
        f"{name} {1e3 * own[name][MICROSECONDS] / own[name][POSTINGS]:.1f}"
        for name in (PRIMITIVE, SPLIT, BLOOM, BEST)
    )
    sentences.append(
        f"All read {own[PRIMITIVE][POSTINGS]:,.0f} postings for a document; split lists leave "
        f"{own[SPLIT][ACCUMULATORS]:,.0f} accumulators of {own[PRIMITIVE][ACCUMULATORS]:,.0f}. "
        f"Nanoseconds for a posting: {costs}."
    )
    return sentences


def judge_growth(rows: list[Row]) -> list[str]:
    """Whether times grow with the queries, and how fast."""
    steps = (PRIMITIVE, SPLIT, BLOOM, BEST)
    growth = {name: _growth(rows, MICROSECONDS, name) for name in (*steps, BATCH)}
    listed = ", ".join(f"{name} {value:.2f}" for name, value in growth.items())
    rough = [name for name in steps if not 0.6 < growth[name] < 1.6]
    slack = [name for name in steps[:-1] if not 1 < growth[name] < 1.6]
    is_linear = 1 / LINEAR < growth[BEST] < LINEAR
    sentences = [
        f"Growth of the time over growth of the queries, 1 is linear: {listed}.",
        f"That times are roughly linear (0.6 to 1.6) {does_but(rough)}.",
        (
            "More exactly: that the first three are slightly more than linear (1 to 1.6) "
            f"{does_but(slack)}; that partitions are linear (within {LINEAR} times) "
            f"{does(is_linear)}."
        ),
    ]
    if rough or slack or not is_linear:
        sentences.append(
            f"Postings grow by {_growth(rows, POSTINGS, PRIMITIVE):.2f} and accumulators by "
            f"{_growth(rows, ACCUMULATORS, BEST):.2f} in these terms; the rest is the cost of each."
        )
    return sentences


def _growth(rows: list[Row], what: str, name: str) -> float:
    own = series(rows, "queries", what, name)
    fewest, most = min(own), max(own)
    return float(own[most] / own[fewest] / (most / fewest))


def judge_rates(rows: list[Row]) -> list[str]:
    """Which algorithm processes the most documents."""
    most = max(row["queries"] for row in rows)
    rates = {row[ALGORITHM]: row[DOCUMENTS_PER_SECOND] for row in rows if row["queries"] == most}
    fastest = max(rates, key=lambda name: rates[name])
    falls = all(
        one > other
        for name in (PRIMITIVE, SPLIT, BLOOM, BEST)
        for one, other in pairwise(series(rows, "queries", DOCUMENTS_PER_SECOND, name).values())
    )
    return [
        (
            f"At {most:,} queries {fastest} processes most documents, {rates[fastest]:,.0f} per "
            f"second; primitive {rates[PRIMITIVE]:,.0f}, partitions {rates[BEST]:,.0f}."
        ),
        f"That throughput falls with the number of queries {does(falls)}.",
    ]


FIGURE_3_3: Final = Experiment(
    "irmak-figure-3.3",
    PAPER,
    "Time by optimisation",
    SWEEP,
    ("queries", ALGORITHM, MICROSECONDS, RATIO, POSTINGS, ACCUMULATORS, "partitions"),
    judge_steps,
    claim="Each step gains; at 1.08 million queries the best takes less than 20 seconds for 10,000 "
    "documents. All steps together gain a factor of 5 to 10 on large sets.",
    charts=(Chart("queries", MICROSECONDS, is_log=True),),
    behind=describe_behind,
)
FIGURE_3_4: Final = Experiment(
    "irmak-figure-3.4",
    PAPER,
    "Time against the number of queries",
    SWEEP,
    ("queries", ALGORITHM, MICROSECONDS),
    judge_growth,
    behind=describe_behind,
    claim="Roughly linear; more exactly, slightly more than linear for the first three, "
    "linear with partitions.",
    charts=(Chart("queries", MICROSECONDS),),
)
FIGURE_3_5: Final = Experiment(
    "irmak-figure-3.5",
    PAPER,
    "Documents per second",
    SWEEP,
    ("queries", ALGORITHM, DOCUMENTS_PER_SECOND, RATIO),
    judge_rates,
    claim="Throughput falls as running times grow, roughly linearly in the number of queries.",
    charts=(Chart("queries", DOCUMENTS_PER_SECOND, is_log=True),),
)
