"""What a server reports of expressions and events that are read in another way than expected."""

from __future__ import annotations

import json

import pytest

from tests.server.asking import make_key, needs_keys

LINES = {"content-type": "application/x-ndjson"}
KNOWN = [{"id": f"s{at}", "expression": f"country = 'c{at}'"} for at in range(20)]


def post(client, path: str, headers=None, **asked) -> dict:
    answer = client.post(f"/v1/{path}", json=asked, headers=headers)
    assert answer.is_success, answer.text
    return answer.json()


def load(client, rows, headers=None, **params) -> dict:
    body = "\n".join(map(json.dumps, rows))
    answer = client.post(
        "/v1/subscriptions/import", content=body, headers=LINES | (headers or {}), params=params
    )
    assert answer.is_success, answer.text
    return json.loads(answer.text.splitlines()[-1])


# ── misspelt attributes ─────────────────────────────────────────────────────────────────────


def test_misspelt_attributes_are_reported_wherever_they_come_in(client):
    assert load(client, KNOWN)["notes"] == []
    checked = post(client, "check", expression="age > 3 AND countri = 'x'")
    (problem,) = checked["problems"]
    assert (problem["code"], problem["severity"]) == ("misspelt-attribute", "warning")
    assert (problem["span"], problem["hint"]) == ([12, 19], "write country if that is meant")
    made = post(client, "subscriptions", id="a", expression="countri = 'x'")
    (note,) = made["notes"]
    assert note.startswith("an attribute looks misspelt: countri like country, which more subs")
    assert post(client, "subscriptions", id="b", expression="countri = 'y'")["notes"] == []
    (note,) = load(client, [{"id": "c", "expression": "contry = 'x'"}])["notes"]
    assert "contry like country" in note


def test_names_of_others_stay_secret(client, match_server):
    load(client, KNOWN)
    bob = make_key(match_server, "bob", "subscribe", "read")
    needs_keys(client)
    text = "countri = 'x'"
    assert post(client, "check", bob, expression=text)["problems"] == []
    assert post(client, "subscriptions", bob, id="a", expression=text)["notes"] == []
    assert load(client, [{"id": "b", "expression": "contry = 'x'"}], bob)["notes"] == []
    post(client, "subscriptions", bob, id="own", expression="country = 'x'")
    (problem,) = post(client, "check", bob, expression="cauntry = 'x'")["problems"]
    assert problem["code"] == "misspelt-attribute"


def test_tags_that_seem_to_be_several_are_noted(client):
    rows = [{"id": "a", "expression": "age > 3", "tags": "x;y"}]
    (note,) = load(client, rows)["notes"]
    assert note.startswith('a tag seems to be several in one: "x;y"')
    assert load(client, [{"id": "b", "expression": "age > 3", "tags": "x,y"}])["notes"] == []


# ── attributes that no event has ────────────────────────────────────────────────────────────


def test_a_search_for_an_unknown_attribute_says_so(client):
    post(client, "events", age=20, title="oil")
    post(client, "events", age=30, name="x")
    for expression, note in (
        ("nosuch > 3", "no archived event has nosuch"),
        ("agee > 3", "no archived event has agee, but they have age"),
        ("title > 3", "no archived event has a value of title that can be read: "),
    ):
        found = post(client, "search", expression=expression)
        assert found["hits"] == []
        assert found["notes"][0].startswith(note)
        assert len(found["notes"]) == 1
        told = post(client, "forecast", expression=expression)
        assert told["notes"][0].startswith(note)
    found = post(client, "search", query="oil", attributes=["nosuch"])
    assert found["notes"] == ["no archived event has nosuch"]
    assert post(client, "search", expression="age > 99")["notes"] == []
    assert post(client, "search", expression="age > 3 OR nosuch > 3")["notes"] == []
    told = post(client, "forecast", expression="age > 3 OR nosuch > 3")
    assert told["notes"] == ["no archived event has nosuch"]


def test_only_some_events_are_looked_at(client, monkeypatch):
    monkeypatch.setattr("tamis.search.unseen.MOST", 2)
    for age in range(4):
        post(client, "events", age=age)
    (note,) = post(client, "search", expression="nosuch > 3")["notes"]
    assert note == "none of the newest 2 archived events has nosuch"


# ── keys that are given twice ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("n_events", [1, 20])
@pytest.mark.parametrize("query", ["", "?matches=ids"])
def test_repeated_keys_are_in_the_answer(client, n_events, query):
    post(client, "subscriptions", id="a", expression="age > 3")
    body = '{"age": 1}\n' * n_events + '{"age": 1, "age": 5}'
    key = {"idempotency-key": "k"}
    answers = [
        client.post(f"/v1/events{query}", content=body, headers=LINES | key) for _ in range(2)
    ]
    for answer in answers:
        (note,) = answer.json()["notes"]
        assert answer.json()["matched"] == 1
        assert note.startswith(f'1 event has a key twice, such as "age" in row {n_events}')
    assert post(client, "events", age=3)["notes"] == []
