"""Guessing, timing, leaks, injection, paths that lead elsewhere."""

from __future__ import annotations

import asyncio
import hmac
import logging
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from tamis.broker.rights import LOCAL
from tamis.broker.secrets import FILE, ServerSecret, new_api_key, new_ticket
from tamis.broker.tickets import Tickets
from tamis.server import create_app
from tamis.server.guard import SecretWatch, find_thing
from tamis.server.problems import Problem
from tamis.server.rates import RateLimits
from tamis.server.settings import (
    DeliverySettings,
    LimitSettings,
    ServerSettings,
    Settings,
    SubscriptionSettings,
)
from tests.server.conftest import OWN_URL
from tests.server.test_end_to_end import subscribe
from tests.server.test_keys import bearer

ONE_GUESS = LimitSettings(wrong_secrets_per_second=1e-6)  # and no second one for a long time


@pytest.fixture
def guarded(match_server, settings):
    """A client of a server that needs keys, and allows one wrong secret."""
    app = create_app(match_server, replace(settings, limits=ONE_GUESS))
    with TestClient(app, base_url=OWN_URL) as client:
        yield client


def test_guessing_keys_ends_at_the_limit(guarded, match_server):
    keys = match_server.broker.keys
    right, other = (keys.create(LOCAL, name, ["admin"]) for name in ("ann", "bob"))
    text = right.secret.reveal()
    wrong = text[:-4] + ("AAAA" if text[-4:] != "AAAA" else "BBBB")
    assert guarded.get("/v1/keys", headers=bearer(wrong)).status_code == 401
    refused = guarded.get("/v1/keys", headers=bearer(wrong))
    assert refused.status_code == 429
    assert int(refused.headers["retry-after"]) > 0
    # Even the right key: otherwise guessing would go on.
    assert guarded.get("/v1/keys", headers=bearer(text)).status_code == 429
    assert guarded.get("/v1/keys", headers=bearer(other.secret.reveal())).status_code == 200


def test_guessing_key_ids_ends_at_the_limit(guarded):
    shown = [bearer("nonsense"), {"authorization": "Basic YTpi"}, bearer("")]
    assert [guarded.get("/v1/keys", headers=one).status_code for one in shown] == [401, 429, 429]


def test_guessing_tickets_ends_at_the_limit(guarded, match_server):
    admin = bearer(match_server.broker.keys.create(LOCAL, "root", ["admin"]).secret.reveal())
    made = [
        guarded.post("/v1/subscriptions", json={"id": name, "expression": "a = 1"}, headers=admin)
        for name in ("one", "two")
    ]
    right = [{"tamis-ticket": answer.json()["ticket"]} for answer in made]
    wrong = {"tamis-ticket": new_ticket().reveal()}
    path = "/v1/subscriptions/one"
    assert guarded.get(path, headers=wrong).status_code == 404
    assert guarded.get(path, headers=wrong).status_code == 429
    assert guarded.delete(path, headers=right[0]).status_code == 429
    assert guarded.get("/v1/subscriptions/two", headers=right[1]).status_code == 200
    assert guarded.patch("/v1/subscriptions/two", json={}, headers=wrong).status_code == 404
    assert guarded.patch("/v1/subscriptions/two", json={}, headers=right[1]).status_code == 429


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/v1/subscriptions/%6Fne"),
        ("GET", "/v1/subscriptions/o%6Ee"),
        ("GET", "/v1/subscriptions/one/matches"),
        ("GET", "/v1/subscriptions/%6fne/stream"),
        ("POST", "/v1/subscriptions/one/renew"),
    ],
)
def test_a_ticket_is_guessed_once_however_the_path_is_spelled(guarded, method, path):
    wrong = {"tamis-ticket": new_ticket().reveal()}
    assert guarded.get("/v1/subscriptions/one", headers=wrong).status_code == 404
    assert guarded.request(method, path, headers=wrong).status_code == 429
    assert guarded.get("/v1/subscriptions/On%65", headers=wrong).status_code == 404


@pytest.mark.parametrize(
    ("path", "thing"),
    [
        ("/v1/subscriptions/a%2Fb/matches", "subscriptions/a/b"),
        ("/v1/subscriptions/099", "subscriptions/099"),
        ("/v1/feeds/099", "feeds/99"),
        ("/v1/feeds/%2B9_9.0", "feeds/99"),
        ("/v1/feeds/x", "feeds/x"),
        ("/v1/webhooks", "webhooks/"),
        ("/v1", "/"),
        ("", "/"),
    ],
)
def test_what_a_path_names(path, thing):
    assert find_thing(path) == thing


def test_guesses_with_long_names_take_little_memory():
    """A hundred thousand of them are remembered."""
    guesses, names = RateLimits(), ("x", "y" * 30_000, "z" * 30_000, "%ff" * 9_000)

    async def send(_message) -> None:
        """Nothing."""

    for name in names:
        scope = {"path": f"/v1/subscriptions/{name}", "client": ("192.0.2.1", 5)}
        watch = SecretWatch(scope, guesses, 5.0, None)
        watch.add(None, "tkt_wrong")
        answer = watch.watching(send)({"type": "http.response.start", "status": 404})
        asyncio.run(answer)
    assert len(guesses._buckets) == len(names)
    assert max(map(len, guesses._buckets)) < 100


def test_a_right_ticket_is_no_guess(guarded, match_server):
    admin = bearer(match_server.broker.keys.create(LOCAL, "root", ["admin"]).secret.reveal())
    asked = {"id": "one", "expression": "a = 1"}
    made = guarded.post("/v1/subscriptions", json=asked, headers=admin).json()
    right, wrong = ({"tamis-ticket": own} for own in (made["ticket"], new_ticket().reveal()))
    for _ in range(3):
        assert guarded.delete("/v1/feeds/99", headers=right).status_code == 404
    assert guarded.delete("/v1/feeds/99", headers=wrong).status_code == 404
    assert guarded.delete("/v1/feeds/99", headers=wrong).status_code == 429


def test_right_tickets_are_remembered_up_to_a_limit(monkeypatch):
    monkeypatch.setattr("tamis.broker.tickets.MOST_RIGHT", 2)
    tickets = Tickets(ServerSecret(bytes(32)))
    made = [tickets.make() for _ in range(3)]
    assert [tickets.was_right(own.secret.reveal()) for own in made] == [False, True, True]
    assert tickets.verify(made[0].secret.reveal(), made[0].hash)
    assert [tickets.was_right(own.secret.reveal()) for own in made] == [True, False, True]
    assert not tickets.verify(new_ticket().reveal(), made[0].hash)
    assert not tickets.was_right(new_ticket().reveal())


def test_many_different_keys_are_refused_without_a_look(guarded, match_server, monkeypatch):
    keys = match_server.broker.keys
    known = keys.create(LOCAL, "ann", ["admin"]).secret.reveal()
    looked: list[str] = []
    read = keys._read
    monkeypatch.setattr(keys, "_read", lambda key_id: looked.append(key_id) or read(key_id))
    random = [bearer(new_api_key()[1].reveal()) for _ in range(300)]
    answers = [guarded.get("/v1/keys", headers=own) for own in random]
    assert [own.status_code for own in answers] == [401] + [429] * 299
    assert all(int(own.headers["retry-after"]) > 0 for own in answers[1:])
    assert len(looked) == 1
    # Nobody else behind the address is locked out.
    assert guarded.get("/v1/keys", headers=bearer(known)).status_code == 200


def test_a_program_with_one_old_key_holds_up_nobody(match_server):
    guesses = RateLimits(lambda: 0.0)  # time stands still: there are ten guesses
    old = new_api_key()[1].reveal()

    def show(key: str) -> None:
        watch = SecretWatch({"path": "/"}, guesses, 5.0, match_server.broker)
        watch.add(key, None)
        asyncio.run(watch.watching(take)({"type": "http.response.start", "status": 401}))

    async def take(message) -> None:
        assert message["status"] == 401

    for _ in range(10):
        show(old)
    with pytest.raises(Problem, match="too many wrong keys"):
        show(old)
    for _ in range(9):
        show(new_api_key()[1].reveal())
    with pytest.raises(Problem, match="too many wrong keys"):
        show(new_api_key()[1].reveal())


def test_secrets_are_compared_in_constant_time(client, monkeypatch):
    made = subscribe(client, id="a", expression="x = 1")
    client.app.state.context.is_open = False
    compared: list[tuple[bytes, bytes]] = []
    real = hmac.compare_digest

    def compare(one, other):
        compared.append((one, other))
        return real(one, other)

    monkeypatch.setattr("tamis.broker.secrets.hmac.compare_digest", compare)
    shown = (made["ticket"], new_ticket().reveal(), "tkt_", None)
    paths = ("/v1/subscriptions/a", "/v1/subscriptions/unknown")
    ways = [("GET", ""), ("GET", "/matches"), ("PATCH", ""), ("POST", "/renew"), ("DELETE", "")]
    for method, more in ways:
        for ticket in shown[1:] if method != "GET" else shown:
            for path in paths:
                headers = {} if ticket is None else {"tamis-ticket": ticket}
                body = None if method in ("GET", "DELETE") else {}
                client.request(method, path + more, headers=headers, json=body)
                assert len(compared) == 1, (method, more, path)
                compared.clear()
    compared.clear()
    for key in (new_api_key()[1].reveal(), "nonsense"):
        client.get("/v1/keys", headers=bearer(key))
    assert len(compared) == 2
    assert all(len(one) == len(other) for one, other in compared)  # hashes, not the secrets


# ── leaks ───────────────────────────────────────────────────────────────────────────────────


def test_secrets_are_shown_once(client, match_server, caplog):
    caplog.set_level(logging.DEBUG)
    made = subscribe(client, id="a", expression="x = 1")
    key = client.post("/v1/keys", json={"owner": "root", "roles": ["admin"]}).json()
    secrets = [made["ticket"], key["key"]]
    headers = bearer(key["key"]) | {"tamis-ticket": made["ticket"]}
    answers = [
        client.get("/v1/subscriptions/a", headers=headers),
        client.get("/v1/subscriptions", headers=headers),
        client.get("/v1/keys", headers=headers),
        client.get("/v1/audit", headers=headers),
        client.get("/v1/openapi.json", headers=headers),
        client.get("/readyz", headers=headers),
        client.patch("/v1/subscriptions/a", json={"tags": ["t"]}, headers=headers),
        client.post("/v1/subscriptions", json={"ticket": made["ticket"]}, headers=headers),
        client.get(f"/v1/{made['ticket']}", headers=bearer("x")),
    ]
    context = client.app.state.context
    shown = [answer.text + repr(answer.headers) for answer in answers]
    shown += [repr(context), repr(match_server.broker.keys.list())]
    own = [record for record in caplog.records if record.name.startswith("tamis")]
    assert len(own) >= len(answers)
    shown += [record.getMessage() + repr(vars(record)) for record in own]
    for secret in secrets:
        for text in shown:
            assert secret not in text
            assert secret[-20:] not in text


def test_settings_do_not_show_secrets():
    settings = Settings(
        subscriptions=SubscriptionSettings(store="postgresql://u:hidden@h/d"),
        delivery=DeliverySettings(smtp_password="hidden"),
    )
    assert "hidden" not in repr(settings)
    assert "hidden" not in repr(settings.describe())


def test_faults_are_not_shown(client, match_server, monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("the inside of the server")

    monkeypatch.setattr(match_server.live, "list", fail)
    answer = client.get("/v1/subscriptions")
    assert answer.status_code == 500
    assert "inside" not in answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]


# ── injection and paths ─────────────────────────────────────────────────────────────────────


def test_headers_and_logs_cannot_be_injected(client, caplog):
    caplog.set_level(logging.INFO)
    for path in ("/v1/%0d%0aINFO%20forged", "/v1/subscriptions/a%0ab%1b%5b31m", "/%ff%00"):
        answer = client.get(path)
        assert answer.status_code in (404, 422)
        assert all("\n" not in value for value in answer.headers.values())
    odd = client.get("/healthz", headers={"x-request-id": "a b;\x1b[31m"})
    assert odd.headers["x-request-id"].isalnum()
    assert client.get("/healthz", headers={"x-request-id": "a-1"}).headers["x-request-id"] == "a-1"
    messages = [record.getMessage() for record in caplog.records if record.name == "tamis.server"]
    assert len(messages) == 5
    assert all(message.isprintable() for message in messages)


def test_ids_in_headers_are_encoded(client):
    answer = client.post("/v1/subscriptions", json={"id": "ü/ ?", "expression": "a = 1"})
    assert answer.headers["location"] == "/v1/subscriptions/%C3%BC%2F%20%3F"


@pytest.mark.parametrize(
    "path",
    [
        f"/{FILE}",
        f"/../{FILE}",
        f"/v1/../../{FILE}",
        f"/v1/subscriptions/..%2f..%2f{FILE}",
        f"/v1/subscriptions/%2e%2e/{FILE}",
        "/v1/subscriptions/%2fetc%2fpasswd",
        "/v1/subscriptions/..%5c..%5csecret",
        "//etc/passwd",
        "/v1//keys/../keys",
        "/static/../../secret",
    ],
)
def test_paths_lead_nowhere_else(client, path):
    answer = client.get(path)
    assert answer.status_code in (404, 405), answer.text
    assert answer.headers["content-type"] == "application/problem+json"


def test_a_server_for_other_machines_needs_a_key(tmp_path, match_server):
    from tamis.errors import InputError
    from tamis.server.running import decide_openness

    reachable = Settings(server=ServerSettings(folder=tmp_path, host="0.0.0.0"))
    with pytest.raises(InputError, match="there are no keys"):
        decide_openness(match_server, reachable)
    assert decide_openness(match_server, Settings())
    match_server.broker.keys.create(LOCAL, "ann", ["read"])
    assert not decide_openness(match_server, Settings())
    assert not decide_openness(match_server, reachable)
