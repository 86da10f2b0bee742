"""Plots as SVG, to stand inside an HTML page."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from tamis.errors import MissingDependencyError
from tamis.lab.experiments.experiment import ALGORITHM, series

if TYPE_CHECKING:
    from tamis.lab.experiments.experiment import Chart, Row

MARKERS = "osD^vP*Xhd<>"
COLOURS = 10


def draw(chart: Chart, rows: list[Row], name: str) -> str:
    """A line for each algorithm that has the chart's measure; the same SVG for the same rows."""
    try:
        import matplotlib as mpl
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingDependencyError(
            "plots need the package matplotlib", hint="pip install 'tamis[lab]'"
        ) from None
    # Text stays text, and ids differ between the plots of a page.
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9}):
        figure = Figure(figsize=(6.4, 3.4), layout="constrained")
        axes = figure.add_subplot()
        for number, algorithm in enumerate(dict.fromkeys(row[ALGORITHM] for row in rows)):
            line = series(rows, chart.x, chart.y, algorithm)
            if line:
                marker, colour = MARKERS[number % len(MARKERS)], f"C{number % COLOURS}"
                axes.plot(
                    list(line), list(line.values()), marker, ls="-", c=colour, label=algorithm
                )
        axes.set_xlabel(chart.x)
        axes.set_ylabel(chart.y)
        axes.set_xticks(sorted({row[chart.x] for row in rows}))
        if chart.is_log:
            axes.set_yscale("log")
        else:
            axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
        axes.legend(fontsize=8)
        drawn = io.StringIO()
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    return drawn.getvalue()[drawn.getvalue().index("<svg") :]
