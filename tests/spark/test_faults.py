"""kill -9 of publishers, drivers, workers and executors: nothing lost, nothing twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tamis.spark as ts
from tests.cli.shell import SOURCE
from tests.spark import faults
from tests.spark.test_store import version_of, write
from tests.spark.test_stream import Place, write_events

ROOT = Path(__file__).parents[2]


def start(program: str, folder: Path) -> subprocess.Popen[bytes]:
    """The program as a group of processes of its own."""
    paths = os.pathsep.join([str(SOURCE), str(ROOT)])
    with (folder / f"{program}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.faults", program, str(folder)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the driver and its JVM at once, as when a machine goes."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def finish(program: str, folder: Path) -> None:
    process = start(program, folder)
    try:
        assert process.wait(240) == 0, (folder / f"{program}.log").read_text()[-4000:]
    finally:
        if process.poll() is None:
            kill(process)


def matched(folder: Path) -> list[tuple[int, str]]:
    """All rows of all files, whatever a sink's metadata says."""
    files = sorted((folder / "matches").rglob("*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted((row["event_id"], row["subscription_id"]) for row in rows)


@pytest.mark.parametrize(
    "n_kills", [4, pytest.param(30, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_killed_publisher_leaves_whole_versions(tmp_path, seed, n_kills):
    rng = random.Random(seed)
    store = ts.IndexStore(tmp_path / "index")
    store.publish(lambda newest: version_of(write(store, {"x": "a = 1"})))
    reached = 1
    for _ in range(n_kills):
        process = start("publish", tmp_path)
        deadline = time.monotonic() + 60
        while store.current().number < reached + 3 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(rng.random() * 0.05)
        kill(process)
        current = store.current()
        assert current.number >= reached + 3
        assert ts.open_version(store).open()[0].match({"a": 1}) == ["x"]
        for number in store.numbers():
            store.version(number)  # whole, or this raises
        reached = current.number


@pytest.mark.parametrize(
    "n_kills", [1, pytest.param(20, marks=pytest.mark.slow)], ids=["once", "often"]
)
def test_a_killed_driver_loses_and_repeats_nothing(tmp_path, seed, n_kills):
    rng = random.Random(seed)
    faults.write_events(tmp_path / "events")
    for _ in range(n_kills):
        (tmp_path / "started").unlink(missing_ok=True)
        process = start("stream", tmp_path)
        while not (tmp_path / "started").exists() and process.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 6))
        kill(process)
    finish("stream", tmp_path)
    assert matched(tmp_path) == faults.expected()


@pytest.mark.parametrize(
    "n_runs", [1, pytest.param(20, marks=pytest.mark.slow)], ids=["once", "often"]
)
def test_a_killed_worker_changes_nothing(tmp_path, n_runs):
    for number in range(n_runs):
        folder = tmp_path / str(number)
        folder.mkdir()
        faults.write_events(folder / "events")
        finish("worker", folder)
        assert (folder / "killed").exists()
        assert matched(folder) == faults.expected()


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_a_killed_executor_changes_nothing_but_time(tmp_path, number):
    faults.write_events(tmp_path / "events")
    finish("cluster", tmp_path)
    assert (tmp_path / "killed").exists()
    assert matched(tmp_path) == faults.expected()


SOAK_SECONDS = float(os.environ.get("TAMIS_SOAK_SECONDS", "180"))


@pytest.mark.slow
def test_soak_every_row_is_right_for_its_version(spark, tmp_path):
    place = Place(spark, tmp_path)
    limits = {place.build(one="a >= 5").version.name: {"one": 5}}
    events: dict[int, int] = {}
    is_over = threading.Event()

    def feed() -> None:
        number = 0
        while not is_over.wait(0.3):
            rows = [(number * 10 + n, n) for n in range(10)]
            events.update(rows)
            write_events(place.events, f"{number}.json", rows)
            number += 1

    feeder = threading.Thread(target=feed)
    feeder.start()
    stream = spark.readStream.schema("id bigint, a int").json(str(place.events))
    query = ts.stream(
        stream,
        place.store,
        place.output,
        checkpoint=place.checkpoint,
        event_id="id",
        trigger={"processingTime": "500 milliseconds"},
    )
    deadline = time.monotonic() + SOAK_SECONDS
    step = 0
    while time.monotonic() < deadline:
        step += 1
        low = step % 10
        if step % 3:
            frame = spark.createDataFrame(
                [("one", f"a >= {low}")], "subscription_id string, expression string"
            )
            version = ts.update(spark, place.store, frame, most_deltas=4).version
        else:
            version = place.build(one=f"a >= {low}").version
        limits[version.name] = {"one": low}
        # A merge publishes one version before the one it returns, with the same answers.
        limits.setdefault(f"v{version.number - 1:08d}", {"one": low})
    is_over.set()
    feeder.join()
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    rows = place.rows()
    versions = {row[3]: row[2] for row in rows}
    assert all(versions[row[3]] == row[2] for row in rows), "two versions in one batch"
    found = sorted(row[0] for row in rows)
    by_batch = {
        int(path.name.partition("=")[2]): path for path in Path(place.output).glob("batch_id=*")
    }
    assert len(found) == len(set(found))
    assert all(events[row[0]] >= limits[row[2]]["one"] for row in rows)
    lows = {row[0] for row in rows}
    top = {number for number, a in events.items() if a == 9}
    assert top <= lows, "an event was lost"  # every limit is 9 or less
    assert len(set(versions.values())) > 3
    assert by_batch
