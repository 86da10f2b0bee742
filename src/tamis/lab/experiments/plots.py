"""Plots as SVG, embedded in an HTML page."""

from __future__ import annotations

import io
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tamis.errors import MissingDependencyError
from tamis.lab.experiments.experiment import ALGORITHM, BATCH, SINGLE, series

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Chart, Row

MARKERS = "osD^vP*Xhd<>"
COLOURS = 10
OURS = {BATCH: "-", SINGLE: "--"}  # the product's lines are black
WIDE = 20  # from this ratio on, x is logarithmic if y is
MOST_NAMES = 12  # minimum ratio of adjacent ticks


def draw(chart: Chart, rows: list[Row], name: str) -> str:
    """A line for each algorithm that has the chart's measure; equal rows give equal SVG."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError(
            "plots need the package matplotlib", hint="pip install 'tamis[lab]'"
        ) from None
    # Text stays text, and ids are unique among the plots of a page.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9}):
        figure = Figure(figsize=(7.6, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for number, algorithm in enumerate(dict.fromkeys(row[ALGORITHM] for row in rows)):
            _draw_line(axes, chart, rows, algorithm, number)
        _scale(axes, chart, rows)
        axes.grid(visible=True, alpha=0.3)
        figure.legend(loc="outside right upper", fontsize=8, frameon=False)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]


def _draw_line(axes: Any, chart: Chart, rows: list[Row], algorithm: str, number: int) -> None:
    """An algorithm's values at each `x`; a constant line if they do not depend on `x`."""
    colour = "black" if algorithm in OURS else f"C{number % COLOURS}"
    style = {"ls": OURS.get(algorithm, "-"), "c": colour, "label": algorithm}
    line = series(rows, chart.x, chart.y, algorithm)
    if line:
        marker = "" if algorithm in OURS else MARKERS[number % len(MARKERS)]
        axes.plot(list(line), list(line.values()), marker=marker, ms=5, **style)
    for row in rows:
        if row[ALGORITHM] == algorithm and chart.x not in row and chart.y in row:
            axes.axhline(row[chart.y], **style)


def _scale(axes: Any, chart: Chart, rows: list[Row]) -> None:
    """Axes and their ticks: one for each setting, labelled if there is room."""
    ticks = sorted({row[chart.x] for row in rows if chart.x in row})
    if chart.is_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    else:
        axes.set_ylim(bottom=0)
    if chart.is_log and ticks[0] > 0 and ticks[-1] >= WIDE * ticks[0]:
        axes.set_xscale("log")
        axes.set_xticks([], minor=True)
        named = ticks
    else:
        room = (ticks[-1] - ticks[0]) / MOST_NAMES
        named = ticks[:1] + [after for at, after in pairwise(ticks) if after - at >= room]
    axes.set_xticks(ticks, [f"{tick:,}" if tick in named else "" for tick in ticks])
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
