"""The audit finds wrong answers, and none where there are none; it never holds up publishing."""

from __future__ import annotations

from threading import Event

import numpy as np
import pyarrow as pa
import pytest

from tamis.archive import JsonEvents
from tamis.broker import audit
from tamis.broker.audit import Answered, Auditor
from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.broker.publishing import Publication
from tamis.events.json_source import JsonObjects
from tamis.match.readouts.numbers import NumberLists
from tests.waiting import wait_until

SCHEMA = "age int, name string"


@pytest.fixture
def server(tmp_path):
    settings = MatchServerSettings(schema=SCHEMA, audit_share=1.0)
    with MatchServer.open(tmp_path / "server", settings) as server:
        for n in range(20):
            server.live.add(f"s{n}", f"age >= {n}")
        server.live.add("later", "age >= 0", valid_from="2990-01-01")
        server.live.replace("s3", "name = 'ann'")
        server.live.remove("s4")
        yield server


def publish(server, texts) -> None:
    events = texts if isinstance(texts, pa.RecordBatch) else JsonObjects(texts)
    server.publisher.publish(Publication(events, 1)).result()


def judged(server, n_events: int) -> dict:
    wait_until(lambda: server.auditor.describe()["n_events"] >= n_events, "all events are judged")
    return server.auditor.describe()


def test_an_audit_that_is_off_says_why():
    auditor = Auditor(1.0, off="others match")
    assert (auditor.share, auditor.describe()["off"]) == (0.0, "others match")
    assert Auditor().describe()["off"] is None


def test_right_answers_are_confirmed(server):
    publish(server, [b'{"age": %d, "name": "ann"}' % age for age in range(25)])
    publish(server, [b"nothing", b"{}", b'{"age": "x"}', b'{"age": null}'])
    publish(server, pa.record_batch({"age": [5, None, 50], "name": ["ann", None, "bob"]}))
    found = judged(server, 31)
    assert found["n_pairs"] == 31 * 19
    assert (found["n_disagreements"], found["n_faults"], found["n_skipped"]) == (0, 0, 0)


@pytest.mark.parametrize("is_missing", [True, False])
def test_wrong_answers_are_found(server, is_missing, caplog):
    view, moment = server.live.view_now()
    right = [server.live.get(f"s{n}").created for n in (0, 1, 2)]
    wrong = right[:2] if is_missing else [*right, server.live.get("s9").created]
    numbers = np.array(sorted(wrong), dtype=np.int64)
    publish(server, [b'{"age": 2}'])
    text = b'{"age": 2}'
    events = JsonEvents(text, np.array([0]), np.array([len(text)]))
    given = NumberLists(np.array([0, len(numbers)]), numbers)
    server.auditor.offer(Answered(view, moment, events, given, 77))
    found = judged(server, 2)
    assert found["n_disagreements"] == 1
    (one,) = found["disagreements"]
    assert (one["event"], one["subscription"]) == (77, "s2" if is_missing else "s9")
    assert one["is_match"] is not is_missing
    assert "event 77" in caplog.text


def test_a_slow_audit_skips_events(server, monkeypatch):
    going_on = Event()
    monkeypatch.setattr(server.auditor, "_judge", lambda waiting: going_on.wait())
    try:
        publish(server, [b'{"age": 1}'] * (audit.MOST_WAITING + 50))
        assert server.auditor.describe()["n_skipped"] >= 49
    finally:
        going_on.set()


def test_a_share_of_the_events_is_chosen():
    auditor = Auditor(0.0, seed=1)
    auditor.share = 0.25
    chosen = list(auditor._choose(10_000))
    assert chosen == sorted(set(chosen))
    assert 2_200 < len(chosen) < 2_800
    assert set(chosen) <= set(range(10_000))
    auditor.share = 1.0
    assert list(auditor._choose(3)) == [0, 1, 2]
    assert Auditor().describe()["n_events"] == 0
