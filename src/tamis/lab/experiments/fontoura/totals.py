"""Figures 10 to 13: the total time of Dewey and Interval, and the share of evaluation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tamis.lab.experiments.experiment import (
    ALGORITHM,
    MICROSECONDS,
    PRODUCT,
    RATIO,
    Chart,
    Experiment,
    series,
)
from tamis.lab.experiments.fontoura.task import ANNOTATED, EVALUATE, INDEX, INTERVAL, PAPER, SORT
from tamis.lab.experiments.sentences import does, over

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.lab.experiments.experiment import Row, Sweep


def judge_total(x: str, rows: list[Row]) -> list[str]:
    """Whether Interval is no slower than Dewey, and where the time goes."""
    dewey, interval = (series(rows, x, MICROSECONDS, name) for name in ANNOTATED)
    sort, index = (series(rows, x, phase, INTERVAL) for phase in (SORT, INDEX))
    is_so = all(interval[at] <= dewey[at] for at in interval)
    last = max(interval)
    return [
        (
            f"Dewey takes {over(dewey, interval)} Interval's time; "
            f"that Interval is no slower {does(is_so)}."
        ),
        (
            f"At {x} {last:,} the index takes {index[last] / interval[last]:.0%} and sorting "
            f"{sort[last] / interval[last]:.0%} of Interval's time."
        ),
    ]


def show_total(name: str, by: str, x: str, sweep: Sweep, claim: str) -> Experiment:
    """The figure of the total time of an event."""
    return Experiment(
        name,
        PAPER,
        f"Total time of Dewey and Interval by {by}",
        sweep,
        (x, ALGORITHM, MICROSECONDS, RATIO, INDEX, SORT),
        partial(judge_total, x),
        claim=claim,
        charts=(Chart(x, MICROSECONDS, is_log=True),),
        shows=lambda row: row[ALGORITHM] in (*ANNOTATED, *PRODUCT),
    )


def show_evaluation(  # noqa: PLR0913 - what differs between the figures
    name: str, by: str, x: str, sweep: Sweep, claim: str, judge: Callable[[list[Row]], list[str]]
) -> Experiment:
    """The figure without index and sorting; Tamis has no separate evaluation."""
    return Experiment(
        name,
        PAPER,
        f"Time of expression evaluation by {by}",
        sweep,
        (x, ALGORITHM, EVALUATE, "annotations"),
        judge,
        claim=claim,
        charts=(Chart(x, EVALUATE),),
        shows=lambda row: row[ALGORITHM] in ANNOTATED,
    )
