"""Feeds of matches."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from urllib.parse import urlsplit
from xml.etree import ElementTree

import pytest

from tamis.server.routes import feeds
from tests.server.asking import make_key, needs_keys, publish, subscribe

ATOM = "{http://www.w3.org/2005/Atom}"
EVIL = "<script>alert('x')</script> & \x07 \ud7ff\ufffe"


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """Every match is old enough to be named by its date."""
    monkeypatch.setattr(feeds, "_SETTLED", timedelta(days=-1))


def make(client, *, headers=None, **asked) -> dict:
    answer = client.post("/v1/feeds", json={"subscription": "a"} | asked, headers=headers)
    assert answer.status_code == 201, answer.text
    return answer.json()


def fetch(client, address: str, **headers):
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return client.get(urlsplit(address).path, headers=names)


def test_both_formats_have_the_newest_matches_first(client, monkeypatch):
    monkeypatch.setattr(feeds, "MOST_ENTRIES", 3)
    subscribe(client, id="a", expression="x = 1", attributes={"title": "My <search>"})
    made = make(client)
    assert made["title"] == "My <search>"
    events = [{"x": n % 2, "title": f"T{n}", "url": f"http://e.example/{n}"} for n in range(1, 12)]
    epoch = publish(client, *events)["epoch"]
    answer = fetch(client, made["atom"])
    assert answer.headers["content-type"].startswith("application/atom+xml")
    root = ElementTree.fromstring(answer.content)
    assert root.findtext(f"{ATOM}title") == "My <search>"
    entries = root.findall(f"{ATOM}entry")
    assert [own.findtext(f"{ATOM}title") for own in entries] == ["T11", "T9", "T7"]
    assert entries[0].find(f"{ATOM}link").attrib["href"] == "http://e.example/11"
    answer = fetch(client, made["json_feed"])
    assert answer.headers["content-type"].startswith("application/feed+json")
    items = answer.json()["items"]
    assert [own["title"] for own in items] == ["T11", "T9", "T7"]
    assert [own["id"] for own in items] == [own.findtext(f"{ATOM}id") for own in entries]
    assert epoch in items[0]["id"]
    assert items[0]["url"] == "http://e.example/11"


def test_an_entry_keeps_its_id(client):
    subscribe(client, id="a", expression="x = 1")
    first, second = make(client), make(client)
    publish(client, {"x": 1})
    (before,) = fetch(client, first["json_feed"]).json()["items"]
    publish(client, {"x": 1})
    ids = [own["id"] for own in fetch(client, second["json_feed"]).json()["items"]]
    assert len(set(ids)) == 2
    assert ids[1] == before["id"]


def test_an_empty_feed_is_a_feed(client):
    subscribe(client, id="a", expression="x = 1")
    made = make(client, title="Nothing yet")
    root = ElementTree.fromstring(fetch(client, made["atom"]).content)
    assert root.findtext(f"{ATOM}title") == "Nothing yet"
    assert root.findall(f"{ATOM}entry") == []
    for required in ("id", "updated"):
        assert root.findtext(ATOM + required)
    assert fetch(client, made["json_feed"]).json()["items"] == []


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "//e.example", "http://", "http://a b", 7]
)
def test_contents_are_escaped(client, url):
    subscribe(client, id="a<b>&", expression="x = 1")
    made = make(client, subscription="a<b>&")
    publish(client, {"x": 1, "title": EVIL, "url": url, "text": "]]></content>" + EVIL})
    answer = fetch(client, made["atom"])
    root = ElementTree.fromstring(answer.content)
    entry = root.find(f"{ATOM}entry")
    assert "<script>" in entry.findtext(f"{ATOM}title")
    assert entry.find(f"{ATOM}link") is None
    assert b"<script" not in answer.content
    (item,) = fetch(client, made["json_feed"]).json()["items"]
    assert "url" not in item
    assert "content_html" not in item


def test_an_entry_has_the_text_of_an_article_or_the_event(client):
    subscribe(client, id="a", expression="x = 1")
    made = make(client)
    for own in (
        {"body": "Rain & wind\n<script>"},
        {"body": " "},
        {"body": 7},
        {"body": "x" * 20_001},
    ):
        publish(client, {"x": 1, "title": "t", **own})
    items = fetch(client, made["json_feed"]).json()["items"]
    texts = [own["content_text"] for own in reversed(items)]
    assert texts[0] == "Rain & wind\n<script>"
    assert [json.loads(own)["body"] for own in texts[1:3]] == [" ", 7]
    assert texts[3] == "x" * 20_000 + " …"
    root = ElementTree.fromstring(fetch(client, made["atom"]).content)
    assert [own.text for own in root.iter(f"{ATOM}content")] == texts[::-1]


def test_conditional_requests(client):
    subscribe(client, id="a", expression="x = 1")
    made = make(client)
    publish(client, {"x": 1})
    answer = fetch(client, made["atom"])
    tag, date = answer.headers["etag"], answer.headers["last-modified"]
    for headers in (
        {"if_none_match": tag},
        {"if_none_match": f'"other", W/{tag}'},
        {"if_none_match": "*"},
        {"if_modified_since": date},
        {"if_none_match": tag, "if_modified_since": "Mon, 01 Jan 2001 00:00:00 GMT"},
    ):
        again = fetch(client, made["atom"], **headers)
        assert (again.status_code, again.content) == (304, b""), headers
        assert again.headers["etag"] == tag
    for headers in (
        {"if_none_match": '"other"'},
        {"if_none_match": '"other"', "if_modified_since": date},
        {"if_modified_since": "Mon, 01 Jan 2001 00:00:00 GMT"},
        {"if_modified_since": "nonsense"},
    ):
        assert fetch(client, made["atom"], **headers).status_code == 200, headers
    publish(client, {"x": 1})
    assert fetch(client, made["atom"], if_none_match=tag).status_code == 200


def test_a_young_match_has_no_date(client, monkeypatch):
    """Another match of the same second could follow, and would be hidden by the date."""
    monkeypatch.setattr(feeds, "_SETTLED", timedelta(days=1))
    subscribe(client, id="a", expression="x = 1")
    made = make(client)
    publish(client, {"x": 1})
    assert "last-modified" not in fetch(client, made["atom"]).headers


def test_a_revoked_feed_is_gone(client):
    subscribe(client, id="a", expression="x = 1")
    made, other = make(client), make(client)
    assert client.delete(f"/v1/feeds/{made['number']}").status_code == 204
    assert fetch(client, made["atom"]).status_code == 404
    assert fetch(client, made["json_feed"]).status_code == 404
    assert fetch(client, other["atom"]).status_code == 200
    listed = client.get("/v1/feeds").json()["feeds"]
    assert [own["revoked"] is not None for own in listed] == [True, False]
    assert "feed_" not in client.get("/v1/feeds").text


def test_the_address_is_the_right(client, match_server, caplog):
    ann = make_key(match_server, "ann", "subscribe", "read", "publish")
    bob = make_key(match_server, "bob", "subscribe", "read")
    needs_keys(client)
    subscribe(client, headers=ann, id="a", expression="x = 1")
    asked = {"subscription": "a"}
    assert client.post("/v1/feeds", json=asked, headers=bob).status_code == 404
    made = make(client, headers=ann)
    publish(client, {"x": 1}, headers=ann)
    with caplog.at_level(logging.DEBUG):
        assert len(fetch(client, made["json_feed"]).json()["items"]) == 1
    token = made["atom"].rpartition("/")[2].removesuffix(".atom")
    logged = [own.getMessage() for own in caplog.records if own.name.startswith("tamis")]
    assert "/feeds/feed_…" in logged[-1]
    assert token not in "".join(logged)
    for name in ("feed_x.atom", f"{token}", f"{token}.xml", f"{token[:-1]}.atom", ".atom"):
        assert client.get(f"/feeds/{name}").status_code == 404, name
    path = f"/v1/feeds/{made['number']}"
    assert client.delete(path, headers=bob).status_code == 404
    assert client.get("/v1/feeds", headers=bob).json()["feeds"] == []
    assert client.delete(path, headers=ann).status_code == 204


def test_a_channel_has_feeds(client):
    subscribe(client, id="a", expression="x = 1")
    subscribe(client, id="b", expression="y = 1")
    client.post("/v1/channels", json={"name": "c", "subscriptions": ["a", "b"]})
    made = make(client, subscription=None, channel="c")
    publish(client, {"x": 1, "y": 1}, {"y": 1})
    items = fetch(client, made["json_feed"]).json()["items"]
    assert [own["tags"] for own in items] == [["b"], ["a", "b"]]


def test_matches_far_back_are_found(client):
    subscribe(client, id="a", expression="x = 1")
    made = make(client)
    publish(client, {"x": 1, "title": "old"})
    publish(client, *({"x": 2} for _ in range(9_000)))
    (item,) = fetch(client, made["json_feed"]).json()["items"]
    assert item["title"] == "old"
