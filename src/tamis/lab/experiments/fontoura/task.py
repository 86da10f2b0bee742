"""Shared by Fontoura's experiments: the workload at a setting, and all algorithms."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.lab.experiments.experiment import PROCESS_BYTES
from tamis.lab.experiments.measure import Task, build_index, measure_all
from tamis.lab.fontoura import Dewey, Dnf, Interval, Scan, ScanConjunctions
from tamis.lab.workloads.fontoura import Fontoura, FontouraParams

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.lab.experiments.experiment import Row, Setting

PAPER: Final = "Fontoura 2010"
DEWEY, INTERVAL, DNF = Dewey.name, Interval.name, Dnf.name
SCAN, SCAN_CONJUNCTIONS = Scan.name, ScanConjunctions.name
EVERY: Final = (SCAN, SCAN_CONJUNCTIONS, DNF, DEWEY, INTERVAL)
ANNOTATED: Final = (DEWEY, INTERVAL)

INDEX = "index microseconds"
SORT = "sort microseconds"
EVALUATE = "evaluate microseconds"
SELECTIVITY = "selectivity %"

CHILDREN = 2.25  # children of a node, on average
CONJUNCTION_BYTES = 2_500  # of a leaf occurrence in the trees, the texts and all machines together


def run(setting: Setting, seed: int, names: Iterable[str]) -> list[Row]:
    """The rows of a setting: depth, numbers of expressions and events, optionally selectivity."""
    workload = Fontoura(
        FontouraParams(
            n_expressions=setting["expressions"],
            max_depth=setting["depth"],
            selectivity=setting.get("share"),
            n_queries=setting["events"],
            seed=seed,
        )
    )
    n_events = setting["events"]
    task = Task(
        dict(enumerate(workload.trees())),
        workload.n_leaves,
        workload.leaves(n_events),
        build_index(workload.expressions(), workload.schema),
        workload.events(n_events),
        workload.event_table(n_events),
    )
    rows = measure_all(task, names)
    for row in rows:
        if "matches" in row:
            row[SELECTIVITY] = 100 * row["matches"] / setting["expressions"]
    return rows


def estimate(setting: Setting) -> int:
    """An estimate of the bytes that a setting needs."""
    n_leaves = setting["expressions"] * CHILDREN ** setting["depth"]
    n_matches = setting["expressions"] * setting["events"]
    return PROCESS_BYTES + int(n_leaves * CONJUNCTION_BYTES + 60 * n_matches)
