"""§5.4: the number of expressions, at a selectivity of 50% and a depth of 2."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    SINGLE,
    Chart,
    Experiment,
    Scale,
    Sweep,
    series,
)
from tamis.lab.experiments.fontoura.task import ANNOTATED, EVALUATE, PAPER, estimate, run
from tamis.lab.experiments.fontoura.totals import show_evaluation, show_total
from tamis.lab.experiments.sentences import does

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

PUBLISHED_MEGABYTES: Final = {10_000: 1.1, 20_000: 2.0, 50_000: 4.7, 100_000: 9.1, 150_000: 14.0}
DIVISORS: Final = {Scale.TINY: 250, Scale.SMALL: 10, Scale.FULL: 1}
N_EVENTS: Final = {Scale.TINY: 12, Scale.SMALL: 200, Scale.FULL: 500}
X: Final = "expressions"


def settings(scale: Scale) -> list[Setting]:
    """The paper's numbers of expressions, or a fraction of them."""
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
    sentences = []
    for name in ANNOTATED:
        own = series(rows, X, "megabytes", name)
        more = [1e6 * (b - a) / (m - n) for (n, a), (m, b) in pairwise(own.items())]
        last = max(own)
        sentences.append(
            f"{name} takes {1e6 * own[last] / last:.0f} bytes for each of {last:,} expressions "
            f"(paper: 91 to 110), and from one size to the next {min(more):.0f} to {max(more):.0f} "
            f"for each further one; that memory grows linearly {does(max(more) < 1.5 * min(more))}."
        )
    return sentences


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
    shows=lambda row: row[ALGORITHM] != SINGLE,
    measure="megabytes",
)
FIGURE_12: Final = show_total(
    "fontoura-figure-12",
    "number of expressions",
    X,
    SWEEP,
    "Total time grows with the number of expressions; index and sorting cost both the same.",
)
FIGURE_13: Final = show_evaluation(
    "fontoura-figure-13",
    "number of expressions",
    X,
    SWEEP,
    "Again Interval scales better than Dewey.",
    judge_evaluation,
)
