"""What does Spark cost where events are a column of JSON texts? Against one process.

Events of 540 bytes in eight Parquet files, and rules of equality, IN, prefixes and NOT. Both must
find the same number of matches. Rates are by the clock, the best of three runs after a warm-up; CPU
seconds are those of all processes. `TAMIS_BENCH_SIZE` is `tiny`, which only shows that all runs,
`small` (the default) or `full`.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from benchmarks.bench_spark import CORES, Cost, drain, measure
from benchmarks.geo_events import SCHEMA, draw_rules, write_events
from benchmarks.measuring import choose_size
from benchmarks.targets import Target, make_row

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.targets import Row

TITLE = "Spark: events as a column of JSON texts"
N_FILES: Final = 8
N_REPEATS: Final = 3


class Size(NamedTuple):
    """How much is measured: each of the drawn events comes several times."""

    n_rules: int
    n_drawn: int
    n_copies: int


SIZES: Final = {
    "tiny": Size(100, 500, 2),
    "small": Size(100_000, 100_000, 10),
    "full": Size(100_000, 100_000, 20),
}
TARGETS: Final = {
    f"match, Spark on {CORES} cores": Target(1.4, "ratio", is_least=True),
    f"the same, share of {CORES} x one process": Target(0.75, is_least=True),
}


def run() -> list[Row]:
    """One process, Spark, and their ratio."""
    from tamis.spark import local_session

    name, size = choose_size(SIZES)
    row = partial(make_row, {} if name == "tiny" else TARGETS)
    with tempfile.TemporaryDirectory() as folder:
        events, path = write_files(Path(folder), size), str(Path(folder) / "index")
        tamis.build(draw_rules(size.n_rules), SCHEMA).save(path)
        spark = local_session("tamis-bench-json", CORES, **{"spark.driver.memory": "3g"})
        try:
            return compare(row, spark, path, events)
        finally:
            spark.stop()


def write_files(folder: Path, size: Size) -> Path:
    """A folder of Parquet files with an id and a text for each event."""
    place = folder / "events"
    place.mkdir()
    lines = write_events(size.n_drawn).decode().splitlines()
    n_events = len(lines) * size.n_copies
    step = -(-n_events // N_FILES)
    texts = pa.array(lines)
    for first in range(0, n_events, step):
        ids = np.arange(first, min(first + step, n_events))
        table = pa.table({"id": ids, "body": texts.take(pa.array(ids % len(lines)))})
        pq.write_table(table, place / f"{first:09}.parquet")
    return place


def compare(row: Any, spark: Any, path: str, folder: Path) -> list[Row]:
    """The rates of both, and the ratio."""
    import tamis.spark as ts

    index = tamis.open(path)
    files = sorted(folder.iterdir())
    events = spark.read.parquet(str(folder))
    n_events = sum(pq.ParquetFile(file).metadata.num_rows for file in files)

    def find_in_spark() -> Any:
        return ts.match(events, path, event_id="id", attributes="body")

    found = match_all(index, files)
    assert find_in_spark().count() == found, "Spark and the process find the same"
    alone = best_of(lambda: match_all(index, files))
    spread = best_of(lambda: drain(find_in_spark()))
    ratio = round(alone.wall / spread.wall, 2)
    spent = {"events": n_events, "matches": found}
    return [
        row("match, one process", n_events / alone.wall, "events/s", **spent, cpu=alone.cpu),
        row(
            f"match, Spark on {CORES} cores",
            n_events / spread.wall,
            "events/s",
            ratio=ratio,
            **spent,
            cpu=spread.cpu,
        ),
        row(f"the same, share of {CORES} x one process", ratio / CORES, "of 1"),
    ]


def match_all(index: tamis.Index, files: list[Path]) -> int:
    """How many pairs the events of the files make."""
    batches = (
        batch
        for file in files
        for batch in pq.ParquetFile(file).iter_batches(16_384, columns=["body"])
    )
    return sum(index.match_batch(batch.column("body")).num_rows for batch in batches)


def best_of(call: Callable[[], Any]) -> Cost:
    """The run that took the least time by the clock."""
    return min((measure(call) for _ in range(N_REPEATS)), key=lambda cost: cost.wall)
