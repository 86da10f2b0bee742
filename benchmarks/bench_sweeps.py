"""How the cost of a batch moves with one parameter of the workload at a time.

Each sweep varies one parameter of ABE-Gen (A-Tree Table 3) around its defaults. The plots are kept
next to the rows: one panel per parameter, cost per event against it, and what it makes of the
number of matches, without which the cost cannot be read.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tamis
from benchmarks.bench_engine import cpu_time
from tamis.errors import TamisError
from tamis.lab.workloads import AbeGen, AbeParams
from tamis.match.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

TITLE = "a batch's cost by block width, dimensions, event size, selectivity, sharing and depth"
PLOTS: Final = Path(__file__).with_name("results") / "sweeps.svg"
Row = dict[str, Any]

SIZES: Final = {"tiny": (200, 64), "small": (20_000, 4_096), "full": (100_000, 4_096)}
# Operators in the order of Table 3: AND, OR, NOT, XOR, XNOR. More ORs make more matches.
_AND_TO_OR: Final = (0.1, 0.25, 0.4, 0.55, 0.7)


def run() -> list[Row]:
    """One row per parameter and value."""
    name = os.environ.get("TAMIS_BENCH_SIZE", "small")
    if name not in SIZES:
        raise TamisError(f"TAMIS_BENCH_SIZE is {name!r}; allowed: {', '.join(SIZES)}")
    n_expressions, n_events = SIZES[name]
    defaults = AbeParams(n_expressions=n_expressions)
    rows = list(sweep_widths(defaults, n_events))
    for parameter, settings in sweeps(defaults):
        for value, params in settings:
            rows.append({"parameter": parameter, "value": value} | measure(params, n_events))
    draw(rows)
    return rows


def sweeps(defaults: AbeParams) -> Iterator[tuple[str, list[tuple[float, AbeParams]]]]:
    """The parameters and the settings of each."""
    for name, values in {
        "n_dimensions": (50, 200, 1_000, 4_000),
        "event_size": (5, 10, 20, 40, 80),
        "alpha": (0.0, 0.3, 0.6, 0.9),
        "depth": (1, 2, 3, 4, 5),
    }.items():
        # Two children keep the number of predicates of deep expressions within reason.
        base = replace(defaults, n_children=2) if name == "depth" else defaults
        yield name, [(value, replace(base, **{name: value})) for value in values]
    shares = [
        (or_share, replace(defaults, operator_shares=(0.8 - or_share, or_share, 0.1, 0.05, 0.05)))
        for or_share in _AND_TO_OR
    ]
    yield "share of OR (selectivity)", shares


def sweep_widths(defaults: AbeParams, n_events: int) -> Iterator[Row]:
    """The same index and events in blocks of several widths."""
    workload = AbeGen(defaults)
    index = build(workload)
    events = workload.event_table(n_events)
    for n_groups in (1, 2, 4, 8):
        wide = Index(index.contents, n_groups=n_groups)
        measured = measure_index(wide, events)
        yield {"parameter": "block width", "value": 512 * n_groups} | measured


def measure(params: AbeParams, n_events: int) -> Row:
    """The cost of a batch under these parameters."""
    workload = AbeGen(params)
    return measure_index(build(workload), workload.event_table(n_events))


def build(workload: AbeGen) -> Index:
    """An index of the workload's expressions."""
    texts = workload.expressions()
    return tamis.build([(f"s{at}", text) for at, text in enumerate(texts)], workload.schema)


def measure_index(index: Index, events: Any) -> Row:
    """Cost and matches per event, nodes and links per expression."""
    batch = index.encode(events)
    nodes = index.contents.nodes
    return {
        "expressions": len(index),
        "µs/event": cpu_time(lambda: index.match_batch(batch)) / batch.n_rows * 1e6,
        "counts, µs/event": cpu_time(lambda: index.count_by_subscription(batch))
        / batch.n_rows
        * 1e6,
        "matches/event": float(index.count_by_event(batch).mean()),
        "inner nodes/expression": len(nodes.operators) / max(1, len(index)),
        "links/expression": len(nodes.children) / max(1, len(index)),
    }


def draw(rows: Sequence[Row]) -> None:
    """One panel per parameter."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(row["parameter"] for row in rows))
    figure, panels = pyplot.subplots(2, (len(names) + 1) // 2, figsize=(13, 7), squeeze=False)
    for name, panel in zip(names, panels.flat, strict=False):
        own = [row for row in rows if row["parameter"] == name]
        values = [row["value"] for row in own]
        panel.plot(values, [row["µs/event"] for row in own], "o-", label="pairs, µs/event")
        panel.plot(
            values, [row["counts, µs/event"] for row in own], "s--", label="counts, µs/event"
        )
        panel.set_xlabel(name)
        panel.set_ylim(bottom=0)
        matches = panel.twinx()
        matches.plot(values, [row["matches/event"] for row in own], ":", color="grey")
        matches.set_ylim(bottom=0)
        matches.set_ylabel("matches/event", color="grey")
    panels.flat[0].legend()
    for panel in panels.flat[len(names) :]:
        panel.set_visible(False)
    figure.tight_layout()
    PLOTS.parent.mkdir(exist_ok=True)
    figure.savefig(PLOTS)
    pyplot.close(figure)
