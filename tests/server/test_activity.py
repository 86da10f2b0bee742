"""How often subscriptions matched, over time and ranked."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tamis.broker import activity
from tests.server.asking import make_key, publish, subscribe
from tests.server.places import EVERY_STORE, closed_client


@pytest.fixture
def busy(client):
    """Three subscriptions that match 3, 1 and 0 of the events."""
    for name, least in (("most", 1), ("some", 3), ("never", 9)):
        subscribe(client, id=name, expression=f"a >= {least}")
    publish(client, {"a": 1}, {"a": 2}, {"a": 3})
    return client


@EVERY_STORE
def test_matches_are_counted_over_time(busy):
    asked = {"subscriptions": ["most", "never", "unknown"], "days": 1, "parts": 4}
    found = busy.post("/v1/activity", json=asked).json()
    assert found["step"] == 21_600
    assert found["counts"] == {"most": [0, 0, 0, 3], "never": [0, 0, 0, 0]}


def test_the_sum_is_that_of_the_mailbox(busy):
    counts = busy.post("/v1/activity", json={"subscriptions": ["some"]}).json()["counts"]
    mail = busy.get("/v1/subscriptions/some/matches").json()["matches"]
    assert sum(counts["some"]) == len(mail) == 1


def test_subscriptions_are_ranked(busy):
    most = busy.get("/v1/activity").json()
    ranked = [(own["id"], own["matches"]) for own in most["subscriptions"]]
    assert ranked == [("most", 3), ("some", 1)]
    assert (most["total"], most["silent"]) == (3, 1)
    silent = busy.get("/v1/activity?order=none").json()
    assert [(own["id"], own["matches"]) for own in silent["subscriptions"]] == [("never", 0)]
    assert len(busy.get("/v1/activity?limit=1").json()["subscriptions"]) == 1


def test_nothing_published_yet(client):
    assert client.get("/v1/activity").json()["subscriptions"] == []
    subscribe(client, id="a", expression="a = 1")
    asked = {"subscriptions": ["a"], "parts": 2}
    assert client.post("/v1/activity", json=asked).json()["counts"] == {"a": [0, 0]}


def test_others_are_left_out(match_server, settings):
    with closed_client(match_server, settings) as client:
        admin = make_key(match_server, "root", "admin")
        ann = make_key(match_server, "ann", "subscribe", "read")
        subscribe(client, id="hers", expression="a = 1", headers=ann)
        subscribe(client, id="other", expression="a = 1", headers=admin)
        publish(client, {"a": 1}, headers=admin)
        asked = {"subscriptions": ["hers", "other"], "parts": 1}
        for headers, seen in ((ann, {"hers"}), (admin, {"hers", "other"})):
            counted = client.post("/v1/activity", json=asked, headers=headers).json()["counts"]
            ranked = client.get("/v1/activity", headers=headers).json()
            assert set(counted) == seen == {own["id"] for own in ranked["subscriptions"]}
            assert ranked["total"] == len(seen)


@EVERY_STORE
def test_leases_that_end_soon_are_listed(client):
    subscribe(client, id="soon", expression="a = 1", lease=3_600)
    subscribe(client, id="later", expression="a = 1", lease=1e6)
    subscribe(client, id="endless", expression="a = 1", valid_until="9999-01-01T00:00:00Z")
    before = (datetime.now(UTC) + timedelta(hours=2)).isoformat()
    listed = client.get("/v1/subscriptions", params={"ends_before": before}).json()
    assert [own["id"] for own in listed["subscriptions"]] == ["soon"]


@EVERY_STORE
def test_a_new_lease_of_any_length_is_not_expiring(client):
    made = subscribe(client, id="soon", expression="a = 1", lease=3_600)
    subscribe(client, id="endless", expression="a = 1", valid_until="9999-01-01T00:00:00Z")
    end, soon = map(datetime.fromisoformat, (made["valid_until"], made["expires_soon"]))
    assert timedelta(0) < end - soon <= timedelta(minutes=6)
    listed = client.get("/v1/subscriptions", params={"state": "expiring"}).json()
    assert listed["subscriptions"] == []


def test_rankings_have_pages_and_filters(client):
    for number in range(7):
        tags = ["odd"] if number % 2 else ["even"]
        subscribe(client, id=f"s{number}", expression=f"a >= {number}", tags=tags)
    publish(client, {"a": 1}, {"a": 3}, {"a": 3})  # s0, s1: 3; s2, s3: 2; the others: 0

    def read(**asked) -> list[list[str]]:
        pages, cursor = [], None
        while True:
            given = {"limit": 2, **asked, **({} if cursor is None else {"cursor": cursor})}
            found = client.get("/v1/activity", params=given).json()
            pages.append([own["id"] for own in found["subscriptions"]])
            if (cursor := found["cursor"]) is None:
                return pages

    assert read() == [["s0", "s1"], ["s2", "s3"]]
    assert read(order="none") == [["s4", "s5"], ["s6"]]
    assert read(tag="odd") == [["s1", "s3"]]
    assert read(order="none", text="A >= 6") == [["s6"]]
    assert read(owner="nobody") == [[]]
    (found,) = client.get("/v1/activity?details=true&tag=odd&limit=1").json()["subscriptions"]
    assert (found["matches"], found["subscription"]["expression"]) == (3, "a >= 1")
    assert found["subscription"]["tags"] == ["odd"]
    wrong = client.get("/v1/activity?cursor=x")
    assert (wrong.status_code, wrong.json()["code"]) == (422, "bad-cursor")
    assert client.get("/v1/activity").json()["subscriptions"][0]["subscription"] is None


def test_rankings_have_all_subscriptions_of_an_owner(match_server, settings, monkeypatch):
    monkeypatch.setattr(activity, "_PAGE", 2)
    with closed_client(match_server, settings) as client:
        ann = make_key(match_server, "ann", "subscribe", "read", "publish")
        for number in range(5):
            subscribe(client, id=f"s{number}", expression="a = 1", headers=ann)
        found = client.get("/v1/activity?order=none", headers=ann).json()
        assert (found["total"], found["silent"]) == (5, 5)
        refused = client.get("/v1/activity?owner=bob", headers=ann)
        assert (refused.status_code, refused.json()["code"]) == (403, "not-yours")
