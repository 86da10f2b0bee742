"""Signing in to the console: the cookie, and the token that each change needs."""

from __future__ import annotations

import pytest

from tamis.broker.rights import LOCAL
from tamis.server.auth import TOKEN
from tests.server.places import closed_client

NEW = {"id": "adults", "expression": "age >= 18"}


@pytest.fixture
def key(match_server) -> str:
    return match_server.broker.keys.create(LOCAL, "ann", ["admin"]).secret.reveal()


@pytest.fixture
def browser(match_server, settings, key):
    """A client of a server that needs keys; it keeps cookies."""
    with closed_client(match_server, settings) as client:
        yield client


def sign_in(browser, key: str) -> dict:
    answer = browser.post("/v1/session", headers={"authorization": f"Bearer {key}"})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_cookie_stands_for_the_key(browser, key):
    assert browser.get("/v1/subscriptions").status_code == 401
    found = sign_in(browser, key)
    assert found["state"] == "signed-in"
    assert found["owner"] == "ann"
    assert set(found["roles"]) == {"publish", "subscribe", "read", "admin"}
    assert browser.get("/v1/subscriptions").status_code == 200
    shown = browser.get("/v1/session").json()
    assert shown == found


def test_scripts_and_other_sites_cannot_use_the_cookie(browser, key, match_server):
    answer = browser.post("/v1/session", headers={"authorization": f"Bearer {key}"})
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith(f"{match_server.broker.sessions.cookie}=session_")
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=strict", "path=/"} <= attributes
    assert "secure" not in attributes  # http on the loopback address
    assert key not in cookie


def test_the_cookie_is_secure_behind_https(match_server, settings, key):
    from dataclasses import replace

    public = replace(settings.server, public_url="https://tamis.example.com")
    with closed_client(match_server, replace(settings, server=public)) as client:
        answer = client.post("/v1/session", headers={"authorization": f"Bearer {key}"})
    assert "secure" in answer.headers["set-cookie"].lower()


def test_a_change_needs_the_token(browser, key):
    token = sign_in(browser, key)["token"]
    for shown in ({}, {TOKEN: ""}, {TOKEN: "0" * 64}, {TOKEN: token.upper()}):
        refused = browser.post("/v1/subscriptions", json=NEW, headers=shown)
        assert refused.status_code == 403
        assert refused.json()["code"] == "forged-request"
    for method in ("PATCH", "PUT", "DELETE"):
        refused = browser.request(method, "/v1/subscriptions/adults", json={})
        assert refused.status_code in (403, 405)
    assert browser.post("/v1/subscriptions", json=NEW, headers={TOKEN: token}).status_code == 201


def test_a_key_needs_no_token(browser, key):
    sign_in(browser, key)
    shown = {"authorization": f"Bearer {key}"}
    assert browser.post("/v1/subscriptions", json=NEW, headers=shown).status_code == 201


def test_a_session_has_the_roles_of_its_key(browser, match_server):
    made = match_server.broker.keys.create(LOCAL, "bob", ["read"])
    found = sign_in(browser, made.secret.reveal())
    assert found["roles"] == ["read"]
    assert not found["reads_archive"]
    refused = browser.post("/v1/subscriptions", json=NEW, headers={TOKEN: found["token"]})
    assert refused.json()["code"] == "missing-role"
    assert browser.get("/v1/keys").status_code == 403


def test_a_wrong_key_does_not_sign_in(browser, key):
    for shown in ({}, {"authorization": f"Bearer {key[:-1]}x"}):
        answer = browser.post("/v1/session", headers=shown)
        assert answer.status_code == 401
        assert "set-cookie" not in answer.headers
    assert browser.get("/v1/session").json()["state"] == "signed-out"


def test_a_session_that_ended_is_reported(browser, key, match_server):
    found = sign_in(browser, key)
    match_server.broker.keys.revoke(LOCAL, found["key_id"])
    answer = browser.get("/v1/subscriptions")
    assert answer.status_code == 401
    assert answer.json()["code"] == "session-ended"
    assert browser.get("/v1/session").json()["state"] == "ended"
    # Whoever has another key can sign in, in spite of the old cookie.
    made = match_server.broker.keys.create(LOCAL, "bob", ["read"])
    assert sign_in(browser, made.secret.reveal())["owner"] == "bob"


def test_signing_out_removes_the_cookie(browser, key):
    sign_in(browser, key)
    assert browser.delete("/v1/session").status_code == 204
    assert browser.get("/v1/session").json()["state"] == "signed-out"
    assert browser.get("/v1/subscriptions").status_code == 401


def test_a_server_without_keys_is_open(client):
    found = client.get("/v1/session").json()
    assert found["state"] == "open"
    assert set(found["roles"]) == {"publish", "subscribe", "read", "admin"}
    assert client.post("/v1/session").json()["state"] == "open"
    # A cookie of another server on this machine does not matter.
    client.cookies.set(client.app.state.context.match_server.broker.sessions.cookie, "session_x")
    assert client.post("/v1/subscriptions", json=NEW).status_code == 201


def test_the_instance_changes_with_a_restart(match_server, settings, key):
    instances = set()
    for _ in range(2):
        with closed_client(match_server, settings) as client:
            instances.add(client.get("/v1/session").json()["instance"])
    assert len(instances) == 2


def listen(browser) -> None:
    with browser.websocket_connect("/v1/subscriptions/adults/socket") as socket:
        socket.send_json({})
        while True:
            socket.receive_json()


def test_sockets_do_not_read_cookies(browser, key):
    from starlette.websockets import WebSocketDisconnect

    found = sign_in(browser, key)
    browser.post("/v1/subscriptions", json=NEW, headers={TOKEN: found["token"]})
    assert browser.get("/v1/subscriptions/adults").status_code == 200
    with pytest.raises(WebSocketDisconnect):
        listen(browser)
