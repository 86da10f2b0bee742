"""How late each way of delivery is: in events and in seconds."""

from __future__ import annotations

from datetime import timedelta
from itertools import islice

import pytest

from tamis.broker import digest_worker, webhook_worker
from tamis.broker.followers import Follower, Topic
from tamis.broker.keys import NO_LIMITS
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.broker.retries import RetryPolicy
from tamis.broker.rights import LOCAL
from tamis.server import Settings
from tamis.server.auth import Caller
from tamis.server.lags import FeedMarks, measure_backlogs
from tamis.server.settings import DeliverySettings, ServerSettings
from tamis.server.stream_rights import OpenStream
from tests.server.asking import publish, subscribe
from tests.server.receiver import run_receiver
from tests.server.running import read_stream, run_server
from tests.server.test_digests import let_be_due, mail_server
from tests.server.test_digests import make as make_digest
from tests.server.test_feeds import fetch
from tests.server.test_feeds import make as make_feed
from tests.server.test_metrics import scrape
from tests.server.test_sockets import open_socket, receive
from tests.subscriptions.places import Clock
from tests.waiting import HANG_SECONDS, wait_until

__all__ = ["mail_server"]

PATIENT = RetryPolicy(delays=(0.0, 10.0, 10.0), spread=0.0, disable_after=timedelta(days=1))


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(webhook_worker, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(digest_worker, "POLL_SECONDS", 0.02)


@pytest.fixture
def settings(tmp_path, mail_server) -> Settings:
    return Settings(
        server=ServerSettings(folder=tmp_path / "server"),
        delivery=DeliverySettings(
            allow_private_addresses=True,
            webhook_timeout=timedelta(seconds=HANG_SECONDS),
            smtp_host="127.0.0.1",
            smtp_port=mail_server.port,
            smtp_sender="tamis@tamis.example",
            smtp_starttls=False,
            trusted_domains=("example.com",),
        ),
    )


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def match_server(settings, database, clock):
    own = MatchServerSettings(store=database, retries=PATIENT)
    with MatchServer.open(settings.server.folder, own, clock=clock) as opened:
        yield opened


@pytest.fixture
def running(match_server, settings):
    with run_server(match_server, settings) as server:
        yield server


@pytest.fixture
def client(running):
    with running.client() as own:
        yield own


def measure(client, kind: str) -> tuple[float, float, float]:
    """How many matches were handed over, and the seconds and events of all together."""
    found, labels = scrape(client), frozenset({("kind", kind)})
    seconds, events = "tamis_delivery_lag_seconds", "tamis_delivery_lag_events"
    count = found.get((f"{seconds}_count", labels), 0)
    assert count == found.get((f"{events}_count", labels), 0)
    sums = (found.get((f"{name}_sum", labels), 0) for name in (seconds, events))
    return (count, *sums)


def behind(client, kind: str) -> tuple[float, float]:
    """The events and the seconds that the furthest behind lacks."""
    found, labels = scrape(client), frozenset({("kind", kind)})
    names = ("tamis_delivery_behind_events", "tamis_delivery_behind_seconds")
    events, seconds = (found[name, labels] for name in names)
    return events, seconds


def publish_late(client, clock) -> None:
    """One match, two more events, and 100 seconds."""
    publish(client, {"x": 1}, {"x": 2}, {"x": 2})
    clock.move(100)


def test_pages_streams_and_sockets(running, client, clock):
    subscribe(client, id="a", expression="x = 1")
    publish_late(client, clock)
    client.get("/v1/subscriptions/a/matches")
    assert measure(client, "page") == (1, 100, 2)
    with client.stream("GET", "/v1/subscriptions/a/stream?after=0") as answer:
        list(islice(read_stream(answer), 2))
        with running.client() as other:
            wait_until(lambda: measure(other, "stream")[0], "it is measured")
            assert measure(other, "stream") == (1, 100, 2)
    with open_socket(running, "/v1/subscriptions/a/socket?after=0") as connection:
        assert [receive(connection)["type"] for _ in range(2)] == ["ready", "match"]
        wait_until(lambda: measure(client, "socket")[0], "it is measured")
        assert measure(client, "socket") == (1, 100, 2)
        publish(client, {"x": 1})
        assert receive(connection)["match"]["event"] == 4
        wait_until(lambda: measure(client, "socket")[0] == 2, "it is measured")
        assert measure(client, "socket") == (2, 100, 2)


def test_a_feed_counts_an_event_once(client, clock):
    subscribe(client, id="a", expression="x = 1")
    publish(client, {"x": 1})
    made = make_feed(client)
    fetch(client, made["atom"])  # what it showed before is not known
    assert measure(client, "feed") == (0, 0, 0)
    publish_late(client, clock)
    for address in (made["atom"], made["json_feed"]):
        assert fetch(client, address).status_code == 200
    assert measure(client, "feed") == (1, 100, 2)


def test_marks_of_feeds_are_bounded(monkeypatch):
    monkeypatch.setattr("tamis.server.lags.MOST_FEEDS", 2)
    marks = FeedMarks()
    for feed in range(5):
        assert marks.take_new(feed, []) == []
    assert len(marks._marks) == 2


def test_a_webhook_that_fails_is_behind(client, clock):
    subscribe(client, id="a", expression="x = 1")
    with run_receiver() as receiver:
        receiver.answer = 500
        asked = {"subscription": "a", "url": receiver.url}
        assert client.post("/v1/webhooks", json=asked).status_code == 201
        assert behind(client, "webhook") == (0, 0)
        publish(client, {"x": 1}, {"x": 2}, {"x": 2})
        wait_until(lambda: behind(client, "webhook")[0], "an attempt has failed")
        receiver.answer = 204
        assert measure(client, "webhook") == (0, 0, 0)
        clock.move(9)
        assert behind(client, "webhook") == (3, 9)
        clock.move(91)
        wait_until(lambda: measure(client, "webhook")[0], "it is delivered")
        assert measure(client, "webhook") == (1, 100, 2)
        wait_until(lambda: behind(client, "webhook") == (0, 0), "that is recorded")


def test_a_digest_that_fails_is_behind(client, clock, match_server, mail_server):
    subscribe(client, id="a", expression="x = 1", lease=1e6)
    make_digest(client)
    publish(client, {"x": 1}, {"x": 2}, {"x": 2})
    mail_server.answer = "451 try later"
    let_be_due(match_server)
    wait_until(lambda: behind(client, "digest")[0], "an attempt has failed")
    clock.move(100)
    mail_server.answer = "250 OK"
    wait_until(lambda: measure(client, "digest")[0], "it is sent")
    assert measure(client, "digest") == (1, 100, 2)
    wait_until(lambda: behind(client, "digest") == (0, 0), "that is recorded")


def test_a_slow_stream_is_behind(running, client):
    made = subscribe(client, id="a", expression="x = 1")
    publish(client, {"x": 1}, {"x": 1}, {"x": 1})
    context, mailbox = running.context, Mailbox.of_subscription(made["number"])
    caller = Caller(LOCAL, frozenset(), NO_LIMITS, None)
    follower = Follower(Topic(mailbox, {}), after=1)
    context.open_streams.add(OpenStream("stream", caller, mailbox, follower))
    found = {own.kind: own for own in measure_backlogs(context)}
    assert found["stream"].n_events == 2
    assert found["stream"].seconds > 0
    assert found["socket"][1:] == (0, 0)
    follower.go_live()  # and has nothing to do
    found = {own.kind: own for own in measure_backlogs(context)}
    assert found["stream"][1:] == (0, 0)
