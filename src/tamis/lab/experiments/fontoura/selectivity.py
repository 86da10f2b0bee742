"""§5.5: the share of expressions that a visit matches, at a depth of 3."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.experiment import (
    ALGORITHM,
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
    PAPER,
    SELECTIVITY,
    estimate,
    run,
)
from tamis.lab.experiments.sentences import does

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Row, Setting

SIZES: Final = {Scale.TINY: (300, 12), Scale.SMALL: (4_000, 200), Scale.FULL: (100_000, 500)}
SHARES: Final = (
    0.02,
    0.04,
    0.06,
    0.08,
    0.1,
)  # less than that of trees of depth 3


def settings(scale: Scale) -> list[Setting]:
    """Selectivities up to that of Table 3 for a depth of 3."""
    n_expressions, n_events = SIZES[scale]
    shared = {"expressions": n_expressions, "depth": 3, "events": n_events}
    shares = SHARES[:: len(SHARES) - 1] if scale == Scale.TINY else SHARES
    return [{"share": share} | shared for share in shares]


def measure(setting: Setting, seed: int) -> list[Row]:
    """Dewey, Interval and the product."""
    return run(setting, seed, ANNOTATED)


SWEEP: Final = Sweep("fontoura-selectivity", settings, measure, estimate)


def judge(rows: list[Row]) -> list[str]:
    """Whether evaluation is linear in the selectivity."""
    sentences = []
    ratios = []
    for name in ANNOTATED:
        own = series(rows, "share", EVALUATE, name)
        read = series(rows, "share", "annotations", name)
        first, last = min(own), max(own)
        ratios.append(own[last] / own[first] / (last / first))
        sentences.append(
            f"{name} takes {own[first]:,.1f} µs at {first:.0%} and {own[last]:,.1f} µs at "
            f"{last:.0%}, for {read[first]:,.0f} and {read[last]:,.0f} annotations."
        )
    is_so = all(0.6 <= ratio <= 1.4 for ratio in ratios)
    return [*sentences, f"That both scale linearly with selectivity {does(is_so)}."]


FIGURE_14: Final = Experiment(
    "fontoura-figure-14",
    PAPER,
    "Time of expression evaluation by selectivity",
    SWEEP,
    ("share", SELECTIVITY, ALGORITHM, EVALUATE, "annotations", MICROSECONDS, RATIO),
    judge,
    claim="Both scale linearly with selectivity.",
    charts=(Chart("share", EVALUATE),),
)
