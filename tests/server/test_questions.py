"""Questions that store nothing agree with publishing and with the reference evaluator."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.events.json_texts import parse_event
from tamis.logic.evaluate import Missing, evaluate
from tamis.server import create_app
from tamis.server.settings import ArchiveSettings
from tests.effort import SEED, examples
from tests.events.layouts import to_json
from tests.match.examples import RANDOM_EVENTS, draw_example
from tests.server.conftest import OWN_URL
from tests.server.places import closed_client, key_of, subscribe

JSON = {"content-type": "application/json"}
# Numbers that are others, or equal to others, once they are doubles.
NUMBERS = (
    "10.1", "10.10000000000000000001", "0.1", "0.30000000000000004", "1e1", "1E-7", "-0", "-0.0",
    "9007199254740993", "9007199254740993.0", "9223372036854775808", "-9223372036854775809",
    "123456789012345678901234567890", "1e400", "0.1000000000000000055511151231257827", "1e23",
)  # fmt: skip


def post(client, path: str, text: str, headers=None):
    answer = client.post(path, content=text.encode(), headers={**JSON, **(headers or {})})
    assert answer.status_code == 200, answer.text
    return answer.json()


@RANDOM_EVENTS
@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("at", range(examples(4)))
def test_match_publish_and_the_reference_agree(tmp_path, settings, missing, at):
    example = draw_example(SEED + at, n_subscriptions=40, n_events=25)
    opened = MatchServerSettings(schema=example.schema, missing=missing)
    with MatchServer.open(tmp_path / "folder", opened) as match_server:
        match_server.live.add_many(example.texts)
        with TestClient(
            create_app(match_server, settings, is_open=True), base_url=OWN_URL
        ) as client:
            for event in example.events:
                text = to_json(event)
                asked = post(client, "/v1/match", f'{{"event": {text}}}')
                published = post(client, "/v1/events?matches=ids", text)
                read = parse_event(text)
                truth = {
                    name
                    for name, condition in example.conditions.items()
                    if evaluate(condition, read, missing) is True
                }
                assert set(asked["ids"]) == truth, example.show(read, 0)
                assert [set(ids) for ids in published["ids"]] == [truth]
                assert asked["ignored_values"] == published["ignored_values"]


@pytest.mark.parametrize("kind", ["number", "double", "decimal(20,4)", "integer", "float"])
def test_numbers_count_as_they_are_written(tmp_path, settings, kind):
    rng = random.Random(SEED)
    constants = ["10.1", "0.1", "0.3", "10", "9007199254740992", "9007199254740993", "0"]
    if kind == "integer":
        constants = [one for one in constants if "." not in one]
    texts = {
        f"{sign} {one}": f"x {sign} {one}" for one in constants for sign in ("=", "<", ">", "<>")
    }
    opened = MatchServerSettings(schema={"x": kind})
    with MatchServer.open(tmp_path / "folder", opened) as match_server:
        match_server.live.add_many(texts)
        with TestClient(
            create_app(match_server, settings, is_open=True), base_url=OWN_URL
        ) as client:
            for number in NUMBERS:
                name = rng.choice(list(texts))
                body = f'{{"event": {{"x": {number}}}}}'
                asked = post(client, "/v1/match", body)["ids"]
                told = post(client, "/v1/events?matches=ids", f'{{"x": {number}}}')["ids"]
                assert [asked] == told
                explained = post(
                    client, "/v1/explain", f'{body[:-1]}, "subscription_id": "{name}"}}'
                )
                assert explained["matches"] == (name in asked)
                drafted = post(
                    client, "/v1/explain", f'{body[:-1]}, "expression": "{texts[name]}"}}'
                )
                assert drafted == {**explained, "subscription_id": None}
                last = match_server.archive.last_event
                assert post(client, "/v1/match", f'{{"event_number": {last}}}')["ids"] == asked


def test_only_visible_ids_are_shown(match_server, settings):
    client = closed_client(match_server, settings)
    ann, bob = (
        key_of(match_server, name, "publish", "subscribe", "read") for name in ("ann", "bob")
    )
    admin, mute = key_of(match_server, "root", "admin"), key_of(match_server, "eve", "publish")
    subscribe(client, ann, id="a", expression="x = 1", tags=["t"])
    subscribe(client, bob, id="b", expression="x >= 1")
    for headers, seen in ((ann, ["a"]), (bob, ["b"]), (admin, ["a", "b"]), (mute, [])):
        key = {"idempotency-key": "again"}
        for more in ({}, key, key):
            told = client.post(
                "/v1/events?matches=ids", json=[{"x": 1}, {}], headers=headers | more
            )
            assert [sorted(ids) for ids in told.json()["ids"]] == [seen, []]
            assert told.json()["matches"] == 2
    event = {"event": {"x": 1}}
    assert client.post("/v1/match", json=event, headers=bob).json()["ids"] == ["b"]
    assert client.post("/v1/match", json=event, headers=mute).status_code == 403
    tagged = client.post("/v1/match", json=event | {"tagged": ["t", "none"]}, headers=admin).json()
    assert tagged["ids"] == ["a"]
    for name in ("b", "nobody's"):  # hidden and unknown: the same answer
        hidden = client.post("/v1/match", json=event | {"subset": [name]}, headers=ann)
        assert (hidden.status_code, hidden.json()["code"]) == (404, "unknown-subscription")
    both = {"subset": ["a", "b"], "tagged": ["t"]}
    assert client.post("/v1/match", json=event | both, headers=admin).json()["ids"] == ["a"]


def test_archived_events_are_confidential(match_server, settings):
    client = closed_client(match_server, settings)
    ann = key_of(match_server, "ann", "subscribe", "read", "publish")
    admin = key_of(match_server, "root", "admin")
    made = subscribe(client, ann, id="a", expression="x = 1")
    client.post("/v1/events", json=[{"x": 1, "y": 5}, {"x": 2, "y": 6}], headers=ann)
    asked = {"subscription_id": "a"}
    own = client.post("/v1/explain", json=asked | {"event_number": 1}, headers=ann)
    assert (own.status_code, own.json()["matches"]) == (200, True)
    by_ticket = {"tamis-ticket": made["ticket"]}
    assert client.post(
        "/v1/explain", json=asked | {"event_number": 1}, headers=by_ticket
    ).is_success
    other = client.post("/v1/explain", json=asked | {"event_number": 2}, headers=ann)
    assert (other.status_code, other.json()["code"]) == (403, "archive-closed")
    assert client.post("/v1/match", json={"event_number": 1}, headers=ann).status_code == 403
    draft = {"expression": "y = 6", "event_number": 2}
    assert client.post("/v1/explain", json=draft, headers=ann).status_code == 403
    assert client.post("/v1/explain", json=draft, headers=admin).json()["matches"] is True
    unknown = client.post("/v1/match", json={"event_number": 3}, headers=admin)
    assert (unknown.status_code, unknown.json()["code"]) == (404, "unknown-event")
    readable = replace(settings, archive=ArchiveSettings(readable="read"))
    opened = closed_client(match_server, readable)
    assert opened.post("/v1/explain", json=draft, headers=ann).json()["matches"] is True


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ("", 400, "bad-json"),
        ("{", 400, "bad-json"),
        ('{"event": {"x": 1}', 400, "bad-json"),
        ("[" * 100_000, 400, "bad-json"),
        ("[]", 422, "bad-row"),
        ('{"event": 1}', 422, "bad-row"),
        ('{"event": null}', 422, "bad-row"),
        ("{}", 422, "bad-request"),
        ('{"event": {}, "event_number": 1}', 422, "bad-request"),
        ('{"event_number": 0}', 422, "bad-request"),
        ('{"event_number": 1e30}', 422, "bad-request"),
        ('{"event": {}, "subset": ["\\ud800"]}', 404, "unknown-subscription"),
        ('{"event": {}, "\\ud800": 1}', 422, "bad-request"),
        ('{"event": {}, "more": 1}', 422, "bad-request"),
    ],
)
def test_wrong_questions(client, body, status, code):
    answer = client.post("/v1/match", content=body.encode(), headers=JSON)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_draft_is_wrong(client):
    subscribe(client, id="a", expression="x = 1")
    answer = client.post("/v1/explain", json={"expression": "x = 'text'", "event": {}})
    assert (answer.status_code, answer.json()["span"]) == (422, [4, 10])
    both = {"expression": "x = 1", "subscription_id": "a", "event": {}}
    assert client.post("/v1/explain", json=both).json()["code"] == "bad-request"


def test_values_that_plain_json_cannot_hold_come_back(client):
    subscribe(client, id="a", expression="s = 'text' OR n = 1")
    text = '{"s": "\\ud800", "n": "\\ud800", "o": 1e999}'
    for key in ("1", None):
        headers = {} if key is None else {"idempotency-key": key}
        told = post(client, "/v1/events", text, headers)
        assert {own["attribute"] for own in told["ignored_values"]} == {"n", "s"}
    explained = post(client, "/v1/explain", f'{{"event": {text}, "subscription_id": "a"}}')
    assert explained["matches"] is False
