"""Programs that are killed: each is run as a process by `test_faults`, and can be run again."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark import TaskContext
from pyspark.sql import SparkSession

import tamis.spark as ts
from tamis.spark.jobs.stream import MatchBatch
from tamis.versions.store import IndexStore
from tests.spark.workloads import subscription_frame
from tests.waiting import wait_until

N_FILES = 6
N_TASKS = 8
ROWS = 200
SUBSCRIPTIONS = [(f"s{n}", f"a BETWEEN {n} AND {n + 2}") for n in range(9)]
SCHEMA = "id bigint, a int"
# Where a driver dies: in a build, then in each batch of a stream.
BUILD_POINTS = ("parts written", "manifest written")
BATCH_POINTS = ("batch begun", "version pinned", "output begun", "output written")


def session(master: str, **conf: str) -> SparkSession:
    return ts.local_session(
        "tamis-faults",
        2,
        **{
            "spark.master": master,
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
            **conf,
        },
    )


def write_events(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    for number in range(N_FILES):
        rows = ({"id": number * ROWS + n, "a": n % 10} for n in range(ROWS))
        (folder / f"{number}.json").write_text("".join(json.dumps(row) + "\n" for row in rows))


def expected() -> list[tuple[int, str]]:
    bounds = [(name, n) for n, (name, _) in enumerate(SUBSCRIPTIONS)]
    return sorted(
        (number * ROWS + n, name)
        for number in range(N_FILES)
        for n in range(ROWS)
        for name, low in bounds
        if low <= n % 10 <= low + 2
    )


# ── drivers ─────────────────────────────────────────────────────────────────────────────────


def stream(folder: Path, point: str = "", batch: str = "0") -> None:
    """Match all files, one a batch, dying at a point; run again, it goes on.

    Each run publishes a new version, so a batch that comes again could take another.
    """
    watcher = die_at(point, int(batch), folder)
    spark = session("local[2]")
    store = IndexStore(folder / "index")
    if store.current_or_none() is None:
        ts.build(subscription_frame(spark, SUBSCRIPTIONS), store)
    else:
        store.publish(lambda newest: newest)
    events = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    ts.stream(
        events.json(str(folder / "events")),
        store,
        str(folder / "matches"),
        checkpoint=str(folder / "checkpoint"),
        event_id="id",
        trigger={"availableNow": True},
    ).awaitTermination()
    if watcher is not None:
        watcher.join()  # late, where the machine is busy
    spark.stop()


def die_at(point: str, batch: int, folder: Path) -> threading.Thread | None:
    """Kill driver and JVM at once, as when a machine goes, where `point` says.

    Returns the thread that does, where it has to watch for the moment.
    """

    def before(kind: type, name: str, is_now: Callable[..., bool]) -> None:
        go_on = getattr(kind, name)

        def method(self: Any, *args: Any, **options: Any) -> Any:
            if is_now(*args):
                die()
            return go_on(self, *args, **options)

        setattr(kind, name, method)

    if point == "parts written":
        before(IndexStore, "publish", lambda _: True)
    elif point == "manifest written":
        before(IndexStore, "_settle", lambda _: True)
    elif point == "batch begun":
        before(MatchBatch, "pin", lambda number: number == batch)
    elif point == "output written":
        before(MatchBatch, "_report", lambda report: report.batch_id == batch)
    elif point == "version pinned":
        pinned = folder / "checkpoint" / "tamis-versions" / str(batch)
        return _watch(pinned.exists)
    elif point == "output begun":
        output = folder / "matches" / f"batch_id={batch}"
        return _watch(lambda: any(output.rglob("*.parquet")))
    return None


def _watch(is_now: Callable[[], bool]) -> threading.Thread:
    def run() -> None:
        while not is_now():
            time.sleep(0.001)
        die()

    watcher = threading.Thread(target=run, daemon=True)
    watcher.start()
    return watcher


def die() -> None:
    os.killpg(0, signal.SIGKILL)


# ── workers and executors ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Held:
    """Tasks of which the second half waits until something was killed."""

    killed: Path  # there once it was

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        assert context is not None
        for batch in batches:
            if context.partitionId() >= N_TASKS // 2:
                wait_until(self.killed.exists, "something is killed")
            yield batch


def match_and_kill(
    spark: SparkSession, folder: Path, n_runs: int, kill: Callable[[Path], int]
) -> None:
    """Match again and again; once in each run, when tasks are at work, `kill` something."""
    ts.build(subscription_frame(spark, SUBSCRIPTIONS), folder / "index", parts=2)
    events = spark.read.schema(SCHEMA).json(str(folder / "events")).repartition(N_TASKS)
    for number in range(n_runs):
        killed = folder / "killed" / str(number)
        killer = threading.Thread(target=_kill_midway, args=(spark, folder, kill, killed))
        killer.start()
        held = events.mapInArrow(Held(killed), events.schema)
        found = ts.match(held, folder / "index", event_id="id")
        found.write.parquet(str(folder / "matches" / str(number)))
        killer.join()
    spark.stop()


def _kill_midway(
    spark: SparkSession, folder: Path, kill: Callable[[Path], int], killed: Path
) -> None:
    tracker = spark.sparkContext.statusTracker()

    def has_killed() -> bool:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        is_midway = any(stage and 0 < stage.numCompletedTasks < stage.numTasks for stage in stages)
        return is_midway and kill(folder) > 0

    wait_until(has_killed, "tasks are at work")
    killed.touch()


def worker(folder: Path, n_runs: str = "1") -> None:
    """Match while the Python workers that have opened the index are killed."""
    match_and_kill(session("local[2, 4]"), folder, int(n_runs), kill_matchers)


def cluster(folder: Path, n_runs: str = "1") -> None:
    """Match on a cluster of two workers while one executor is killed."""
    spark = session("local-cluster[2,1,1024]")
    match_and_kill(spark, folder, int(n_runs), lambda _: kill_first(b"CoarseGrainedExecutor"))


def standalone(folder: Path, n_runs: str = "1") -> None:
    """Match on a standalone cluster of two machines' worth of processes while one is lost."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    master = f"spark://127.0.0.1:{port}"
    start_daemon(folder, "master.Master", "--port", port)
    for number in (1, 2):
        own = ("-c", "1", "-m", "1g", "-d", str(folder / f"work{number}"))
        start_daemon(folder, "worker.Worker", *own, master)
    spark = session(master, **{"spark.executor.cores": "1"})

    def lose_machine(_: Path) -> int:
        # The worker first: it would start another executor.
        return kill_first(b"worker.Worker") + kill_first(b"CoarseGrainedExecutor")

    match_and_kill(spark, folder, int(n_runs), lose_machine)


def start_daemon(folder: Path, name: str, *options: str) -> None:
    """Start a master or a worker; whoever started this program ends its group."""
    home = Path(pyspark.__file__).parent
    environment = {
        "JAVA_HOME": str(ts.choose_java().path),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    command = [home / "bin" / "spark-class", f"org.apache.spark.deploy.{name}"]
    subprocess.Popen(
        [*command, "--host", "127.0.0.1", *options],
        env={**os.environ, **environment},
        cwd=folder,
    )


def kill_matchers(folder: Path) -> int:
    """Kill the Python workers that have mapped the index into memory."""
    own = [pid for pid in descendants(os.getpid()) if has_mapped(pid, folder / "index")]
    for pid in own:
        os.kill(pid, signal.SIGKILL)
    return len(own)


def has_mapped(pid: int, path: Path) -> bool:
    try:
        return str(path) in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False  # it has just ended


def kill_first(name: bytes) -> int:
    """Kill one JVM of that name among our own descendants."""
    for pid in descendants(os.getpid()):
        try:
            command = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if name in command and b"java" in command.split(b"\0")[0]:
            os.kill(pid, signal.SIGKILL)
            return 1
    return 0


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = task.read_text().split()
        except OSError:
            continue  # a thread that has just ended
        for child in map(int, children):
            found += [child, *descendants(child)]
    return found


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])
