"""Requests that are odd, broken or hostile: each is answered as the contract says."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from datetime import timedelta
from io import BytesIO

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer
from tamis.server import Settings, create_app
from tamis.server.event_bodies import ARROW, CLOUD_EVENT, CLOUD_EVENTS, JSON, MEDIA_TYPES
from tamis.server.settings import ServerSettings, SubscriptionSettings
from tests.effort import examples
from tests.server.conftest import OWN_URL
from tests.server.places import subscribe

PROBLEM = "application/problem+json"
DEEP = "[" * 5_000 + "]" * 5_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    settings = Settings(server=ServerSettings(folder=tmp_path_factory.mktemp("odd")))
    with MatchServer.open(settings.server.folder) as match_server:
        app = create_app(match_server, settings, is_open=True)
        with TestClient(app, base_url=OWN_URL, raise_server_exceptions=False) as client:
            subscribe(client, id="a", expression="x = 1 OR s = 'text' OR d > 0.5")
            yield client


# ── subscriptions ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "field",
    [
        '"attributes": {"a": "\\ud800"}',
        '"attributes": {"\\ud800": 1}',
        '"attributes": {"a": 1e400}',
        '"attributes": {"a": NaN}',
        f'"attributes": {{"a": {10**400}}}',
        f'"attributes": {{"a": {DEEP}}}',
        '"attributes": {"a": "\\u0000"}',
        '"attributes": []',
        '"tags": ["\\ud800"]',
        '"tags": ["\\u0000", ""]',
        '"tags": "text"',
        '"owner": "\\ud800"',
        '"owner": "\\u0000"',
        '"id": "\\ud800"',
        '"id": "\\u0000"',
        '"id": ""',
        f'"id": "{"i" * 100_000}"',
        '"lease": 1e400',
        '"lease": 1e-400',
        '"lease": 1e18',
        '"lease": NaN',
        '"lease": -1',
        '"lease": 1, "valid_until": "2100-01-01"',
        '"valid_until": "0001-01-01T00:00:00+23:00"',
        '"valid_until": "9999-12-31T23:59:59-23:00"',
        '"valid_from": "0001-01-01T00:00:00+23:00"',
        '"valid_from": "9999-12-31T23:59:59-23:00"',
        '"valid_from": "2100-01-01", "valid_until": "2099-01-01"',
        '"valid_until": "2000-01-01"',
        '"valid_until": 1e300',
        '"more": 1',
        '"expression": "\\ud800"',
        '"expression": "\\u0000"',
        '"expression": ""',
        f'"expression": "{"(" * 50_000}"',
        f'"expression": "x = {"9" * 50_000}"',
    ],
    ids=lambda field: field[:40],
)
def test_odd_subscriptions_are_refused(server, field):
    body = f'{{"expression": "x = 1", {field}}}'
    answer = server.post("/v1/subscriptions", content=body.encode(), headers={"content-type": JSON})
    assert answer.status_code in (201, 400, 410, 413, 422), answer.text
    if answer.status_code != 201:
        assert answer.headers["content-type"] == PROBLEM
        assert answer.json()["detail"]


@pytest.mark.parametrize(
    ("body", "kind", "status", "told"),
    [
        (b'{id: "a"}', JSON, 400, "not JSON: Expecting property name enclosed in double quotes"),
        (b'{"id": "a",}', JSON, 400, "(character 12)"),
        (b'{"id": "a"', JSON, 400, "not JSON: Expecting ',' delimiter (character 11)"),
        (DEEP.encode(), JSON, 400, "recursion"),
        (b'{"id": %s}' % (b"1" * 5_000), JSON, 400, "4300 digits"),
        (b'{"id": "\xff"}', JSON, 400, "can't decode byte 0xff in position 8"),
        (b'{"id": "a"}', "application/x-www-form-urlencoded", 415, "media type"),
        (b'{"id": "a"}', "text/plain", 415, "media type"),
        (b"7", JSON, 422, "body: "),
        (b"", JSON, 422, "body: "),
        (b'"text"', JSON, 422, "body: "),
    ],
)
def test_bodies_that_are_no_json_are_errors_that_say_so(server, body, kind, status, told):
    """Programs such as curl send another media type unless they are asked for JSON."""
    path = "/v1/subscriptions"
    answer = server.post(path, content=body, headers={"content-type": kind}).json()
    assert (answer["status"], told in answer["detail"]) == (status, True), answer
    assert "paths" not in answer.get("hint", "")
    assert ("content-type: application/json" in answer.get("hint", "")) == (status == 415)


def test_an_empty_idempotency_key_is_none(server):
    """Two programs that send it would take each other's events for repetitions."""
    answer = server.post("/v1/events", json={"x": 1}, headers={"idempotency-key": ""})
    assert (answer.status_code, answer.json()["code"]) == (422, "bad-request")
    assert "idempotency-key" in answer.json()["detail"]


def test_moments_without_a_zone_are_utc(settings, match_server):
    limited = SubscriptionSettings(longest_lease=timedelta(days=400))
    app = create_app(match_server, replace(settings, subscriptions=limited), is_open=True)
    with TestClient(app, base_url=OWN_URL) as client:
        soon = match_server.live.store.moment + timedelta(days=300)
        naive = soon.replace(tzinfo=None).isoformat()
        made = subscribe(client, id="soon", expression="x = 1", valid_until=naive)
        assert made["valid_until"].rstrip("Z") == naive
        answer = client.post(
            "/v1/subscriptions", json={"expression": "x = 1", "valid_until": "2999-01-01T00:00:00"}
        )
        assert (answer.status_code, answer.json()["code"]) == (422, "lease-too-long")


@pytest.mark.parametrize("name", ["%ff", "%00", "%ed%a0%80", "..", "%2e%2e%2f", "a%0d%0aX: y"])
def test_odd_names_are_unknown(server, name):
    for method, more in (("get", ""), ("delete", ""), ("get", "/matches")):
        answer = server.request(method, f"/v1/subscriptions/{name}{more}")
        assert answer.status_code in (404, 405, 422), answer.text
        assert answer.headers["content-type"] == PROBLEM


@pytest.mark.parametrize(
    "after", ["x", "-1", "0:0:0", ":", "9" * 30, "other:1", "٣", "\x00", "1e3"]
)
def test_odd_cursors(server, after):
    answer = server.get("/v1/subscriptions/a/matches", params={"after": after})
    assert answer.status_code in (410, 422)
    assert answer.json()["code"] in ("history-lost", "bad-cursor")


# ── events ──────────────────────────────────────────────────────────────────────────────────


def spell_arrow(rows: list[dict]) -> bytes:
    sink = BytesIO()
    try:
        batch = pa.RecordBatch.from_pylist(rows)
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        batch = pa.RecordBatch.from_pylist([{"x": 1}])
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800", "\x00", 2**63, -(2**70), 1e308]),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=4), below, max_size=3)
    ),
    max_leaves=6,
)
names = st.sampled_from(["x", "s", "d", "", "a.b", "é", "\x00", "\ud800"])
events = st.dictionaries(names, values, max_size=4)
cloud_events = events | st.builds(
    lambda more, data: {"specversion": "1.0", "id": "1", "source": "/a", "type": "t"} | more | data,
    events,
    st.fixed_dictionaries({}, optional={"data": values, "datacontenttype": values}),
)


def lines(some: list) -> bytes:
    return "\n".join(map(json.dumps, some)).encode()


BODIES = {
    JSON: (events | st.lists(events | values, max_size=4)).map(
        lambda own: json.dumps(own).encode()
    ),
    "application/x-ndjson": st.lists(events | values, max_size=4).map(lines),
    "application/jsonl": st.lists(events, max_size=4).map(lines),
    ARROW: st.lists(events, min_size=1, max_size=3).map(spell_arrow),
    CLOUD_EVENT: cloud_events.map(lambda own: json.dumps(own).encode()),
    CLOUD_EVENTS: st.lists(cloud_events, max_size=3).map(lambda own: json.dumps(own).encode()),
}
assert BODIES.keys() == MEDIA_TYPES.keys()


@st.composite
def damaged(draw, bodies):
    """A body as it should be, cut, with other bytes in it, or twice."""
    body = draw(bodies)
    how = draw(st.integers(0, 5))
    at = draw(st.integers(0, len(body)))
    if how == 1:
        return body[:at]
    if how == 2:
        return body[:at] + draw(st.binary(max_size=6)) + body[at:]
    if how == 3:
        return body[:at] + draw(st.binary(min_size=1, max_size=6)) + body[at + 3 :]
    if how == 4:
        return body + body
    return body


extra_headers = st.fixed_dictionaries(
    {},
    optional={
        "ce-id": st.sampled_from(["1", "%zz", "", "%ff"]),
        "ce-source": st.just("/a"),
        "ce-type": st.just("t"),
        "ce-specversion": st.just("1.0"),
        "ce-x": st.sampled_from(["é".encode(), b"1"]),
        "idempotency-key": st.sampled_from(["k", "k2", "", "k" * 255, "k" * 256]),
        "content-encoding": st.sampled_from(["gzip", "identity", "zstd", "deflate", "br", ""]),
    },
)


@pytest.mark.parametrize("kind", [*BODIES, "text/plain", "application/octet-stream", ""])
def test_any_body_is_answered(server, kind):
    bodies = damaged(BODIES.get(kind, st.binary(max_size=30)))

    @settings(max_examples=examples(60), database=None)
    @given(
        body=bodies,
        more=extra_headers,
        is_packed=st.booleans(),
        ids=st.sampled_from(["ids", "count", "x"]),
    )
    def check(body, more, is_packed, ids):
        if is_packed and more.get("content-encoding") == "gzip":
            body = gzip.compress(body)
        more = {"content-type": kind, **more}
        before = server.get("/readyz").json()["last_event"]
        answer = server.post(f"/v1/events?matches={ids}", content=body, headers=more)
        after = server.get("/readyz").json()["last_event"]
        if answer.status_code == 200:
            told = answer.json()
            assert told["matched"] <= told["accepted"]
            if "idempotency-key" not in more:
                assert after - before == told["accepted"]
        else:
            assert answer.status_code in (400, 413, 415, 422), answer.text
            assert answer.headers["content-type"] == PROBLEM
            assert after == before

    check()


@pytest.mark.parametrize("kind", [JSON, "application/x-ndjson", CLOUD_EVENT])
def test_deep_json_is_a_rejected_row(server, kind):
    answer = server.post(
        "/v1/events", content=f'{{"x": {DEEP}}}'.encode(), headers={"content-type": kind}
    )
    assert answer.status_code == 200
    assert (answer.json()["accepted"], len(answer.json()["rejected"])) == (0, 1)


def test_every_program_can_read_what_is_delivered(client):
    subscribe(client, id="a", expression="y = 1")
    text = '{"y": 1, "n": [NaN, -Infinity, Infinity], "s": "NaN \\"Infinity\\\\", "d": 10.10}'
    client.post("/v1/events", content=text.encode(), headers={"content-type": JSON})
    answer = client.get("/v1/subscriptions/a/matches")
    assert (
        b'{"y": 1, "n": [null, null, null], "s": "NaN \\"Infinity\\\\", "d": 10.10}'
        in answer.content
    )
    json.loads(answer.content, parse_constant=pytest.fail)
    told = client.post("/v1/events?matches=ids", content=b'{"n": NaN, "y": 1}')
    assert told.json()["ids"] == [["a"]]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (b'{\n "y": 1,\r\n "s": "a\\nb"\n}\n', b'{  "y": 1,   "s": "a\\nb" }'),
        (b'{"y": 1,\r"n": 1}', b'{"y": 1, "n": 1}'),
        (b'\xef\xbb\xbf{"y": 1}', b'{"y": 1}'),
        ('{"y": 1, "s": "é"}'.encode("utf-16"), '{"y": 1, "s": "é"}'.encode()),
        ('{"y": 1}'.encode("utf-32-be"), b'{"y": 1}'),
        (b'{"y": 1, "s": "\xed\xa0\x80"}', '{"y": 1, "s": "���"}'.encode()),
        (b'{"y": 1, "s": "\\ud800", "e": 1e400}', b'{"y": 1, "s": "\\ud800", "e": 1e400}'),
    ],
)
def test_each_event_is_delivered_as_one_line_of_json(client, text, shown):
    subscribe(client, id="a", expression="y = 1")
    told = client.post("/v1/events", content=text, headers={"content-type": JSON}).json()
    assert (told["accepted"], told["matches"]) == (1, 1)
    for path in ("/v1/subscriptions/a/matches", "/v1/events", "/v1/events/1"):
        answer = client.get(path)
        assert answer.status_code == 200
        assert b'"content":' + shown in answer.content
        json.loads(answer.content, parse_constant=pytest.fail)


def test_an_array_takes_every_event_that_lines_take(client):
    subscribe(client, id="a", expression="y = 1")
    texts = [
        b'{"y": 1, "n": NaN}',
        b'{"y": 1, "s": "\\ud800"}',
        b'{"y": 1, "b": "\xff"}',
        b'{"y": 1, "i": %d}' % 10**400,
        b'{"y": 1.0, "e": 1e400}',
        b"7",
    ]
    forms = {"application/x-ndjson": b"\n".join(texts), JSON: b"[" + b", ".join(texts) + b"]"}
    told = [
        client.post("/v1/events?matches=ids", content=body, headers={"content-type": kind}).json()
        for kind, body in forms.items()
    ]
    for own in told:
        assert [row["row"] for row in own["rejected"]] == [2, 5]
        assert own["ids"] == [["a"]] * 4
    for broken in (b'[{"y": 1}', b'[{"y": 1},]', b'[{"y": 1} {"y": 1}]', b'[{"y": }]', b"[] x"):
        answer = client.post("/v1/events", content=broken, headers={"content-type": JSON})
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-json")


def test_the_archive_has_what_was_published(server):
    """After all that, every event can be read, and is JSON or was accepted as such."""
    last = server.get("/readyz").json()["last_event"]
    archive = server.app.state.context.match_server.archive
    page = archive.read_events(after=0, limit=last + 1)
    assert [one.number for one in page.events] == list(range(1, last + 1))
    for one in page.events:
        assert isinstance(one.event, bytes)
    cursor = "0"
    while True:
        answer = server.get("/v1/subscriptions/a/matches", params={"after": cursor, "limit": 7})
        assert answer.status_code == 200
        shown = json.loads(answer.content, parse_constant=pytest.fail)
        if not shown["matches"]:
            break
        cursor = shown["cursor"]
