"""Events as they pass: with whom they matched, filtered, sampled, and only for those who may."""

from __future__ import annotations

import orjson
import pytest

from tamis.broker.publishing import Publication
from tamis.broker.rights import LOCAL
from tamis.broker.tapping import MOST_READ, MOST_SHOWN, Tap
from tamis.events.json_source import JsonObjects
from tamis.server import tap_stream
from tamis.server.event_stream import BEGIN, to_body
from tests.server.asking import subscribe
from tests.server.running import read_stream, run_server

PATH = "/v1/events/tap"


@pytest.fixture
def running(match_server, settings):
    with run_server(match_server, settings, heartbeat=0.05) as running:
        yield running


def publish(match_server, events: list[dict]) -> None:
    texts = [orjson.dumps(event) for event in events]
    match_server.publisher.publish(Publication(JsonObjects(texts), sum(map(len, texts)))).result()


def first_message(stream) -> dict:
    """The first message with data; before it there may be signs of life."""
    return next(own["data"] for own in stream if "data" in own)


def test_events_come_with_whom_they_matched(running):
    with running.client() as client:
        subscribe(client, id="adults", expression="age >= 18")
        with client.stream("GET", PATH) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            stream = read_stream(answer)
            assert "retry" in next(stream)
            client.post("/v1/events", json=[{"age": 20}, {"age": 3}])
            found = first_message(stream)
    assert (found["passed"], found["chosen"]) == (2, 2)
    first, second = found["events"]
    assert (first["content"], first["subscriptions"], first["matches"]) == (
        {"age": 20},
        ["adults"],
        1,
    )
    assert (second["content"], second["matches"]) == ({"age": 3}, 0)


def test_what_is_published_while_the_stream_opens_is_in_it(running, match_server, monkeypatch):
    def publish_first(body: bytes, **more):
        if body == BEGIN:
            publish(match_server, [{"n": 1}])
        return to_body(body, **more)

    monkeypatch.setattr(tap_stream, "to_body", publish_first)
    with running.client() as client, client.stream("GET", PATH) as answer:
        found = first_message(read_stream(answer))
    assert [own["content"] for own in found["events"]] == [{"n": 1}]


def test_an_event_of_several_lines_is_one_field(running):
    with running.client() as client, client.stream("GET", PATH) as answer:
        stream = read_stream(answer)
        next(stream)
        text = b'{\n "kind": "pp",\r "n": 1\r\n}\n'
        client.post("/v1/events", content=text, headers={"content-type": "application/json"})
        message = next(own for own in stream if "data" in own)
    assert message["data"]["events"][0]["content"] == {"kind": "pp", "n": 1}
    assert set(message) == {"event", "data"}


def test_a_filter_chooses_events(running):
    with (
        running.client() as client,
        client.stream("GET", PATH, params={"expression": "age = 3"}) as answer,
    ):
        stream = read_stream(answer)
        next(stream)
        client.post("/v1/events", json=[{"age": 20}, {"age": 3}, {"age": "old"}])
        found = first_message(stream)
    assert (found["passed"], found["chosen"]) == (3, 1)
    assert [own["content"] for own in found["events"]] == [{"age": 3}]


def test_a_wrong_filter_is_a_problem(running):
    with running.client() as client:
        answer = client.get(PATH, params={"expression": "age = ="})
        assert answer.status_code == 422
        assert answer.json()["span"]
        assert client.get(PATH, params={"share": 0}).status_code == 422


def test_a_revoked_key_ends_the_stream(match_server, settings):
    keys = match_server.broker.keys
    made = keys.create(LOCAL, "root", ["admin"])
    shown = {"authorization": f"Bearer {made.secret.reveal()}"}
    with (
        run_server(match_server, settings, is_open=False, heartbeat=0.05) as running,
        running.client(headers=shown) as client,
        client.stream("GET", PATH) as answer,
    ):
        stream = read_stream(answer)
        next(stream)
        keys.revoke(LOCAL, made.key.id)
        assert all("data" not in own for own in stream)  # and it ends


def test_the_stream_ends_with_the_server(running):
    with running.client() as client, client.stream("GET", PATH) as answer:
        stream = read_stream(answer)
        next(stream)
        running.stop()
        assert all("data" not in own for own in stream)


def test_a_stream_that_falls_behind_skips(match_server):
    live, archive = match_server.live, match_server.archive
    tap = Tap(live, archive, None, 1.0)
    events = [{"n": number} for number in range(MOST_READ + 100)]
    publish(match_server, events)
    found = tap.read(0)
    assert found.after == found.n_passed == len(events)
    assert found.n_chosen == MOST_READ
    assert [own.number for own in found.events] == list(
        range(len(events) - MOST_SHOWN + 1, len(events) + 1)
    )
    assert tap.read(found.after).n_passed == 0


def test_a_sample_is_a_share_of_the_events(match_server):
    tap = Tap(match_server.live, match_server.archive, None, 0.1)
    publish(match_server, [{"n": number} for number in range(MOST_READ)])
    found, again = tap.read(0), tap.read(0)
    assert 0.05 * MOST_READ < found.n_chosen < 0.2 * MOST_READ
    assert found == again
