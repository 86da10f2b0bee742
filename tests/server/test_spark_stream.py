"""A real Spark stream matches what is published, and the server delivers it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest
from starlette.testclient import TestClient

import tamis.spark as ts
from tamis.broker.match_server import MatchServer, MatchServerSettings, StreamSettings
from tamis.broker.taking import StreamTaker
from tamis.server import create_app
from tests.server.conftest import OWN_URL
from tests.server.places import subscribe
from tests.server.processes import ServerProcess
from tests.waiting import HANG_SECONDS, wait_until

SCHEMA = "number bigint, moment timestamp, change bigint, event string"


@pytest.fixture
def place(tmp_path) -> Path:
    return tmp_path


@pytest.fixture
def match_server(place, database, monkeypatch):
    monkeypatch.setattr(StreamTaker, "start", lambda self: None)
    shared = StreamSettings(str(place / "matches"), str(place / "versions"), 3600)
    own = MatchServerSettings(store=database, stream=shared)
    with MatchServer.open(place / "server", own) as opened:
        yield opened


@pytest.fixture
def client(match_server, settings):
    with TestClient(create_app(match_server, settings, is_open=True), base_url=OWN_URL) as client:
        yield client


def read(client, name: str) -> list:
    answer = client.get(f"/v1/subscriptions/{name}/matches", params={"limit": 1_000})
    return [(own["content"]["n"], own["change"]) for own in answer.json()["matches"]]


def run_stream(spark, place: Path) -> None:
    """Match what is there, and stop."""
    events = spark.readStream.schema(SCHEMA).parquet(str(place / "server" / "intake" / "events"))
    ts.stream(
        events,
        str(place / "versions"),
        str(place / "matches"),
        checkpoint=str(place / "checkpoint"),
        event_id="number",
        attributes="event",
        event_columns=["*"],
        trigger={"availableNow": True},
    ).awaitTermination()


@pytest.mark.slow
def test_published_events_are_matched_by_spark(spark, place, match_server, client):
    for name, text in {"few": "n < 5", "odd": "n % 2 = 1 AND kind = 'a'", "gone": "n >= 0"}.items():
        subscribe(client, id=name, expression=text)
    answer = client.post("/v1/events", json=[{"n": n, "kind": "a"} for n in range(10)]).json()
    assert (answer["accepted"], answer["matched"], answer["matches"]) == (10, None, None)
    match_server.versions.publish()
    match_server.intake.seal()
    run_stream(spark, place)
    match_server.live.remove("gone")
    assert read(client, "few") == []
    assert match_server.taker.take_all() == 1
    assert read(client, "few") == [(n, 3) for n in range(5)]
    assert read(client, "odd") == [(n, 3) for n in range(1, 10, 2)]
    assert match_server.taker.counts.undelivered == {"ended": 10}

    match_server.live.replace("few", "n < 12")
    match_server.versions.publish()
    client.post("/v1/events", json=[{"n": n, "kind": "b"} for n in range(10, 20)])
    match_server.intake.seal()
    run_stream(spark, place)
    # A stream that died before it noted that the batch is done runs it again.
    (place / "checkpoint" / "commits" / "1").unlink()
    (place / "checkpoint" / "commits" / ".1.crc").unlink(missing_ok=True)
    assert match_server.taker.take_all() == 1
    run_stream(spark, place)
    assert match_server.taker.take_all() == 0
    assert match_server.taker.counts.n_repeated_batches == 1
    assert read(client, "few")[5:] == [(10, 5), (11, 5)]
    assert len(read(client, "odd")) == 5
    found = client.get("/v1/stats").json()
    assert found["taken"]["batch"] == 1
    assert found["taken"]["undelivered"]["ended"] == 10
    assert found["intake"]["last_event"] == 20
    # The server does not match: what it does not judge is said, and not counted as right.
    assert (found["audit"]["share"], found["audit"]["n_events"]) == (0, 0)
    assert found["audit"]["off"].startswith("a Spark stream matches the events")
    metrics = client.get("/metrics").text
    assert "tamis_stream_batch 1.0" in metrics
    assert "tamis_audit_share 0.0" in metrics
    assert 'tamis_stream_undelivered_total{reason="ended"} 10.0' in metrics
    assert client.get("/readyz").status_code == 503  # the thread that takes does not run here


STREAM = """
import sys
from pathlib import Path
import tamis.spark as ts
place = Path(sys.argv[1])
spark = ts.local_session("stream")
schema = "number bigint, moment timestamp, change bigint, event string"
events = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
query = ts.stream(
    events.parquet(str(place / "server" / "intake" / "events")), str(place / "versions"),
    str(place / "matches"), checkpoint=str(place / "checkpoint"), event_id="number",
    attributes="event", event_columns=["*"], trigger={"processingTime": "100 milliseconds"},
    on_batch=lambda report: print(report.batch_id, flush=True),
)
print("started", flush=True)
query.awaitTermination()
"""


def start_stream(place: Path) -> subprocess.Popen:
    with (place / "stream.log").open("ab") as log:
        stream = subprocess.Popen(
            [sys.executable, "-c", STREAM, str(place)],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,  # the JVM is killed with it
        )
    assert stream.stdout.readline() == "started\n", (place / "stream.log").read_text()
    return stream


def kill_stream(stream: subprocess.Popen) -> None:
    with suppress(ProcessLookupError):
        os.killpg(stream.pid, signal.SIGKILL)
    stream.wait(HANG_SECONDS)
    stream.stdout.close()


def start_server(place: Path) -> ServerProcess:
    return ServerProcess(
        place / "server",
        *("--matches", str(place / "matches"), "--versions", str(place / "versions")),
        TAMIS_ARCHIVE_SEGMENT_SIZE="1",
        TAMIS_STREAM_VERSIONS_EVERY="1 s",
    )


@pytest.mark.soak
def test_spark_and_server_are_killed(place, seed):
    """Published events are acknowledged; each of their matches is delivered once."""
    draw = random.Random(seed)
    server, n_events = start_server(place), 0

    def ask(method: str, path: str, **options):
        return httpx2.request(
            method, f"{server.url}{path}", timeout=HANG_SECONDS, trust_env=False, **options
        )

    for name, rest in (("even", 0), ("odd", 1)):
        asked = {"id": name, "expression": f"n % 2 = {rest}", "lease": 1_000_000}
        assert ask("POST", "/v1/subscriptions", json=asked).status_code == 201
    wait_until(lambda: ask("GET", "/v1/stats").json()["versions"]["change"] == 2, "both are in it")
    stream = start_stream(place)
    for _ in range(12):
        for _ in range(draw.randint(1, 20)):
            events = [{"n": n} for n in range(n_events, n_events + 50)]
            assert ask("POST", "/v1/events", json=events).json()["accepted"] == 50
            n_events += 50
        time.sleep(draw.random() * 3)
        victims = draw.choice([["stream"], ["server"], ["stream", "server"]])
        if "stream" in victims:
            kill_stream(stream)
        if "server" in victims:
            server.stop(signal.SIGKILL)
            server = start_server(place)
        if "stream" in victims:
            stream = start_stream(place)

    def has_all() -> bool:
        nonlocal stream
        if stream.poll() is not None:  # a file went away while a killed server was started again
            kill_stream(stream)
            stream = start_stream(place)
        return ask("GET", "/v1/stats").json()["archive"]["last_event"] >= n_events

    assert ask("POST", "/v1/events", json={"n": n_events}).json()["accepted"] == 1  # closes one
    wait_until(has_all, "all matches are taken")
    kill_stream(stream)
    for name, rest in (("even", 0), ("odd", 1)):
        found: list[int] = []
        cursor = None
        while True:
            given = {"limit": 1_000} | ({} if cursor is None else {"after": cursor})
            page = ask("GET", f"/v1/subscriptions/{name}/matches", params=given).json()
            if not page["matches"]:
                break
            found += [own["content"]["n"] for own in page["matches"]]
            cursor = page["cursor"]
        found = [n for n in found if n < n_events]
        assert sorted(found) == list(range(rest, n_events, 2))
    taken = ask("GET", "/v1/stats").json()["taken"]
    assert not any(taken["undelivered"].values())
    assert taken["n_lost_batches"] == 0
    assert server.stop() == 0
