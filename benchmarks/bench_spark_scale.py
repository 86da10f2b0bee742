"""How large may it be? Millions of rules built and matched on Spark: time, bytes, peak memory.

Rules are conjunctions of four ranges over 30 columns, as in `bench_spark`, written to disk a chunk
at a time. Memory is that of this process, the JVM and its Python workers together, shared pages
counted once (PSS), looked at every second. How many rules each of a few events satisfies is counted
by NumPy as well. `TAMIS_BENCH_SIZE` is `tiny`, `small` (the default) or `full`: ten million.
"""

from __future__ import annotations

import os
import tempfile
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.baselines.spark_rules import N_COLUMNS, WIDTH, draw_events, draw_rules
from benchmarks.bench_spark import CORES, Cost, drain, family, measure
from tamis.errors import TamisError

if TYPE_CHECKING:
    from collections.abc import Iterator

TITLE = "Spark: as many rules as memory holds"
Row = dict[str, Any]
MEMORY: Final = "3g"  # of the JVM
N_CHECKED: Final = 50  # events that NumPy counts for as well


class Size(NamedTuple):
    """How much is measured."""

    n_rules: int
    n_chunk: int  # rules drawn and written at a time
    n_events: int


SIZES: Final = {
    "tiny": Size(2_000, 1_000, 300),
    "small": Size(1_000_000, 250_000, 20_000),
    "full": Size(10_000_000, 250_000, 20_000),
}


def run() -> list[Row]:
    """One row for building, one for matching, one for counting."""
    from tamis.spark import local_session

    size = SIZES.get(name := os.environ.get("TAMIS_BENCH_SIZE", "small"))
    if size is None:
        raise TamisError(f"TAMIS_BENCH_SIZE is {name!r}; allowed: {', '.join(SIZES)}")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        expected = write_rules(size, place / "rules")
        pq.write_table(draw_events(size.n_events), place / "events.parquet")
        spark = local_session("tamis-bench-scale", CORES, **{"spark.driver.memory": MEMORY})
        try:
            return measure_all(spark, size, place, expected)
        finally:
            spark.stop()


def write_rules(size: Size, folder: Path) -> np.ndarray:
    """Write the rules, and say how many of them each of the first events satisfies."""
    folder.mkdir()
    table = draw_events(size.n_events).slice(0, N_CHECKED)
    values = np.stack([table[f"c{c}"].to_numpy() for c in range(N_COLUMNS)])
    counts = np.zeros(N_CHECKED, dtype=np.int64)
    for first in range(0, size.n_rules, size.n_chunk):
        rules = draw_rules(size.n_chunk, seed=first + 1)
        ids = [f"r{number}" for number in range(first, first + size.n_chunk)]
        rows = pa.table({"subscription_id": ids, "expression": rules.texts()})
        pq.write_table(rows, folder / f"{first:09}.parquet")
        for event in range(N_CHECKED):
            gaps = values[rules.columns, event] - rules.lows
            counts[event] += ((gaps >= 0) & (gaps < WIDTH)).all(axis=1).sum()
    return counts


def measure_all(spark: Any, size: Size, place: Path, expected: np.ndarray) -> list[Row]:
    """Build, check, match and count."""
    import tamis.spark as ts

    index = str(place / "index")
    rules = spark.read.parquet(str(place / "rules"))
    events = spark.read.parquet(str(place / "events.parquet")).repartition(2 * CORES).persist()
    events.count()
    with peak_memory() as peak:
        built = measure(lambda: ts.build(rules, index))
    n_bytes = sum(file.stat().st_size for file in Path(index).rglob("*") if file.is_file())
    note = f"{n_bytes / size.n_rules:.0f} bytes per rule on disk, ids and texts included"
    rows = [row(f"build, {size.n_rules:,} rules", built, size.n_rules, peak, note)]
    ways = {
        "match": lambda: drain(ts.match(events, index, event_id="id")),
        "count by event": lambda: drain(ts.count_by_event(events, index, event_id="id")),
    }
    for name, way in ways.items():
        with peak_memory() as peak:
            cost = measure(way)
        rows.append(row(f"{name}, {size.n_events:,} events", cost, size.n_events, peak))
    few = events.where(f"id < {N_CHECKED}")
    found = ts.count_by_event(few, index, event_id="id").toArrow().sort_by("event_id")
    assert found["n"].to_pylist() == expected.tolist(), "Spark and NumPy count the same"
    return rows


def row(name: str, cost: Cost, n: int, peak: list[int], note: str = "") -> Row:
    each = {"wall s": cost.wall, "cpu s": cost.cpu, "wall µs each": 1e6 * cost.wall / n}
    return {"measure": name, **each, "peak GB": max(peak) / 1e9, "note": note}


# ── memory ──────────────────────────────────────────────────────────────────────────────────


@contextmanager
def peak_memory() -> Iterator[list[int]]:
    """The memory of this process and all it has started, each second while the block runs."""
    seen = [total_pss()]
    is_over = threading.Event()

    def watch() -> None:
        while not is_over.wait(1):
            seen.append(total_pss())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield seen
    finally:
        is_over.set()
        watcher.join()


def total_pss() -> int:
    total = 0
    for pid in family(os.getpid()):
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:
            continue  # it has just ended
        total += int(text.partition("\nPss:")[2].split()[0]) * 1024
    return total
