"""The record of an experiment."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable

Row: TypeAlias = dict[str, Any]  # plain JSON values
Setting: TypeAlias = dict[str, Any]

ALGORITHM = "algorithm"  # the column with the algorithm's name
PROCESS_BYTES = 300 << 20  # that a run needs before it has a workload
COUNTED = ("nodes", "postings", "annotations", "candidates")  # the work of the other algorithms
MICROSECONDS = "microseconds"  # CPU time per event
HANDED = "leaves microseconds"  # of finding the leaves, which the papers' algorithms are given
RATIO = "times faster"  # relative to the slowest baseline that is in every setting
BATCH = "Tamis, batch"
SINGLE = "Tamis, single"
PRODUCT = (BATCH, SINGLE)


class Scale(StrEnum):
    """The size of the settings."""

    TINY = "tiny"  # shows that everything runs
    SMALL = "small"  # minutes on two cores
    FULL = "full"  # the paper's sizes, or as near as a machine of 24 GB allows


@dataclass(frozen=True, slots=True)
class Sweep:
    """Something measured at several settings."""

    name: str
    settings: Callable[[Scale], list[Setting]]
    measure: Callable[[Setting, int], list[Row]]  # called with a setting and a seed
    n_bytes: Callable[[Setting], int]  # an estimate of the memory a setting needs


@dataclass(frozen=True, slots=True)
class Chart:
    """A plot: `y` over `x`, a line for each algorithm."""

    x: str
    y: str
    is_log: bool = False


def take_all(row: Row) -> bool:
    """The table without charts: every row."""
    return True


def describe_block(ours: Row, rival: Row) -> str:
    """Why the product is behind, as far as counts explain it."""
    looked = " and ".join(f"{rival[name]:,.0f} {name}" for name in COUNTED if rival.get(name))
    return (
        f"For an event {rival[ALGORITHM]} looks at {looked or 'little'}, and gets the true leaves "
        f"as input; Tamis finds them, and evaluates its {ours['index nodes']:,.0f} nodes for a "
        "block of 512 events."
    )


@dataclass(frozen=True, slots=True)
class Experiment:
    """One table or figure of a paper."""

    name: str
    paper: str
    title: str
    sweep: Sweep
    columns: tuple[str, ...]  # columns of the rows shown; RATIO is computed
    verdict: Callable[[list[Row]], list[str]]  # sentences on what reproduces
    published: tuple[Row, ...] = ()  # the paper's figures, with our column names
    claim: str = ""  # the paper's statement, if its figures are not printed
    charts: tuple[Chart, ...] = field(default=())
    shows: Callable[[Row], bool] = take_all
    ours: str = BATCH  # the product's row
    measure: str = MICROSECONDS  # the measure compared with the best of the others
    behind: Callable[[Row, Row], str] = describe_block  # why, given its row and the best


def add_ratios(rows: list[Row], x: str, column: str = MICROSECONDS) -> list[Row]:
    """The rows with RATIO: how many times less than the slowest common baseline.

    The baseline is the algorithm with the greatest sum among those with a row for every `x`, the
    product excluded.
    """
    slowest = find_baseline(rows, x, column)
    base = {row[x]: row[column] for row in rows if row[ALGORITHM] == slowest}
    return [
        row | {RATIO: base[row[x]] / row[column]} if row.get(column) and slowest else row
        for row in rows
    ]


def find_baseline(rows: list[Row], x: str, column: str = MICROSECONDS) -> str | None:
    """The slowest algorithm that has a row for every setting."""
    values = {row[x] for row in rows}
    took: dict[str, dict[Any, float]] = {}
    for row in rows:
        if row.get(column) and row[ALGORITHM] not in PRODUCT:
            took.setdefault(row[ALGORITHM], {})[row[x]] = row[column]
    common = {name: sum(own.values()) for name, own in took.items() if own.keys() == values}
    return max(common, key=lambda name: common[name]) if common else None


def series(rows: list[Row], x: str, y: str, algorithm: str) -> dict[Any, float]:
    """An algorithm's values of `y` by `x`, ascending."""
    own = {
        row[x]: row[y]
        for row in rows
        if row[ALGORITHM] == algorithm and x in row and row.get(y) is not None
    }
    return dict(sorted(own.items()))
