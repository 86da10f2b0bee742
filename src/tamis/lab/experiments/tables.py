"""Tables: measured figures, with those of the papers."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING

from tamis.lab.experiments.experiment import ALGORITHM, find_baseline

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Experiment, Row

PAPERS = "paper"  # column: the paper's value
OUR_RATIO = "our ratio"
PAPERS_RATIO = "paper's ratio"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to show, each a list of cells."""

    headings: list[str]
    cells: list[list[str]]


def join_published(rows: list[Row], experiment: Experiment) -> list[Row]:
    """The rows with the paper's values for the same settings, and both as ratios to one
    baseline.
    """
    keys = keys_of(experiment)
    theirs = {tuple(row.get(key) for key in keys): row for row in experiment.published}
    matching = [tuple(row.get(key) for key in keys) for row in rows]
    if not has_room(experiment) or not theirs.keys() & set(matching):
        return rows
    (measure,) = measures_of(experiment)
    compared = [
        row | ({PAPERS: theirs[key][measure]} if key in theirs else {})
        for row, key in zip(rows, matching, strict=True)
    ]
    return add_both_ratios(compared, keys[0], measure) if ALGORITHM in keys else compared


def keys_of(experiment: Experiment) -> list[str]:
    """The columns that identify a row."""
    return [name for name in (experiment.columns[0], ALGORITHM) if name in experiment.columns]


def measures_of(experiment: Experiment) -> set[str]:
    """The columns that the paper published."""
    return {name for row in experiment.published for name in row} - set(keys_of(experiment))


def has_room(experiment: Experiment) -> bool:
    """Whether the paper's figures fit one column; several measures have a separate table."""
    return len(measures_of(experiment)) == 1


def add_both_ratios(rows: list[Row], x: str, measure: str) -> list[Row]:
    """Our values and the paper's as shares of the paper's largest common baseline."""
    baseline = find_baseline([row for row in rows if PAPERS in row], x, PAPERS)
    base = {row[x]: row for row in rows if row[ALGORITHM] == baseline}
    found = []
    for row in rows:
        against = base.get(row[x], {})
        more: Row = {}
        if row.get(measure) and against.get(measure):
            more[OUR_RATIO] = row[measure] / against[measure]
        if row.get(PAPERS) and against.get(PAPERS):
            more[PAPERS_RATIO] = row[PAPERS] / against[PAPERS]
        found.append(row | more)
    return found


def make_table(rows: list[Row], columns: list[str]) -> Table:
    """The columns in which some row has a value."""
    shown = [name for name in columns if any(row.get(name) is not None for row in rows)]
    return Table(shown, [[show(row.get(name)) for name in shown] for row in rows])


def show(value: object) -> str:
    """A value with three significant digits, or in full if it is an integer."""
    if value is None:
        return ""
    if isinstance(value, bool | str) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    if number == round(number) or abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.3g}"
