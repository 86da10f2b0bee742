"""Hosts, origins, bodies that are huge, slow, deep or packed: refused before a route sees them."""

from __future__ import annotations

import asyncio
import gzip
import json
import zlib
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest
from backports import zstd
from starlette.testclient import TestClient

from tamis.server import create_app
from tamis.server.guard import Guard
from tamis.server.problems import Problem
from tamis.server.rates import LONGEST_WAIT, RateLimits
from tamis.server.settings import LimitSettings, ServerSettings, Settings, Size
from tests.server.conftest import OWN_URL

LINES = {"content-type": "application/x-ndjson"}
ARROW = {"content-type": "application/vnd.apache.arrow.stream"}


def client_of(match_server, **sections) -> TestClient:
    return TestClient(
        create_app(match_server, Settings(**sections), is_open=True), base_url=OWN_URL
    )


# ── hosts and origins ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8080", "localhost", "LOCALHOST:1", "[::1]:8080", "127.9.9.9"]
)
def test_loopback_names_are_own(client, host):
    assert client.get("/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("127.0.0.1.evil.example:8080", 421),
        ("10.0.0.1", 421),
        ("[::ffff:10.0.0.1]", 421),
        ("", 400),
        ("a b", 421),
        ("user@127.0.0.1", 400),
        ("127.0.0.1:x", 400),
        ("127.0.0.1/x", 400),
    ],
)
def test_a_name_that_resolves_to_this_machine_is_refused(client, host, status):
    answer = client.post("/v1/events", json={}, headers={"host": host})
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert client.get("/readyz").json()["last_event"] == 0


def test_the_public_name_is_own(match_server):
    server = ServerSettings(public_url="https://tamis.example.com/x")
    client = client_of(match_server, server=server)
    own = {"host": "tamis.example.com"}
    assert client.get("/healthz", headers=own).status_code == 200
    page = own | {"origin": "https://tamis.example.com"}
    assert client.get("/healthz", headers=page).status_code == 200
    inside = {"host": "127.0.0.1:8080", "origin": "https://tamis.example.com"}
    assert client.get("/healthz", headers=inside).status_code == 200
    other = own | {"origin": "https://tamis.example.com:444"}
    assert client.get("/healthz", headers=other).status_code == 403


def test_a_server_for_other_machines_has_any_name(match_server):
    client = client_of(match_server, server=ServerSettings(host="0.0.0.0"))
    assert client.get("/healthz", headers={"host": "any.example"}).status_code == 200
    foreign = {"host": "any.example", "origin": "https://evil.example"}
    assert client.get("/healthz", headers=foreign).status_code == 403


@pytest.mark.parametrize(
    "origin",
    ["null", "http://evil.example", "http://127.0.0.1:3000", "http://127.0.0.1:8080.evil", "", "x"],
)
def test_pages_of_others_are_refused(client, origin):
    answer = client.post("/v1/events", json={}, headers={"origin": origin})
    assert answer.status_code == 403
    assert answer.json()["code"] == "foreign-origin"
    assert "access-control-allow-origin" not in answer.headers


def test_own_pages_are_answered(client):
    for origin in ("http://127.0.0.1:8080", "https://127.0.0.1:8080"):
        answer = client.post("/v1/events", json={}, headers={"origin": origin})
        assert answer.status_code == 200
        assert "access-control-allow-origin" not in answer.headers
    preflight = {"origin": OWN_URL, "access-control-request-method": "POST"}
    assert client.options("/v1/events", headers=preflight).status_code == 405


def test_security_headers(client):
    for path in ("/healthz", "/v1/subscriptions", "/nothing"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["x-frame-options"] == "DENY"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert "server" not in headers


# ── bodies ──────────────────────────────────────────────────────────────────────────────────


def test_bodies_that_are_too_large(match_server):
    limits = LimitSettings(batch_size=Size(5_000), request_size=Size(1_000), event_size=Size(500))
    client = client_of(match_server, limits=limits)
    long = {"expression": f"a = '{'x' * 1_000}'"}
    for path in ("/v1/subscriptions", "/v1/match", "/v1/explain", "/v1/keys"):
        answer = client.post(path, json=long)
        assert (answer.status_code, answer.json()["limit"]) == (413, 1_000), path
    pieces = (b'{"a": 1}\n' for _ in range(1_000))  # no length is announced
    assert client.post("/v1/events", content=pieces, headers=LINES).status_code == 413
    assert client.post("/v1/events", content=b'{"a": 1}\n' * 500, headers=LINES).status_code == 200
    one = client.post("/v1/events", json={"a": "x" * 500})
    assert (one.status_code, one.json()["limit"]) == (413, 500)
    arrow = client.post("/v1/events", content=to_stream({"a": ["x" * 600, "y"]}), headers=ARROW)
    assert arrow.status_code == 413


def to_stream(columns, **options) -> bytes:
    sink = pa.BufferOutputStream()
    batch = pa.record_batch(columns)
    with pa.ipc.new_stream(sink, batch.schema, **options) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": gzip.compress,
    "deflate": zlib.compress,
    "zstd": zstd.compress,
}


@pytest.mark.parametrize("encoding", PACKERS)
def test_packed_bodies(client, encoding):
    pack = PACKERS[encoding]
    headers = LINES | {"content-encoding": encoding}
    body = b'{"a": 1}\n' * 200_000
    answer = client.post("/v1/events", content=pack(body), headers=headers)
    assert answer.json()["accepted"] == 200_000
    packed = pack(b'{"a": 1}\n{"a": 2}\n')
    for wrong in (packed[:-6], packed[:5], b"x" + packed, packed + b"rest"):
        answer = client.post("/v1/events", content=wrong, headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (400, "bad-encoding")
    if encoding != "deflate":
        both = client.post("/v1/events", content=packed + packed, headers=headers)
        assert both.json()["accepted"] == 4
    pieces = (packed[at : at + 1] for at in range(len(packed)))
    assert client.post("/v1/events", content=pieces, headers=headers).json()["accepted"] == 2


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("application/json", lambda n: b"[" + b",".join([b"{}"] * n) + b"]"),
        ("application/x-ndjson", lambda n: b"{}\n" * n),
        ("application/cloudevents-batch+json", lambda n: b"[" + b",".join([b"{}"] * n) + b"]"),
        ("application/vnd.apache.arrow.stream", lambda n: to_stream({"a": pa.array([1] * n)})),
    ],
)
def test_a_request_has_a_largest_number_of_events(match_server, kind, make):
    """A body of small events would take fifty times its size."""
    client = client_of(match_server, limits=LimitSettings(batch_events=3))
    for n_events, status in ((3, 200), (4, 413), (10_000, 413)):
        answer = client.post("/v1/events", content=make(n_events), headers={"content-type": kind})
        assert answer.status_code == status, answer.text
        if status == 413:
            assert (answer.json()["code"], answer.json()["limit"]) == ("too-many-events", 3)
    assert match_server.archive.last_event <= 3


@pytest.mark.parametrize("encoding", PACKERS)
def test_packed_bombs(match_server, encoding):
    client = client_of(match_server, limits=LimitSettings(batch_size=Size(1 << 20)))
    bomb = PACKERS[encoding](bytes(200 << 20))
    answer = client.post("/v1/events", content=bomb, headers=LINES | {"content-encoding": encoding})
    assert answer.status_code == 413
    assert client.get("/readyz").json()["last_event"] == 0


def test_a_window_of_gigabytes_is_refused(client):
    level = {zstd.CompressionParameter.window_log: 27, zstd.CompressionParameter.checksum_flag: 1}
    bomb = zstd.compress(bytes(140 << 20), options=level)
    answer = client.post("/v1/events", content=bomb, headers=LINES | {"content-encoding": "zstd"})
    assert answer.status_code in (400, 413)


def test_arrow_bombs(match_server):
    client = client_of(match_server, limits=LimitSettings(batch_size=Size(1 << 20)))
    shared = pa.DictionaryArray.from_arrays(
        pa.array([0] * 50_000, pa.int32()), pa.array(["x" * 100_000])
    )
    one = pa.array(["x" * 100_000], pa.string_view()).buffers()
    repeated = pa.py_buffer(one[1].to_pybytes()[:16] * 50_000)
    views = pa.Array.from_buffers(pa.string_view(), 50_000, [None, repeated, *one[2:]])
    runs = pa.RunEndEncodedArray.from_arrays(pa.array([1 << 30], pa.int32()), pa.array([5]))
    packed = pa.ipc.IpcWriteOptions(compression="zstd")
    bombs = {
        "packed": to_stream({"a": pa.array(["x" * (8 << 20)])}, options=packed),
        "rows": to_stream({"a": pa.nulls(10_000_000)}),
        "shared": to_stream({"a": shared}),
        "nested": to_stream({"a": pa.StructArray.from_arrays([shared], ["b"])}),
        "views": to_stream({"a": views}),
        "runs": to_stream({"a": runs}),
    }
    for name, bomb in bombs.items():
        answer = client.post("/v1/events", content=bomb, headers=ARROW)
        assert answer.status_code in (400, 413), name
    assert client.get("/readyz").json()["last_event"] == 0


def test_arrow_of_every_kind(client):
    columns = {
        "n": pa.array([1, 2, None]),
        "t": pa.array(["a", None, "c"]),
        "d": pa.array(["a", "b", "a"]).dictionary_encode(),
        "l": pa.array([["a"], [], None]),
        "s": pa.array([{"x": 1, "y": "b"}, None, {"x": None, "y": ""}]),
        "v": pa.array(["a", "b" * 50, None], pa.string_view()),
        "f": pa.array([1.5, 2.5, None]),
    }
    for options in ({}, {"options": pa.ipc.IpcWriteOptions(compression="lz4")}):
        body = to_stream(columns, **options)
        answer = client.post("/v1/events", content=body, headers=ARROW)
        assert (answer.status_code, answer.json().get("accepted")) == (200, 3), answer.text
        for end in (10, 100, len(body) // 2):
            damaged = client.post("/v1/events", content=body[:end], headers=ARROW)
            assert damaged.status_code == 400


@pytest.mark.parametrize("depth", [100, 500, 2_000, 100_000])
def test_deep_bodies(client, depth):
    deep = "[" * depth + "]" * depth
    for path, body in (
        ("/v1/subscriptions", f'{{"expression": "a = 1", "attributes": {{"x": {deep}}}}}'),
        ("/v1/match", f'{{"event": {{"x": {deep}}}}}'),
        ("/v1/events", f'{{"x": {deep}}}'),
        ("/v1/events", deep),
        ("/v1/keys", deep),
    ):
        answer = client.post(path, content=body, headers={"content-type": "application/json"})
        assert answer.status_code in (200, 201, 400, 413, 422), (path, answer.text[:300])


def test_deep_expressions(client):
    for expression in ("(" * 50_000 + "a = 1" + ")" * 50_000, "NOT " * 50_000 + "a = 1"):
        answer = client.post("/v1/subscriptions", json={"expression": expression})
        assert answer.status_code == 422
        assert len(answer.text) < 10_000


def test_slow_bodies(settings, match_server):
    limits = LimitSettings(request_timeout=timedelta(milliseconds=20))
    app = create_app(match_server, replace(settings, limits=limits), is_open=True)
    for path in ("/v1/events", "/v1/subscriptions"):
        status, problem = asyncio.run(send_slowly(app, path))
        assert (status, problem["code"]) == (408, "slow-request")


async def send_slowly(app, path: str) -> tuple[int, dict]:
    """Send the beginning of a body, and nothing more."""
    sent: list[dict] = []
    begun = iter([{"type": "http.request", "body": b'{"a"', "more_body": True}])

    async def receive():
        for message in begun:
            return message
        await asyncio.Event().wait()

    async def send(message) -> None:
        sent.append(message)

    headers = [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
    scope |= {"headers": headers, "query_string": b"", "client": ("127.0.0.1", 1)}
    scope |= {"http_version": "1.1", "scheme": "http", "root_path": ""}
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


# ── wrong secrets ───────────────────────────────────────────────────────────────────────────


def test_buckets():
    now = 0.0
    rates = RateLimits(lambda: now)
    assert [rates.take("a", 2) for _ in range(4)] == [0] * 4
    assert rates.take("a", 2) == rates.look("a", 2) == 0.5
    assert rates.take("b", 2) == 0
    now = 0.5
    assert rates.look("a", 2) == rates.look("a", 2) == 0
    assert (rates.take("a", 2), rates.take("a", 2)) == (0, 0.5)
    assert (rates.take("none", 0), rates.take("none", 0)) == (0, LONGEST_WAIT)


def test_a_foreign_websocket_is_closed(settings):
    sent: list[dict] = []

    async def reached(*_: object) -> None:
        raise AssertionError

    async def send(message) -> None:
        sent.append(message)

    guard = Guard(reached, settings)
    scope = {"type": "websocket", "path": "/", "headers": [(b"host", b"evil.example")]}
    asyncio.run(guard(scope, None, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
    with pytest.raises(Problem):
        asyncio.run(guard(scope | {"type": "http"}, None, send))
