"""Runs machines and the product on the same input in the same process: times, counts, equal
answers.
"""

from __future__ import annotations

import gc
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import tamis
from tamis.errors import TamisError
from tamis.lab.experiments.experiment import ALGORITHM, BATCH, MICROSECONDS, SINGLE
from tamis.lab.forest import RanOutError, Rows
from tamis.lab.machines import find_machine

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from tamis.lab.experiments.experiment import Row
    from tamis.lab.forest import Tree
    from tamis.lab.machine import Machine
    from tamis.match.index import Index

N_REPEATS = 3  # passes, of which the best is taken; two for slow ones
LONG_SECONDS = 0.2
LEAST_SECONDS = 0.02  # of a timed pass; a shorter call is repeated


class DisagreementError(TamisError):
    """Two algorithms return different matches."""


@dataclass(frozen=True, slots=True)
class Task:
    """The common input: expressions as trees and as an index, events as leaves and as dicts."""

    trees: Mapping[int, Tree]  # by ordinal in the index
    n_leaves: int
    satisfied: Rows
    index: Index
    events: Sequence[Mapping[str, Any]]
    table: Any  # the events as an Arrow table, or any form that the index encodes


def cpu_seconds(function: Callable[[], Any], n_repeats: int = N_REPEATS) -> float:
    """The minimum CPU time of a call, after one call to warm up."""
    begun = time.process_time()
    function()
    took = time.process_time() - begun
    n_calls = 1 + int(LEAST_SECONDS / max(took, 1e-6))
    n_repeats = min(n_repeats, 2) if took > LONG_SECONDS else n_repeats
    best = float("inf")
    gc.disable()
    try:
        for _ in range(n_repeats):
            begun = time.process_time()
            for _ in range(n_calls):
                function()
            best = min(best, (time.process_time() - begun) / n_calls)
    finally:
        gc.enable()
    return best


def measure_all(task: Task, names: Iterable[str]) -> list[Row]:
    """A row for each machine of these names, and for the product's two matchers.

    Times are CPU microseconds per event. The machines get the satisfied leaves; the product finds
    them itself, from encoded events in a batch and from a dict for a single event.
    """
    wanted, rows = measure_product(task)
    return [measure_machine(find_machine(name), task, wanted) for name in names] + rows


def measure_machine(make: type[Machine], task: Task, wanted: Rows) -> Row:
    """The row of a machine; if it could not be built, only the reason."""
    begun = time.process_time()
    try:
        machine = make(task.trees, task.n_leaves)
    except RanOutError as error:
        return {ALGORITHM: make.name, "ran out": error.message}
    built = time.process_time() - begun
    compare(machine.match(task.satisfied), wanted, make.name)
    phases: dict[str, float] = {}

    def run() -> None:
        machine.find(task.satisfied)
        for phase, seconds in getattr(machine, "seconds", {}).items():
            phases[phase] = min(seconds, phases.get(phase, seconds))

    n_events = len(task.satisfied)
    row: Row = {
        ALGORITHM: make.name,
        MICROSECONDS: 1e6 * cpu_seconds(run) / n_events,
        "megabytes": machine.n_bytes / 1e6,
        "build seconds": built,
        "matches": len(wanted.values) / n_events,
    }
    if hasattr(machine, "n_nodes"):
        row["index nodes"] = machine.n_nodes
    row |= {f"{phase} microseconds": 1e6 * took / n_events for phase, took in phases.items()}
    return row | {name: count / n_events for name, count in machine.counts.items()}


def measure_product(task: Task) -> tuple[Rows, list[Row]]:
    """The product's matches and its rows: a batch of events, and one event at a time."""
    index, n_events = task.index, len(task.events)
    encoded = index.encode(task.table)
    found = matches_of(index, encoded, n_events)
    compare(single_matches(task), found, SINGLE)
    shared: Row = {
        "megabytes": product_bytes(index) / 1e6,
        "matches": len(found.values) / n_events,
        "index nodes": index.contents.n_nodes,
    }
    batch = cpu_seconds(lambda: index.match_batch(encoded)) / n_events
    single = cpu_seconds(lambda: [index.match(event) for event in task.events]) / n_events
    return found, [
        {ALGORITHM: BATCH, MICROSECONDS: 1e6 * batch} | shared,
        {ALGORITHM: SINGLE, MICROSECONDS: 1e6 * single} | shared,
    ]


def build_index(expressions: Iterable[str], schema: Any, **options: Any) -> Index:
    """The product's index; the ordinal of an expression is its position."""
    numbered = ((str(number), text) for number, text in enumerate(expressions))
    index = tamis.build(numbered, schema, **options)
    if index.rejects:
        raise index.rejects[0]
    return index


def product_bytes(index: Index) -> int:
    """The arrays that matching reads."""
    contents = index.contents
    parts = (contents.leaves, contents.nodes, contents.roots, contents.triggers)
    return sum(array.nbytes for part in parts for array in part)


def matches_of(index: Index, encoded: Any, n_events: int) -> Rows:
    """The ordinals that the product finds for each event, ascending."""
    table = index.match_batch(encoded).combine_chunks()
    events = table["event_row"].to_numpy()
    ids = table["subscription_id"].combine_chunks()
    ordinals = ids.indices.to_numpy() if table.num_rows else np.empty(0, dtype=np.int32)
    return sort_pairs(events, ordinals, n_events)


def single_matches(task: Task) -> Rows:
    """The same for one event at a time."""
    found = [task.index.match(event) for event in task.events]
    events = np.repeat(np.arange(len(found)), [len(ids) for ids in found])
    ordinals = np.array([int(one) for ids in found for one in ids], dtype=np.int32)
    return sort_pairs(events, ordinals, len(found))


def sort_pairs(events: np.ndarray, ordinals: np.ndarray, n_events: int) -> Rows:
    """Pairs of an event and an ordinal, as rows."""
    order = np.lexsort((ordinals, events))
    starts = np.zeros(n_events + 1, dtype=np.int64)
    np.cumsum(np.bincount(events, minlength=n_events), out=starts[1:])
    return Rows(starts, ordinals[order].astype(np.int32))


def compare(found: Rows, wanted: Rows, name: str) -> None:
    """Raise an error if an algorithm answers wrongly, before it is timed."""
    for row in range(len(wanted)):
        if not np.array_equal(found[row], wanted[row]):
            differ = np.setxor1d(found[row], wanted[row])
            raise DisagreementError(
                f"{name} and {BATCH} differ for event {row} "
                f"on {len(differ):,} expressions, such as {differ[0]}"
            )
