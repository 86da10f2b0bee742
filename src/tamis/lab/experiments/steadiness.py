"""The variation of times: one workload, measured in several sweeps.

Settings of several sweeps count as one workload if the counts of every algorithm that counts are
equal.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from tamis.lab.experiments.experiment import ALGORITHM, COUNTED, MICROSECONDS
from tamis.lab.experiments.sentences import factor
from tamis.lab.experiments.tables import Table, show

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.lab.experiments.experiment import Row

Counts: TypeAlias = "frozenset[tuple[Any, ...]]"


class Repeat(NamedTuple):
    """The times of an algorithm for one workload, in several sweeps."""

    sweeps: tuple[str, ...]
    algorithm: str
    took: list[float]

    @property
    def ratio(self) -> float:
        """The ratio of the maximum to the minimum."""
        return max(self.took) / min(self.took)


def find_repeats(measured: Iterable[tuple[str, list[Row]]]) -> list[Repeat]:
    """The workloads shared by several sweeps, given each sweep with the rows of one setting."""
    same: defaultdict[Counts, dict[str, list[Row]]] = defaultdict(dict)
    for sweep, rows in measured:
        if counts := counts_of(rows):
            same[counts][sweep] = rows
    return [
        Repeat(tuple(by_sweep), name, took)
        for by_sweep in same.values()
        for name, took in _times(by_sweep.values()).items()
        if len(by_sweep) > 1 and len(took) == len(by_sweep)
    ]


def counts_of(rows: list[Row]) -> Counts:
    """The identity of a workload: the counts of all algorithms that count."""
    return frozenset(
        (row[ALGORITHM], *(row.get(name) for name in COUNTED))
        for row in rows
        if any(row.get(name) is not None for name in COUNTED)
    )


def _times(settings: Iterable[list[Row]]) -> dict[str, list[float]]:
    took = defaultdict(list)
    for rows in settings:
        for row in rows:
            if row.get(MICROSECONDS):
                took[row[ALGORITHM]].append(row[MICROSECONDS])
    return took


def describe_steadiness(repeats: list[Repeat]) -> str:
    """The significance of ratios of times."""
    most = max(repeats, key=lambda one: one.ratio)
    return (
        "Some sweeps share a setting. Settings of different sweeps are one workload if every "
        "algorithm that counts its work has the same counts; the differences between an "
        f"algorithm's times are then noise, up to {factor(most.ratio)} ({most.algorithm}). Smaller "
        "ratios of two times are not significant."
    )


def table_of_repeats(repeats: list[Repeat]) -> Table:
    """The minimum and maximum time of each algorithm."""
    headings = [ALGORITHM, "least microseconds", "most microseconds", "ratio", "sweeps"]
    cells = [
        [
            one.algorithm,
            show(min(one.took)),
            show(max(one.took)),
            f"{one.ratio:.2f}",
            ", ".join(one.sweeps),
        ]
        for one in repeats
    ]
    return Table(headings, cells)
