"""Webhooks, from a published event to a receiver on a real socket."""

from __future__ import annotations

import asyncio
import threading
from datetime import timedelta

import orjson
import pytest
from standardwebhooks.webhooks import Webhook as Verifier
from starlette.testclient import TestClient

from tamis.broker import webhook_worker
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.broker.retries import RetryPolicy
from tamis.broker.rights import LOCAL
from tamis.server import Settings, create_app
from tamis.server.settings import DeliverySettings, ServerSettings
from tests.broker.gates import hold_first_names
from tests.server.asking import make_key, needs_keys, publish, subscribe
from tests.server.conftest import OWN_URL
from tests.server.receiver import run_receiver
from tests.waiting import HANG_SECONDS, wait_until

QUICK = RetryPolicy(delays=(0.0, 0.01, 0.01), spread=0.0, disable_after=timedelta(days=1))


@pytest.fixture(autouse=True)
def quick_polls(monkeypatch):
    monkeypatch.setattr(webhook_worker, "POLL_SECONDS", 0.02)


def make_settings(tmp_path, **delivery) -> Settings:
    options = {"allow_private_addresses": True, "webhook_timeout": timedelta(seconds=HANG_SECONDS)}
    return Settings(
        server=ServerSettings(folder=tmp_path / "server"),
        delivery=DeliverySettings(**(options | delivery)),
    )


@pytest.fixture
def settings(tmp_path) -> Settings:
    return make_settings(tmp_path)


@pytest.fixture
def match_server(settings, database):
    own = MatchServerSettings(store=database, retries=QUICK)
    with MatchServer.open(settings.server.folder, own) as opened:
        yield opened


@pytest.fixture
def receiver():
    with run_receiver() as running:
        yield running


def register(client, receiver, **asked) -> dict:
    asked = {"subscription": "a", "url": receiver.url} | asked
    answer = client.post("/v1/webhooks", json=asked)
    assert answer.status_code == 201, answer.text
    return answer.json()


def get(client, made: dict) -> dict:
    return client.get(f"/v1/webhooks/{made['number']}").json()


def test_a_match_is_sent_and_signed(client, receiver):
    subscribe(client, id="a", expression="x = 1")
    publish(client, {"x": 1})  # before it is registered: not sent
    made = register(client, receiver)
    published = publish(client, {"x": 2}, {"x": 1, "text": "ü"})
    wait_until(lambda: receiver.received, "it is received")
    (own,) = receiver.received
    verified = Verifier(made["secret"]).verify(own.body, own.headers)
    assert verified["type"] == "match"
    data = verified["data"]
    assert (data["event"], data["subscriptions"]) == (3, ["a"])
    assert data["content"] == {"x": 1, "text": "ü"}
    assert data["epoch"] == published["epoch"]
    wait_until(lambda: get(client, made)["cursor"].endswith(":3"), "it is recorded")
    (delivery,) = client.get(f"/v1/webhooks/{made['number']}/deliveries").json()["deliveries"]
    assert (delivery["event"], delivery["status"], delivery["attempt"]) == (3, 204, 1)
    assert "secret" not in get(client, made)


def test_a_receiver_that_fails_and_recovers_gets_everything_in_order(client, receiver):
    subscribe(client, id="a", expression="x = 1")
    fails = {1: 2, 4: 1, 5: 2}  # how often each event fails

    def answer(own) -> int:
        n_times = sum(other.id == own.id for other in receiver.received)
        return 500 if n_times <= fails.get(own.event, 0) else 200

    receiver.answer = answer
    made = register(client, receiver)
    publish(client, *({"x": 1} for _ in range(6)))
    wait_until(lambda: get(client, made)["cursor"].endswith(":6"), "all are delivered")
    attempts = [own.event for own in receiver.received]
    assert attempts == [1, 1, 1, 2, 3, 4, 4, 5, 5, 5, 6]
    assert len({own.id for own in receiver.received}) == 6
    assert client.get(f"/v1/webhooks/{made['number']}/dead-letters").json()["letters"] == []


def test_an_event_that_fails_too_often_becomes_a_dead_letter(client, receiver):
    subscribe(client, id="a", expression="x = 1")
    receiver.answer = lambda own: 500 if own.event == 2 else 200
    made = register(client, receiver)
    publish(client, {"x": 1}, {"x": 1}, {"x": 1})
    wait_until(lambda: get(client, made)["cursor"].endswith(":3"), "it goes on")
    assert [own.event for own in receiver.received] == [1, 2, 2, 2, 3]
    path = f"/v1/webhooks/{made['number']}/dead-letters"
    (letter,) = client.get(path).json()["letters"]
    assert (letter["event"], letter["attempts"], letter["last_status"]) == (2, 3, 500)
    assert letter["state"] == "dead"
    receiver.answer = 200
    assert client.post(f"{path}/send", json={}).json() == {"changed": 1}
    wait_until(lambda: not client.get(path).json()["letters"], "it is delivered")
    again = receiver.received[-1]
    assert (again.event, again.id) == (2, receiver.received[1].id)
    assert orjson.loads(again.body)["data"] == orjson.loads(receiver.received[1].body)["data"]


def test_gone_disables_and_resuming_goes_on(client, receiver):
    subscribe(client, id="a", expression="x = 1")
    receiver.answer = 410
    made = register(client, receiver)
    publish(client, {"x": 1}, {"x": 1})
    wait_until(lambda: get(client, made)["state"] == "disabled", "it is disabled")
    assert "410" in get(client, made)["reason"]
    assert len(receiver.received) == 1
    receiver.answer = 204
    resumed = client.post(f"/v1/webhooks/{made['number']}/resume", json={})
    assert resumed.json()["state"] == "active"
    wait_until(lambda: receiver.events() == [1, 2], "it goes on")


def test_a_paused_webhook_loses_nothing(client, receiver):
    subscribe(client, id="a", expression="x = 1")
    made = register(client, receiver)
    path = f"/v1/webhooks/{made['number']}"
    assert client.post(f"{path}/pause").json()["state"] == "paused"
    publish(client, {"x": 1})
    assert receiver.received == []
    client.post(f"{path}/resume", json={})
    wait_until(lambda: receiver.events() == [1], "it is delivered")
    client.post(f"{path}/resume", json={"after": "0"})
    wait_until(lambda: len(receiver.received) == 2, "it is sent again")
    assert receiver.received[0].id == receiver.received[1].id


def test_slow_and_dead_receivers_hold_up_nobody(tmp_path):
    """Every event reaches the healthy one in order, although three others hang or refuse."""
    settings = make_settings(tmp_path, webhook_timeout=timedelta(seconds=2))
    n_events = 30
    with (
        MatchServer.open(settings.server.folder, MatchServerSettings(retries=QUICK)) as server,
        TestClient(create_app(server, settings, is_open=True), base_url=OWN_URL) as client,
        run_receiver() as healthy,
        run_receiver() as hanging,
        run_receiver() as failing,
    ):
        hanging.answer = lambda _: 204 if hanging.release.wait(HANG_SECONDS) else 500
        failing.answer = 503
        subscribe(client, id="a", expression="x = 1")
        for url in (hanging.url, failing.url, "http://127.0.0.1:1/dead", healthy.url):
            register(client, healthy, url=url)
        for _ in range(n_events):
            publish(client, {"x": 1})
        wait_until(lambda: len(healthy.events()) == n_events, "all have arrived")
        assert healthy.events() == list(range(1, n_events + 1))
        hanging.release.set()


def test_deliveries_survive_a_restart(tmp_path, receiver):
    settings = make_settings(tmp_path)
    open_server = lambda: MatchServer.open(  # noqa: E731
        settings.server.folder, MatchServerSettings(retries=QUICK)
    )
    receiver.answer = 500
    with (
        open_server() as server,
        TestClient(create_app(server, settings, is_open=True), base_url=OWN_URL) as client,
    ):
        subscribe(client, id="a", expression="x = 1")
        register(client, receiver)
        publish(client, {"x": 1})
        wait_until(lambda: receiver.received, "it was tried")
    receiver.answer = 204
    with (
        open_server() as server,
        TestClient(create_app(server, settings, is_open=True), base_url=OWN_URL) as client,
    ):
        publish(client, {"x": 1})
        wait_until(lambda: 2 in receiver.events(), "both are delivered")
    assert receiver.events() == [1, 2]
    assert len({own.id for own in receiver.received}) == 2


def test_a_gap_by_retention_is_sent(client, match_server, receiver, monkeypatch):
    subscribe(client, id="a", expression="x = 1")
    made = register(client, receiver)
    client.post(f"/v1/webhooks/{made['number']}/pause")
    publish(client, *({"x": 1} for _ in range(3)))
    whole = match_server.archive.read_matches

    def read_later(numbers, *, after, limit, up_to=None):
        page = whole(numbers, after=max(after, 2), limit=limit, up_to=up_to)
        return page._replace(missed=range(after + 1, 3) or None)

    monkeypatch.setattr(match_server.archive, "read_matches", read_later)
    client.post(f"/v1/webhooks/{made['number']}/resume", json={})
    wait_until(lambda: len(receiver.received) == 2, "both have arrived")
    gap, match = (orjson.loads(own.body) for own in receiver.received)
    assert (gap["type"], gap["data"]["first"], gap["data"]["last"]) == ("missed", 1, 2)
    assert (match["type"], match["data"]["event"]) == ("match", 3)


def test_a_channel_has_webhooks(client, receiver):
    subscribe(client, id="a", expression="x = 1")
    subscribe(client, id="b", expression="x = 1")
    client.post("/v1/channels", json={"name": "c"})
    register(client, receiver, subscription=None, channel="c")
    publish(client, {"x": 1})
    client.post("/v1/channels/c/members", json={"subscriptions": ["a", "b"]})
    publish(client, {"x": 1})
    wait_until(lambda: 2 in receiver.events(), "it is received")
    last = orjson.loads(receiver.received[-1].body)
    assert last["data"]["subscriptions"] == ["a", "b"]


def test_secrets_are_rotated(client, receiver):
    subscribe(client, id="a", expression="x = 1")
    made = register(client, receiver)
    path = f"/v1/webhooks/{made['number']}"
    new = client.post(f"{path}/rotate", json={}).json()["secret"]
    assert new != made["secret"]
    tested = client.post(f"{path}/test").json()
    assert (tested["delivered"], tested["status"], tested["error"]) == (True, 204, None)
    (own,) = receiver.received
    for secret in (made["secret"], new):
        assert Verifier(secret).verify(own.body, own.headers)["type"] == "test"
    client.post(f"{path}/rotate", json={"overlap": 0})
    client.post(f"{path}/test")
    assert len(receiver.received[-1].headers["webhook-signature"].split()) == 2


def test_private_addresses_are_refused(tmp_path, receiver):
    settings = make_settings(tmp_path, allow_private_addresses=False)
    with (
        MatchServer.open(settings.server.folder, MatchServerSettings(retries=QUICK)) as server,
        TestClient(create_app(server, settings, is_open=True), base_url=OWN_URL) as client,
    ):
        subscribe(client, id="a", expression="x = 1")
        for url in (receiver.url, "http://localhost/", "http://[::ffff:127.0.0.1]/"):
            answer = client.post("/v1/webhooks", json={"subscription": "a", "url": url})
            assert (answer.status_code, answer.json()["code"]) == (422, "refused-address"), url
        # A name that is public when it is registered, and leads here later.
        addresses = {"hook.example": ["8.8.8.8"]}

        async def resolver(host: str, port: int) -> list[str]:
            return addresses[host]

        client.app.state.context.deliveries.sender._client._resolver = resolver
        port = receiver.url.rpartition(":")[2]
        made = register(client, receiver, url=f"http://hook.example:{port}")
        addresses["hook.example"] = ["127.0.0.1"]
        publish(client, {"x": 1})
        wait_until(lambda: get(client, made)["state"] == "disabled", "it is refused")
        assert "not public" in get(client, made)["reason"]
        assert receiver.received == []
        assert client.post(f"/v1/webhooks/{made['number']}/test").json()["delivered"] is False


@pytest.mark.parametrize(
    "url",
    ["ftp://example.com", "example.com", "http://u:p@example.com", "http://", "http://a b/", ""],
)
def test_wrong_urls_are_refused(client, url):
    subscribe(client, id="a", expression="x = 1")
    answer = client.post("/v1/webhooks", json={"subscription": "a", "url": url})
    assert answer.status_code == 422, answer.text


def test_only_its_owner_handles_a_webhook(client, match_server, receiver):
    ann = make_key(match_server, "ann", "subscribe", "read")
    bob = make_key(match_server, "bob", "subscribe", "read")
    publisher = make_key(match_server, "ann", "publish")
    needs_keys(client)
    ticket = {"tamis-ticket": subscribe(client, headers=ann, id="a", expression="x = 1")["ticket"]}
    asked = {"subscription": "a", "url": receiver.url}
    for stranger, status in ((bob, 404), ({}, 404), (publisher, 403)):
        assert client.post("/v1/webhooks", json=asked, headers=stranger).status_code == status
    made = client.post("/v1/webhooks", json=asked, headers=ticket).json()
    path = f"/v1/webhooks/{made['number']}"
    for headers in (ann, ticket):
        assert client.get(path, headers=headers).status_code == 200
        listed = client.get("/v1/webhooks", params={"subscription": "a"}, headers=headers)
        assert [own["number"] for own in listed.json()["webhooks"]] == [made["number"]]
    assert len(client.get("/v1/webhooks", headers=ann).json()["webhooks"]) == 1
    assert client.get("/v1/webhooks", headers=bob).json()["webhooks"] == []
    assert client.get("/v1/webhooks").status_code == 401
    for stranger in (bob, {}):
        assert client.get(path, headers=stranger).status_code == 404
        for action in ("pause", "resume", "rotate", "test", "dead-letters/send"):
            answer = client.post(f"{path}/{action}", json={}, headers=stranger)
            assert answer.status_code == 404
        for part in ("deliveries", "dead-letters"):
            assert client.get(f"{path}/{part}", headers=stranger).status_code == 404
        assert client.delete(path, headers=stranger).status_code == 404
    assert client.delete(path, headers=ticket).status_code == 204
    assert client.get(path, headers=ann).status_code == 404


def test_many_webhooks_at_once(client, receiver):
    n_webhooks, n_events = 12, 5
    lock = threading.Lock()
    for n in range(n_webhooks):
        subscribe(client, id=f"s{n}", expression="x = 1")
        register(client, receiver, subscription=f"s{n}")
    publish(client, *({"x": 1} for _ in range(n_events)))
    wait_until(lambda: len(receiver.received) >= n_webhooks * n_events, "all have arrived")
    with lock:
        by_webhook: dict[str, list[int]] = {}
        for own in receiver.received:
            by_webhook.setdefault(own.id.split("_")[2], []).append(own.event)
    assert list(by_webhook.values()) == [list(range(1, n_events + 1))] * n_webhooks


def test_members_that_were_read_late_do_not_replace_newer_ones(
    client, match_server, receiver, monkeypatch
):
    subscribe(client, id="a", expression="x = 1")
    subscribe(client, id="b", expression="x = 2")
    client.post("/v1/channels", json={"name": "c", "subscriptions": ["a"]})
    made = register(client, receiver, subscription=None, channel="c")
    worker = client.app.state.context.deliveries._webhooks
    gate = hold_first_names(match_server.mailboxes, monkeypatch)

    async def refresh_late() -> None:
        early = asyncio.create_task(worker.refresh(made["number"]))
        await gate.reached()
        numbers = [match_server.live.get("b").created]
        match_server.broker.channels.add(LOCAL, "c", numbers)
        match_server.mailboxes.forget(Mailbox.of_channel(1))
        await worker.refresh(made["number"])
        gate.open()
        await early

    client.portal.call(refresh_late)
    assert set(worker._watched[made["number"]].names.values()) == {"a", "b"}
