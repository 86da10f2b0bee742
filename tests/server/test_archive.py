"""Reading published events, and who was told."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from tamis.archive import ArchiveSettings as Kept
from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.server import create_app
from tamis.server.settings import ArchiveSettings
from tests.server.conftest import OWN_URL
from tests.server.places import EVERY_STORE, closed_client, key_of, subscribe
from tests.subscriptions.places import START, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def match_server(settings, database, clock):
    own = MatchServerSettings(store=database)
    with MatchServer.open(settings.server.folder, own, clock=clock) as opened:
        yield opened


@EVERY_STORE
def test_events_are_read_by_cursor_and_by_moment(client, clock):
    subscribe(client, id="a", expression="x >= 3")
    for at in range(7):
        client.post("/v1/events", json={"x": at})
        clock.move(10)
    shown, cursor = [], "0"
    while True:
        page = client.get("/v1/events", params={"after": cursor, "limit": 3}).json()
        cursor = page["cursor"]
        if not page["events"]:
            break
        shown += page["events"]
    assert [own["event"] for own in shown] == list(range(1, 8))
    assert [own["content"] for own in shown] == [{"x": at} for at in range(7)]
    for seconds, first in ((-5, 1), (0, 1), (1, 2), (20, 3), (60, 7), (61, None)):
        since = (START + timedelta(seconds=seconds)).isoformat()
        found = client.get("/v1/events", params={"since": since}).json()["events"]
        assert (found[0]["event"] if found else None) == first
    assert client.get("/v1/events/4").json() == shown[3]
    assert client.get("/v1/events/8").json()["code"] == "unknown-event"
    both = client.get("/v1/events?after=0&since=2030-01-01T00:00:00")
    assert both.status_code == 422
    assert client.get("/v1/events?after=other:1").status_code == 410
    assert client.get("/v1/events?since=0001-01-01T00:00:00").json()["events"][0]["event"] == 1


def test_who_was_told(match_server, settings):
    opened = replace(settings, archive=ArchiveSettings(readable="read"))
    client = closed_client(match_server, opened)
    ann, bob = (key_of(match_server, name, "subscribe", "read") for name in ("ann", "bob"))
    admin = key_of(match_server, "root", "admin")
    made = subscribe(client, ann, id="a", expression="x >= 1")
    subscribe(client, bob, id="b", expression="x >= 2")
    client.post("/v1/events", json=[{"x": 0}, {"x": 1}, {"x": 2}], headers=admin)
    subscribe(client, bob, id="later", expression="x >= 0")

    def told(headers):
        page = client.get("/v1/events?who=true", headers=headers).json()
        return [sorted(own["subscriptions"]) for own in page["events"]]

    assert told(admin) == [[], ["a"], ["a", "b"]]
    assert told(ann) == [[], ["a"], ["a"]]
    assert told(bob) == [[], [], ["b"]]
    one = client.get("/v1/events/3?who=true", headers=admin)
    assert sorted(one.json()["subscriptions"]) == ["a", "b"]
    client.delete("/v1/subscriptions/a", headers={"tamis-ticket": made["ticket"]})
    subscribe(client, ann, id="a", expression="x >= 0")  # another one, by the same name
    assert told(admin) == [[], [], ["b"]]


def test_events_are_confidential(match_server, settings):
    client = closed_client(match_server, settings)
    reader = key_of(match_server, "ann", "read")
    admin = key_of(match_server, "root", "admin")
    client.post("/v1/events", json={"x": 0}, headers=admin)
    for path in ("/v1/events", "/v1/events/1", "/v1/events/2"):
        assert client.get(path).status_code == 401
        refused = client.get(path, headers=reader)
        assert (refused.status_code, refused.json()["code"]) == (403, "archive-closed")
        assert client.get(path, headers=admin).status_code == (404 if path[-1] == "2" else 200)


def test_texts_that_are_not_kept(tmp_path, settings):
    own = MatchServerSettings(archive=Kept(keep="matched"))
    with (
        MatchServer.open(tmp_path / "kept", own) as match_server,
        TestClient(create_app(match_server, settings, is_open=True), base_url=OWN_URL) as client,
    ):
        subscribe(client, id="a", expression="x = 1")
        client.post("/v1/events", json=[{"x": 0}, {"x": 1}])
        page = client.get("/v1/events?who=1").json()["events"]
        assert [own["content"] for own in page] == [None, {"x": 1}]
        assert [own["subscriptions"] for own in page] == [[], ["a"]]
        assert client.get("/v1/events/1").json()["code"] == "event-not-kept"
