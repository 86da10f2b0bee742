"""The report as one self-contained HTML file."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import TYPE_CHECKING

from tamis.lab.experiments.experiment import ALGORITHM, SINGLE
from tamis.lab.experiments.plots import draw
from tamis.lab.experiments.report import INTRODUCTION, describe_runs, table_of_standings
from tamis.lab.experiments.steadiness import describe_steadiness, table_of_repeats
from tamis.lab.experiments.tables import Table

if TYPE_CHECKING:
    from tamis.lab.experiments.report import Judged, Report, Section

TEXTS = (ALGORITHM, "ran out", "experiment", "measure", "best of the others", "behind at", "sweeps")
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #222; background: #fff; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid #ccc; }
h3 { margin-top: 2.5rem; } code { background: #f2f2f2; padding: 0 .2em; }
table { border-collapse: collapse; margin: 1rem 0; font-size: 13px; display: block;
  overflow-x: auto; }
th, td { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid #e4e4e4; }
th.text, td.text { text-align: left; } tr.ours td { background: #eef6ee; }
svg { max-width: 100%; height: auto; } ul.verdict { background: #f6f6f6; padding: .6rem 2rem; }
.small { color: #666; font-size: 13px; }
.badge { font-size: 13px; font-weight: normal; padding: .1rem .6rem; border-radius: 1rem;
  background: #eee; white-space: nowrap; }
.yes { background: #d8efd8; } .no { background: #f6e3cf; }
"""


def write_page(report: Report) -> str:
    """The whole report."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8"><title>Tamis: the lab\'s report</title>',
        f"<style>{STYLE}</style></head><body>",
        "<h1>The lab's report</h1>",
        f"<p>{escape(INTRODUCTION)}</p>",
        list_of(describe_runs(report.sections), "small"),
        "<h2>The papers' headlines</h2>",
        *(write_headline(judged) for judged in report.headlines),
    ]
    if repeats := report.repeats:
        parts += [
            "<h2>How steady the times are</h2>",
            f"<p>{escape(describe_steadiness(repeats))}</p>",
        ]
        parts.append(write_table(table_of_repeats(repeats)))
    if standings := report.standings:
        parts += ["<h2>Where Tamis stands</h2>", write_table(table_of_standings(standings))]
        behind = [one for one in standings if one.behind]
        reasons = [f"{one.experiment.name}: {' '.join(one.describe())}" for one in behind]
        parts += [list_of(reasons, "verdict")] if reasons else []
    parts += ["<h2>All experiments</h2>", write_contents(report.sections)]
    for paper, sections in groupby(report.sections, lambda one: one.experiment.paper):
        parts += [f"<h2>{escape(paper)}</h2>", *map(write_section, sections)]
    return "\n".join([*parts, "</body></html>", ""])


def write_headline(judged: Judged) -> str:
    """A headline: its verdict, its rules and findings, and the reason if a rule is violated."""
    kind = {"reproduces": "yes", "not measured": ""}.get(judged.verdict, "no")
    badge = f'<span class="badge {kind}">{judged.verdict}</span>'
    parts = [
        f"<h3>{escape(judged.headline.claim)} {badge}</h3>",
        f'<p class="small">{escape(judged.headline.paper)}</p>',
    ]
    if judged.checks:
        cells = [
            [check.rule, check.found, "holds" if check.holds else "does not hold"]
            for check in judged.checks
        ]
        parts.append(write_table(Table(["rule", "found", ""], cells), texts={0, 1, 2}))
    parts += [f"<p>{escape(judged.why)}</p>"] if judged.why else []
    return "\n".join(parts)


def write_contents(sections: list[Section]) -> str:
    """Links to all experiments."""
    experiments = [section.experiment for section in sections]
    links = [f'<a href="#{one.name}">{one.name}</a>: {escape(one.title)}' for one in experiments]
    return "<ul>" + "".join(f"<li>{link}</li>" for link in links) + "</ul>"


def write_section(section: Section) -> str:
    """One experiment: verdict, plots, tables."""
    experiment = section.experiment
    parts = [f'<h3 id="{experiment.name}">{experiment.name}: {escape(experiment.title)}</h3>']
    if experiment.claim:
        parts.append(f"<p><i>The paper:</i> {escape(experiment.claim)}</p>")
    parts.append(list_of(section.verdict, "verdict"))
    for number, chart in enumerate(experiment.charts):
        parts.append(draw(chart, section.rows, f"{experiment.name}-{number}"))
    parts.append(write_table(section.table(), experiment.ours))
    parts += [f'<p class="small">{escape(note)}</p>' for note in section.notes]
    if (published := section.published()) is not None:
        parts += ["<p>As published:</p>", write_table(published)]
    return "\n".join(parts)


def list_of(sentences: list[str], name: str) -> str:
    """Sentences below each other."""
    items = "".join(f"<li>{escape(sentence)}</li>" for sentence in sentences)
    return f'<ul class="{name}">{items}</ul>'


def write_table(table: Table, ours: str = "", texts: set[int] | None = None) -> str:
    """A table; numbers are right-aligned, texts left-aligned, the product's rows coloured."""
    texts = texts or {at for at, name in enumerate(table.headings) if name in TEXTS}

    def write_row(tag: str, cells: list[str]) -> str:
        classes = [' class="text"' if place in texts else "" for place in range(len(cells))]
        return "".join(
            f"<{tag}{kind}>{escape(cell)}</{tag}>"
            for cell, kind in zip(cells, classes, strict=True)
        )

    rows = [
        f"<tr{' class=ours' if {ours, SINGLE} & set(cells) else ''}>{write_row('td', cells)}</tr>"
        for cells in table.cells
    ]
    head = f"<thead><tr>{write_row('th', table.headings)}</tr></thead>"
    return f"<table>{head}<tbody>{''.join(rows)}</tbody></table>"
