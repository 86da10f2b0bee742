"""Subscribing with a history over HTTP."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from threading import Thread

import orjson
import pytest
from starlette.testclient import TestClient

from tamis.broker.following_server import FollowingServer
from tamis.broker.live_mail import LiveMail
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.broker.searching import Searcher
from tamis.server import create_app
from tamis.server.event_stream import spell_news
from tamis.server.settings import ArchiveSettings
from tamis.server.sockets import spell_messages
from tests.server.conftest import OWN_URL
from tests.server.places import EVERY_STORE, closed_client, key_of, subscribe
from tests.subscriptions.places import Clock

DAY = 86_400


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def match_server(settings, database, clock):
    own = MatchServerSettings(store=database)
    with MatchServer.open(settings.server.folder, own, clock=clock) as opened:
        yield opened


def publish(client, *titles: str) -> None:
    for title in titles:
        assert client.post("/v1/events", json={"title": title}).status_code == 200


def mail(client, name: str, **asked) -> list[int]:
    page = client.get(f"/v1/subscriptions/{name}/matches", params={"limit": 1_000, **asked}).json()
    return [own["event"] for own in page["matches"]]


@EVERY_STORE
def test_a_mailbox_begins_with_its_history(client, clock):
    publish(client, "oil 1", "gas 2")
    clock.move(8 * DAY)
    publish(client, "oil 3", "oil 4")
    expression = "matches(title, 'oil')"
    for name, history, expected in (
        ("all", 0, [1, 3, 4]),
        ("week", "7d", [3, 4]),
        ("later", 3, [4]),
        ("ages", "999999w", [1, 3, 4]),
        ("future", 10**9, []),
        ("none", None, []),
    ):
        subscribe(client, id=name, expression=expression, history=history, lease=99 * DAY)
        assert mail(client, name) == expected, name
    publish(client, "gas 5", "oil 6")
    assert mail(client, "all") == [1, 3, 4, 6]
    assert mail(client, "week", after="4") == [6]
    assert mail(client, "none") == [6]
    found = client.get("/v1/subscriptions/all/matches", params={"limit": 1}).json()
    assert found["matches"][0]["subscriptions"] == ["all"]
    assert found["matches"][0]["content"] == {"title": "oil 1"}
    # What is replaced is what is matched from now on.
    ticket = subscribe(client, id="x", expression=expression, history=0)["ticket"]
    client.patch(
        "/v1/subscriptions/x",
        json={"expression": "matches(title, 'gas')"},
        headers={"tamis-ticket": ticket},
    )
    publish(client, "gas 7", "oil 8")
    assert mail(client, "x") == [1, 3, 4, 6, 7]


def test_a_follower_and_a_channel_show_the_history(client, match_server, settings):
    publish(client, "oil", "gas")
    with FollowingServer.open(match_server.folder) as follower:
        app = create_app(follower, settings, is_open=True)
        with TestClient(app, base_url=OWN_URL) as other:
            subscribe(client, id="a", expression="matches(title, 'oil')", history=0)
            assert mail(other, "a") == [1]
    subscribe(client, id="b", expression="matches(title, 'gas')", history=0)
    client.post("/v1/channels", json={"name": "c"})
    client.post("/v1/channels/c/members", json={"subscriptions": ["a", "b"]})
    publish(client, "oil and gas")
    found = client.get("/v1/channels/c/matches").json()["matches"]
    assert [(own["event"], own["subscriptions"]) for own in found] == [
        (1, ["a"]),
        (2, ["b"]),
        (3, ["a", "b"]),
    ]


def test_a_short_page_of_a_long_history_says_so(client, monkeypatch):
    lines = [*['{"title": "gas"}'] * 20_000, '{"title": "oil"}']
    headers = {"content-type": "application/x-ndjson"}
    client.post("/v1/events", content="\n".join(lines), headers=headers)
    monkeypatch.setattr("tamis.broker.history_reading.LEAST_LOOKED", 1)
    subscribe(client, id="a", expression="matches(title, 'oil')", history=0)
    pages, after = [], "0"
    while not pages or not pages[-1]["is_complete"]:
        asked = {"after": after, "limit": 5}
        pages.append(client.get("/v1/subscriptions/a/matches", params=asked).json())
        after = pages[-1]["cursor"]
    assert pages[0]["matches"] == []
    assert [own["event"] for page in pages for own in page["matches"]] == [20_001]


def test_a_history_that_cannot_be_read_any_more_is_reported(client, match_server, monkeypatch):
    """As after a start with a schema that gives its attribute another type."""
    publish(client, "oil", "gas")
    subscribe(client, id="a", expression="title = 'oil'", history=0)
    subscribe(client, id="b", expression="size > 0", history=0)
    client.post("/v1/channels", json={"name": "c"})
    client.post("/v1/channels/c/members", json={"subscriptions": ["a", "b"]})
    client.post("/v1/events", json={"size": 3})
    own = Searcher.read

    def read(self, expression: str):
        return own(self, "title = 5" if "title" in expression else expression)

    monkeypatch.setattr(Searcher, "read", read)
    reason = "its expression is not valid any more: title is a string, compared with an integer"
    for path, expected in (("subscriptions/a", []), ("channels/c", [3])):
        page = client.get(f"/v1/{path}/matches", params={"after": "0"}).json()
        assert page["lost_histories"] == [{"subscription": "a", "reason": reason}]
        assert [own["event"] for own in page["matches"]] == expected
    late = client.get("/v1/channels/c/matches", params={"after": "2"}).json()
    assert late["lost_histories"] == []

    async def listen():
        live = LiveMail(match_server.mailboxes, match_server.hub)
        mailbox = Mailbox.of_subscription(match_server.live.get("a").created)
        try:
            follower = await live.join(mailbox, 0)
            return await live.next(follower, 0.0)
        finally:
            live.shut_down()

    news = asyncio.run(listen())
    assert [own.subscription for own in news.lost] == ["a"]
    (text,) = (own for own in spell_news(news, "e") if own.startswith(b"event: lost-history\n"))
    assert orjson.loads(text.split(b"data: ")[1]) == {"subscription": "a", "reason": reason}
    assert "lost-history" in [orjson.loads(own)["type"] for own in spell_messages(news, "e")]


@pytest.mark.parametrize("history", ["a week", "7", "-3", -1, 1.5, ""])
def test_an_invalid_history(client, history):
    asked = {"expression": "x = 1", "history": history}
    assert client.post("/v1/subscriptions", json=asked).status_code == 422


def test_refused_subscriptions_leave_no_history(client, match_server):
    subscribe(client, id="a", expression="x = 1")
    for asked in ({"id": "a", "expression": "x = 1"}, {"expression": "x = "}):
        assert client.post("/v1/subscriptions", json={**asked, "history": 0}).status_code >= 400
    assert match_server.broker.histories.list() == []
    with match_server.live.store.read() as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM tamis_histories").scalar() == 0


def test_a_history_is_for_those_who_may_read_all_events(match_server, settings):
    asked = {"expression": "x = 1", "history": 0}
    key = key_of(match_server, "ann", "subscribe", "read")
    with closed_client(match_server, settings) as client:
        refused = client.post("/v1/subscriptions", json=asked, headers=key)
        assert (refused.status_code, refused.json()["code"]) == (403, "archive-closed")
    opened = replace(settings, archive=ArchiveSettings(readable="read"))
    with closed_client(match_server, opened) as client:
        assert client.post("/v1/subscriptions", json=asked, headers=key).status_code == 201


def test_nothing_is_missing_or_twice_under_load(client, match_server):
    publish(client, "oil 1")
    is_over = False

    def load() -> None:
        while not is_over:
            publish(client, "oil", "gas")

    threads = [Thread(target=load) for _ in range(3)]
    for thread in threads:
        thread.start()
    for at in range(20):
        subscribe(client, id=f"s{at}", expression="matches(title, 'oil')", history=0)
    is_over = True
    for thread in threads:
        thread.join()
    page = match_server.archive.read_events(after=0, limit=10**6)
    expected = [own.number for own in page.events if b"oil" in own.event]
    for at in range(20):
        found, cursor = [], "0"
        while True:
            answer = client.get(
                f"/v1/subscriptions/s{at}/matches", params={"after": cursor, "limit": 100}
            ).json()
            if not answer["matches"]:
                break
            found += [own["event"] for own in answer["matches"]]
            cursor = answer["cursor"]
        assert found == expected
