"""Programs that are killed: each is run as a process by `test_faults`, and can be run again."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

import tamis.spark as ts
from tamis.spark.store import IndexStore
from tests.spark.workloads import subscription_frame

N_FILES = 6
ROWS = 200
SUBSCRIPTIONS = [(f"s{n}", f"a BETWEEN {n} AND {n + 2}") for n in range(9)]


def session(master: str) -> SparkSession:
    return ts.local_session(
        "tamis-faults",
        2,
        **{
            "spark.master": master,
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
            "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"],
            "spark.driver.memory": "1g",
            "spark.executor.memory": "1g",
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


# ── programs ────────────────────────────────────────────────────────────────────────────────


def publish(folder: Path) -> None:
    """Publish version after version until killed."""
    store = IndexStore(folder / "index")
    while True:
        store.publish(lambda newest: replace(newest, parts=newest.parts[:1]))
        store.prune(ts.Retention(versions=5))


def stream(folder: Path) -> None:
    """Match all files, one a batch; run again, it goes on."""
    spark = session("local[2]")
    if not (folder / "index" / "CURRENT").exists():
        ts.build(subscription_frame(spark, SUBSCRIPTIONS), folder / "index")
    events = spark.readStream.schema("id bigint, a int").option("maxFilesPerTrigger", 1)
    (folder / "started").touch()
    ts.stream(
        events.json(str(folder / "events")),
        folder / "index",
        str(folder / "matches"),
        checkpoint=str(folder / "checkpoint"),
        event_id="id",
        trigger={"availableNow": True},
    ).awaitTermination()
    spark.stop()


def die_once(folder: str):
    """Kills the Python worker that meets the first batch, once."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch
            try:
                os.close(os.open(f"{folder}/killed", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os.kill(os.getpid(), signal.SIGKILL)

    return run


def worker(folder: Path) -> None:
    """Match in batch while a worker is killed."""
    spark = session("local[2, 4]")
    ts.build(subscription_frame(spark, SUBSCRIPTIONS), folder / "index")
    events = spark.read.schema("id bigint, a int").json(str(folder / "events"))
    doomed = events.mapInArrow(die_once(str(folder)), "id bigint, a int")
    matches = ts.match(doomed, folder / "index", event_id="id")
    matches.write.parquet(str(folder / "matches" / "batch_id=0"))
    spark.stop()


def slowly(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(0.5)
        yield batch


def cluster(folder: Path) -> None:
    """Match on a cluster of two workers; one executor is killed while the job runs."""
    spark = session("local-cluster[2,1,1024]")
    ts.build(subscription_frame(spark, SUBSCRIPTIONS), folder / "index", parts=2)
    events = spark.read.schema("id bigint, a int").json(str(folder / "events")).repartition(12)
    killer = threading.Timer(2.0, kill_executor, [folder])
    killer.start()
    matches = ts.match(events.mapInArrow(slowly, events.schema), folder / "index", event_id="id")
    matches.write.parquet(str(folder / "matches" / "batch_id=0"))
    killer.join()
    spark.stop()


def kill_executor(folder: Path) -> None:
    """Kill one executor among our own descendants."""
    for pid in descendants(os.getpid()):
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
        if b"CoarseGrainedExecutorBackend" in command and b"java" in command.split(b"\0")[0]:
            os.kill(pid, signal.SIGKILL)
            (folder / "killed").touch()
            return


def descendants(pid: int) -> list[int]:
    found = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text().split()):
            found += [child, *descendants(child)]
    return found


if __name__ == "__main__":
    globals()[sys.argv[1]](Path(sys.argv[2]))
