"""WebSockets on real sockets."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace

import orjson
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from tamis.server import sockets
from tamis.server.mailbox_reader import MailboxReader
from tests.broker.gates import Gate
from tests.server.asking import make_key, publish, subscribe
from tests.server.running import run_server
from tests.waiting import HANG_SECONDS, wait_until


@pytest.fixture
def running(match_server, settings):
    with run_server(match_server, settings) as server:
        yield server


@pytest.fixture
def guarded(match_server, settings):
    """A server that needs keys."""
    with run_server(match_server, settings, is_open=False) as server:
        yield server


def open_socket(running, path: str = "/v1/subscriptions/a/socket", **options):
    url = running.url.replace("http://", "ws://")
    return connect(url + path, open_timeout=HANG_SECONDS, proxy=None, **options)


def receive(connection) -> dict:
    return orjson.loads(connection.recv(HANG_SECONDS))


def send(connection, **message) -> None:
    connection.send(orjson.dumps(message).decode())


def expect_problem(connection, status: int, code: str) -> None:
    message = receive(connection)
    assert (message["type"], message["problem"]["code"]) == ("problem", code)
    with pytest.raises(ConnectionClosed) as closed:
        connection.recv(HANG_SECONDS)
    assert closed.value.rcvd.code == 4_000 + status


def test_matches_and_acknowledgements(running):
    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
        epoch = publish(client, {"x": 1, "y": 5})["epoch"]
        with open_socket(running, "/v1/subscriptions/a/socket?after=0&consumer=c") as connection:
            assert receive(connection) == {"type": "ready", "cursor": f"{epoch}:0"}
            first = receive(connection)
            assert (first["type"], first["cursor"]) == ("match", f"{epoch}:1")
            publish(client, {"x": 1})
            second = receive(connection)
            assert second["match"]["event"] == 2
            send(connection, type="acknowledge", cursor=first["cursor"])
            assert receive(connection) == {
                "type": "acknowledged",
                "cursor": f"{epoch}:1",
                "consumer": "c",
            }
            send(connection, type="ping")
            assert receive(connection) == {"type": "pong"}
        page = client.get("/v1/subscriptions/a/matches", params={"consumer": "c"}).json()
        assert page["matches"] == [second["match"]]
        whole = client.get("/v1/subscriptions/a/matches").json()
        assert whole["matches"] == [first["match"], second["match"]]
        with open_socket(running, "/v1/subscriptions/a/socket?consumer=c") as connection:
            assert receive(connection) == {"type": "ready", "cursor": f"{epoch}:1"}
            assert receive(connection) == second


def test_a_channel_has_a_socket(running):
    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
        client.post("/v1/channels", json={"name": "c/d", "subscriptions": ["a"]})
        with open_socket(running, "/v1/channels/c%2Fd/socket") as connection:
            receive(connection)
            publish(client, {"x": 1})
            assert receive(connection)["match"]["subscriptions"] == ["a"]


@pytest.mark.parametrize("by", ["key in a header", "ticket in a header", "key", "ticket"])
def test_authentication(guarded, match_server, by):
    key = make_key(match_server, "ann", "subscribe", "read")
    with guarded.client() as client:
        made = subscribe(client, headers=key, id="a", expression="x = 1")
    shown = {
        "key in a header": key,
        "ticket in a header": {"tamis-ticket": made["ticket"]},
        "key": {"key": key["authorization"].removeprefix("Bearer ")},
        "ticket": {"ticket": made["ticket"]},
    }[by]
    if "header" in by:
        with open_socket(guarded, additional_headers=shown) as connection:
            assert receive(connection)["type"] == "ready"
        return
    with open_socket(guarded) as connection:
        send(connection, type="authenticate", **shown)
        assert receive(connection)["type"] == "ready"


def test_strangers_are_refused(guarded, match_server, monkeypatch):
    ann = make_key(match_server, "ann", "subscribe", "read")
    bob = make_key(match_server, "bob", "subscribe", "read")
    publisher = make_key(match_server, "ann", "publish", "subscribe")
    with guarded.client() as client:
        subscribe(client, headers=ann, id="a", expression="x = 1")
        client.post("/v1/channels", json={"name": "c"}, headers=ann)
    with open_socket(guarded, additional_headers=bob) as connection:
        expect_problem(connection, 404, "unknown-subscription")
    with open_socket(guarded, "/v1/channels/c/socket", additional_headers=publisher) as connection:
        expect_problem(connection, 403, "missing-role")
    with open_socket(guarded) as connection:
        send(connection, type="authenticate", key="tamis_wrong")
        expect_problem(connection, 401, "key-required")
    with open_socket(guarded) as connection:
        send(connection, type="ping")
        expect_problem(connection, 401, "key-required")
    monkeypatch.setattr(sockets, "FIRST_MESSAGE_SECONDS", 0.01)
    with open_socket(guarded) as connection:
        expect_problem(connection, 401, "key-required")


@pytest.mark.parametrize("is_header", [True, False])
def test_guessing_on_sockets_ends_at_the_limit(match_server, settings, is_header):
    key = make_key(match_server, "ann", "subscribe", "read")
    limits = replace(settings.limits, wrong_secrets_per_second=1e-6)  # one wrong secret
    with run_server(match_server, replace(settings, limits=limits), is_open=False) as running:
        with running.client() as client:
            made = subscribe(client, headers=key, id="a", expression="x = 1")

        def show(ticket: str):
            """The problem, or what the server sends first; None if it does not even listen."""
            headers = {"tamis-ticket": ticket} if is_header else {}
            try:
                with open_socket(running, additional_headers=headers) as connection:
                    if not is_header:
                        send(connection, type="authenticate", ticket=ticket)
                    first = receive(connection)
                    return first.get("problem", first).get("code", first["type"])
            except InvalidStatus:
                return None

        refused = None if is_header else "too-many-wrong-secrets"
        assert show(made["ticket"]) == "ready"
        assert show(made["ticket"]) == "ready"  # the right one is no guess
        assert show("tkt_wrong") == "unknown-subscription"
        assert show("tkt_other") == refused
        assert show(made["ticket"]) == refused  # otherwise guessing would go on
        with open_socket(running, additional_headers=key) as connection:
            assert receive(connection)["type"] == "ready"  # the key is not affected


@pytest.mark.parametrize(
    ("text", "status", "code"),
    [
        ("nothing", 400, "bad-json"),
        ("[]", 400, "bad-json"),
        ('{"type": "other"}', 400, "unknown-message"),
        ('{"type": "acknowledge"}', 422, "bad-cursor"),
        ('{"type": "acknowledge", "cursor": "99"}', 422, "bad-cursor"),
        ('{"type": "acknowledge", "cursor": "other:0"}', 410, "history-lost"),
    ],
)
def test_wrong_messages_end_the_socket(running, text, status, code):
    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
    with open_socket(running) as connection:
        receive(connection)
        connection.send(text)
        expect_problem(connection, status, code)
    wait_until(lambda: len(running.context.streams) == 0, "the socket is closed")


def test_pages_of_other_sites_are_refused(running):
    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
    host = running.url.removeprefix("http://")
    with open_socket(running, origin=f"http://{host}") as connection:
        assert receive(connection)["type"] == "ready"
    for origin in ("https://evil.example", "null"):
        with pytest.raises(InvalidStatus) as refused:
            open_socket(running, origin=origin)
        assert refused.value.response.status_code == 403


def test_sockets_end_when_the_server_stops(match_server, settings):
    with run_server(match_server, settings, heartbeat=0.05) as running:
        with running.client() as client:
            subscribe(client, id="a", expression="x = 1")
        with open_socket(running) as connection:
            receive(connection)
            assert receive(connection)["type"] == "idle"
            running.stop()
            with suppress(ConnectionClosed):
                assert all(orjson.loads(text)["type"] == "idle" for text in connection)
            assert connection.close_code in (1001, 1012)


def test_a_client_that_has_gone_before_its_answer(running, monkeypatch, caplog):
    gate = Gate()

    async def acknowledge(_reader, _consumer, position):
        await asyncio.to_thread(gate.wait)
        return position

    monkeypatch.setattr(MailboxReader, "acknowledge", acknowledge)
    with running.client() as client:
        subscribe(client, id="a", expression="x = 1")
        epoch = publish(client, {"x": 1})["epoch"]
        with open_socket(running) as connection:
            assert receive(connection)["type"] == "ready"
            send(connection, type="acknowledge", cursor=f"{epoch}:1")
            gate.expect_reached()
        gate.open()
        wait_until(lambda: not len(running.context.streams), "the socket has ended")
        client.get("/healthz")  # errors of what has ended are in the log now
    assert "Exception in ASGI application" not in caplog.text
