"""The report as Markdown: verdicts and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lab.experiments.report import describe_runs

if TYPE_CHECKING:
    from tamis.lab.experiments.report import Section, Table


def write_markdown(sections: list[Section]) -> str:
    """The whole report."""
    lines = ["# The lab's report", "", *(f"- {line}" for line in describe_runs(sections)), ""]
    paper = ""
    for section in sections:
        if section.experiment.paper != paper:
            paper = section.experiment.paper
            lines += [f"## {paper}", ""]
        lines += write_section(section)
    return "\n".join(lines)


def write_section(section: Section) -> list[str]:
    """One experiment."""
    experiment = section.experiment
    lines = [f"### {experiment.name}: {experiment.title}", ""]
    if experiment.told:
        lines += [f"*The paper:* {experiment.told}", ""]
    lines += [f"- {sentence}" for sentence in section.verdict]
    lines += ["", *write_table(section.table())]
    for note in section.notes:
        lines += ["", note]
    return [*lines, ""]


def write_table(table: Table) -> list[str]:
    """A table of pipes."""
    rows = [table.headings, ["---"] * len(table.headings), *table.cells]
    return [f"| {' | '.join(cell.replace('|', '/') for cell in row)} |" for row in rows]
