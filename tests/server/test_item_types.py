"""The attributes of items of feeds have types as soon as a server has a feed."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import tamis
from tamis.broker.item_types import TEXTS, item_types
from tamis.broker.sources import NewSource
from tamis.feeds.documents import FeedItem
from tamis.feeds.selecting import make_event
from tests.broker.places import ADMIN

ITEM = {
    "title": "Prices rise",
    "body": "",
    "tags": ["oil"],
    "categories": ["North Sea"],
    "published": "2030-01-01T10:00:00Z",
    "revision": 1,
}


def add_feed(client) -> None:
    asked = {"url": "https://example.com/feed"}
    answer = client.post("/v1/sources?fetch=false", json=asked)
    assert answer.status_code == 201, answer.text


def search(client, *attributes: str, query: str = "oil") -> dict:
    answer = client.post("/v1/search", json={"query": query, "attributes": attributes})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_search_over_tags_finds_them_from_the_start(client):
    add_feed(client)
    assert client.post("/v1/events", json=ITEM).status_code == 200
    page = search(client, "title", "body", "tags")
    assert page["notes"] == []
    assert [hit["content"] for hit in page["hits"]] == [ITEM]
    assert search(client, "tags", "categories", query='"north sea" oil')["hits"]
    after = "published > '2029-12-31T23:00:00-05:00'"
    answer = client.post("/v1/search", json={"expression": after})
    assert len(answer.json()["hits"]) == 1


def test_a_subscription_that_contradicts_items_is_refused(client):
    add_feed(client)
    body = {"expression": "matches((title, categories), 'oil')"}
    answer = client.post("/v1/subscriptions", json=body)
    assert answer.status_code == 422
    assert "categories is array<string> in the items of feeds" in answer.json()["hint"]
    body = {"expression": "array_contains(categories, 'North Sea')", "id": "sea"}
    assert client.post("/v1/subscriptions", json=body).status_code == 201
    outcome = client.post("/v1/events?details=true", json=ITEM).json()
    assert outcome["matches"] == 1, outcome


def test_a_set_that_contradicts_items_keeps_its_types_and_says_so(client, caplog):
    body = {"expression": "matches((title, categories), 'oil')"}
    assert client.post("/v1/subscriptions", json=body).status_code == 201
    assert search(client, "title", "categories")["notes"] == []
    add_feed(client)
    said = "categories is string to the subscriptions, and array<string> in the items of feeds"
    assert said in caplog.text
    assert search(client, "title", "categories")["notes"] == [f"{said}: nothing is found there"]
    assert search(client, "title", "tags")["notes"] == []
    add_again = client.post("/v1/sources/import", json={"sources": []})
    assert add_again.status_code == 200


def test_the_vocabulary_has_the_types_of_what_events_have(client):
    add_feed(client)
    client.post("/v1/events", json=ITEM)
    words = client.get("/v1/vocabulary").json()["attributes"]
    assert {own["name"]: own["type"] for own in words} == {
        name: str(item_types()[(name,)]) for name in ITEM
    }


def test_every_attribute_of_an_item_has_a_type_that_fits(match_server):
    sources = match_server.broker.sources
    source = sources.create(ADMIN, NewSource("https://example.com/feed", "News", ["a"]))
    item = FeedItem(
        id="1",
        link="https://example.com/1",
        title="Häuser",
        body="am See",
        author="Ann",
        lang="de",
        categories=("b",),
    )
    types = item_types()
    for own in (item, replace(item, lang="", id="", link="", author="")):
        moment = int(datetime(2030, 1, 1, tzinfo=UTC).timestamp() * 1_000_000)
        event = make_event(source, own, moment, 1)
        for name in event:
            assert tamis.evaluate(f"{name} IS NOT NULL", event, types), name
    assert set(TEXTS) < {path[0] for path in types}
