"""Subscribe, publish, read what matched."""

from __future__ import annotations

import pyarrow as pa

from tests.server.places import EVERY_STORE, subscribe

pytestmark = EVERY_STORE


def read(client, name: str, after: str = "0") -> list[dict]:
    answer = client.get(f"/v1/subscriptions/{name}/matches", params={"after": after})
    assert answer.status_code == 200, answer.text
    return answer.json()["matches"]


def test_a_published_event_is_delivered(client):
    made = subscribe(client, id="adults", expression="age >= 18")
    assert made["ticket"].startswith("tkt_")
    answer = client.post("/v1/events?matches=ids", json={"age": 20}).json()
    assert (answer["first_event"], answer["accepted"], answer["matches"]) == (1, 1, 1)
    assert answer["ids"] == [["adults"]]
    (match,) = read(client, "adults")
    assert (match["event"], match["content"]) == (1, {"age": 20})
    assert match["change"] == made["revision"]


def test_events_in_every_form(client):
    subscribe(client, id="a", expression="age >= 18")
    lines = b'{"age": 20}\n{"age": 3}\nnothing\n{"age": 30}\n'
    answer = client.post(
        "/v1/events", content=lines, headers={"content-type": "application/x-ndjson"}
    ).json()
    assert (answer["accepted"], answer["matched"]) == (3, 2)
    assert [row["row"] for row in answer["rejected"]] == [2]
    answer = client.post("/v1/events", json=[{"age": 40}, {"age": 4}]).json()
    assert (answer["first_event"], answer["accepted"], answer["matched"]) == (4, 2, 1)
    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"age": pa.array([50, 5, None])})
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    arrow = {"content-type": "application/vnd.apache.arrow.stream"}
    answer = client.post("/v1/events", content=sink.getvalue().to_pybytes(), headers=arrow).json()
    assert (answer["first_event"], answer["accepted"], answer["matched"]) == (6, 3, 1)
    assert [match["content"]["age"] for match in read(client, "a")] == [20, 30, 40, 50]


def test_wrong_expressions_have_a_place(client):
    answer = client.post("/v1/subscriptions", json={"expression": "age >= = 18"})
    assert answer.status_code == 422
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert problem["span"] == [7, 8]
    assert problem["code"]


def test_changes_need_the_ticket_of_the_subscription(match_server, settings, client):
    made = subscribe(client, id="a/b ü", expression="x = 1")
    path = "/v1/subscriptions/a%2Fb%20%C3%BC"
    assert client.get(path).json()["id"] == "a/b ü"
    match_server_context = client.app.state.context
    match_server_context.is_open = False
    assert client.patch(path, json={"expression": "x = 2"}).status_code == 404
    ticket = {"tamis-ticket": made["ticket"]}
    stale = client.patch(path, json={"tags": ["t"]}, headers=ticket | {"if-match": '"99"'})
    assert stale.status_code == 412
    changed = client.patch(path, json={"expression": "x = 2"}, headers=ticket)
    assert changed.json()["expression"] == "x = 2"
    assert changed.headers["etag"] == f'"{changed.json()["revision"]}"'
    renewed = client.post(f"{path}/renew", json={"lease": 200_000}, headers=ticket)
    assert renewed.json()["valid_until"] > made["valid_until"]
    assert client.delete(path, headers=ticket).status_code == 204
    assert client.get(path, headers=ticket).status_code == 404


def test_the_same_key_gives_the_same_answer(client):
    subscribe(client, id="a", expression="x = 1")
    key = {"idempotency-key": "k1"}
    first = client.post("/v1/events", json={"x": 1}, headers=key)
    again = client.post("/v1/events", json={"x": 1}, headers=key)
    assert first.json() == again.json()
    other = client.post("/v1/events", json={"x": 2}, headers=key)
    assert other.status_code == 422
    assert len(read(client, "a")) == 1
