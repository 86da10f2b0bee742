"""Drafts: checked against the set, and forecast over the archive."""

from __future__ import annotations

import asyncio
import json
import random
from dataclasses import replace
from datetime import timedelta

import pytest

from tamis.broker import forecasting
from tamis.broker import similar as similar_search
from tamis.broker.forecasting import AskedForecast, Budget, forecast
from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.broker.publishing import Publication
from tamis.events.json_source import JsonObjects
from tamis.events.json_texts import parse_event
from tamis.language import print_expression
from tamis.logic.canonical import canonicalize
from tamis.logic.evaluate import Missing, evaluate
from tamis.logic.implication import implies
from tamis.server import create_app
from tamis.server.routes import drafts as routes
from tamis.server.settings import LimitSettings
from tests.effort import SEED, examples
from tests.events.layouts import to_json
from tests.match.examples import RANDOM_EVENTS, draw_example
from tests.server.places import closed_client, key_of, subscribe
from tests.subscriptions.places import Clock
from tests.waiting import wait_until


def check(client, expression: str, headers=None, **more) -> dict:
    answer = client.post("/v1/check", json={"expression": expression, **more}, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


# ── check ───────────────────────────────────────────────────────────────────────────────────


def test_a_draft_with_an_error_and_one_with_a_warning(client):
    subscribe(client, id="a", expression="age >= 18")
    found = check(client, "age >= = 18")
    assert (found["is_valid"], found["canonical"], found["similar"]) == (False, None, None)
    (problem,) = found["problems"]
    assert (problem["severity"], problem["span"], problem["code"]) == (
        "error", [7, 8], "unexpected-token",
    )  # fmt: skip
    found = check(client, "age >= 21 AND age >= 18 AND age < 3")
    assert found["is_valid"]
    assert {own["severity"] for own in found["problems"]} == {"warning"}
    contradicts = check(client, "age = 'text'")
    assert "age" in contradicts["problems"][0]["message"]
    assert contradicts["problems"] == [
        contradicts["problems"][0] | {"severity": "error", "code": "type-mismatch"}
    ]


def test_attributes_have_the_types_of_the_set(client):
    subscribe(client, id="a", expression="age >= 18")
    found = check(client, "age > 3 AND name = 'ann'")
    assert found["attributes"] == [
        {"name": "age", "type": "number", "is_known": True},
        {"name": "name", "type": "string", "is_known": False},
    ]
    assert client.get("/readyz").json()["change"] == 1  # nothing was stored


def test_similar_subscriptions(match_server, settings, monkeypatch):
    client = closed_client(match_server, settings)
    ann, bob = (key_of(match_server, name, "subscribe", "read") for name in ("ann", "bob"))
    admin = key_of(match_server, "root", "admin")
    texts = {
        "same": "y = 2 AND x = 1",
        "respelled": "NOT (x <> 1 OR y <> 2)",
        "wide": "x = 1",
        "or": "x = 1 OR z = 3",
        "narrow": "x = 1 AND y = 2 AND z = 3",
        "other": "x = 1 AND y = 3",
        "else": "z = 3",
    }
    for at, (name, text) in enumerate(texts.items()):
        subscribe(client, (ann, bob)[at % 2], id=name, expression=text)
    similar = check(client, "x = 1 AND y = 2", admin)["similar"]
    assert {name: sorted(own) for name, own in similar.items() if name != "is_complete"} == {
        "equal": ["respelled", "same"],
        "wider": ["wide"],  # "or" has other attributes, and is not among the candidates
        "narrower": ["narrow"],
    }
    assert similar["is_complete"]
    own = check(client, "x = 1 AND y = 2", bob)["similar"]
    assert (own["equal"], own["wider"], own["narrower"]) == (["respelled"], [], [])
    assert check(client, "x = 1", ann, similar=False)["similar"] is None
    monkeypatch.setattr(similar_search, "MOST_COMPARED", 2)
    assert not check(client, "x = 1 AND y = 2", admin)["similar"]["is_complete"]


def test_what_was_read_of_similar_ones_is_kept(match_server, settings, monkeypatch):
    """Only as long as types stay, and not without bound."""
    client = closed_client(match_server, settings)
    admin = key_of(match_server, "root", "admin")
    read = []
    parse = similar_search.parse
    monkeypatch.setattr(similar_search, "parse", lambda text, *_: read.append(text) or parse(text))
    subscribe(client, admin, id="a", expression="x = 1 AND y = 2")
    for text in ("x = 1", "x = 1 AND y = 2", "x = 1"):
        assert check(client, text, admin)["similar"]["is_complete"]
    assert read == ["x = 1 AND y = 2"]
    subscribe(client, admin, id="b", expression="z = 'a'")  # there is a new type
    found = check(client, "x = 1", admin)["similar"]
    assert (found["narrower"], read) == (["a"], ["x = 1 AND y = 2"] * 2)
    monkeypatch.setattr(similar_search, "MOST_KEPT", 0)
    for _ in range(2):
        assert check(client, "y = 2", admin)["similar"]["narrower"] == ["a"]
    assert len(client.app.state.context.similar._kept) <= 1


@RANDOM_EVENTS
@pytest.mark.parametrize("missing", Missing)
def test_implication_is_never_wrong(missing):
    n_found = 0
    for seed in range(SEED, SEED + examples(15)):
        example = draw_example(seed, n_subscriptions=30, n_events=20)
        forms = [canonicalize(own, missing) for own in example.conditions.values()]
        for left in forms:
            for right in forms:
                if left != right and implies(left, right):
                    n_found += 1
                    for event in example.events:
                        if evaluate(left, event, missing) is True:
                            assert evaluate(right, event, missing) is True
    assert n_found > 10


# ── forecast ────────────────────────────────────────────────────────────────────────────────


def ask(client, expression: str, headers=None, **more) -> dict:
    asked = {"expression": expression, **more}
    answer = client.post("/v1/forecast", json=asked, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def match_server(settings, database, clock):
    own = MatchServerSettings(store=database)
    with MatchServer.open(settings.server.folder, own, clock=clock) as opened:
        yield opened


def fill(client, clock) -> None:
    """Ten days with an event x = 0, 1, … 9 on each."""
    for _ in range(10):
        client.post("/v1/events", json=[{"x": at, "y": at % 2} for at in range(10)])
        clock.move(86_400)


def test_matches_per_day_with_a_sample(client, clock):
    subscribe(client, id="a", expression="x >= 7 AND y = 0", lease=1e8)
    fill(client, clock)
    found = ask(client, "x >= 6 AND y = 1", days=4, samples=3, subscription_id="a")
    assert found["looked_at"] == {
        "first": 61, "last": 100, "events": 40, "without_text": 0, "is_complete": True,
        "stopped_by": None,
    }  # fmt: skip
    assert [own["day"] for own in found["days"]] == [f"2030-01-{day:02}" for day in range(7, 11)]
    assert [(own["events"], own["matches"]) for own in found["days"]] == [(10, 2)] * 4
    assert found["matches"]["events"] == 8
    assert [own["event"] for own in found["matches"]["sample"]] == [100, 98, 90]
    assert found["matches"]["sample"][0]["content"] == {"x": 9, "y": 1}
    assert [(own["expression"], own["matches"]) for own in found["parts"]] == [
        ("x >= 6", 16), ("y = 1", 20),
    ]  # fmt: skip
    assert (found["combined_by"], found["rarest"]) == ("and", "x >= 6")
    assert found["slowest"] in ("x >= 6", "y = 1")
    assert found["newly_matching"]["events"] == 8
    assert [own["event"] for own in found["no_longer_matching"]["sample"]] == [99, 89, 79]
    either = ask(client, "x >= 6 OR y = 1 AND x >= 2", days=4)
    assert either["matches"]["events"] == 24
    assert [(own["expression"], own["matches"]) for own in either["parts"]] == [
        ("x >= 6", 16), ("y = 1 AND x >= 2", 16),
    ]  # fmt: skip
    assert (either["combined_by"], either["rarest"]) == ("or", "x >= 6")
    assert either["slowest"] in ("x >= 6", "y = 1 AND x >= 2")
    alone = ask(client, "x = 3", days=100)
    assert alone["combined_by"] is None
    assert (alone["matches"]["events"], alone["parts"], alone["newly_matching"]) == (10, [], None)
    assert client.get("/readyz").json()["change"] == 1


def test_a_part_of_the_archive_is_named(client, clock, monkeypatch):
    fill(client, clock)
    monkeypatch.setattr(forecasting, "AT_ONCE", 15)
    server = client.app.state.context.match_server
    asked = AskedForecast("x >= 5", days=100)

    def run(**options):
        budget = Budget(**{"n_events": 1_000, "seconds": 1e9} | options)
        return forecast(server.live, server.archive, asked, budget)

    found = run(n_events=20)
    assert (found.first, found.last, found.n_events) == (71, 100, 30)
    assert (found.is_complete, found.stopped_by, found.matches.n_events) == (False, "events", 15)
    ticks = iter(range(100))
    found = run(seconds=2.5, timer=lambda: next(ticks))
    assert (found.first, found.stopped_by) == (56, "time")
    assert run(is_cancelled=lambda: True).stopped_by == "cancelled"
    found = run()
    assert (found.first, found.is_complete, found.matches.n_events) == (1, True, 50)
    assert [own.number for own in found.matches.sample] == [100, 99, 98, 97, 96, 90, 89, 88, 87, 86]


def test_settings_bound_a_forecast(match_server, settings, clock):
    limits = LimitSettings(forecast_events=1)
    client = closed_client(match_server, replace(settings, limits=limits))
    admin, ann = key_of(match_server, "root", "admin"), key_of(match_server, "ann", "read")
    for at in range(3):
        client.post("/v1/events", json={"x": at}, headers=admin)
        clock.move(timedelta(days=2).total_seconds())
    assert ask(client, "x >= 0", admin, days=30)["looked_at"]["is_complete"]  # it is one range
    refused = client.post("/v1/forecast", json={"expression": "x = 1"}, headers=ann)
    assert (refused.status_code, refused.json()["code"]) == (403, "archive-closed")
    wrong = client.post("/v1/forecast", json={"expression": "x = = 1"}, headers=admin)
    assert (wrong.status_code, wrong.json()["span"]) == (422, [4, 5])


def test_a_forecast_ends_when_its_client_goes_away(match_server, settings, monkeypatch):
    stopped = []

    def wait_for_the_end(live, archive, asked, budget):
        wait_until(budget.is_cancelled, "the forecast is cancelled")
        stopped.append(asked.expression)
        return forecast(live, archive, asked, budget)

    monkeypatch.setattr(routes, "forecast", wait_for_the_end)
    match_server.publisher.publish(Publication(JsonObjects([b"{}"]), 1)).result()
    body = b'{"expression": "x = 1"}'
    messages = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive():
        return next(messages, {"type": "http.disconnect"})

    async def send(message):
        sent.append(message)

    sent: list = []
    scope = {
        "type": "http", "method": "POST", "path": "/v1/forecast", "query_string": b"",
        "headers": [(b"content-type", b"application/json"), (b"host", b"127.0.0.1:8080")],
        "client": ("127.0.0.1", 1),
    }  # fmt: skip
    asyncio.run(create_app(match_server, settings, is_open=True)(scope, receive, send))
    assert stopped == ["x = 1"]
    assert sent[0]["status"] == 503


@RANDOM_EVENTS
@pytest.mark.parametrize("at", range(examples(3)))
def test_forecasts_agree_with_the_reference(tmp_path, at):
    example = draw_example(SEED + at, n_subscriptions=15, n_events=30)
    rng = random.Random(SEED + at)
    events = [to_json(event) for event in example.events]
    with MatchServer.open(
        tmp_path / "folder", MatchServerSettings(schema=example.schema)
    ) as server:
        texts = [event.encode() for event in events]
        server.publisher.publish(Publication(JsonObjects(texts), 1)).result()
        read = [parse_event(event) for event in events]
        conditions = list(example.conditions.values())
        for condition in conditions:
            other = rng.choice(conditions)
            asked = AskedForecast(
                print_expression(condition), days=1, n_samples=100, before=print_expression(other)
            )
            found = forecast(server.live, server.archive, asked, Budget(10**6, 1e9))
            truth = {n for n, own in enumerate(read, 1) if evaluate(condition, own) is True}
            before = {n for n, own in enumerate(read, 1) if evaluate(other, own) is True}
            assert {own.number for own in found.matches.sample} == truth
            assert {own.number for own in found.new.sample} == truth - before
            assert {own.number for own in found.lost.sample} == before - truth
            assert sum(own[2] for own in found.days) == len(truth)
            for own in found.matches.sample:
                assert json.loads(own.text) == json.loads(events[own.number - 1])
