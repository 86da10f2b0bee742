"""Search over HTTP: the archived events that an expression would have matched."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from starlette.testclient import TestClient

from tamis.broker.following_server import FollowingServer
from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.server import create_app
from tamis.server.settings import ArchiveSettings, LimitSettings
from tests.server.conftest import OWN_URL
from tests.server.places import closed_client, key_of, subscribe
from tests.subscriptions.places import START, Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def match_server(settings, database, clock):
    own = MatchServerSettings(store=database)
    with MatchServer.open(settings.server.folder, own, clock=clock) as opened:
        yield opened


def publish(client, *titles: str, **more) -> None:
    for title in titles:
        answer = client.post("/v1/events", json={"title": title, **more})
        assert answer.status_code == 200, answer.text


def search(client, headers=None, **asked) -> dict:
    answer = client.post("/v1/search", json=asked, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


def numbers(page: dict) -> list[int]:
    return [hit["event"] for hit in page["hits"]]


def test_the_newest_come_first_page_by_page(client):
    publish(client, *["oil", "gas", "<b>oil</b> & gas", "Öl", "oil oil"] * 3)
    expression = "matches(title, 'oil') AND NOT matches(title, 'gas')"
    found, cursor = [], None
    while True:
        page = search(client, expression=expression, limit=2, cursor=cursor)
        assert page["is_complete"]
        found += numbers(page)
        if (cursor := page["cursor"]) is None:
            break
    assert found == [15, 11, 10, 6, 5, 1]
    (hit,) = search(client, expression=expression, limit=1)["hits"]
    assert hit["content"] == {"title": "oil oil"}
    assert (hit["score"], hit["highlights"]) == (None, {"title": [[0, 3], [4, 7]]})
    page = search(client, query="oil gas", attributes=["title"], limit=1)
    assert page["expression"] == "matches(title, 'oil gas')"
    assert page["hits"][0]["highlights"] == {"title": [[3, 6], [13, 16]]}


def test_a_search_agrees_with_the_subscription(client, match_server):
    expression = "matches(title, 'oil') OR price > 3"
    subscribe(client, id="a", expression=expression)
    for at in range(30):
        publish(client, f"{'oil' if at % 3 else 'gas'} {at}", price=at % 7)
        if at == 19:
            match_server.archive.seal()
    mail = client.get("/v1/subscriptions/a/matches", params={"limit": 100}).json()["matches"]
    told = [own["event"] for own in mail]
    assert numbers(search(client, expression=expression, limit=100)) == told[::-1]
    ranked = search(client, expression=expression, limit=100, order="relevance")
    assert sorted(numbers(ranked)) == told
    assert ranked["hits"][0]["score"] >= ranked["hits"][-1]["score"]


def test_moments_limit_a_search(client, clock):
    for title in ("oil 1", "oil 2", "oil 3"):
        publish(client, title)
        clock.move(10)
    for since, until, expected in ((None, None, [3, 2, 1]), (10, None, [3, 2]), (1, 20, [2])):
        asked = {
            name: (START + timedelta(seconds=own)).isoformat()
            for name, own in (("since", since), ("until", until))
            if own is not None
        }
        assert numbers(search(client, expression="matches(title, 'oil')", **asked)) == expected
    early = {"since": "0001-01-01T00:00:00", "expression": "matches(title, 'oil')"}
    assert len(search(client, **early)["hits"]) == 3
    assert search(client, until="0001-01-01T00:00:00", expression="TRUE")["hits"] == []


def test_a_search_with_wildcards(client):
    publish(client, "oil prices", "the price of gas", "a pricing error", "gas")
    assert numbers(search(client, query="pric*", attributes=["title"])) == [3, 2, 1]
    assert numbers(search(client, query="price*", attributes=["title"])) == [2, 1]


@pytest.mark.parametrize(
    ("asked", "status", "code"),
    [
        ({}, 422, "bad-request"),
        ({"expression": "TRUE", "query": "oil", "attributes": ["title"]}, 422, "bad-request"),
        ({"query": "oil"}, 422, "bad-request"),
        ({"expression": "TRUE", "attributes": ["title"]}, 422, "bad-request"),
        ({"expression": "matches(title"}, 422, None),
        ({"query": "roam~0.8", "attributes": ["title"]}, 422, None),
        ({"query": "back ADJ3 pain", "attributes": ["title"]}, 422, None),
        ({"query": "1990..1995", "attributes": ["title"]}, 422, None),
        ({"expression": "TRUE", "cursor": "here"}, 422, "bad-cursor"),
        ({"expression": "TRUE", "cursor": "other:3"}, 410, "history-lost"),
        ({"expression": "price > 1", "order": "relevance"}, 422, None),
        ({"expression": "TRUE", "limit": 0}, 422, None),
    ],
)
def test_what_cannot_be_searched(client, asked, status, code):
    publish(client, "oil", price=1)
    answer = client.post("/v1/search", json=asked)
    assert answer.status_code == status, answer.text
    assert code in (None, answer.json()["code"])


def test_words_that_look_like_operators_are_noted(client):
    page = search(client, query="oil or gas", attributes=["title"])
    assert "or" in page["notes"][0]


def test_the_archive_must_be_readable(match_server, settings):
    ask = {"expression": "TRUE"}
    with closed_client(match_server, settings) as client:
        reader = key_of(match_server, "ann", "read")
        assert client.post("/v1/search", json=ask, headers=reader).status_code == 403
    opened = replace(settings, archive=ArchiveSettings(readable="read"))
    with closed_client(match_server, opened) as client:
        assert client.post("/v1/search", json=ask, headers=reader).status_code == 200


def test_a_limit_ends_a_page_early(match_server, settings):
    limited = replace(settings, limits=LimitSettings(search_events=1))
    app = create_app(match_server, limited, is_open=True)
    with TestClient(app, base_url=OWN_URL) as client:
        lines = "\n".join('{"title": "oil"}' for _ in range(9_000))
        client.post("/v1/events", content=lines, headers={"content-type": "application/x-ndjson"})
        page = search(client, expression="matches(title, 'gas')")
        assert (page["hits"], page["is_complete"]) == ([], False)
        page = search(client, expression="matches(title, 'gas')", cursor=page["cursor"])
        assert (page["is_complete"], page["cursor"]) == (True, None)


def test_a_follower_searches(client, match_server):
    publish(client, "oil", "gas")
    with FollowingServer.open(match_server.folder) as follower:
        app = create_app(follower, client.app.state.context.settings, is_open=True)
        with TestClient(app, base_url=OWN_URL) as other:
            assert numbers(search(other, query="gas", attributes=["title"])) == [2]


def test_a_query_is_read_once_while_the_types_stay(client, match_server):
    publish(client, "oil", price=1)
    searcher = match_server.searcher
    query = searcher.read("matches(title, 'oil')")
    assert searcher.read("matches(title, 'oil')") is query
    # Now the types are fixed.
    subscribe(client, id="s1", expression="matches(title, 'gas') AND price > 3")
    again = searcher.read("matches(title, 'oil')")
    assert again is not query
    assert again.relaxed == query.relaxed
    for price in range(100):
        searcher.read(f"price = {price}")
    assert searcher.read("matches(title, 'oil')") is not again


def test_a_search_box_query_finds_words_in_an_array(client):
    subscribe(client, id="s", expression="array_contains(tags, 'sport')")
    publish(client, "oil", tags=["news"])
    publish(client, "gas", tags=["Crude oil", "opec"])
    publish(client, "gas", tags=["crude", "oil"])
    publish(client, "gas")
    found = search(client, query="oil", attributes=["title", "tags"])
    assert numbers(found) == [3, 2, 1]
    assert numbers(search(client, query='"crude oil"', attributes=["title", "tags"])) == [2]
    assert numbers(search(client, query="gas -oil", attributes=["title", "tags"])) == [4]
    assert numbers(search(client, query="opec crude", attributes=["tags"])) == [2]
    again = search(client, expression=found["expression"])
    assert numbers(again) == [3, 2, 1]


def test_documents_are_searched_in_their_language(client):
    client.post("/v1/sources?fetch=false", json={"url": "https://example.com/feed"})
    german = {"title": "Neue Häuser", "body": "", "title_de": "Neue Häuser", "body_de": ""}
    others = ({"title": "Das Haus", "body": ""}, {"title": "Häuser", "body": ""})
    for own in (german, *others):
        assert client.post("/v1/events", json=own).is_success
    asked = {"query": "Haus", "attributes": ["title", "body", "tags"]}
    assert numbers(search(client, **asked)) == [2]
    page = search(client, **asked, languages=["de", "en"])
    assert numbers(page) == [2, 1]
    assert page["hits"][1]["highlights"] == {"title_de": [[5, 11]]}
    subscribe(client, id="haus", expression=page["expression"])
    published = client.post("/v1/events", json=german).json()
    assert published["matches"] == 1
    # An attribute without versions is searched as it is.
    page = search(client, query="haus", attributes=["author"], languages=["de"])
    assert page["expression"] == "matches(author, 'haus')"
    for wrong in (
        {"query": "a", "attributes": ["title"], "languages": ["german"]},
        {"expression": "a = 1", "languages": ["de"]},
    ):
        assert client.post("/v1/search", json=wrong).status_code == 422
