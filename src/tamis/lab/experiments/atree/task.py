"""Shared by the A-Tree paper's experiments: the workload at a setting, and all algorithms."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tamis.lab.atree.a_tree import ATree
from tamis.lab.atree.bdd import BDD
from tamis.lab.atree.bop import BoP
from tamis.lab.atree.by_predicate import DeweyByPredicate, IntervalByPredicate
from tamis.lab.atree.translation import Translation
from tamis.lab.experiments.experiment import ALGORITHM, HANDED, PROCESS_BYTES, PRODUCT, series
from tamis.lab.experiments.measure import Task, build_index, cpu_seconds, measure_all
from tamis.lab.fontoura import Dewey, Interval, Scan
from tamis.lab.forest import Forest, RanOutError, to_and_or
from tamis.lab.workloads import AbeGen, AbeParams, AdsLike, AdsLikeParams

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.lab.experiments.experiment import Row, Setting
    from tamis.lab.forest import Tree

PAPER: Final = "Ji and Jacobsen 2021"
A_TREE, BOP, BDDS, TRANSLATION = ATree.name, BoP.name, BDD.name, Translation.name
DEWEY, INTERVAL, SCAN = DeweyByPredicate.name, IntervalByPredicate.name, Scan.name
# The paper assigns ids to predicates; Fontoura's original algorithms, for conjunctions, are also
# shown.
DEWEY_2010, INTERVAL_2010 = Dewey.name, Interval.name
COMPARED: Final = (A_TREE, BDDS, TRANSLATION, BOP, INTERVAL, SCAN)  # as in §6.4
SWEPT: Final = (*COMPARED, INTERVAL_2010)
EVERY: Final = (*SWEPT, DEWEY, DEWEY_2010)
MEGABYTES, BUILD, RAN_OUT, LEFT_OUT = "megabytes", "build seconds", "ran out", "left out"
PREDICATE_BYTES: Final = 4_000  # per predicate occurrence, in texts, trees and all machines

# Settings that are parameters of ABE-Gen, by their name in tables.
PARAMETERS: Final = {
    "depth": "depth",
    "children": "n_children",
    "alpha": "alpha",
    "dimensions": "n_dimensions",
    "cardinality": "cardinality",
    "dimension alpha": "dimension_alpha",
    "event size": "event_size",
}


def make_workload(setting: Setting, seed: int) -> AbeGen | AdsLike:
    """The synthetic workload, or advertisements."""
    n = setting["expressions"]
    if setting.get("workload") == "ads":
        return AdsLike(AdsLikeParams(n_expressions=n, seed=seed))
    given = {name: setting[ours] for ours, name in PARAMETERS.items() if ours in setting}
    given.setdefault("event_size", min(20, given.get("n_dimensions", 20)))
    return AbeGen(AbeParams(n_expressions=n, seed=seed, **given))


class Prepared:
    """A task, its forest, and the cost of building the product's index."""

    def __init__(self, setting: Setting, seed: int) -> None:
        workload: Any = make_workload(setting, seed)
        texts = workload.expressions()
        self.build_seconds, index = _build(texts, workload.schema)
        forest = Forest(index)
        kept = [at for at, tree in enumerate(forest.trees) if _has_and_or(tree)]
        self.n_left_out = len(texts) - len(kept)
        if self.n_left_out:
            self.build_seconds, index = _build([texts[at] for at in kept], workload.schema)
            forest = Forest(index)
        events = workload.events(setting["events"])
        trees = dict(enumerate(forest.trees))
        satisfied = forest.satisfied(events)
        table = workload.event_table(setting["events"])
        self.forest = forest
        self.task = Task(trees, forest.n_leaves, satisfied, index, events, table)

    def rearrange(self, trees: Mapping[int, Tree]) -> None:
        """Give the algorithms these equivalent trees instead."""
        self.task = replace(self.task, trees=trees)

    def finish(self, rows: list[Row]) -> list[Row]:
        """The rows with the columns that they share."""
        handed = cpu_seconds(lambda: self.forest.satisfied(self.task.events), n_repeats=2)
        for row in rows:
            if row[ALGORITHM] in PRODUCT:
                row[BUILD] = self.build_seconds
                row[HANDED] = 1e6 * handed / len(self.task.events)
            row[LEFT_OUT] = self.n_left_out
        return rows


def _build(texts: list[str], schema: Any) -> tuple[float, Any]:
    begun = time.process_time()
    index = build_index(texts, schema)
    return time.process_time() - begun, index


def _has_and_or(tree: Tree) -> bool:
    """Whether the tree can be written with AND and OR, as most of the algorithms require."""
    try:
        to_and_or(tree)
    except RanOutError:
        return False
    return True


def run(setting: Setting, seed: int, names: Iterable[str] = SWEPT) -> list[Row]:
    """The rows of all algorithms at a setting."""
    prepared = Prepared(setting, seed)
    return prepared.finish(measure_all(prepared.task, names))


def estimate(setting: Setting) -> int:
    """An estimate of the bytes that a setting needs."""
    n_predicates = (0.875 * setting.get("children", 4)) ** (setting.get("depth", 3) - 1)
    return PROCESS_BYTES + int(setting["expressions"] * max(10, n_predicates) * PREDICATE_BYTES)


# ── sentences ───────────────────────────────────────────────────────────────────────────────


def rank(rows: list[Row], x: str, y: str, names: Iterable[str] = COMPARED) -> list[str]:
    """The algorithms sorted by `y` at the last `x` that most of them reach."""
    own = {name: series(rows, x, y, name) for name in names}
    last = max({row[x] for row in rows if sum(row[x] in values for values in own.values()) > 2})
    known = {name: values[last] for name, values in own.items() if last in values}
    return sorted(known, key=lambda name: known[name])


def ran_out_at(rows: list[Row], x: str, name: str) -> list[Any]:
    """The settings at which an algorithm ran out."""
    return sorted(row[x] for row in rows if row[ALGORITHM] == name and row.get(RAN_OUT))


def describe_ran_out(rows: list[Row], x: str, claims: dict[str, str]) -> list[str]:
    """A sentence for each algorithm that ran out here or in the paper."""
    sentences = []
    for name, paper in claims.items():
        here = ran_out_at(rows, x, name)
        found = f"runs out from {x} {here[0]} on" if here else "does not run out here"
        sentences.append(f"{name} {found} (paper: {paper}).")
    return sentences
