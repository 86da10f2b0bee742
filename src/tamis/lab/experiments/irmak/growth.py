"""§3.4: the core processor, step by step, as the queries become more. One sweep, three figures."""

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
from tamis.lab.experiments.irmak.task import (
    ACCUMULATORS,
    BEST,
    BLOOM,
    DOCUMENTS_PER_SECOND,
    PAPER,
    POSTINGS,
    PRIMITIVE,
    SPLIT,
    STEPS,
    draw,
    estimate,
    measure,
    ratio_of,
)

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


def settings(scale: Scale) -> list[Setting]:
    """More and more queries."""
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
    told = []
    for before, after in ((PRIMITIVE, SPLIT), (SPLIT, BLOOM), (BLOOM, BEST)):
        gain = ratio_of(rows, before, after, queries=most)
        assert gain is not None
        verb = "gains" if gain > 1.05 else "gains nothing"
        told.append(f"From {before} to {after}: {gain:.2f} times as fast, so it {verb}.")
    whole = ratio_of(rows, PRIMITIVE, BEST, queries=most)
    product = ratio_of(rows, BEST, BATCH, queries=most)
    told.append(
        f"All steps together: {whole:.1f} times (paper: 5 to 10). Tamis in batches is "
        f"{product:.1f} times as fast as the best of them."
    )
    made = {row[ALGORITHM]: row.get(ACCUMULATORS) for row in rows if row["queries"] == most}
    told.append(
        f"In counts per document: {made[SPLIT]:,.0f} accumulators are left of "
        f"{made[PRIMITIVE]:,.0f}."
    )
    return told


def judge_growth(rows: list[Row]) -> list[str]:
    """Whether times grow with the queries, and how fast."""
    told = []
    for name in (PRIMITIVE, SPLIT, BLOOM, BEST, BATCH):
        own = series(rows, "queries", MICROSECONDS, name)
        (fewest, least), (most, last) = next(iter(own.items())), list(own.items())[-1]
        told.append(f"{name} {last / least / (most / fewest):.2f}")
    return [
        "Growth of the time over growth of the queries, 1 is linear: "
        + ", ".join(told)
        + " (paper: slightly above 1 for the first three, 1 with partitions)."
    ]


def judge_rates(rows: list[Row]) -> list[str]:
    """Who processes most documents."""
    most = max(row["queries"] for row in rows)
    rates = {row[ALGORITHM]: row[DOCUMENTS_PER_SECOND] for row in rows if row["queries"] == most}
    fastest = max(rates, key=lambda name: rates[name])
    return [
        (
            f"At {most:,} queries {fastest} processes most documents, {rates[fastest]:,.0f} per "
            f"second; primitive {rates[PRIMITIVE]:,.0f}, partitions {rates[BEST]:,.0f}."
        )
    ]


FIGURE_3_3: Final = Experiment(
    "irmak-figure-3.3",
    PAPER,
    "Time by optimisation",
    SWEEP,
    ("queries", ALGORITHM, MICROSECONDS, RATIO, POSTINGS, ACCUMULATORS, "partitions"),
    judge_steps,
    told="Each step gains; at 1.08 million queries the best takes less than 20 seconds for 10,000 "
    "documents. All steps together gain a factor of 5 to 10 on large sets.",
    charts=(Chart("queries", MICROSECONDS, is_log=True),),
)
FIGURE_3_4: Final = Experiment(
    "irmak-figure-3.4",
    PAPER,
    "Time against the number of queries",
    SWEEP,
    ("queries", ALGORITHM, MICROSECONDS),
    judge_growth,
    told="Slightly more than linear for the first three, linear with partitions.",
    charts=(Chart("queries", MICROSECONDS),),
)
FIGURE_3_5: Final = Experiment(
    "irmak-figure-3.5",
    PAPER,
    "Documents per second",
    SWEEP,
    ("queries", ALGORITHM, DOCUMENTS_PER_SECOND, RATIO),
    judge_rates,
    told="Throughput falls as running times grow, roughly linearly in the number of queries.",
    charts=(Chart("queries", DOCUMENTS_PER_SECOND, is_log=True),),
)
