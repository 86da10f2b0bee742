"""Numbers: for Prometheus, and for people."""

from __future__ import annotations

from dataclasses import replace

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.server import Settings, create_app
from tamis.server.settings import OperationSettings, ServerSettings
from tests.server.conftest import OWN_URL
from tests.server.test_end_to_end import read, subscribe


def scrape(client) -> dict[tuple[str, frozenset], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_metrics(client):
    subscribe(client, id="a", expression="x >= 1")
    subscribe(client, id="b", expression="x >= 2")
    lines = {"content-type": "application/x-ndjson"}
    client.post("/v1/events", content=b'{"x": 0}\n{"x": 2}\nnothing\n{"x": "y"}', headers=lines)
    assert client.delete("/v1/subscriptions/b").status_code == 204
    assert len(read(client, "a")) == 1
    assert client.get("/nothing/here").status_code == 404
    found = scrape(client)
    named = {name: value for (name, labels), value in found.items() if not labels}
    assert named["tamis_events_total"] == 3
    assert named["tamis_matched_events_total"] == 1
    assert named["tamis_matches_total"] == 2
    assert named["tamis_rejected_rows_total"] == 1
    assert named["tamis_ignored_values_total"] == 1
    assert named["tamis_changes_total"] == 3
    assert named["tamis_subscriptions"] == 1
    assert named["tamis_publish_seconds_count"] == 1
    assert named["tamis_archive_segments"] >= 1
    assert named["tamis_archive_bytes"] > 0
    assert named["tamis_audit_disagreements_total"] == 0
    assert named["tamis_audit_share"] == 0.0
    assert named["process_resident_memory_bytes"] > 1e6
    deleted = {"method": "DELETE", "route": "/v1/subscriptions/{subscription_id}", "status": "204"}
    assert found["tamis_request_seconds_count", frozenset(deleted.items())] == 1
    unknown = {"method": "GET", "route": "unknown", "status": "404"}
    assert found["tamis_request_seconds_count", frozenset(unknown.items())] == 1
    assert found["tamis_delivery_lag_seconds_count", frozenset({("kind", "page")})] == 1


def test_paths_do_not_become_labels(client):
    for n in range(5):
        client.get(f"/v1/subscriptions/s{n}")
        client.get(f"/unknown/{n}")
    routes = {dict(labels)["route"] for name, labels in scrape(client) if "request" in name}
    assert routes == {"/v1/subscriptions/{subscription_id}", "unknown"}


def test_two_applications_have_their_own_numbers(client, match_server, settings):
    client.post("/v1/events", json={})
    other = TestClient(create_app(match_server, settings, is_open=True), base_url=OWN_URL)
    other.get("/healthz")
    assert not any(dict(labels).get("method") == "POST" for _, labels in scrape(other))


def test_metrics_may_need_a_key(match_server, settings):
    operations = OperationSettings(metrics_need_key=True)
    app = create_app(match_server, replace(settings, operations=operations))
    client = TestClient(app, base_url=OWN_URL)
    assert client.get("/metrics").status_code == 401
    app.state.context.is_open = True
    assert client.get("/metrics").status_code == 200


def test_stats(client):
    subscribe(client, id="a", expression="x >= 1")
    client.post("/v1/events", json={"x": 1})
    found = client.get("/v1/stats").json()
    assert found["published"]["n_matches"] == 1
    assert found["set"]["subscriptions"] == 1
    assert sum(part["subscriptions"] for part in found["set"]["parts"]) == 1
    assert found["archive"]["last_event"] == 1
    assert found["audit"]["n_disagreements"] == 0
    assert found["audit"]["off"] is None
    assert found["limits"]["batch_size"] == Settings().limits.batch_size
    assert (found["ready"], found["needs_keys"]) == (True, False)
    assert found["requests"]["2xx"] == 2
    assert found["memory_bytes"] > 1e6


OPERATORS = """
import tamis

@tamis.operator("flaky(text)")
def flaky(event, text):
    raise RuntimeError(text)
"""


@pytest.fixture
def flaky(tmp_path, monkeypatch):
    (tmp_path / "flaky_operators.py").write_text(OPERATORS)
    monkeypatch.syspath_prepend(tmp_path)
    settings = MatchServerSettings(operators=("flaky_operators",))
    with MatchServer.open(tmp_path / "server", settings) as opened:
        own = Settings(server=ServerSettings(folder=tmp_path / "server"))
        with TestClient(create_app(opened, own, is_open=True), base_url=OWN_URL) as client:
            yield client


def test_faults_and_breakers_of_operators_are_visible(flaky):
    subscribe(flaky, id="a", expression="x >= 1 AND flaky('b')")
    for _ in range(8):
        assert flaky.post("/v1/events", json={"x": 1}).json()["matches"] == 0
    found = flaky.get("/v1/stats").json()["operators"]
    assert {fault["kind"] for fault in found["faults"]} == {"raised", "breaker"}
    assert found["faults"][0]["subscription_ids"] == ["a"]
    assert found["blocked"] == ["flaky('b')"]
    numbers = scrape(flaky)
    labels = frozenset({("operator", "flaky"), ("kind", "raised")})
    assert numbers["tamis_operator_faults", labels] == 5
    assert numbers["tamis_operators_blocked", frozenset()] == 1
