"""Words for expressions, the anatomy of the index, settings, times: what the console shows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tamis.broker.anatomy import Anatomist
from tamis.server.metrics import Metrics
from tamis.server.settings import SubscriptionSettings
from tests.server.asking import make_key, publish, subscribe
from tests.server.places import closed_client


def test_attributes_have_types_and_values_seen(client):
    subscribe(client, id="a", expression="age >= 18 AND `odd name` = 'x' AND place.city = 'y'")
    publish(
        client,
        {"age": 20, "place": {"city": "O'Slo"}},
        {"age": 20, "new": True, "price": 1.50, "long": "x" * 500},
    )
    found = client.get("/v1/vocabulary").json()
    words = {own["name"]: own for own in found["attributes"]}
    assert words["age"] == {"name": "age", "type": "number", "values": ["20"]}
    assert words["`odd name`"]["values"] == []
    assert words["new"] == {"name": "new", "type": None, "values": ["TRUE"]}
    assert words["price"]["values"] == ["1.5"]
    assert words["long"]["values"] == []
    (city,) = words["place.city"]["values"]
    # A value can be pasted into an expression.
    checked = client.post("/v1/check", json={"expression": f"place.city = {city}"}).json()
    assert checked["is_valid"], checked
    matched = client.post(
        "/v1/explain",
        json={"expression": f"place.city = {city}", "event": {"place": {"city": "O'Slo"}}},
    )
    assert matched.json()["truth"] == "true"
    assert found["functions"]["lower"].startswith("lower(")
    assert "BETWEEN" in found["keywords"]


def test_values_are_for_those_who_may_read_all_events(match_server, settings):
    with closed_client(match_server, settings) as client:
        admin = make_key(match_server, "root", "admin")
        ann = make_key(match_server, "ann", "subscribe", "read")
        subscribe(client, id="a", expression="age = 1", headers=ann)
        subscribe(client, id="b", expression="hidden = 1", headers=admin)
        publish(client, {"age": 42, "secret": "x"}, headers=admin)
        seen = client.get("/v1/vocabulary", headers=ann).json()["attributes"]
        assert seen == [{"name": "age", "type": "number", "values": []}]
        shown = client.get("/v1/vocabulary", headers=admin).json()["attributes"]
        assert [own["name"] for own in shown] == ["age", "hidden", "secret"]


def test_an_empty_server_has_words(client):
    found = client.get("/v1/vocabulary").json()
    assert found["attributes"] == []
    assert client.get("/v1/anatomy").json()["largest"] is None


def test_the_anatomy_shows_what_is_shared(client):
    for number in range(5):
        subscribe(client, id=f"s{number}", expression=f"a = 1 AND b = 2 AND c = {number}")
    found = client.get("/v1/anatomy").json()
    assert found["subscriptions"] == 5
    assert sum(part["subscriptions"] for part in found["parts"]) == 5
    largest = found["largest"]
    assert largest["sharing"] > 1
    assert {own["text"] for own in largest["most_used"]} >= {"a = 1", "b = 2"}
    assert largest["counts"]["depth"] >= 1


def test_a_part_is_described_once(match_server, monkeypatch):
    from tamis.broker import anatomy

    described = []
    compute = anatomy.compute_stats
    monkeypatch.setattr(
        anatomy, "compute_stats", lambda own, **options: described.append(own) or compute(own)
    )
    match_server.live.add("a", "x = 1")
    anatomist = Anatomist(match_server.live)
    assert anatomist.describe() == anatomist.describe()
    assert len(described) == 1
    match_server.live.add("b", "y = 1")
    assert anatomist.describe()["subscriptions"] == 2
    assert len(described) == 2


def test_settings_are_shown_without_secrets(match_server, settings):
    secret = SubscriptionSettings(store="postgresql://ann:hidden@localhost/tamis")
    with closed_client(match_server, replace(settings, subscriptions=secret)) as client:
        answer = client.get("/v1/settings", headers=make_key(match_server, "root", "admin"))
    assert "hidden" not in answer.text
    shown = {own["name"]: own["value"] for own in answer.json()["settings"]}
    assert shown["subscriptions.store"] == '"…"'
    assert shown["subscriptions.default_lease"] == '"1 d"'


def test_times_are_estimated(match_server):
    metrics = Metrics(match_server)
    nothing = metrics.estimate_times()
    assert nothing["publishing"] == {"count": 0, "p50": None, "p99": None}
    for _ in range(99):
        metrics.observe_publishing(0.002)
    metrics.observe_publishing(4.0)
    metrics.observe_publishing(1_000.0)
    found = metrics.estimate_times()["publishing"]
    assert found["count"] == 101
    assert 0.001 <= found["p50"] <= 0.0025
    assert 2.5 <= found["p99"] <= 5


def test_lags_are_estimated_for_each_way(client):
    subscribe(client, id="a", expression="TRUE")
    publish(client, {"a": 1})
    client.get("/v1/subscriptions/a/matches")
    assert client.get("/v1/stats").json()["seconds"]["delivery"]["page"]["count"] == 1


@pytest.mark.parametrize("field", ["merges", "background_failures", "last_background_failure"])
def test_work_in_the_background_is_reported(client, field):
    assert client.get("/v1/stats").json()["set"][field] in (0, None)


def test_names_and_values_that_are_no_text_are_left_out(client):
    text = b'{"p": "shown", "\\ud800": 1, "q": {"\\udfff": 1}, "r": "\\ud800"}'
    assert client.post("/v1/events", content=text).json()["accepted"] == 1
    found = client.get("/v1/vocabulary").json()["attributes"]
    assert {own["name"]: own["values"] for own in found} == {"p": ["'shown'"], "r": []}
