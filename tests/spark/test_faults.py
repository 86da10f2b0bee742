"""kill -9 of publishers, drivers, workers and executors: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tamis
import tamis.spark as ts
import tamis.versions as tv
from tests.cli.shell import SOURCE
from tests.spark import faults
from tests.spark.test_stream import Place, write_events
from tests.versions.test_store import version_of, write
from tests.waiting import HANG_SECONDS, wait_until

ROOT = Path(__file__).parents[2]


def start(program: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """The program as a group of processes of its own."""
    paths = os.pathsep.join([str(SOURCE), str(ROOT)])
    with (folder / f"{program}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tests.spark.faults", program, str(folder), *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": paths},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill the whole group, whatever is left of it."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def finish(program: str, folder: Path, *arguments: str, exit_code: int = 0) -> None:
    process = start(program, folder, *arguments)
    try:
        ended = process.wait(HANG_SECONDS)
    finally:
        kill(process)
    assert ended == exit_code, (folder / f"{program}.log").read_text()[-4000:]


def matched(folder: Path) -> list[tuple[int, str]]:
    """All rows of all files, whatever a sink's metadata says."""
    files = sorted(folder.rglob("*.parquet"))
    rows = [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]
    return sorted((row["event_id"], row["subscription_id"]) for row in rows)


@pytest.mark.parametrize(
    "n_kills", [4, pytest.param(30, marks=pytest.mark.soak)], ids=["few", "many"]
)
def test_a_killed_publisher_leaves_whole_versions(tmp_path, seed, n_kills):
    rng = random.Random(seed)
    store = tv.IndexStore(tmp_path / "index")
    store.publish(lambda newest: version_of(write(store, {"x": "a = 1"})))
    reached = 1
    for _ in range(n_kills):
        process = start("publish", tmp_path)
        aim = reached + 3
        wait_until(lambda aim=aim: store.current().number >= aim, "three versions are published")
        time.sleep(rng.random() * 0.05)  # anywhere in the next
        kill(process)
        current = store.current()
        assert tv.open_version(store).open()[0].match({"a": 1}) == ["x"]
        for number in store.numbers():
            store.version(number)  # whole, or this raises
        reached = current.number
    store.publish(lambda newest: newest)
    store.prune()
    assert [path for path in (tmp_path / "index").rglob(".*") if path.is_file()] == []


@pytest.mark.parametrize(
    "n_kills", [4, pytest.param(40, marks=pytest.mark.slow)], ids=["few", "many"]
)
def test_a_killed_builder_leaves_nothing_for_long(tmp_path, seed, n_kills):
    """Half-written parts go when the next part is written."""
    rng = random.Random(seed)
    store = tv.IndexStore(tmp_path / "index")
    parts = tmp_path / "index" / "parts"
    n_left = 0
    for number in range(n_kills):
        process = start("write_parts", tmp_path)
        n_before = len(list(parts.glob("*")))
        while len(list(parts.glob("*"))) < n_before + 2 and process.poll() is None:
            time.sleep(0.001)
        time.sleep(rng.random() * 0.02)
        kill(process)
        n_left += any(parts.glob(".*"))
        write(store, {"x": f"a = {number}"})
        assert list(parts.glob(".*")) == []
        for part in parts.iterdir():
            assert len(tamis.open(part)) == 1
    assert n_left > 0


ALL_POINTS = [
    *((point, 0) for point in faults.BUILD_POINTS),
    *((point, batch) for batch in range(faults.N_FILES) for point in faults.BATCH_POINTS),
]


@pytest.mark.parametrize(
    "points",
    [
        [("output begun", 1)],
        pytest.param(ALL_POINTS, marks=pytest.mark.soak),
    ],
    ids=["once", "everywhere"],
)
def test_a_killed_driver_loses_and_repeats_nothing(tmp_path, points):
    faults.write_events(tmp_path / "events")
    pins: dict[str, bytes] = {}
    for point, batch in points:
        finish("stream", tmp_path, point, str(batch), exit_code=-signal.SIGKILL)
        if (tmp_path / "index" / "CURRENT").exists():
            assert len(tv.open_version(tmp_path / "index").open()[0]) == len(faults.SUBSCRIPTIONS)
        for pin in (tmp_path / "checkpoint" / "tamis-versions").glob("[0-9]*"):
            assert pins.setdefault(pin.name, pin.read_bytes()) == pin.read_bytes()
    finish("stream", tmp_path)
    assert matched(tmp_path / "matches") == faults.expected()
    for folder in (tmp_path / "matches").iterdir():
        versions = {v for file in folder.glob("*.parquet") for v in versions_in(file)}
        number = folder.name.partition("=")[2]
        told = json.loads((tmp_path / "checkpoint" / "tamis-versions" / number).read_bytes())
        assert versions == {told["version"]}


def versions_in(file: Path) -> set[str]:
    return set(pq.ParquetFile(file).read(["version"])["version"].to_pylist())


@pytest.mark.parametrize(
    ("program", "n_runs"),
    [
        ("worker", 1),
        pytest.param("worker", 20, marks=pytest.mark.soak),
        pytest.param("cluster", 20, marks=pytest.mark.soak),
        pytest.param("standalone", 1, marks=pytest.mark.soak),
    ],
)
def test_what_is_lost_midway_changes_nothing_but_time(tmp_path, program, n_runs):
    faults.write_events(tmp_path / "events")
    (tmp_path / "killed").mkdir()
    finish(program, tmp_path, str(n_runs))
    for number in range(n_runs):
        assert (tmp_path / "killed" / str(number)).exists()
        assert matched(tmp_path / "matches" / str(number)) == faults.expected()


SOAK_SECONDS = float(os.environ.get("TAMIS_SOAK_SECONDS", "180"))


@pytest.mark.soak
def test_soak_every_row_is_right_for_its_version(spark, tmp_path):
    place = Place(spark, tmp_path)
    limits = {place.build(one="a >= 5").version.name: 5}
    events: dict[int, int] = {}
    taken: set[str] = set()  # versions that answered a batch
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
        on_batch=lambda report: taken.add(report.version),
    )
    deadline = time.monotonic() + SOAK_SECONDS
    step = 0
    while time.monotonic() < deadline or len(taken) <= 3:
        step += 1
        low = step % 10
        if step % 3:
            frame = spark.createDataFrame(
                [("one", f"a >= {low}")], "subscription_id string, expression string"
            )
            version = ts.update(spark, place.store, frame, most_deltas=4).version
        else:
            version = place.build(one=f"a >= {low}").version
        limits[version.name] = low
        # A merge publishes one version before the one it returns, with the same answers.
        limits.setdefault(f"v{version.number - 1:08d}", low)
    is_over.set()
    feeder.join()
    query.processAllAvailable()
    query.stop()
    assert query.exception() is None
    rows = place.rows()
    versions = {row[3]: row[2] for row in rows}
    assert all(versions[row[3]] == row[2] for row in rows), "two versions in one batch"
    # Each file has an event that every version matches: it tells which version took the file.
    took = {row[0]: row[2] for row in rows if events[row[0]] == 9}
    assert took.keys() == {number for number, a in events.items() if a == 9}, "an event was lost"
    wanted = [
        (number, took[number - a + 9])
        for number, a in events.items()
        if a >= limits[took[number - a + 9]]
    ]
    assert sorted((row[0], row[2]) for row in rows) == sorted(wanted)
    assert len(set(versions.values())) > 3
