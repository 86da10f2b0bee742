"""Open streams end when the right to them is lost; others go on."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from sqlalchemy import update

from tamis.broker.match_server import MatchServer
from tamis.broker.rights import LOCAL
from tamis.broker.tables import CHANNELS, KEYS
from tamis.server import stream_rights
from tests.server.asking import publish, subscribe
from tests.server.running import Running, read_stream, run_server
from tests.server.test_sockets import expect_problem, open_socket, receive
from tests.subscriptions.places import Clock
from tests.waiting import HANG_SECONDS, wait_until

KINDS = ("stream", "socket", "poll")


@pytest.fixture(autouse=True)
def quick_checks(monkeypatch):
    monkeypatch.setattr(stream_rights, "CHECK_SECONDS", 0.02)


class World:
    """A server whose clock stands still, with keys of ann, bob and an admin."""

    def __init__(self, server: MatchServer, running: Running, clock: Clock) -> None:
        self.server, self.running, self.clock = server, running, clock
        until = server.live.store.moment + timedelta(hours=1)
        keys = server.broker.keys
        self.made = {
            "ann": keys.create(LOCAL, "ann", ["subscribe", "read"], expires=until),
            "bob": keys.create(LOCAL, "bob", ["subscribe", "read"]),
            "root": keys.create(LOCAL, "root", ["admin", "read"]),
        }
        self.admin = running.client(headers=self.show("root"))
        self.ticket = self._subscribe("a", "ann")
        self._subscribe("b", "bob")
        asked = {"name": "c", "subscriptions": ["a"]}
        assert self.admin.post("/v1/channels", json=asked, headers=self.show("ann")).is_success

    def _subscribe(self, name: str, owner: str) -> str:
        headers = self.show(owner)
        return subscribe(self.admin, headers=headers, id=name, expression="x = 1")["ticket"]

    def show(self, owner: str) -> dict[str, str]:
        return {"authorization": f"Bearer {self.made[owner].secret.reveal()}"}

    def write(self, statement) -> None:
        """Change a table as another process does."""
        self.server.live.store.run(lambda connection: connection.execute(statement))

    def load(self, **row) -> None:
        """Replace the subscription of ann, as an admin."""
        headers = self.show("root") | {"content-type": "application/x-ndjson"}
        content = json.dumps({"id": "a", "expression": "x = 1"} | row)
        path = "/v1/subscriptions/import?existing=replace"
        answer = self.admin.post(path, content=content, headers=headers)
        assert '"replaced":1' in answer.text, answer.text


@pytest.fixture
def world(settings) -> Iterator[World]:
    clock = Clock()
    with (
        MatchServer.open(settings.server.folder, clock=clock) as server,
        run_server(server, settings, is_open=False) as running,
    ):
        own = World(server, running, clock)
        yield own
        own.admin.close()


@contextmanager
def following(running: Running, kind: str, box: str, headers: dict) -> Iterator[Callable]:
    """Open a stream; the function waits for its end and checks the reason."""
    with running.client(headers=headers) as client:
        if kind == "socket":
            with open_socket(running, f"{box}/socket", additional_headers=headers) as connection:
                assert receive(connection)["type"] == "ready"
                yield lambda status, code: expect_problem(connection, status, code)
        elif kind == "stream":
            with client.stream("GET", f"{box}/stream") as answer:
                events = read_stream(answer)
                head = ":".join(map(str, running.context.match_server.mailboxes.head))
                assert next(events) == {"retry": "2000", "id": head}

                def expect(status: int, code: str) -> None:
                    (last,) = events
                    assert last["event"] == "problem"
                    assert (last["data"]["status"], last["data"]["code"]) == (status, code)

                yield expect
        else:
            answers = []
            asked = {"wait": 60, "after": "0"}
            thread = threading.Thread(
                target=lambda: answers.append(client.get(f"{box}/matches", params=asked))
            )
            thread.start()

            def expect(status: int, code: str) -> None:
                thread.join(HANG_SECONDS)
                found = answers[0].status_code, answers[0].json()["code"]
                assert found == (status, code)

            yield expect
            thread.join(HANG_SECONDS)


def revoke_here(world: World) -> None:
    answer = world.admin.delete(f"/v1/keys/{world.made['ann'].key.id}")
    assert answer.status_code == 200


def revoke_elsewhere(world: World) -> None:
    own = KEYS.c.key_id == world.made["ann"].key.id
    world.write(update(KEYS).where(own).values(revoked=world.server.live.store.now()))


def let_expire(world: World) -> None:
    world.clock.move(3_600)


def lose_role(world: World) -> None:
    own = KEYS.c.key_id == world.made["ann"].key.id
    world.write(update(KEYS).where(own).values(roles="subscribe"))


def lose_admin(world: World) -> None:
    own = KEYS.c.key_id == world.made["root"].key.id
    world.write(update(KEYS).where(own).values(roles="read"))


def give_away_channel(world: World) -> None:
    world.write(update(CHANNELS).values(owner="bob"))


def give_away_subscription(world: World) -> None:
    world.load(owner="bob")


def replace_ticket(world: World) -> None:
    world.load(ticket_hash=world.server.broker.tickets.make().hash.hex())


SUBSCRIPTION, CHANNEL = "/v1/subscriptions/a", "/v1/channels/c"
UNKNOWN, GONE = (404, "unknown-subscription"), (404, "unknown-channel")


@pytest.mark.parametrize("kind", ["stream", "socket"])
@pytest.mark.parametrize(
    ("caller", "box", "lose", "problem"),
    [
        ("ann", SUBSCRIPTION, revoke_here, (401, "key-required")),
        ("ann", CHANNEL, revoke_elsewhere, (401, "key-required")),
        ("ann", SUBSCRIPTION, let_expire, (401, "key-required")),
        ("ann", CHANNEL, lose_role, (403, "missing-role")),
        ("root", SUBSCRIPTION, lose_admin, UNKNOWN),
        ("ann", CHANNEL, give_away_channel, GONE),
        ("ann", SUBSCRIPTION, give_away_subscription, UNKNOWN),
        ("ticket", SUBSCRIPTION, replace_ticket, UNKNOWN),
    ],
)
def test_a_stream_ends_with_its_right(world, kind, caller, box, lose, problem):
    headers = {"tamis-ticket": world.ticket} if caller == "ticket" else world.show(caller)
    with following(world.running, kind, box, headers) as expect:
        wait_until(lambda: world.running.context.open_streams, "the stream is open")
        lose(world)
        expect(*problem)
    wait_until(lambda: not world.running.context.open_streams, "the stream is closed")


def test_a_waiting_read_ends_with_its_right(world):
    with following(world.running, "poll", SUBSCRIPTION, world.show("ann")) as expect:
        wait_until(lambda: world.running.context.open_streams, "somebody waits")
        revoke_here(world)
        expect(401, "key-required")


def test_a_stream_of_another_key_goes_on(world):
    bob, box = world.show("bob"), "/v1/subscriptions/b"
    with world.running.client(headers=bob) as client, client.stream("GET", f"{box}/stream") as own:
        events = read_stream(own)
        next(events)
        with following(world.running, "stream", SUBSCRIPTION, world.show("ann")) as expect:
            revoke_here(world)
            # Nothing is delivered after the answer to the revocation.
            publish(world.admin, {"x": 1})
            expect(401, "key-required")
        assert next(events)["data"]["subscriptions"] == ["b"]


def test_nothing_is_delivered_after_a_key_has_expired(world, monkeypatch):
    async def check_nothing(_) -> None:
        """Look only when there is something to deliver."""

    monkeypatch.setattr(stream_rights, "check_streams", check_nothing)
    with following(world.running, "stream", SUBSCRIPTION, world.show("ann")) as expect:
        let_expire(world)
        world.load(valid_until=(world.clock.now + timedelta(days=1)).isoformat())
        publish(world.admin, {"x": 1})
        expect(401, "key-required")


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_key_ends_streams_without_one(match_server, settings, kind):
    with run_server(match_server, settings) as running, running.client() as client:
        subscribe(client, id="a", expression="x = 1")
        with following(running, kind, SUBSCRIPTION, {}) as expect:
            wait_until(lambda: running.context.open_streams, "the stream is open")
            made = client.post("/v1/keys", json={"owner": "root", "roles": ["admin"]})
            assert made.status_code == 201
            expect(401, "key-required")
