"""CloudEvents in all modes, and requests with the same idempotency key."""

from __future__ import annotations

import base64

import orjson
import pytest

from tests.server.asking import subscribe

ATTRIBUTES = {"ce-id": "17", "ce-source": "/shop", "ce-type": "order", "ce-specversion": "1.0"}
JSON = {"content-type": "application/json"}
WHOLE = {"specversion": "1.0", "id": "17", "source": "/shop", "type": "order"}
KEY = {"idempotency-key": "k"}


def send(client, body: bytes = b"", headers: dict | None = None, query: str = "") -> dict:
    """Publish in binary mode; returns the answer."""
    answer = client.post(f"/v1/events{query}", content=body, headers=ATTRIBUTES | (headers or {}))
    assert answer.status_code == 200, answer.text
    return answer.json()


def stored(client, number: int = 1) -> dict:
    return client.get(f"/v1/events/{number}").json()["content"]


def reason(told: dict) -> str:
    assert (told["accepted"], len(told["rejected"])) == (0, 1)
    assert told["rejected"][0]["code"] == "bad-cloud-event"
    return told["rejected"][0]["message"]


# ── binary mode ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "body", "more"),
    [
        ("application/json", b'{"price": 1.10}', {"data": {"price": 1.1}}),
        ("application/json", b" [1] ", {"data": [1]}),
        (
            "application/geo+json; x=1",
            b'"a"',
            {"data": "a", "datacontenttype": "application/geo+json; x=1"},
        ),
        ("text/plain", "é".encode(), {"data": "é", "datacontenttype": "text/plain"}),
        (
            "image/png",
            b"\x89PNG\xff",
            {
                "data_base64": base64.b64encode(b"\x89PNG\xff").decode(),
                "datacontenttype": "image/png",
            },
        ),
        ("image/png", b"", {}),
    ],
)
def test_binary_mode_becomes_structured(client, kind, body, more):
    assert send(client, body, {"content-type": kind})["accepted"] == 1
    assert stored(client) == WHOLE | more


def test_numbers_of_the_data_stay_exact(client):
    send(client, b'{"price": 10.10, "n": 12345678901234567890123}', JSON)
    text = client.get("/v1/events/1").text
    assert '{"price": 10.10, "n": 12345678901234567890123}' in text


@pytest.mark.parametrize(
    "body",
    [b'1,"type":"other"', b"1} ", b"1 2", b"", b"{", b"\xff", b'"\xff"', '"é"'.encode("utf-16")],
)
def test_data_that_is_not_one_json_value_is_rejected(client, body):
    told = send(client, body or b" ", JSON)
    assert (told["accepted"], len(told["rejected"])) == (0, 1)
    assert told["rejected"][0]["code"] in ("bad-json", "bad-encoding")
    assert client.get("/readyz").json()["last_event"] == 0


@pytest.mark.parametrize(
    ("headers", "message"),
    [
        ({"ce-data": "1"}, "the header ce-data is no attribute of a CloudEvent"),
        ({"ce-data_base64": "MQ=="}, "the header ce-data_base64 is no attribute of a CloudEvent"),
        ({"ce-datacontenttype": "a/b"}, "the header ce-datacontenttype is no attribute"),
        ({"ce-": "1"}, "the header ce- is no attribute"),
        ({"ce-a-b": "1"}, "the header ce-a-b is no attribute"),
        ({"ce-x": "%ff"}, "the header ce-x is not UTF-8"),
        ({"ce-id": ""}, "the CloudEvent has no id"),
        ({"ce-specversion": "7"}, 'specversion is "7"; "1.0" is expected'),
    ],
)
def test_wrong_headers_are_rejected(client, headers, message):
    assert reason(send(client, b"1", JSON | headers)).startswith(message)


def test_a_missing_header_is_named(client):
    headers = {name: value for name, value in ATTRIBUTES.items() if name != "ce-source"}
    told = client.post("/v1/events", content=b"1", headers=headers).json()
    assert reason(told) == "the CloudEvent has no source"


def test_a_header_that_comes_twice_is_rejected(client):
    headers = [*ATTRIBUTES.items(), ("ce-id", "18")]
    told = client.post("/v1/events", content=b"", headers=headers).json()
    assert reason(told) == "the CloudEvent has the header ce-id twice"


@pytest.mark.parametrize(
    "value", ["caf%C3%A9%20%22%25%22", '"caf%C3%A9 \\"%25\\""', 'café "%25"'.encode()]
)
def test_headers_are_decoded_once(client, value):
    send(client, headers={"ce-x": value})
    assert stored(client)["x"] == 'café "%"'


# ── structured and batch mode ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"specversion": "0.3"}, 'specversion is "0.3"; "1.0" is expected'),
        ({"id": ""}, "the CloudEvent has no id"),
        ({"id": 7, "type": None}, "the CloudEvent has no id, type"),
        ({"data": 1, "data_base64": "MQ=="}, "the CloudEvent has both data and data_base64"),
    ],
)
def test_whole_events_are_checked(client, change, message):
    good, wrong = orjson.dumps(WHOLE), orjson.dumps(WHOLE | change)
    kind = {"content-type": "application/cloudevents+json"}
    assert reason(client.post("/v1/events", content=wrong, headers=kind).json()) == message
    batch = {"content-type": "application/cloudevents-batch+json"}
    body = b"[" + good + b"," + wrong + b"]"
    told = client.post("/v1/events", content=body, headers=batch).json()
    assert (told["accepted"], [row["row"] for row in told["rejected"]]) == (1, [1])


def test_the_media_type_of_whole_events_wins_over_headers(client):
    kind = {"content-type": "application/cloudevents+json"}
    send(client, orjson.dumps(WHOLE | {"id": "18", "data": 1}), kind)
    assert stored(client) == WHOLE | {"id": "18", "data": 1}


# ── idempotency keys ────────────────────────────────────────────────────────────────────────


def test_the_same_request_is_answered_once(client):
    first = send(client, b"1", JSON | KEY)
    assert send(client, b"1", JSON | KEY) == first
    assert client.get("/readyz").json()["last_event"] == 1


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"ce-id": "18"}, ""),
        ({"ce-type": "other"}, ""),
        ({"ce-x": "1"}, ""),
        ({"content-type": "text/plain"}, ""),
        ({"content-type": "application/cloudevents+json"}, ""),
        ({}, "?matches=ids"),
    ],
)
def test_another_request_with_the_key_is_an_error(client, headers, query):
    send(client, b"1", JSON | KEY)
    asked = ATTRIBUTES | JSON | KEY | headers
    answer = client.post(f"/v1/events{query}", content=b"1", headers=asked)
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-input")
    assert answer.json()["detail"] == "the idempotency key was used for another request"
    assert client.get("/readyz").json()["last_event"] == 1


def test_a_key_is_for_one_form_of_events(client):
    subscribe(client, id="a", expression="x = 1")
    lines = {"content-type": "application/x-ndjson"}
    first = client.post("/v1/events?matches=ids", content=b'{"x": 1}', headers=JSON | KEY)
    again = {"content-type": "Application/JSON; charset=utf-8"} | KEY
    same = client.post("/v1/events?matches=ids", content=b'{"x": 1}', headers=again)
    assert same.json() == first.json()
    assert same.json()["ids"] == [["a"]]
    for query, kind in (("?matches=ids", lines), ("", JSON)):
        other = client.post(f"/v1/events{query}", content=b'{"x": 1}', headers=kind | KEY)
        assert other.status_code == 422


@pytest.mark.parametrize("body", [b'[\n{"x": 1},\n{"x": 2}\n]', b'[{"x": 1}]', b"[]"])
def test_an_array_is_not_read_as_lines(client, body):
    lines = {"content-type": "application/x-ndjson"}
    answer = client.post("/v1/events", content=body, headers=lines)
    assert (answer.status_code, answer.json()["code"]) == (400, "bad-json")
    assert answer.json()["hint"] == "send it as application/json"
    row = client.post("/v1/events", content=b'[1, 2]\n{"x": 3}', headers=lines)
    assert (row.json()["accepted"], len(row.json()["rejected"])) == (1, 1)
