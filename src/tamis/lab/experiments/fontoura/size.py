"""§5.4: the number of expressions, at a selectivity of 50% and a depth of 2."""

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
    EVALUATE,
    INDEX,
    PAPER,
    PRODUCT,
    SORT,
    does,
    estimate,
    run,
    times,
)

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

PUBLISHED_MEGABYTES: Final = {10_000: 1.1, 20_000: 2.0, 50_000: 4.7, 100_000: 9.1, 150_000: 14.0}
DIVISORS: Final = {Scale.TINY: 250, Scale.SMALL: 10, Scale.FULL: 1}
N_EVENTS: Final = {Scale.TINY: 12, Scale.SMALL: 200, Scale.FULL: 500}
X: Final = "expressions"


def settings(scale: Scale) -> list[Setting]:
    """The paper's numbers of expressions, or a share of them."""
    numbers = [n // DIVISORS[scale] for n in PUBLISHED_MEGABYTES]
    if scale == Scale.TINY:
        numbers = numbers[::2]
    return [
        {"expressions": n, "depth": 2, "share": 0.5, "events": N_EVENTS[scale]} for n in numbers
    ]


def measure(setting: Setting, seed: int) -> list[Row]:
    """Dewey, Interval and the product."""
    return run(setting, seed, ANNOTATED)


SWEEP: Final = Sweep("fontoura-size", settings, measure, estimate)


def judge_memory(rows: list[Row]) -> list[str]:
    """Whether memory is linear in the number of expressions."""
    told = []
    for name in ANNOTATED:
        own = series(rows, X, "megabytes", name)
        first, last = min(own), max(own)
        more = 1e6 * (own[last] - own[first]) / (last - first)
        told.append(
            f"{name} takes {1e6 * own[last] / last:.0f} bytes for each of {last:,} expressions "
            f"(paper: 91 to 110), and {more:.0f} for each further one; "
            "lists by leaf are there from the start."
        )
    return told


def judge_total(rows: list[Row]) -> list[str]:
    """Whether time is linear, and who is ahead."""
    dewey, interval, batch = (series(rows, X, MICROSECONDS, name) for name in (*ANNOTATED, BATCH))
    each = [1000 * took / n for n, took in interval.items()]
    is_so = all(interval[n] <= dewey[n] for n in interval)
    return [
        (
            f"Dewey takes {times(dewey, interval)} Interval's time; "
            f"that Interval is no slower {does(is_so)}."
        ),
        f"Interval takes {min(each):.0f} to {max(each):.0f} ns for an expression.",
        f"Tamis in batches is {times(interval, batch)} as fast as Interval.",
    ]


def judge_evaluation(rows: list[Row]) -> list[str]:
    """Whether Interval scales better."""
    dewey, interval = (series(rows, X, EVALUATE, name) for name in ANNOTATED)
    slopes = [
        1000 * (own[max(own)] - own[min(own)]) / (max(own) - min(own)) for own in (dewey, interval)
    ]
    return [
        (
            f"Each further expression costs {slopes[0]:.1f} ns of evaluation with Dewey and "
            f"{slopes[1]:.1f} ns with Interval; "
            f"that Interval scales better {does(slopes[1] < slopes[0])}."
        )
    ]


TABLE_4: Final = Experiment(
    "fontoura-table-4",
    PAPER,
    "Memory by number of expressions",
    SWEEP,
    (X, ALGORITHM, "megabytes"),
    judge_memory,
    published=tuple(
        {X: n, ALGORITHM: name, "megabytes": value}
        for n, value in PUBLISHED_MEGABYTES.items()
        for name in ANNOTATED
    ),
    charts=(Chart(X, "megabytes"),),
)

FIGURE_12: Final = Experiment(
    "fontoura-figure-12",
    PAPER,
    "Total time of Dewey and Interval by number of expressions",
    SWEEP,
    (X, ALGORITHM, MICROSECONDS, RATIO, INDEX, SORT),
    judge_total,
    told="Total time grows with the number of expressions; index and sorting cost both the same.",
    charts=(Chart(X, MICROSECONDS),),
    shows=lambda row: row[ALGORITHM] in (*ANNOTATED, *PRODUCT),
)

FIGURE_13: Final = Experiment(
    "fontoura-figure-13",
    PAPER,
    "Time of expression evaluation by number of expressions",
    SWEEP,
    (X, ALGORITHM, EVALUATE, "annotations"),
    judge_evaluation,
    told="Again Interval scales better than Dewey.",
    charts=(Chart(X, EVALUATE),),
    shows=lambda row: row[ALGORITHM] in ANNOTATED,
)
