"""How fast are keyword subscriptions? Against Irmak's algorithms, in the same run.

The workload has the statistics of the paper's Table 3.1. Times are CPU times of one process, the
best of a few passes after one to warm up; answers are compared before anything is timed. The
paper's algorithms get documents as sets of terms; the product gets texts, and the time to read them
is given apart. `TAMIS_BENCH_SIZE` chooses the sizes: `small` (the default) has 100,000 queries,
`full` the paper's 1,077,958, and multiplies them up to 15 million, as the paper does.
"""

from __future__ import annotations

import gc
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

import tamis
from tamis.errors import TamisError
from tamis.lab.irmak import CLUSTERINGS, IrmakIndex, IrmakOptions
from tamis.lab.workloads.keywords import KeywordParams, Keywords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "keyword subscriptions against Irmak's algorithms"
Row = dict[str, Any]
N_REPEATS: Final = 3


@dataclass(frozen=True, slots=True)
class Size:
    """How much is measured."""

    n_queries: int
    n_documents: int
    n_slow_documents: int  # for the primitive algorithm
    multipliers: tuple[int, ...]  # of the queries, for growth
    n_partitions: tuple[int, ...]  # that are tried


SIZES: Final = {
    "tiny": Size(2_000, 60, 20, (1, 3), (1, 2)),
    "small": Size(100_000, 2_048, 256, (1, 4), (1, 4)),
    "full": Size(1_077_958, 4_096, 256, (1, 4, 14), (1, 4, 16)),
}


def run() -> list[Row]:
    """One row per way to match."""
    chosen = os.environ.get("TAMIS_BENCH_SIZE", "small")
    if chosen not in SIZES:
        raise TamisError(f"TAMIS_BENCH_SIZE is {chosen!r}; allowed: {', '.join(SIZES)}")
    size = SIZES[chosen]
    workload = Keywords(KeywordParams(size.n_queries))
    bench = Bench(workload, size)
    bench.measure_paper()
    bench.measure_product()
    return bench.rows


class Bench:
    """All ways on one workload; each is compared with the primitive algorithm."""

    def __init__(self, workload: Keywords, size: Size) -> None:
        self.workload = workload
        self.size = size
        self.queries = workload.queries()
        self.documents = workload.documents(size.n_documents)
        self.rows: list[Row] = []
        self.primitive = 0.0  # seconds per document
        self.n_pairs = 0
        self.work: Row = {}  # of the paper's algorithm that was timed last

    def add(self, way: str, cost: float, *, bar: str = "", **more: Any) -> None:
        """One row: seconds per document, and how many times as fast as the primitive one."""
        bar = bar if self.size.n_queries >= 1_000_000 else ""  # they hold for the paper's size
        ratio = self.primitive / cost if self.primitive else 1.0
        row = {"queries": self.size.n_queries, "way": way, "µs/document": cost * 1e6}
        self.rows.append({**row, "× primitive": ratio, "bar": bar, **more})

    # ── the paper ──────────────────────────────────────────────────────────────────────────

    def measure_paper(self) -> None:
        """Step by step; each later one with the best number of partitions."""
        n_slow = self.size.n_slow_documents
        self.primitive = self.time_paper(IrmakOptions(split=False, bloom=False), n_slow)
        self.add("paper: primitive", self.primitive, **self.work)
        self.add("paper: split lists", self.time_paper(IrmakOptions(bloom=False)), **self.work)
        self.add("paper: and Bloom filter", self.time_paper(IrmakOptions()), **self.work)
        best, n_best = self.best_partitions(None, 1)
        self.add(f"paper: and {n_best} partitions", best, **self.work)
        for method in CLUSTERINGS:
            best, n_best = self.best_partitions(method, 1)
            way = f"paper: superqueries, {method}, {n_best} partitions"
            self.add(way, best, bar="≥ 20 ×", **self.work)
        for n_words in (2, 4):
            cost = self.time_paper(IrmakOptions(superqueries="overlap", n_words=n_words))
            self.add(f"paper: superqueries, overlap, {32 * n_words} bits", cost, **self.work)

    def best_partitions(self, method: str | None, n_words: int) -> tuple[float, int]:
        """The least cost over some numbers of partitions, and that number."""
        return min(
            (self.time_paper(IrmakOptions(True, True, n, method, n_words)), n)
            for n in self.size.n_partitions
        )

    def time_paper(self, options: IrmakOptions, n_documents: int | None = None) -> float:
        """CPU seconds per document of one way, which must find what the first one found."""
        index = IrmakIndex(*self.queries, options)
        starts, tids = index.encode(*self.documents)
        few = starts[: self.size.n_slow_documents + 1]
        rows, _ = index.match_encoded(few, tids)
        self.n_pairs = self.n_pairs or len(rows)
        if len(rows) != self.n_pairs:
            raise TamisError(f"{options} found {len(rows)} matches, and not {self.n_pairs}")
        own = starts[: (n_documents or self.size.n_documents) + 1]
        cost = cpu_time(lambda: index.match_encoded(own, tids)) / (len(own) - 1)
        self.work = {
            f"{what}/document": index.work[what] / (len(own) - 1)
            for what in ("postings", "accumulators", "passed", "tests")
        }
        return cost

    # ── the product ────────────────────────────────────────────────────────────────────────

    def measure_product(self) -> None:
        """Batches of texts, reading and matching apart, and growth by repeated queries."""
        table = self.workload.event_table(self.size.n_documents)
        expressions = self.workload.expressions()
        for multiplier in self.size.multipliers:
            begin = time.process_time()
            index = tamis.build(_repeated(expressions, multiplier), self.workload.schema)
            seconds = time.process_time() - begin
            more = {
                "build s": seconds,
                "bytes/query": n_bytes(index) / len(index),
                "× queries": multiplier,
            }
            self.compare(index, table, multiplier)
            self.measure_index(index, table, multiplier, more)
            del index
            gc.collect()

    def compare(self, index: Any, table: Any, multiplier: int) -> None:
        """Refuse an index that finds another number of matches than the paper."""
        few = table.slice(0, self.size.n_slow_documents)
        n_found = int(index.count_by_event(few).sum())
        if n_found != self.n_pairs * multiplier:
            raise TamisError(f"the index found {n_found} matches, and not {self.n_pairs}")

    def measure_index(self, index: Any, table: Any, multiplier: int, more: Row) -> None:
        """Reading, matching and both, in seconds per document."""
        n = self.size.n_documents
        batch = index.encode(table)
        reading = cpu_time(lambda: index.encode(table)) / n
        matching = cpu_time(lambda: index.match_batch(batch)) / n
        counting = cpu_time(lambda: index.count_by_event(batch)) / n
        is_first = multiplier == 1
        times = f"{multiplier} × the queries: " if multiplier > 1 else ""
        self.add(f"{times}match_batch", matching, bar="≥ 40 ×" if is_first else "", **more)
        self.add(f"{times}count_by_event", counting)
        share = 100 * reading / (reading + matching)
        self.add(f"{times}reading of texts", reading, bar="≤ 30 %", **{"share %": share})


def _repeated(expressions: list[str], multiplier: int) -> Iterator[tuple[str, str]]:
    """Pairs of id and expression, all of them `multiplier` times (§3.4)."""
    n = len(expressions)
    return (
        (str(at + again * n), text)
        for again in range(multiplier)
        for at, text in enumerate(expressions)
    )


def n_bytes(index: Any) -> int:
    """Bytes of the index's arrays, ids and texts; what matching needs besides is not counted."""
    contents = index.contents
    groups = (contents.leaves, contents.nodes, contents.roots, contents.triggers)
    arrays = sum(array.nbytes for group in groups for array in group)
    return int(arrays + contents.ids.nbytes + contents.texts.nbytes)


def cpu_time(function: Callable[[], Any]) -> float:
    """The least CPU seconds of a call, of a few."""
    times = []
    for _ in range(N_REPEATS):
        begin = time.process_time()
        function()
        times.append(time.process_time() - begin)
    return float(np.min(times))
