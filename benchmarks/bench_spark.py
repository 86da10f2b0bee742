"""What does Spark cost, and what does it save? All ratios come from one run on one machine.

Rules are conjunctions of four ranges over 30 columns, about 10 matches per event at 100,000 rules.
CPU seconds are those of this process, the JVM and its Python workers together; wall seconds are
shown next to them. What is compared must give the same pairs, by count and hash. `TAMIS_BENCH_SIZE`
is `tiny`, `small` (the default) or `full`, which goes to a million rules.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

import tamis
from benchmarks.baselines.spark_rules import (
    UNSAFE,
    WAYS,
    Found,
    by_tamis,
    draw_events,
    draw_rules,
)
from benchmarks.targets import Target
from tamis.errors import TamisError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tamis.match.index import Index

TITLE = "Spark: against one process, against what one writes without an index"
Row = dict[str, Any]
CORES: Final = 2
TICKS: Final = os.sysconf("SC_CLK_TCK")
# CPU for events that eight parts share, by that of one part; of few rules, reading is all there is.
EIGHT_PARTS: Final = Target(1.4, "ratio", sizes=("small", "full"))
TARGETS: Final = {
    f"build, Spark on {CORES} cores, 1,000,000 rules": Target(1.2, "ratio", is_least=True),
    "build again, nothing changed, 1,000,000 rules": Target(10, "ratio", is_least=True),
}


class Size(NamedTuple):
    """How much is measured."""

    n_rules: int
    n_events: int
    n_built: int
    alternatives: tuple[int, ...]  # rules for what one writes without an index
    unsafe: tuple[int, ...]  # the same, for what breaks soon
    n_few: int  # events for the same
    seconds: float  # after which an alternative is given up


SIZES: Final = {
    "tiny": Size(500, 2_000, 1_000, (50,), (20,), 200, 120),
    "small": Size(100_000, 200_000, 100_000, (1_000, 10_000), (100, 1_000), 2_000, 40),
    "full": Size(
        100_000, 200_000, 1_000_000, (1_000, 10_000), (100, 300, 1_000, 3_000), 4_000, 300
    ),
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
            rows += bench.measure_driver()
            rows += bench.measure_partitioning()
            rows += bench.measure_alternatives()
            rows += bench.measure_build()
            return rows
    finally:
        spark.stop()


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


def event_files(folder: Path) -> list[Path]:
    return sorted((folder / "events").iterdir())


def match_all(index: Index, files: Sequence[Path]) -> int:
    """How many pairs the events of the files make."""
    batches = (batch for file in files for batch in pq.ParquetFile(file).iter_batches(16_384))
    return sum(index.match_batch(batch).num_rows for batch in batches)


def few_events(events: DataFrame, n: int) -> DataFrame:
    """The first events, in memory."""
    few = events.where(f"id < {n}").repartition(CORES).persist()
    few.count()
    return few


def drain(frame: DataFrame) -> None:
    """Compute all rows, keep none."""
    frame.write.format("noop").mode("overwrite").save()


@dataclass
class Bench:
    """The measures, over one workload."""

    spark: SparkSession
    folder: Path
    size: Size
    own: dict[int, Cost] = field(default_factory=dict)  # by the number of rules

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
        row = {"measure": name, "n": n, **each, **more}
        return row | (TARGETS[name].judge(row) if name in TARGETS else {})

    # ── Spark against one process ──────────────────────────────────────────────────────────

    def measure_match(self) -> list[Row]:
        import tamis.spark as ts

        n = self.size.n_events
        found = 0

        def in_process() -> None:
            nonlocal found
            found = match_all(self.index, event_files(self.folder))

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
            *self._measure_processes(alone),
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

    def _measure_processes(self, alone: Cost) -> list[Row]:
        """What as many processes as cores reach without Spark: cores share caches and memory."""
        places = [(str(self.folder), core) for core in range(CORES)]
        with ThreadPoolExecutor(CORES) as pool:
            results = list(
                pool.map(lambda place: run_alone("match_files", *place, seconds=240), places)
            )
        broken = [one for one in results if isinstance(one, str)]
        title = f"match, {CORES} processes without Spark"
        if broken:
            return [{"measure": title, "note": f"not measured: {broken[0]}"}]
        cost = Cost(sum(float(cpu) for cpu, _ in results), max(float(wall) for _, wall in results))
        share = alone.wall / (CORES * cost.wall)
        note = f"of {CORES} x the process's rate, by wall"
        return [self.row(title, cost, self.size.n_events, ratio=share, note=note)]

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

        def build(parts: int, kind: str) -> tuple[str, str]:
            path = str(self.folder / f"{parts}-parts-{kind}")
            report = ts.build(rows, path, parts=parts, partition_by=kind)
            nodes = sum(part.n_nodes for part in report.version.parts)
            drain(ts.match(events, path, event_id="id"))
            return path, f"{nodes:,} nodes in all parts"

        def measure_groups(path: str, groups: int) -> Cost:
            return measure(lambda: drain(ts.match(events, path, event_id="id", groups=groups)))

        path, note = build(1, "hash")
        one = measure_groups(path, 1)
        found = [self.row("match, 1 part", one, n, note=note)]
        for kind in ("hash", "structure"):
            path, note = build(8, kind)
            for groups in (1, 8):
                cost = measure_groups(path, groups)
                name = f"match, 8 parts by {kind}, {groups} group{'s' * (groups > 1)}"
                row = self.row(
                    name, cost, n, ratio=cost.cpu / one.cpu, note=f"CPU by 1 part; {note}"
                )
                found.append(row | (EIGHT_PARTS.judge(row) if groups == 1 else {}))
        events.unpersist()
        return found

    # ── what one writes without an index ───────────────────────────────────────────────────

    def measure_alternatives(self) -> list[Row]:
        rows = []
        for n_rules in self.size.alternatives:
            rows += self._compare(n_rules)
        for way in UNSAFE:
            for n_rules in self.size.unsafe:
                rows.append(self._try_alone(way, n_rules))
                if "breaks" in rows[-1]["note"]:
                    break  # with more rules it would as well
        return rows

    def _compare(self, n_rules: int) -> list[Row]:
        few, rules = self._few(), draw_rules(n_rules)
        own = self._own(n_rules)
        rows = [self.row(f"match, {n_rules:,} rules, Tamis", own, self.size.n_events)]
        expected = by_tamis(few, self._index_of(n_rules))
        for name, way in WAYS.items():
            if name not in UNSAFE:
                found: list[Found] = []
                cost = self._limited(lambda way=way, found=found: found.append(way(few, rules)))
                rows.append(
                    self._judge(name, n_rules, cost, found[0], expected)
                    if isinstance(cost, Cost)
                    else self._broken(name, n_rules, cost)
                )
        few.unpersist()
        return rows

    def _limited(self, call: Callable[[], None]) -> Cost | str:
        """What a call costs, or that it took too long."""
        context = self.spark.sparkContext
        timer = threading.Timer(self.size.seconds, context.cancelAllJobs)
        timer.start()
        try:
            return measure(call)
        except Exception as error:  # where it breaks is part of the answer
            is_late = not timer.is_alive()
            return f"not done in {self.size.seconds:g} s" if is_late else str(error)[:100]
        finally:
            timer.cancel()

    def _broken(self, way: str, n_rules: int, why: str) -> Row:
        title = f"match, {n_rules:,} rules, {way}"
        return {"measure": title, "n": self.size.n_few, "note": f"breaks: {why}"}

    def _own(self, n_rules: int) -> Cost:
        """Ours, by the whole table: enough events to see more than the start of a job."""
        path = self._index_of(n_rules)
        if n_rules not in self.own:
            by_tamis(self.events, path)
            self.own[n_rules] = measure(lambda: by_tamis(self.events, path))
        return self.own[n_rules]

    def _judge(self, way: str, n_rules: int, cost: Cost, found: Found, expected: Found) -> Row:
        assert found == expected, f"{way} finds {found}, not {expected}"
        own, n = self._own(n_rules), self.size.n_few
        ratio = (cost.cpu / n) / (own.cpu / self.size.n_events)
        return self.row(
            f"match, {n_rules:,} rules, {way}",
            cost,
            n,
            ratio=ratio,
            note=f"times Tamis's CPU per event; for {n:,} events {cost.wall / own.wall:.1f} times "
            f"its wall time for {self.size.n_events:,}",
        )

    def _few(self) -> DataFrame:
        return few_events(self.events, self.size.n_few)

    def _index_of(self, n_rules: int) -> str:
        path = str(self.folder / f"rules-{n_rules}")
        if not Path(path).exists():
            texts = draw_rules(n_rules).texts()
            tamis.build({str(n): text for n, text in enumerate(texts)}).save(path)
        return path

    def _try_alone(self, way: str, n_rules: int) -> Row:
        """In a separate process, as it may take all memory or never end."""
        n = self.size.n_few
        events = str(self.folder / "events")
        results = run_alone("try_way", way, n_rules, events, n, seconds=self.size.seconds)
        if isinstance(results, str):
            return self._broken(way, n_rules, results)
        few = self._few()
        expected = by_tamis(few, self._index_of(n_rules))
        few.unpersist()
        found = Found(*map(int, results[2:]))
        return self._judge(
            way, n_rules, Cost(float(results[0]), float(results[1])), found, expected
        )

    # ── memory ─────────────────────────────────────────────────────────────────────────────

    def measure_driver(self) -> list[Row]:
        """What a driver with separate executors needs for few events, and for many."""
        n = self.size.n_events
        results = run_alone(
            "watch_driver", str(self.folder), n, seconds=max(240, self.size.seconds)
        )
        if isinstance(results, str):
            return [{"measure": "driver's memory", "note": f"not measured: {results}"}]
        few, many, rss_few, rss_many, matches_few, matches_many = map(int, results)
        return [
            {
                "measure": f"driver's memory, {matches_many:,} matches of {n:,} events, bytes",
                "n": many + rss_many,
                "ratio": (many + rss_many) / (few + rss_few),
                "note": f"times that for {matches_few:,} of {n // 8:,}: heap after collection "
                f"{few:,} and {many:,}, Python's peak {rss_few:,} and {rss_many:,}",
            }
        ]

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
                f"build, Spark on {CORES} cores, {n:,} rules",
                spread,
                n,
                ratio=alone.wall / spread.wall,
                note=f"times faster, by wall; by CPU {alone.cpu / spread.cpu:.2f}",
            ),
            self.row(
                f"build again, nothing changed, {n:,} rules",
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


# ── in a separate process ───────────────────────────────────────────────────────────────────


def run_alone(function: str, *arguments: Any, seconds: float) -> list[str] | str:
    """The numbers that a function of this module prints last, or why there are none."""
    spelled = ", ".join(map(repr, arguments))
    code = f"from benchmarks import bench_spark; bench_spark.{function}({spelled})"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        process_group=0,
    )
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        return f"not done in {seconds:g} s"
    finally:
        with suppress(ProcessLookupError):  # the JVM and what it has started
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode:
        known = ("OutOfMemory", "StackOverflow", "too large", "grows beyond")
        return next((name for name in known if name in errors), errors.strip()[-100:])
    return output.split()


def match_files(folder: str, core: int) -> None:
    """Print what it costs this core to match its share of the events."""
    index = tamis.open(f"{folder}/index")
    files = event_files(Path(folder))[core::CORES]
    match_all(index, files)
    print(*measure(lambda: match_all(index, files)))


def try_way(way: str, n_rules: int, path: str, n_events: int) -> None:
    """Print what a way costs, and what it finds."""
    from tamis.spark import local_session

    spark = local_session("tamis-bench-alone", CORES, **{"spark.driver.memory": "3g"})
    events = few_events(spark.read.parquet(path), n_events)
    found: list[Found] = []
    cost = measure(lambda: found.append(WAYS[way](events, draw_rules(n_rules))))
    print(cost.cpu, cost.wall, found[0].n_pairs, found[0].digest)


def watch_driver(folder: str, n_events: int) -> None:
    """Print the driver's heap after collection, and its Python's peak, for few events and many."""
    import tamis.spark as ts

    spark = ts.local_session(
        "tamis-bench-driver",
        CORES,
        **{
            "spark.master": "local-cluster[2,1,1024]",
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            "spark.executorEnv.PYTHONPATH": os.pathsep.join(sys.path),
        },
    )
    events = spark.read.parquet(f"{folder}/events")
    heaps, peaks, counts = [], [], []
    for share in (64, 8, 1):  # the first only warms up
        own = events.where(f"id < {n_events // share}")
        ts.match(own, f"{folder}/index", event_id="id").write.mode("overwrite").parquet(
            f"{folder}/matches"
        )
        runtime = spark._jvm.java.lang.Runtime.getRuntime()
        runtime.gc()
        heaps.append(runtime.totalMemory() - runtime.freeMemory())
        status = Path("/proc/self/status").read_text()
        peaks.append(int(status.partition("VmHWM:")[2].split()[0]) * 1024)
        counts.append(spark.read.parquet(f"{folder}/matches").count())
    print(*heaps[1:], *peaks[1:], *counts[1:])
    spark.stop()
