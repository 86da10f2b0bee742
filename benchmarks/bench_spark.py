"""What does Spark cost, and what does it save? All ratios come from one run on one machine.

Rules are conjunctions of four ranges over 30 columns, about 10 matches per event at 100,000 rules.
CPU seconds are those of this process, the JVM and its Python workers together; wall seconds are
shown beside them. `TAMIS_BENCH_SIZE` is `tiny`, `small` (the default) or `full`, which goes to a
million rules.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from tamis.errors import TamisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession

TITLE = "Spark: against one process, against what one writes without an index"
Row = dict[str, Any]
N_COLUMNS: Final = 30
RANGE: Final = 1000  # values of a column
WIDTH: Final = 100  # of a rule's range
CORES: Final = 2
SELECT_SECONDS: Final = 120
TICKS: Final = os.sysconf("SC_CLK_TCK")


class Size(NamedTuple):
    """How much is measured."""

    n_rules: int
    n_events: int
    n_built: int
    alternatives: tuple[int, ...]  # rules for what one writes without an index
    n_few: int  # events for the same


SIZES: Final = {
    "tiny": Size(500, 2_000, 1_000, (50,), 200),
    "small": Size(100_000, 200_000, 100_000, (1_000, 10_000), 4_000),
    "full": Size(100_000, 200_000, 1_000_000, (1_000, 10_000), 4_000),
}


def run() -> list[Row]:
    """One row per measure."""
    from tamis.spark import local_session

    size = SIZES.get(name := os.environ.get("TAMIS_BENCH_SIZE", "small"))
    if size is None:
        raise TamisError(f"TAMIS_BENCH_SIZE is {name!r}; allowed: {', '.join(SIZES)}")
    spark = local_session("tamis-bench", CORES, **{"spark.driver.memory": "3g"})
    try:
        with tempfile.TemporaryDirectory() as folder:
            bench = Bench(spark, Path(folder), size)
            rows = bench.measure_match()
            rows += bench.measure_sharing()
            rows += bench.measure_partitioning()
            rows += bench.measure_alternatives()
            rows += bench.measure_build()
            return rows
    finally:
        spark.stop()


# ── the workload ────────────────────────────────────────────────────────────────────────────


class Rules(NamedTuple):
    """Rule i asks lows[i, j] <= column < lows[i, j] + WIDTH of four columns."""

    columns: np.ndarray  # int[n, 4]
    lows: np.ndarray  # int[n, 4]

    def texts(self) -> list[str]:
        return [
            " AND ".join(
                f"c{c} >= {low} AND c{c} < {low + WIDTH}"
                for c, low in zip(columns, lows, strict=True)
            )
            for columns, lows in zip(self.columns.tolist(), self.lows.tolist(), strict=True)
        ]


def draw_rules(n: int) -> Rules:
    rng = np.random.default_rng(n)
    columns = np.argsort(rng.random((n, N_COLUMNS)), axis=1)[:, :4]
    return Rules(columns, rng.integers(0, RANGE - WIDTH, (n, 4)))


def draw_events(n: int) -> pa.Table:
    rng = np.random.default_rng(7)
    columns = {f"c{c}": rng.integers(0, RANGE, n) for c in range(N_COLUMNS)}
    return pa.table({"id": np.arange(n), **columns})


# ── costs ───────────────────────────────────────────────────────────────────────────────────


class Cost(NamedTuple):
    """Seconds."""

    cpu: float
    wall: float


def measure(call: Callable[[], Any]) -> Cost:
    """What a call costs this process and all it has started."""
    cpu, wall = cpu_seconds(), time.perf_counter()
    call()
    return Cost(cpu_seconds() - cpu, time.perf_counter() - wall)


def cpu_seconds() -> float:
    total = 0
    for pid in family(os.getpid()):
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        total += sum(map(int, fields[11:15]))
    return total / TICKS


def family(pid: int) -> Iterator[int]:
    """The process and all below it."""
    yield pid
    for task in _listed(Path(f"/proc/{pid}/task")):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue  # a thread that has just ended
        for child in children:
            yield from family(int(child))


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def drain(frame: DataFrame) -> None:
    """Compute all rows, keep none."""
    frame.write.format("noop").mode("overwrite").save()


@dataclass
class Bench:
    """The measures, over one workload."""

    spark: SparkSession
    folder: Path
    size: Size

    def __post_init__(self) -> None:
        size = self.size
        table = draw_events(size.n_events)
        # A few files and row groups, so that both cores have work to the end.
        (self.folder / "events").mkdir()
        step = -(-size.n_events // 8)
        for start in range(0, size.n_events, step):
            part = table.slice(start, step)
            pq.write_table(part, self.folder / "events" / f"{start:09}.parquet")
        self.events = self.spark.read.parquet(str(self.folder / "events"))
        self.index_path = str(self.folder / "index")
        texts = draw_rules(size.n_rules).texts()
        self.index = tamis.build({str(n): text for n, text in enumerate(texts)})
        self.index.save(self.index_path)

    def row(self, name: str, cost: Cost, n: int, **more: Any) -> Row:
        each = {"cpu µs": 1e6 * cost.cpu / n, "wall µs": 1e6 * cost.wall / n}
        return {"measure": name, "n": n, **each, **more}

    # ── Spark against one process ──────────────────────────────────────────────────────────

    def measure_match(self) -> list[Row]:
        import tamis.spark as ts

        n = self.size.n_events
        found = 0

        def in_process() -> None:
            nonlocal found
            for file in sorted((self.folder / "events").iterdir()):
                for batch in pq.ParquetFile(file).iter_batches(16_384):
                    found += self.index.match_batch(batch).num_rows

        def in_spark() -> None:
            drain(ts.match(self.events, self.index_path, event_id="id"))

        in_process()
        in_spark()
        n_spark = ts.match(self.events, self.index_path, event_id="id").count()
        assert n_spark == found, "Spark and the process find the same"
        alone, spread = measure(in_process), measure(in_spark)
        counted = measure(lambda: drain(ts.count_by_subscription(self.events, self.index_path)))
        share = alone.wall / (CORES * spread.wall)
        return [
            self.row(f"match, one process, {self.size.n_rules:,} rules", alone, n),
            self.row(
                f"match, Spark on {CORES} cores",
                spread,
                n,
                ratio=share,
                note=f"of {CORES} x the process's rate, by wall; by CPU "
                f"{alone.cpu / spread.cpu:.2f}",
            ),
            self.row(
                "count by subscription, Spark",
                counted,
                n,
                ratio=spread.cpu / counted.cpu,
                note="times less CPU than rows",
            ),
        ]

    def measure_sharing(self) -> list[Row]:
        """How much of the index the workers hold together: pages are shared."""
        workers = {
            pid: maps
            for pid in family(os.getpid())
            if pid != os.getpid() and (maps := mapped(pid, self.index_path)).rss
        }
        size = sum(file.stat().st_size for file in Path(self.index_path).iterdir())
        rss = sum(maps.rss for maps in workers.values())
        pss = sum(maps.pss for maps in workers.values())
        return [
            {
                "measure": "index pages held by workers, bytes",
                "n": pss,
                "ratio": rss / max(1, pss),
                "note": f"{len(workers)} workers map {rss:,} of {size:,} bytes each counted apart",
            }
        ]

    # ── partitioning ───────────────────────────────────────────────────────────────────────

    def measure_partitioning(self) -> list[Row]:
        import tamis.spark as ts

        rows = self.subscriptions(self.size.n_rules)
        n = self.size.n_events // 4
        events = self.events.limit(n).persist()
        events.count()
        found = []
        for kind in ("hash", "structure"):
            path = str(self.folder / f"parts-{kind}")
            report = ts.build(rows, path, parts=8, partition_by=kind)
            nodes = sum(part.n_nodes for part in report.version.parts)
            drain(ts.match(events, path, event_id="id"))
            for groups in (1, 8):
                cost = measure(
                    lambda path=path, groups=groups: drain(
                        ts.match(events, path, event_id="id", groups=groups)
                    )
                )
                found.append(
                    self.row(
                        f"match, 8 parts by {kind}, {groups} groups",
                        cost,
                        n,
                        note=f"{nodes:,} nodes in all parts",
                    )
                )
        events.unpersist()
        return found

    # ── what one writes without an index ───────────────────────────────────────────────────

    def measure_alternatives(self) -> list[Row]:
        rows = []
        for n_rules in self.size.alternatives:
            rows += self._compare(n_rules)
        return rows

    def _compare(self, n_rules: int) -> list[Row]:
        import tamis.spark as ts

        rules = draw_rules(n_rules)
        path = str(self.folder / f"rules-{n_rules}")
        tamis.build({str(n): text for n, text in enumerate(rules.texts())}).save(path)
        n = self.size.n_few
        few = self.events.limit(n).repartition(CORES).persist()
        few.count()
        ways: dict[str, Callable[[DataFrame], DataFrame]] = {
            "NumPy, a rule at a time, in mapInArrow": lambda e: by_numpy(e, rules),
            "cross join with rules as data": lambda e: by_cross_join(self.spark, e, rules),
            "filters in chunks of 100": lambda e: by_chunks(e, rules),
        }
        # Enough events to see more than the start of a job: the whole table for ours.
        own_events = self.events
        drain(ts.match(own_events, path, event_id="id"))
        own = measure(lambda: drain(ts.match(own_events, path, event_id="id")))
        per_event = own.cpu / self.size.n_events
        found = [self.row(f"match, {n_rules:,} rules, Tamis", own, self.size.n_events)]
        expected = ts.match(few, path, event_id="id").count()
        for name, way in ways.items():
            found.append(self._try(name, way, few, n, n_rules, expected, per_event))
        found.append(self._try_select(n, n_rules, expected, per_event))
        few.unpersist()
        return found

    def _try_select(self, n: int, n_rules: int, expected: int, per_event: float) -> Row:
        """In a process of its own, as it may take all memory, or no end."""
        title = f"match, {n_rules:,} rules, one select of all rules"
        code = (
            f"from benchmarks.bench_spark import select_alone as s; s({n_rules}, {n}, {expected})"
        )
        try:
            done = subprocess.run(
                [sys.executable, "-c", code],
                capture_output=True,
                text=True,
                timeout=SELECT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"measure": title, "n": n, "note": f"not done in {SELECT_SECONDS} s"}
        if done.returncode:
            reason = "out of memory" if "OutOfMemory" in done.stderr else "fails"
            return {"measure": title, "n": n, "note": f"breaks: {reason}"}
        cost = Cost(*map(float, done.stdout.split()[-2:]))
        return self.row(title, cost, n, ratio=cost.cpu / n / per_event, note="times Tamis's CPU")

    def _try(  # noqa: PLR0913
        self,
        name: str,
        way: Callable[[DataFrame], DataFrame],
        events: DataFrame,
        n: int,
        n_rules: int,
        expected: int,
        per_event: float,
    ) -> Row:
        title = f"match, {n_rules:,} rules, {name}"
        counts: list[int] = []
        try:
            cost = measure(lambda: counts.append(way(events).count()))
        except Exception as error:  # where it breaks is part of the answer
            return {"measure": title, "n": n, "note": f"breaks: {str(error).strip()[:60]}"}
        assert counts == [expected], f"{name} finds {counts}, not {expected}"
        return self.row(title, cost, n, ratio=cost.cpu / n / per_event, note="times Tamis's CPU")

    # ── building ───────────────────────────────────────────────────────────────────────────

    def subscriptions(self, n: int) -> DataFrame:
        path = self.folder / f"subscriptions-{n}.parquet"
        if not path.exists():
            ids = [str(number) for number in range(n)]
            table = pa.table({"subscription_id": ids, "expression": draw_rules(n).texts()})
            pq.write_table(table, path, row_group_size=max(1, n // 8))
        return self.spark.read.parquet(str(path))

    def measure_build(self) -> list[Row]:
        import tamis.spark as ts

        n = self.size.n_built
        frame = self.subscriptions(n)
        table = frame.toArrow()
        pairs = list(zip(*(table[c].to_pylist() for c in range(2)), strict=True))

        def in_process() -> None:
            tamis.build(pairs).save(self.folder / "built", overwrite=True)

        def in_spark() -> None:
            ts.build(frame, str(self.folder / "spark-built"), parts=CORES, incremental=False)

        in_spark()
        alone, spread = measure(in_process), measure(in_spark)
        again = measure(lambda: ts.build(frame, str(self.folder / "spark-built"), parts=CORES))
        return [
            self.row(f"build, one process, {n:,} rules", alone, n),
            self.row(
                f"build, Spark on {CORES} cores",
                spread,
                n,
                ratio=alone.wall / spread.wall,
                note=f"times faster, by wall; by CPU {alone.cpu / spread.cpu:.2f}",
            ),
            self.row(
                "build again, nothing changed",
                again,
                n,
                ratio=spread.wall / again.wall,
                note="times faster than the full build",
            ),
        ]


class Mapped(NamedTuple):
    """Bytes of a folder's files that a process has in memory, whole and by share."""

    rss: int
    pss: int


def mapped(pid: int, folder: str) -> Mapped:
    try:
        lines = Path(f"/proc/{pid}/smaps").read_text().splitlines()
    except OSError:
        return Mapped(0, 0)
    rss = pss = 0
    is_own = False
    for line in lines:
        name, _, value = line.partition(":")
        if name == "Rss" and is_own:
            rss += int(value.split()[0]) * 1024
        elif name == "Pss" and is_own:
            pss += int(value.split()[0]) * 1024
        elif "-" in line.split(" ", 1)[0]:
            is_own = folder in line
    return Mapped(rss, pss)


# ── alternatives ────────────────────────────────────────────────────────────────────────────


def select_alone(n_rules: int, n_events: int, expected: int) -> None:
    """Print what one select of all rules costs."""
    from tamis.spark import local_session

    spark = local_session("tamis-bench-select", CORES, **{"spark.driver.memory": "3g"})
    events = spark.createDataFrame(draw_events(n_events)).repartition(CORES).persist()
    events.count()
    counts: list[int] = []
    cost = measure(lambda: counts.append(by_select(events, draw_rules(n_rules)).count()))
    assert counts, expected
    print(cost.cpu, cost.wall)


def by_select(events: DataFrame, rules: Rules) -> DataFrame:
    """All rules in one expression."""
    flags = ", ".join(f"IF({text}, {n}, NULL)" for n, text in enumerate(rules.texts()))
    return events.selectExpr("id", f"explode(array_compact(array({flags}))) AS rule")


def by_chunks(events: DataFrame, rules: Rules) -> DataFrame:
    """A hundred rules at a time, whole-stage code generation off: more would not compile."""
    spark = events.sparkSession
    spark.conf.set("spark.sql.codegen.wholeStage", "false")
    texts = rules.texts()
    parts = []
    for start in range(0, len(texts), 100):
        flags = ", ".join(
            f"IF({text}, {start + n}, NULL)" for n, text in enumerate(texts[start : start + 100])
        )
        parts.append(events.selectExpr("id", f"explode(array_compact(array({flags}))) AS rule"))
    total = sum(part.count() for part in parts)
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    return spark.range(total)


def by_cross_join(spark: SparkSession, events: DataFrame, rules: Rules) -> DataFrame:
    """Rules as rows: the columns' numbers and bounds; events as arrays."""
    from pyspark.sql import functions as F

    rows = [
        (n, columns, lows)
        for n, (columns, lows) in enumerate(
            zip(rules.columns.tolist(), rules.lows.tolist(), strict=True)
        )
    ]
    table = spark.createDataFrame(rows, "rule int, cs array<int>, lows array<bigint>")
    values = events.select("id", F.array(*(f"c{c}" for c in range(N_COLUMNS))).alias("v"))
    condition = " AND ".join(
        f"v[cs[{j}]] >= lows[{j}] AND v[cs[{j}]] < lows[{j}] + {WIDTH}" for j in range(4)
    )
    return values.crossJoin(F.broadcast(table)).where(condition).select("id", "rule")


def by_numpy(events: DataFrame, rules: Rules) -> DataFrame:
    """One rule after the other over NumPy columns."""
    columns, lows = rules.columns.tolist(), rules.lows.tolist()

    def scan(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [batch.column(f"c{c}").to_numpy() for c in range(N_COLUMNS)]
            ids = batch.column("id").to_numpy()
            rows, names = [], []
            for n, (own, bounds) in enumerate(zip(columns, lows, strict=True)):
                is_true = np.ones(len(ids), dtype=bool)
                for c, low in zip(own, bounds, strict=True):
                    is_true &= (values[c] >= low) & (values[c] < low + WIDTH)
                found = ids[is_true]
                rows.append(found)
                names.append(np.full(len(found), n))
            yield pa.RecordBatch.from_pydict(
                {"id": np.concatenate(rows), "rule": np.concatenate(names)}
            )

    return events.mapInArrow(scan, "id bigint, rule bigint")
