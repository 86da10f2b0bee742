"""The report as Markdown: verdicts and tables."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from tamis.lab.experiments.report import INTRODUCTION, describe_runs, table_of_standings
from tamis.lab.experiments.steadiness import describe_steadiness, table_of_repeats
from tamis.lab.experiments.tables import Table

if TYPE_CHECKING:
    from tamis.lab.experiments.report import Judged, Report, Section


def write_markdown(report: Report) -> str:
    """The whole report."""
    lines = ["# The lab's report", "", INTRODUCTION, ""]
    lines += [f"- {line}" for line in describe_runs(report.sections)]
    lines += ["", "## The papers' headlines", "", *write_headlines(report.headlines)]
    if repeats := report.repeats:
        lines += ["## How steady the times are", "", describe_steadiness(repeats), ""]
        lines += [*write_table(table_of_repeats(repeats)), ""]
    standings = report.standings
    if standings:
        lines += ["## Where Tamis stands", "", *write_table(table_of_standings(standings)), ""]
        behind = [one for one in standings if one.behind]
        lines += [f"- {one.experiment.name}: {' '.join(one.describe())}" for one in behind]
        lines += [""] if behind else []
    for paper, sections in groupby(report.sections, lambda one: one.experiment.paper):
        lines += [f"## {paper}", ""]
        for section in sections:
            lines += write_section(section)
    return "\n".join(lines)


def write_headlines(headlines: list[Judged]) -> list[str]:
    """Each headline's verdict, then the rules that judge it."""
    cells = [[one.headline.claim, one.headline.paper, one.verdict] for one in headlines]
    lines = [*write_table(Table(["headline", "paper", "verdict"], cells)), ""]
    for one in headlines:
        lines += [f"**{one.headline.claim}** {one.verdict.capitalize()}.", ""]
        lines += [
            f"- {'holds' if check.holds else 'does not hold'}: {check.rule}. Found: {check.found}."
            for check in one.checks
        ]
        lines += ["", one.why, ""] if one.why and one.checks else [one.why, ""]
    return lines


def write_section(section: Section) -> list[str]:
    """One experiment."""
    experiment = section.experiment
    lines = [f"### {experiment.name}: {experiment.title}", ""]
    if experiment.claim:
        lines += [f"*The paper:* {experiment.claim}", ""]
    lines += [f"- {sentence}" for sentence in section.verdict]
    lines += ["", *write_table(section.table())]
    for note in section.notes:
        lines += ["", note]
    if (published := section.published()) is not None:
        lines += ["", "As published:", "", *write_table(published)]
    return [*lines, ""]


def write_table(table: Table) -> list[str]:
    """A table of pipes."""
    rows = [table.headings, ["---"] * len(table.headings), *table.cells]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
