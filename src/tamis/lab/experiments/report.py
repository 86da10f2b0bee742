"""The report: what was measured beside what was published, as HTML with plots and as Markdown."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from tamis.errors import InputError
from tamis.lab.experiments.experiment import (
    ALGORITHM,
    RATIO,
    add_ratios,
    find_baseline,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.lab.experiments.experiment import Experiment, Row
    from tamis.lab.experiments.store import Store

PAPERS = "paper"  # a column: what the paper has there
OUR_RATIO = "ratio"
PAPERS_RATIO = "paper's ratio"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows to be shown, each a list of cells."""

    headings: list[str]
    cells: list[list[str]]


@dataclass(frozen=True, slots=True)
class Section:
    """One experiment in the report."""

    experiment: Experiment
    rows: list[Row]
    results: list[dict[str, Any]]

    @property
    def x(self) -> str:
        """What the experiment varies: its first column."""
        return self.experiment.columns[0]

    @property
    def notes(self) -> list[str]:
        """What ratios are ratios of."""
        notes = []
        if any(RATIO in row for row in self.rows):
            notes.append(f"{RATIO}: than {find_baseline(self.rows, self.x)}")
        if self.experiment.published and OUR_RATIO in self.table().headings:
            (measure,) = measures_of(self.experiment)
            baseline = find_baseline(list(self.experiment.published), self.x, measure)
            notes.append(f"{OUR_RATIO}, {PAPERS_RATIO}: to the {measure} of {baseline}")
        return notes

    @property
    def verdict(self) -> list[str]:
        """What reproduces."""
        return self.experiment.verdict(self.rows)

    def table(self) -> Table:
        """What was measured, the paper's figures beside it where they are for the same."""
        rows = set_beside(self.rows, self.experiment)
        columns = [*self.experiment.columns, OUR_RATIO, PAPERS, PAPERS_RATIO]
        return make_table(rows, columns)

    def published(self) -> Table | None:
        """What the paper printed."""
        published = list(self.experiment.published)
        return make_table(published, list(self.experiment.columns)) if published else None


def collect(experiments: Iterable[Experiment], store: Store) -> list[Section]:
    """A section for each experiment that has results; refused where none has."""
    sections = []
    for experiment in experiments:
        results = store.load(experiment.sweep)
        rows = [row for result in results for row in result["rows"] if experiment.shows(row)]
        if rows:
            if RATIO in experiment.columns:
                rows = add_ratios(rows, experiment.columns[0])
            sections.append(Section(experiment, rows, results))
    if not sections:
        raise InputError(
            f"no results in {store.directory}",
            hint=f"tamis lab run all --scale {store.scale} --seed {store.seed}",
        )
    return sections


def set_beside(rows: list[Row], experiment: Experiment) -> list[Row]:
    """The rows with the paper's value for the same, and both as ratios to one baseline's."""
    keys = keys_of(experiment)
    theirs = {tuple(row.get(key) for key in keys): row for row in experiment.published}
    measures = measures_of(experiment)
    matching = [tuple(row.get(key) for key in keys) for row in rows]
    if len(measures) != 1 or not theirs.keys() & set(matching):
        return rows
    (measure,) = measures
    beside = [
        row | ({PAPERS: theirs[key][measure]} if key in theirs else {})
        for row, key in zip(rows, matching, strict=True)
    ]
    return add_both_ratios(beside, keys[0], measure) if ALGORITHM in keys else beside


def keys_of(experiment: Experiment) -> list[str]:
    """The columns that say what a row is of."""
    return [name for name in (experiment.columns[0], ALGORITHM) if name in experiment.columns]


def measures_of(experiment: Experiment) -> set[str]:
    """The columns that the paper published."""
    return {name for row in experiment.published for name in row} - set(keys_of(experiment))


def add_both_ratios(rows: list[Row], x: str, measure: str) -> list[Row]:
    """Ours and the paper's as shares of what the largest common baseline of the paper has."""
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
    """The columns of which some row has a value."""
    shown = [name for name in columns if any(row.get(name) is not None for row in rows)]
    return Table(shown, [[show(row.get(name)) for name in shown] for row in rows])


def show(value: object) -> str:
    """A value to three significant digits, or in full where it is whole."""
    if value is None:
        return ""
    if isinstance(value, bool | str) or not isinstance(value, Real):
        return str(value)
    number = float(value)
    if number == round(number) or abs(number) >= 1000:
        return f"{number:,.0f}"
    return f"{number:.3g}"


def describe_runs(sections: list[Section]) -> list[str]:
    """Where the figures are from: machine, commit, scale and seed."""
    results = [result for section in sections for result in section.results]
    machines = {
        "{processor}, {cores} cores, {memory_gb} GB, {system}, Python {python}, Numba {numba}, "
        "NumPy {numpy}, Tamis {tamis}".format(**result["machine"])
        for result in results
    }
    commits = {str(result["commit"] or "none") for result in results}
    scales = {f"{result['scale']}, seed {result['seed']}" for result in results}
    days = {result["finished_at"][:10] for result in results}
    return [
        f"machine: {'; '.join(sorted(machines))}",
        f"commit: {', '.join(sorted(commits))}",
        f"scale: {'; '.join(sorted(scales))}",
        f"measured: {', '.join(sorted(days))}",
        "times: CPU time of one thread, the best of several passes",
    ]
