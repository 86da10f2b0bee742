"""How fast is the engine? Against what users do without an index, in the same run.

Times are CPU times of one process, the best of a few passes after one to warm up; kernels are
compiled and caches filled before. What an engine answers is compared with what the baseline
answers before either is timed. `TAMIS_BENCH_SIZE` chooses the sizes: `small` (the default) goes to
100,000 expressions, `full` to a million, which takes a good while; `tiny` only shows that all runs.
"""

from __future__ import annotations

import gc
import json
import os
import tempfile
import time
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import tamis
from benchmarks.baselines import Lambdas, NumpyScan, PlainScan, PolarsSelect
from tamis.errors import TamisError
from tamis.lab.workloads import (
    AbeGen,
    AbeParams,
    InSets,
    InSetsParams,
    SigmaLike,
    SigmaLikeParams,
)
from tamis.language import Schema, check, parse
from tamis.match.index import Index
from tamis.match.learn import learn

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tamis.language.ast import Condition

TITLE = "the engine against a NumPy scan, compiled lambdas and Polars"
Row = dict[str, Any]
Event = dict[str, Any]

N_REPEATS: Final = 3
N_COMPARED: Final = 4  # events whose matches are compared with the baseline's
NUMPY_BATCH: Final = 64  # events at once: more no longer helps
POLARS_BATCH: Final = 2_000
# Beyond these a baseline takes minutes to prepare, and its cost is known to grow linearly.
MOST_LAMBDAS: Final = 100_000
MOST_POLARS: Final = 10_000


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    abe: tuple[int, ...]  # numbers of expressions
    in_sets: int
    sigma: int
    n_events: int  # of a batch; fewer for the largest
    n_slow_events: int  # of baselines that take them one by one


SIZES: Final = {
    "tiny": Size((300, 900), in_sets=500, sigma=60, n_events=100, n_slow_events=4),
    "small": Size(
        (10_000, 100_000), in_sets=100_000, sigma=4_000, n_events=8_192, n_slow_events=20
    ),
    "full": Size(
        (10_000, 100_000, 1_000_000), in_sets=100_000, sigma=4_000, n_events=8_192, n_slow_events=20
    ),
}


def run() -> list[Row]:
    """One row per measure and baseline."""
    # Before Polars is imported: everything here is measured on one core.
    os.environ.setdefault("POLARS_MAX_THREADS", "1")
    size = choose_size()
    rows: list[Row] = []
    for n in size.abe:
        rows += measure_abe_gen(n, size)
    rows += compare_sizes(rows)
    rows += measure_in_sets(size)
    rows += measure_sigma_like(size)
    return rows


def choose_size() -> Size:
    """The size that TAMIS_BENCH_SIZE names."""
    name = os.environ.get("TAMIS_BENCH_SIZE", "small")
    if name not in SIZES:
        raise TamisError(f"TAMIS_BENCH_SIZE is {name!r}; allowed: {', '.join(SIZES)}")
    return SIZES[name]


@dataclass(frozen=True, slots=True)
class Case:
    """An index and its baselines' input; `batch` holds the events as a table."""

    table: Table
    index: Any
    conditions: list[Condition]
    events: list[Event]
    batch: Any

    def time(self, function: Callable[[], Any]) -> float:
        """CPU seconds per event of a call that takes the whole batch."""
        return cpu_time(function) / len(self.events)


# ── ABE-Gen ─────────────────────────────────────────────────────────────────────────────────


def measure_abe_gen(n: int, size: Size) -> list[Row]:
    """The A-Tree paper's default workload with `n` expressions."""
    workload = AbeGen(AbeParams(n_expressions=n))
    table = Table("ABE-Gen", n)
    index = measure_build(table, workload.expressions(), workload.schema)
    measure_artefact(table, index)
    # Matches grow with n: a million expressions make 43,000 of them for each event.
    n_events = min(size.n_events, max(2_048, 800_000_000 // n))
    events, batch = workload.events(n_events), workload.event_table(n_events)
    case = Case(table, index, workload.conditions(), events, batch)
    describe_abe_gen(case, workload)
    measure_batch(case)
    measure_scans(case, max(2, min(size.n_slow_events, 2_000_000 // n)))
    measure_polars(case)
    measure_counts(case)
    measure_single(case, size.n_slow_events)
    return table.rows


def describe_abe_gen(case: Case, workload: AbeGen) -> None:
    """What the workload came out as."""
    table = case.table
    levels = workload.sharing()
    n_pairs = int(case.index.count_by_event(case.batch).sum())
    table.add("predicates of an expression", levels[0].n_uses / table.n)
    table.add("uses of a predicate", levels[0].ratio)
    table.add("uses of a subexpression", levels[1].ratio)
    table.add("expressions that match an event", 100 * n_pairs / len(case.events) / table.n, "%")


def measure_batch(case: Case) -> None:
    """Pairs of a batch given as a table; reading the events is a part of it."""
    case.table.costs["batch"] = case.time(lambda: case.index.match_batch(case.batch))


def measure_scans(case: Case, n_slow_events: int) -> None:
    """A batch, against NumPy scans one by one and many at once."""
    table = case.table
    measure_plain_scan(case, n_slow_events)
    measure_best_scan(case, n_slow_events)
    table.against("batch", "plain scan", "NumPy scan, plain", bar_at(100_000, table.n, "≥ 500 ×"))
    table.against("batch", "scan", "NumPy scan, predicates shared")
    table.against("batch", "scan of many", f"NumPy scan, the same, {NUMPY_BATCH} events at once")


def measure_plain_scan(case: Case, n_events: int) -> None:
    """The scan as one would write it down."""
    scan = PlainScan(case.conditions)
    compare_answers(case, scan)
    few = case.events[:n_events]
    case.table.costs["plain scan"] = cpu_time(lambda: scan.match_batch(few)) / n_events


def measure_best_scan(case: Case, n_events: int) -> None:
    """The scan as fast as NumPy does it, event by event and many at once."""
    scan = NumpyScan(case.conditions)
    compare_answers(case, scan)
    few, many = case.events[:n_events], case.events[:NUMPY_BATCH]
    costs = case.table.costs
    costs["scan"] = cpu_time(lambda: [scan.match(event) for event in few]) / len(few)
    costs["scan of many"] = cpu_time(lambda: scan.match_batch(many)) / len(many)


def measure_polars(case: Case) -> None:
    """A batch, against one select of all expressions over the same rows."""
    if case.table.n > MOST_POLARS:
        return
    select = PolarsSelect(case.conditions)
    events = case.events[:POLARS_BATCH]
    frame = select.frame(events)
    case.table.costs["polars"] = cpu_time(lambda: select.match_frame(frame), 1) / len(events)
    case.table.against("batch", "polars", f"Polars, one select over {len(events):,} rows")


def measure_counts(case: Case) -> None:
    """Counts per subscription, against making the pairs; with and without reading the events."""
    index, table = case.index, case.table
    table.costs["counts"] = case.time(lambda: index.count_by_subscription(case.batch))
    table.against("counts", "batch", "pairs")
    read = index.encode(case.batch)
    table.costs["pairs, read"] = case.time(lambda: index.match_batch(read))
    table.costs["counts, events read before"] = case.time(lambda: index.count_by_subscription(read))
    # Reading the events costs the same for both, so the bar is set without it.
    bar = bar_at(100_000, table.n, "≥ 2 ×")
    table.against("counts, events read before", "pairs, read", "pairs, events read before", bar)


def measure_single(case: Case, n_events: int) -> None:
    """One event at a time, against compiled lambdas; rates learned from other events."""
    table, few = case.table, case.events[:n_events]
    sample = case.index.encode(case.batch.slice(len(case.events) // 2))
    index = Index(learn(case.index.contents, sample))

    def match_each() -> None:
        for event in few:
            index.match(event)  # and let go of the answer before the next

    cost = cpu_time(match_each) / n_events
    table.costs["single"] = cost
    if table.n > MOST_LAMBDAS:
        table.add("single", cost * 1e6, "µs/event")
        return
    measure_lambdas(case, few)
    bar = bar_at(100_000, table.n, "≥ 100 ×")
    table.against("single", "lambdas", "compiled lambdas", bar)


def measure_lambdas(case: Case, events: list[Event]) -> None:
    """A lambda per expression, called one by one."""
    lambdas = Lambdas(case.conditions)
    compare_answers(case, lambdas)
    case.table.costs["lambdas"] = cpu_time(lambda: lambdas.match_batch(events)) / len(events)


def compare_sizes(rows: Sequence[Row]) -> list[Row]:
    """How costs and ratios move from each number of expressions to the next."""
    found = []
    batches = [
        row for row in rows if row["measure"] == "batch" and "plain" in row.get("baseline", "")
    ]
    for small, large in pairwise(batches):
        table = Table("ABE-Gen", large["expressions"])
        change = large["ratio"] / small["ratio"]
        bar = bar_at(1_000_000, table.n, "≥ 1")
        table.add(f"batch, ratio over that at {small['expressions']:,}", change, "", bar)
        found += table.rows
    singles = [row for row in rows if row["measure"] == "single"]
    for small, large in pairwise(singles):
        table = Table("ABE-Gen", large["expressions"])
        growth = large["value"] / small["value"] * small["expressions"] / large["expressions"]
        bar = bar_at(1_000_000, table.n, "≤ 1")
        table.add(f"single, per expression over {small['expressions']:,}", growth, "", bar)
        found += table.rows
    return found


# ── the other workloads ─────────────────────────────────────────────────────────────────────


def measure_in_sets(size: Size) -> list[Row]:
    """Conjunctions of IN sets, against the scan."""
    workload = InSets(InSetsParams(n_expressions=size.in_sets))
    case = measure_workload("IN sets", workload, size)
    table = case.table
    table.add("batch", 1 / table.costs["batch"], "events/s", bar_at(100_000, table.n, "≥ 20,000"))
    measure_best_scan(case, size.n_slow_events)
    table.against("batch", "scan of many", f"NumPy scan, {NUMPY_BATCH} events at once")
    return table.rows


def measure_sigma_like(size: Size) -> list[Row]:
    """Detections full of substrings, against compiled lambdas."""
    workload = SigmaLike(SigmaLikeParams(n_expressions=size.sigma))
    case = measure_workload("Sigma-like", workload, size)
    table = case.table
    table.add("batch", 1 / table.costs["batch"], "events/s", bar_at(4_000, table.n, "≥ 20,000"))
    measure_lambdas(case, case.events[: 5 * size.n_slow_events])
    table.against("batch", "lambdas", "compiled lambdas", bar_at(4_000, table.n, "≥ 100 ×"))
    return table.rows


def measure_workload(name: str, workload: InSets | SigmaLike, size: Size) -> Case:
    """Building and matching a batch."""
    texts = workload.expressions()
    table = Table(name, len(texts))
    index = measure_build(table, texts, workload.schema)
    events, batch = workload.events(size.n_events), workload.event_table(size.n_events)
    case = Case(table, index, read_all(texts, workload.schema), events, batch)
    measure_batch(case)
    table.add("matches of an event", index.match_batch(batch).num_rows / size.n_events)
    return case


def read_all(texts: list[str], schema: Mapping[str, str]) -> list[Condition]:
    """The texts as typed conditions."""
    known = Schema.of(schema)
    return [check(parse(text), known) for text in texts]


# ── building ────────────────────────────────────────────────────────────────────────────────


def measure_build(table: Table, texts: list[str], schema: Mapping[str, str]) -> Any:
    """An index of the texts, built once: it takes long enough."""
    subscriptions = [(f"s{number}", text) for number, text in enumerate(texts)]
    tamis.build(subscriptions[:100], schema=schema)  # compiles
    start = time.process_time()
    index = tamis.build(subscriptions, schema=schema)
    seconds = time.process_time() - start
    if index.rejects:
        raise TamisError(f"{len(index.rejects)} expressions refused; first: {index.rejects[0]}")
    bar = bar_at(1_000_000, table.n, "≥ 35,000")
    table.add("build from text", len(texts) / seconds, "expressions/s", bar)
    return index


def measure_artefact(table: Table, index: Any) -> None:
    """The index on disk: how large, and how long opening takes."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bench.tamis"
        index.save(path)
        parts = json.loads((path / "manifest.json").read_text())["content"]["parts"]
        sizes = {name: part["bytes"] for name, part in parts.items()}
        texts = sum(sizes[name] for name in ("ids", "texts", "tags"))
        others = sum(sizes.values()) - texts
        bar = bar_at(1_000_000, table.n, "≤ 150")
        table.add("on disk, without ids and texts", others / table.n, "bytes/expression", bar)
        table.add("on disk, ids and texts", texts / table.n, "bytes/expression")
        start = time.perf_counter()
        tamis.open(path)
        table.add("open", time.perf_counter() - start, "s")


# ── measuring ───────────────────────────────────────────────────────────────────────────────


class Table:
    """The rows of one workload, and the costs (seconds per event) they are made of."""

    def __init__(self, workload: str, n: int) -> None:
        self.workload, self.n = workload, n
        self.costs: dict[str, float] = {}
        self.rows: list[Row] = []

    def add(self, measure: str, value: float, unit: str = "", bar: str = "") -> Row:
        """A row without a baseline."""
        row: Row = {
            "workload": self.workload,
            "expressions": self.n,
            "measure": measure,
            "value": float(value),
            "unit": unit,
            "bar": bar,
        }
        self.rows.append(row)
        return row

    def against(self, measure: str, baseline: str, title: str, bar: str = "") -> None:
        """A row with two costs and their ratio."""
        cost, other = self.costs[measure], self.costs[baseline]
        row = self.add(measure, cost * 1e6, "µs/event", bar)
        row.update({"baseline": title, "its value": other * 1e6, "ratio": other / cost})


def cpu_time(function: Callable[[], Any], n_repeats: int = N_REPEATS) -> float:
    """CPU seconds of a call, the least of a few after one that does not count."""
    function()
    gc.collect()
    gc.disable()
    try:
        return min(_time_once(function) for _ in range(n_repeats))
    finally:
        gc.enable()


def _time_once(function: Callable[[], Any]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def bar_at(n_wanted: int, n: int, bar: str) -> str:
    """The bar, which is set for one number of expressions only."""
    return bar if n == n_wanted else ""


def compare_answers(case: Case, baseline: Any) -> None:
    """Refuse to time an engine that answers otherwise than its baseline."""
    index, events = case.index, case.events[:N_COMPARED]
    expected = [{f"s{at}" for at in baseline.match(event).tolist()} for event in events]
    answers = {
        "one by one": [set(index.match(event)) for event in events],
        "as a list": collect(index.match_batch(events), len(events)),
        "as a table": collect(index.match_batch(case.batch.slice(0, len(events))), len(events)),
    }
    for way, found in answers.items():
        if found != expected:
            name = type(baseline).__name__
            n_found, n_expected = (sum(map(len, sets)) for sets in (found, expected))
            raise TamisError(
                f"events {way}: the engine found {n_found} matches, and {name} {n_expected}"
            )


def collect(pairs: Any, n_events: int) -> list[set[str]]:
    """The subscriptions of each event."""
    found: list[set[str]] = [set() for _ in range(n_events)]
    columns = (pairs.column(name).to_pylist() for name in ("event_row", "subscription_id"))
    for row, subscription_id in zip(*columns, strict=True):
        found[row].add(subscription_id)
    return found
