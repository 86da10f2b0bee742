"""Feeds of others over HTTP: routes, metrics, and a server that reads them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tamis.feeds.opml import read_opml
from tamis.server import Settings, create_app
from tamis.server.settings import FeedSettings, ServerSettings
from tests.feeds.places import item, rss
from tests.feeds.site import run_site
from tests.server.asking import make_key, needs_keys, subscribe
from tests.server.conftest import OWN_URL
from tests.server.test_metrics import scrape
from tests.waiting import HANG_SECONDS, wait_until

FEED = rss(item("Flood in Oslo", guid="1"), item("Drought", guid="2"))


@pytest.fixture
def settings(tmp_path) -> Settings:
    patience = timedelta(seconds=HANG_SECONDS)
    feeds = FeedSettings(
        allow_private_addresses=True, fetch_timeout=patience, parse_timeout=patience
    )
    return Settings(server=ServerSettings(folder=tmp_path / "server"), feeds=feeds)


@pytest.fixture
def site():
    with run_site() as running:
        yield running


def test_items_reach_a_subscriber(client, site):
    subscribe(client, id="flood", expression="contains(title, 'Flood')")
    made = client.post("/v1/sources", json={"url": site.put("/feed", FEED), "tags": ["local"]})
    assert made.status_code == 201
    source = made.json()
    assert (source["kind"], source["n_items"], source["last_error"]) == ("rss20", 2, None)
    assert made.headers["location"] == f"/v1/sources/{source['number']}"
    (match,) = client.get("/v1/subscriptions/flood/matches").json()["matches"]
    assert match["content"]["title"] == "Flood in Oslo"
    assert match["content"]["tags"] == ["local"]
    found = scrape(client)
    assert found["tamis_feed_items_total", frozenset()] == 2
    assert found["tamis_feed_sources", frozenset({("state", "active")})] == 1


def test_sources_that_are_due_are_read(client, site):
    url = site.put("/feed", FEED)
    asked = [{"url": url}, {"url": url}, {"url": "nonsense"}]
    added = client.post("/v1/sources/import", json={"sources": asked}).json()
    assert (len(added["added"]), added["known"], len(added["refused"])) == (1, [url], 1)
    (number,) = added["added"]
    wait_until(lambda: client.get(f"/v1/sources/{number}").json()["n_items"] == 2, "it is read")
    (listed,) = client.get("/v1/sources", params={"url": url}).json()["sources"]
    assert listed["number"] == number
    assert client.get("/v1/sources", params={"url": "x"}).json()["sources"] == []
    assert client.get("/v1/sources?failing=true").json()["sources"] == []


def test_a_source_is_changed_fetched_and_removed(client, site):
    url = site.put("/feed", status=500)
    made = client.post("/v1/sources?fetch=true", json={"url": url}).json()
    assert made["last_error"] == "the answer is 500"
    place = f"/v1/sources/{made['number']}"
    changed = client.patch(place, json={"state": "paused", "title": "Mine"}).json()
    assert (changed["state"], changed["title"]) == ("paused", "Mine")
    site.put("/feed", FEED)
    assert client.post(f"{place}/fetch").json()["n_items"] == 2
    again = client.post("/v1/sources", json={"url": url})
    assert (again.status_code, again.json()["code"]) == (409, "name-taken")
    assert client.delete(place).status_code == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("POST", "/fetch")):
        assert client.request(method, place + path).status_code == 404


def test_only_admins_may_use_sources(client, match_server):
    needs_keys(client)
    key = make_key(match_server, "eve", "publish", "subscribe", "read")
    for method, path in (
        ("POST", ""),
        ("POST", "/import"),
        ("GET", ""),
        ("GET", "/1"),
        ("PATCH", "/1"),
        ("POST", "/1/fetch"),
        ("DELETE", "/1"),
    ):
        body = {"url": "https://example.com/"} if method in ("POST", "PATCH") else None
        answer = client.request(method, f"/v1/sources{path}", headers=key, json=body)
        assert answer.status_code == 403, (method, path)


def test_nothing_is_fetched_if_feeds_are_not_enabled(match_server, settings, site):
    from starlette.testclient import TestClient

    off = replace(settings, feeds=replace(settings.feeds, enabled=False))
    app = create_app(match_server, off, is_open=True)
    with TestClient(app, base_url=OWN_URL) as client:
        url = site.put("/feed", FEED)
        made = client.post("/v1/sources?fetch=false", json={"url": url}).json()
        assert (made["n_items"], made["last_fetch"]) == (0, None)
    assert site.asked == []


def test_sources_are_imported_and_exported_as_opml(client, site):
    url = site.put("/feed", FEED)
    document = (
        '<opml version="2.0"><body><outline text="Water"><outline text="Floods &amp; more"'
        f' xmlUrl="{url}"/></outline><outline text="bad" xmlUrl="nonsense"/></body></opml>'
    )
    added = client.post("/v1/sources/opml", content=document).json()
    assert (len(added["added"]), added["known"], len(added["refused"])) == (1, [], 1)
    assert client.post("/v1/sources/opml", content=document).json()["known"] == [url]
    exported = client.get("/v1/sources/opml")
    assert exported.headers["content-type"].startswith("text/x-opml")
    assert "attachment" in exported.headers["content-disposition"]
    (source,) = read_opml(exported.content)
    assert (source.url, source.title, source.tags) == (url, "Floods & more", ("Water",))
    for content, headers, status in (
        ("<opml", {}, 422),
        (document, {"content-type": "text/csv"}, 415),
        ("<opml><body>" + f'<outline xmlUrl="{url}"/>' * 10_001 + "</body></opml>", {}, 422),
    ):
        answer = client.post("/v1/sources/opml", content=content, headers=headers)
        assert answer.status_code == status, answer.text
