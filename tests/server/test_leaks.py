"""What belongs to someone else shows in no error: neither an id, nor a text, nor that it exists."""

from __future__ import annotations

import json

import pytest

from tests.server.asking import make_key, needs_keys, subscribe

HIDDEN = "it belongs to someone else"


@pytest.fixture
def keys(client, match_server) -> dict[str, dict[str, str]]:
    """Keys of ann and bob, and of an admin."""
    found = {name: make_key(match_server, name, "subscribe", "read") for name in ("ann", "bob")}
    found["root"] = make_key(match_server, "root", "admin")
    needs_keys(client)
    return found


def list_type_errors(client, headers) -> list[str]:
    """The errors of all routes that read an expression, for one with another type."""
    wrong = "age = 'old' OR age > 'very'"
    made = subscribe(client, headers=headers, expression="other = 1")
    path, ticket = f"/v1/subscriptions/{made['id']}", {"tamis-ticket": made["ticket"]}
    row = json.dumps({"id": "row", "expression": wrong})
    imported = headers | {"content-type": "application/x-ndjson"}
    answers = [
        client.post("/v1/subscriptions", json={"expression": wrong}, headers=headers),
        client.patch(path, json={"expression": wrong}, headers=headers | ticket),
        client.post("/v1/subscriptions/import", content=row, headers=imported),
        client.post("/v1/subscriptions/import?dry_run=true", content=row, headers=imported),
        client.post("/v1/check", json={"expression": wrong}, headers=headers),
        client.post("/v1/explain", json={"expression": wrong, "event": {}}, headers=headers),
    ]
    assert [answer.status_code for answer in answers] == [422, 422, 200, 200, 200, 422]
    return [answer.text for answer in answers]


def test_a_type_error_names_no_subscription_of_others(client, keys):
    subscribe(client, headers=keys["ann"], id="sensitive", expression="age >= 18 AND plan = 'x'")
    for caller, is_named in (("bob", False), ("ann", True), ("root", True)):
        for text in list_type_errors(client, keys[caller]):
            assert "age is number since" in text
            assert ("sensitive" in text) is is_named, text
            assert (HIDDEN in text) is not is_named, text
            assert "plan" not in text


def test_a_decider_that_has_ended_is_not_named(client, keys):
    made = subscribe(client, headers=keys["ann"], id="sensitive", expression="age >= 18")
    shown = {"tamis-ticket": made["ticket"]}
    assert client.delete("/v1/subscriptions/sensitive", headers=shown).status_code == 204
    for text in list_type_errors(client, keys["bob"]):
        assert "age is number since" in text
        assert "sensitive" not in text


@pytest.mark.parametrize(
    ("method", "more", "body"),
    [
        ("GET", "", None),
        ("PATCH", "", {"tags": []}),
        ("POST", "/renew", {}),
        ("DELETE", "", None),
        ("GET", "/matches", None),
        ("GET", "/stream", None),
        ("GET", "/consumers", None),
        ("POST", "/acknowledge", {"event": 0, "epoch": "e"}),
        ("PUT", "/consumers/c", {"event": 0, "epoch": "e"}),
        ("DELETE", "/consumers/c", None),
    ],
)
def test_hidden_and_unknown_are_the_same(client, keys, method, more, body):
    subscribe(client, headers=keys["ann"], id="theirs", expression="age >= 18")
    shown = [keys["bob"], {}, {"tamis-ticket": "tkt_wrong"}]
    for headers in shown:
        answers = [
            client.request(method, f"/v1/subscriptions/{name}{more}", json=body, headers=headers)
            for name in ("theirs", "nobody")
        ]
        found = [answer.json() | {"request_id": ""} for answer in answers]
        assert answers[0].status_code == 404
        assert json.dumps(found[0]).replace("theirs", "nobody") == json.dumps(found[1])


def test_an_id_that_is_taken_shows_no_more_than_that(client, keys):
    made = subscribe(client, headers=keys["ann"], id="theirs", expression="age >= 18")
    asked = {"id": "theirs", "expression": "x = 1"}
    answer = client.post("/v1/subscriptions", json=asked, headers=keys["bob"]).json()
    assert (answer["code"], "revision" in answer) == ("refused-exists", False)
    content = json.dumps(asked)
    headers = keys["bob"] | {"content-type": "application/x-ndjson"}
    for existing in ("refuse", "replace"):
        path = f"/v1/subscriptions/import?existing={existing}"
        row = json.loads(client.post(path, content=content, headers=headers).text.split("\n")[0])
        assert row["status"] == "refused"
        assert "revision" not in row["error"]
        assert "18" not in json.dumps(row)
    assert made["revision"] == 1


def test_what_others_have_is_not_counted_as_similar(client, keys):
    subscribe(client, headers=keys["ann"], id="theirs", expression="age >= 18")
    asked = {"expression": "age >= 18"}
    found = client.post("/v1/check", json=asked, headers=keys["bob"]).json()
    alone = {"equal": [], "wider": [], "narrower": [], "is_complete": True}
    assert found["similar"] == alone
    asked = {"event": {"age": 20}, "subset": ["theirs"]}
    answers = [
        client.post("/v1/match", json=asked | {"subset": [name]}, headers=keys["bob"])
        for name in ("theirs", "nobody")
    ]
    found = [answer.json() | {"request_id": ""} for answer in answers]
    assert json.dumps(found[0]).replace("theirs", "nobody") == json.dumps(found[1])
