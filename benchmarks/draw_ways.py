"""Draw where an event's time goes, from the rows that `bench_ways` has stored.

make bench BENCH=ways && .venv/bin/python -m benchmarks.draw_ways docs/ways.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from benchmarks.bench_ways import STAGES

if TYPE_CHECKING:
    from collections.abc import Sequence

ROWS: Final = Path(__file__).with_name("results") / "ways.json"
PICTURE: Final = ROWS.with_name("ways.svg")
COLORS: Final = ("#1f77b4", "#ff7f0e", "#2ca02c", "#d62728", "#7f7f7f")
NARROW: Final = 0.06  # of the axis: narrower pieces have no number


def draw(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """One panel per workload, one bar per way in, in pieces by stage."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    matplotlib.rcParams["svg.hashsalt"] = "tamis"  # equal rows give equal files
    names = list(dict.fromkeys(row["events"] for row in rows))
    figure, panels = pyplot.subplots(
        len(names), 1, figsize=(10, 0.6 + 3.4 * len(names)), squeeze=False
    )
    for name, panel in zip(names, panels.flat, strict=True):
        _draw_panel(panel, name, [row for row in rows if row["events"] == name])
    handles, labels = panels.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="lower center", ncols=len(STAGES), frameon=False)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def _draw_panel(panel: Any, name: str, rows: Sequence[dict[str, Any]]) -> None:
    longest = max(row["total"] for row in rows)
    places = range(len(rows))
    starts = [0.0] * len(rows)
    for stage, color in zip(STAGES, COLORS, strict=True):
        widths = [row[stage] for row in rows]
        panel.barh(places, widths, left=starts, height=0.7, color=color, label=stage)
        for place, width, start in zip(places, widths, starts, strict=True):
            if width >= NARROW * longest:
                panel.text(
                    start + width / 2,
                    place,
                    f"{width:.1f}",
                    ha="center",
                    va="center",
                    color="white",
                    fontsize=9,
                )
        starts = [start + width for start, width in zip(starts, widths, strict=True)]
    for place, row in zip(places, rows, strict=True):
        panel.text(row["total"] + longest / 100, place, f"{row['total']:.1f}", va="center")
    panel.set_yticks(places, [row["way"] for row in rows])
    panel.invert_yaxis()
    panel.set_xlim(0, 1.08 * longest)
    panel.set_xlabel("µs of CPU per event")
    panel.set_title(name, loc="left", fontsize=11)
    panel.spines[["top", "right"]].set_visible(False)


def main(arguments: Sequence[str]) -> None:
    """Draw the stored rows."""
    path = Path(arguments[0]) if arguments else PICTURE
    draw(json.loads(ROWS.read_text(encoding="utf-8"))["rows"], path)
    print(f"the picture is in {path}")


if __name__ == "__main__":
    main(sys.argv[1:])
