"""Server-Sent Events on real sockets."""

from __future__ import annotations

import random
import socket
import threading
from itertools import islice

import pytest

from tamis.broker.keys import KeyLimits
from tests.server.asking import make_key, publish, subscribe
from tests.server.running import read_stream, run_server
from tests.waiting import HANG_SECONDS, wait_until

BOX = "/v1/subscriptions/a"


@pytest.fixture
def running(match_server, settings):
    with run_server(match_server, settings) as server:
        yield server


def follow(client, n_events: int, cursor: str | None = None, path: str = BOX) -> list[dict]:
    """The first events of a stream, without comments."""
    headers = {} if cursor is None else {"last-event-id": cursor}
    with client.stream("GET", f"{path}/stream", headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        return list(islice((own for own in read_stream(answer) if "data" in own), n_events))


def numbers_of(events: list[dict]) -> list[int]:
    return [own["data"]["event"] for own in events]


def test_reconnecting_under_load_has_no_gap_and_no_duplicate(running):
    n_events, random_size = 200, random.Random(7)
    with running.client() as client, running.client() as publisher:
        subscribe(client, id="a", expression="x = 1")
        epoch = running.context.match_server.archive.epoch

        def publish_all() -> None:
            n_left = n_events
            while n_left:
                n_batch = min(n_left, random_size.randint(1, 7))
                n_left -= n_batch
                publish(publisher, *({"x": 1} for _ in range(n_batch)))

        thread = threading.Thread(target=publish_all)
        thread.start()
        seen, cursor, dice = [], f"{epoch}:0", random.Random(8)
        while len(seen) < n_events:
            got = follow(client, min(dice.randint(1, 50), n_events - len(seen)), cursor)
            seen += numbers_of(got)
            cursor = got[-1]["id"]
        thread.join(HANG_SECONDS)
    assert seen == list(range(1, n_events + 1))


def test_a_stream_begins_with_the_next_event_or_after_a_consumer(running):
    with running.client() as client, running.client() as other:
        subscribe(client, id="a", expression="x = 1")
        epoch = publish(client, {"x": 1}, {"x": 1})["epoch"]
        with client.stream("GET", f"{BOX}/stream") as answer:
            events = read_stream(answer)
            assert next(events) == {"retry": "2000", "id": f"{epoch}:2"}
            publish(other, {"x": 1})
            assert next(events)["data"]["event"] == 3
        other.post(f"{BOX}/acknowledge", json={"event": 1, "epoch": epoch, "consumer": "c"})
        with client.stream("GET", f"{BOX}/stream", params={"consumer": "c"}) as answer:
            events = (own for own in read_stream(answer) if "data" in own)
            assert numbers_of(list(islice(events, 2))) == [2, 3]


@pytest.mark.parametrize("line_break", ["\n", "\r", "\r\n"])
def test_an_event_of_several_lines_is_one_field(running, line_break):
    text = line_break.join(("{", '"x": 1,', '"s": "a\\nb"', "}", ""))
    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
        client.post("/v1/events", content=text, headers={"content-type": "application/json"})
        (found,) = follow(client, 1, "0")
    assert found["data"]["content"] == {"x": 1, "s": "a\nb"}
    assert set(found) == {"id", "event", "data"}


def test_an_idle_stream_shows_life_and_moves_on(match_server, settings):
    with run_server(match_server, settings, heartbeat=0.02) as running:
        client, other = running.client(), running.client()
        with client, other:
            subscribe(client, id="a", expression="x = 1")
            epoch = publish(other, {"x": 2}, {"x": 2})["epoch"]
            with client.stream("GET", f"{BOX}/stream", params={"after": "0"}) as answer:
                events = read_stream(answer)
                next(events)
                idle = next(events)
                assert idle == {"comment": "nothing new", "id": f"{epoch}:2"}
                publish(other, {"x": 2})
                wait = (own for own in events if own["id"] == f"{epoch}:3")
                assert next(wait)["comment"] == "nothing new"


def test_vanished_clients_are_found_out(running):
    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
    answers = []
    for _ in range(5):
        client = running.client()
        answers.append(
            (client, client.send(client.build_request("GET", f"{BOX}/stream"), stream=True))
        )
    wait_until(lambda: len(running.context.live_mail) == 5, "the streams are open")
    assert len(running.context.streams) == 5
    for client, answer in answers:
        answer.close()
        client.close()
    wait_until(lambda: len(running.context.streams) == 0, "the server has noticed")
    assert len(running.context.live_mail) == 0
    assert len(running.context.match_server.hub) == 0


def test_a_key_has_a_limit_of_streams(match_server, settings):
    key = make_key(match_server, "ann", "subscribe", "read", limits=KeyLimits(streams=1))
    with run_server(match_server, settings, is_open=False) as running:
        client, other = running.client(headers=key), running.client(headers=key)
        with client, other:
            subscribe(client, id="a", expression="x = 1")
            with client.stream("GET", f"{BOX}/stream") as answer:
                events = read_stream(answer)
                next(events)
                refused = other.get(f"{BOX}/stream")
                assert (refused.status_code, refused.json()["code"]) == (429, "too-many-streams")
                refused = other.get(f"{BOX}/matches", params={"wait": 5})
                assert refused.status_code == 429
            wait_until(lambda: len(running.context.streams) == 0, "the server has noticed")
            with other.stream("GET", f"{BOX}/stream") as answer:
                epoch = match_server.archive.epoch
                assert next(read_stream(answer)) == {"retry": "2000", "id": f"{epoch}:0"}


def test_streams_end_when_the_server_stops(match_server, settings):
    with run_server(match_server, settings) as running, running.client() as client:
        subscribe(client, id="a", expression="x = 1")
        with client.stream("GET", f"{BOX}/stream") as answer:
            events = read_stream(answer)
            next(events)
            running.stop()
            assert list(events) == []  # the answer is complete: no error


def test_a_client_that_does_not_read_holds_up_nobody(running):
    n_events, text = 60, "y" * 200_000
    host, port = running.url.removeprefix("http://").split(":")
    with running.client() as client, running.client() as publisher:
        subscribe(client, id="a", expression="x = 1")
        slow = socket.create_connection((host, int(port)))
        slow.sendall(f"GET {BOX}/stream HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
        wait_until(lambda: len(running.context.streams) == 1, "the slow client is there")
        for _ in range(n_events):
            publish(publisher, {"x": 1, "y": text})
        epoch = running.context.match_server.archive.epoch
        assert len(follow(client, n_events, f"{epoch}:0")) == n_events
        received, wanted = b"", b"id: %b:%d\n" % (epoch.encode(), n_events)
        while wanted not in received[-300_000:]:
            piece = slow.recv(1 << 20)
            assert piece
            received += piece
        places = [received.find(b"id: %b:%d\n" % (epoch.encode(), n)) for n in range(1, n_events)]
        assert -1 not in places
        assert places == sorted(places)
        slow.close()


def test_a_stream_follows_the_members_of_its_channel(running):
    with running.client() as client, running.client() as other:
        subscribe(client, id="a", expression="x = 1")
        subscribe(client, id="b", expression="x = 2")
        other.post("/v1/channels", json={"name": "c", "subscriptions": ["a"]})
        with client.stream("GET", "/v1/channels/c/stream") as answer:
            events = read_stream(answer)
            next(events)
            publish(other, {"x": 2}, {"x": 1})
            assert next(events)["data"]["subscriptions"] == ["a"]
            other.post("/v1/channels/c/members", json={"subscriptions": ["b"]})
            publish(other, {"x": 2})
            assert next(events)["data"]["subscriptions"] == ["b"]
            other.post("/v1/channels/c/members/remove", json={"subscriptions": ["b"]})
            publish(other, {"x": 2}, {"x": 1})
            assert next(events)["data"]["event"] == 5
            other.delete("/v1/channels/c")
            assert list(events) == []


def test_a_gap_is_reported_on_a_stream(running, monkeypatch):
    archive = running.context.match_server.archive
    whole = archive.read_matches

    def read_later(numbers, *, after, limit, up_to=None):
        page = whole(numbers, after=max(after, 3), limit=limit, up_to=up_to)
        return page._replace(missed=range(after + 1, 4) or None)

    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
        publish(client, *({"x": 1} for _ in range(5)))
        monkeypatch.setattr(archive, "read_matches", read_later)
        gap, first, second = follow(client, 3, f"{archive.epoch}:0")
    assert (gap["event"], gap["data"]) == ("missed", {"first": 1, "last": 3})
    assert gap["id"].endswith(":3")
    assert numbers_of([first, second]) == [4, 5]


def test_a_waiting_read_is_woken(running):
    with running.client() as client, running.client() as other:
        subscribe(client, id="a", expression="x = 1")
        pages = []
        asked = {"wait": 60, "after": "0"}
        thread = threading.Thread(
            target=lambda: pages.append(client.get(f"{BOX}/matches", params=asked).json())
        )
        thread.start()
        wait_until(lambda: len(running.context.live_mail) == 1, "someone waits")
        publish(other, {"x": 1})
        thread.join(HANG_SECONDS)
        assert [match["event"] for match in pages[0]["matches"]] == [1]
