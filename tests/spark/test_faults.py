"""kill -9 of drivers, workers and executors: nothing lost, nothing twice."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tamis.spark as ts
import tamis.versions as tv
from tests.spark import faults
from tests.spark.test_stream import Place, write_events
from tests.versions.faults import kill, start
from tests.waiting import HANG_SECONDS


def finish(program: str, folder: Path, *arguments: str, exit_code: int = 0) -> None:
    process = start("tests.spark.faults", program, folder, *arguments)
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
            assert len(tv.open_version(tmp_path / "index").open()) == len(faults.SUBSCRIPTIONS)
        for pin in (tmp_path / "checkpoint" / "tamis-versions").glob("[0-9]*"):
            assert pins.setdefault(pin.name, pin.read_bytes()) == pin.read_bytes()
    finish("stream", tmp_path)
    assert matched(tmp_path / "matches") == faults.expected()
    for folder in (tmp_path / "matches").iterdir():
        versions = {v for file in folder.glob("*.parquet") for v in versions_in(file)}
        number = folder.name.partition("=")[2]
        shown = json.loads((tmp_path / "checkpoint" / "tamis-versions" / number).read_bytes())
        assert versions == {shown["version"]}


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
    # Each file has an event that every version matches: it shows which version took the file.
    took = {row[0]: row[2] for row in rows if events[row[0]] == 9}
    assert took.keys() == {number for number, a in events.items() if a == 9}, "an event was lost"
    wanted = [
        (number, took[number - a + 9])
        for number, a in events.items()
        if a >= limits[took[number - a + 9]]
    ]
    assert sorted((row[0], row[2]) for row in rows) == sorted(wanted)
    assert len(set(versions.values())) > 3
