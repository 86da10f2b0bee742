"""The report: measured and published figures, as HTML with plots and as Markdown."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.errors import InputError
from tamis.lab.experiments.experiment import MICROSECONDS, RATIO, add_ratios, find_baseline
from tamis.lab.experiments.headlines import HEADLINES, verdict_of
from tamis.lab.experiments.liu.calls import CALLS
from tamis.lab.experiments.sentences import spread
from tamis.lab.experiments.standing import stand
from tamis.lab.experiments.steadiness import find_repeats
from tamis.lab.experiments.tables import (
    OUR_RATIO,
    PAPERS,
    PAPERS_RATIO,
    Table,
    has_room,
    join_published,
    keys_of,
    make_table,
    measures_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.lab.experiments.experiment import Experiment, Row
    from tamis.lab.experiments.headlines import Check, Headline
    from tamis.lab.experiments.standing import Standing
    from tamis.lab.experiments.steadiness import Repeat
    from tamis.lab.experiments.store import Store

INTRODUCTION = (
    "The papers' tables and figures, measured here together with Tamis: with the same input, in "
    "the same process, and with the same matches. Every verdict is computed from the measurements, "
    "by the rule that is printed with it."
)
RACES = (MICROSECONDS, CALLS)  # measures of speed


@dataclass(frozen=True, slots=True)
class Section:
    """One experiment in the report."""

    experiment: Experiment
    rows: list[Row]  # shown rows
    results: list[dict[str, Any]]
    n_settings: int  # of the sweep, measured or not
    shows_standing: bool  # the first of its sweep that shows the compared measure

    @property
    def x(self) -> str:
        """The parameter that the experiment varies: its first column."""
        return self.experiment.columns[0]

    @property
    def is_complete(self) -> bool:
        """Whether all settings are measured."""
        return len(self.results) == self.n_settings

    @property
    def notes(self) -> list[str]:
        """The baseline of the ratios."""
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
        """The verdicts, and the product's standing."""
        if not self.is_complete:
            measured = f"{len(self.results)} of {self.n_settings} settings are measured"
            return [f"{measured}; there is no verdict before all are."]
        with refuse_others(self.experiment.name):
            sentences = self.experiment.verdict(self.rows)
            if self.shows_standing and (found := self.standing()):
                sentences += found.describe()
        return sentences

    def standing(self) -> Standing | None:
        """The product compared with the best of the others at each setting; for speed, of all
        others.
        """
        if self.experiment.measure not in RACES:
            return stand(self.experiment, self.rows)
        return stand(self.experiment, [row for result in self.results for row in result["rows"]])

    def table(self) -> Table:
        """The measured rows, with the paper's figures where they have the same settings."""
        rows = join_published(self.rows, self.experiment)
        columns = [*self.experiment.columns, OUR_RATIO, PAPERS, PAPERS_RATIO]
        return make_table(rows, columns)

    def published(self) -> Table | None:
        """The paper's figures, if they are not shown with the measured rows."""
        keys = keys_of(self.experiment)
        measured = {tuple(row.get(key) for key in keys) for row in self.rows}
        printed = {tuple(row.get(key) for key in keys) for row in self.experiment.published}
        if not printed or (has_room(self.experiment) and printed <= measured):
            return None
        return make_table(list(self.experiment.published), list(self.experiment.columns))


class Judged(NamedTuple):
    """A headline with its verdict."""

    headline: Headline
    verdict: str
    checks: list[Check]
    why: str


@dataclass(frozen=True, slots=True)
class Report:
    """All measurements and their conclusions."""

    sections: list[Section]

    @property
    def headlines(self) -> list[Judged]:
        """The papers' headlines, judged by the measurements."""
        complete = {one.experiment.name: one.rows for one in self.sections if one.is_complete}
        return [judge(headline, complete) for headline in HEADLINES]

    @property
    def repeats(self) -> list[Repeat]:
        """The workloads measured more than once, in several sweeps."""
        by_sweep = {one.experiment.sweep.name: one.results for one in self.sections}
        return find_repeats(
            (sweep, result["rows"]) for sweep, results in by_sweep.items() for result in results
        )

    @property
    def standings(self) -> list[Standing]:
        """The product's standing in speed, once for each sweep."""
        return [
            found
            for one in self.sections
            if one.shows_standing and one.is_complete and one.experiment.measure in RACES
            if (found := one.standing())
        ]


def judge(headline: Headline, results: dict[str, list[Row]]) -> Judged:
    """The verdict on a headline; none until all its experiments are measured."""
    missing = [name for name in headline.experiments if name not in results]
    if missing:
        return Judged(headline, "not measured", [], f"Not measured yet: {', '.join(missing)}.")
    with refuse_others(*headline.experiments):
        checks = headline.check(results)
        is_kept = all(check.holds for check in checks)
        why = "" if is_kept else headline.explain(results)
    return Judged(headline, verdict_of(checks), checks, why)


@contextmanager
def refuse_others(*names: str) -> Iterator[None]:
    """Report rows that this version of the lab cannot read."""
    try:
        yield
    except (LookupError, StopIteration, TypeError, ValueError) as error:
        raise InputError(
            (
                f"results of {', '.join(names)} have another format than this version of the "
                f"lab: {error!r}"
            ),
            hint=f"tamis lab run {' '.join(names)} --again",
        ) from error


def collect(experiments: Iterable[Experiment], store: Store) -> Report:
    """A section for each experiment with results; raises an error if there are none."""
    sections: list[Section] = []
    seen = set()
    for experiment in experiments:
        results = store.load(experiment.sweep)
        rows = [row for result in results for row in result["rows"] if experiment.shows(row)]
        if rows:
            if RATIO in experiment.columns:
                rows = add_ratios(rows, experiment.columns[0])
            n_settings = len(experiment.sweep.settings(store.scale))
            race = (experiment.sweep.name, experiment.measure)
            is_first = experiment.measure in experiment.columns and race not in seen
            seen |= {race} if is_first else set()
            sections.append(Section(experiment, rows, results, n_settings, is_first))
    if not sections:
        raise InputError(
            f"no results in {store.directory}",
            hint=f"tamis lab run all --scale {store.scale} --seed {store.seed} "
            f"--out {store.directory.parent}",
        )
    return Report(sections)


def table_of_standings(standings: list[Standing]) -> Table:
    """The product's lead over the best of the others, sweep by sweep."""
    cells = []
    for one in standings:
        single = f"{spread(one.ratios(one.singles).values())} its time" if one.singles else ""
        places = ", ".join(map(str, one.behind))
        behind = f"{one.experiment.columns[0]} {places}" if places else "nowhere"
        ahead = spread(1 / ratio for ratio in one.ratios(one.ours).values())
        name = one.experiment.name
        cells.append([name, one.experiment.measure, one.leaders, ahead, single, behind])
    headings = ["experiment", "measure", "best of the others", "Tamis in batches is better by"]
    return Table([*headings, "one event at a time takes", "behind at"], cells)


def describe_runs(sections: list[Section]) -> list[str]:
    """The origin of the figures: machine, commit, scale and seed."""
    results = [result for section in sections for result in section.results]
    machines = {
        "{processor}, {cores} cores, caches {caches}, {memory_gb} GB, {system}, Python {python}, "
        "Numba {numba}, NumPy {numpy}, Tamis {tamis}".format_map(
            defaultdict(lambda: "unknown", result["machine"])
        )
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
