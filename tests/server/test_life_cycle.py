"""Random lives of a server, over HTTP, against a dictionary and the reference evaluator."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import Phase
from hypothesis import settings as effort
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from starlette.testclient import TestClient

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.events.json_texts import parse_event
from tamis.logic.evaluate import Missing, evaluate
from tamis.server import Settings, create_app
from tamis.server.settings import ServerSettings
from tests.effort import examples
from tests.events.layouts import to_json
from tests.live.places import by_hand, step
from tests.match.examples import RANDOM_EVENTS, draw_example
from tests.server.conftest import OWN_URL
from tests.server.places import EVERY_STORE, key_of
from tests.subscriptions.places import Clock, new_folder

pytestmark = RANDOM_EVENTS

OWNERS = ("ann", "bob")
NAMES = ("a", "b", "c/d", "ü", "e")
N_EXPRESSIONS, N_EVENTS = 25, 15
DAY = timedelta(days=1)  # how long an idempotency key is remembered
names = st.sampled_from(NAMES)
owners = st.sampled_from(OWNERS)
callers = st.sampled_from((*OWNERS, "admin"))
expressions = st.integers(0, N_EXPRESSIONS - 1).map(lambda at: f"s{at}")
leases = st.integers(1, 3_000)
some_events = st.lists(st.integers(0, N_EVENTS - 1), min_size=1, max_size=4)
consumers = st.sampled_from(("c1", "c2"))
channels = st.sampled_from(("k1", "k2"))
epochs = st.sampled_from(("right", "right", "right", "other"))
proofs = st.sampled_from(("ticket", "ticket", "admin", "owner", "other ticket", "broken", "none"))
tags = st.sampled_from(("none", "none", "right", "stale", "any"))


@dataclass
class Held:
    """A subscription as the model has it."""

    name: str
    owner: str
    text: str  # the name of its expression
    end: datetime
    revision: int
    number: int
    ticket: str
    told: list[int] = field(default_factory=list)  # event numbers
    cursor: str = "0"
    n_read: int = 0
    consumers: dict[str, int] = field(default_factory=dict)  # up to where they have acknowledged


@dataclass
class Channel:
    """A channel as the model has it."""

    owner: str
    members: dict[int, Held] = field(default_factory=dict)  # by number of the subscription
    consumers: dict[str, int] = field(default_factory=dict)

    def told(self) -> dict[int, list[str]]:
        """The ids that each event in the mailbox matched."""
        found: dict[int, list[str]] = {}
        for _, own in sorted(self.members.items()):
            for event in own.told:
                found.setdefault(event, []).append(own.name)
        return found


@dataclass
class Answered:
    """A request with an idempotency key."""

    body: str
    moment: datetime
    first: int
    ids: list[list[str]]


class LifeCycle(RuleBasedStateMachine):
    """One server and its model."""

    def __init__(self, folder, missing: Missing, database: str | None) -> None:
        super().__init__()
        self.folder, self.missing, self.database = folder, missing, database
        self.clock = Clock()

    @initialize(seed=st.integers(0, 11))
    def begin(self, seed):
        self.example = draw_example(seed, N_EXPRESSIONS, N_EVENTS)
        self.events = [to_json(event) for event in self.example.events]
        self.settings = MatchServerSettings(
            schema=self.example.schema, missing=self.missing, store=self.database
        )
        self.held: dict[str, Held] = {}
        self.ended: list[Held] = []
        self.channels: dict[str, Channel] = {}
        self.n_events = 0
        self.answered: dict[tuple[str, str], Answered] = {}
        self.last_change = 0
        self.start()
        self.keys = {
            owner: key_of(self.server, owner, "publish", "subscribe", "read") for owner in OWNERS
        }
        self.keys["admin"] = key_of(self.server, "root", "admin")

    def start(self) -> None:
        self.server = MatchServer.open(self.folder, self.settings, clock=self.clock)
        settings = Settings(server=ServerSettings(folder=self.folder))
        self.client = TestClient(create_app(self.server, settings), base_url=OWN_URL)
        self.client.__enter__()

    def stop(self) -> None:
        self.client.__exit__()
        self.server.close()

    def teardown(self) -> None:
        self.stop()

    # ── the model ──────────────────────────────────────────────────────────────────────────

    def see(self) -> dict[str, Held]:
        """The subscriptions whose leases have not ended."""
        for name, own in list(self.held.items()):
            if own.end <= self.clock.now:
                self.ended.append(self.held.pop(name))
        return self.held

    def satisfied(self, event: str) -> list[str]:
        """The ids that must be told of an event."""
        read, held = parse_event(event), self.see()
        return sorted(
            name
            for name, own in held.items()
            if evaluate(self.example.conditions[own.text], read, self.missing) is True
        )

    def visible(self, caller: str, ids: list[str]) -> list[str]:
        """Those of the ids that a caller sees now."""
        if caller == "admin":
            return ids
        held = self.see()
        return [name for name in ids if name in held and held[name].owner == caller]

    def prove(self, name: str, proof: str) -> tuple[dict[str, str], bool]:
        """The headers of who wants to change a subscription, and whether they may."""
        own = self.held.get(name)
        others = [one.ticket for key, one in self.held.items() if key != name]
        others += [one.ticket for one in self.ended]
        match proof:
            case "ticket" if own is not None:
                return {"tamis-ticket": own.ticket}, True
            case "admin":
                return self.keys["admin"], True
            case "owner" if own is not None:  # the key alone is not the ticket
                return self.keys[own.owner], False
            case "other ticket" if others:
                return {"tamis-ticket": others[-1]}, False
            case "broken" if own is not None:
                return {"tamis-ticket": own.ticket[:-1]}, False
        return {}, False

    def reach(self, name: str, who: dict[str, str]) -> Held | None:
        """The subscription whose mailbox somebody reads: that one which has the id, or else the
        last one that had it.
        """
        found = self.see().get(name)
        for own in self.ended:
            if own.name == name and name not in self.held:
                found = own
        if found is None or who == self.keys["admin"]:
            return found
        is_right = who == self.keys[found.owner] or who.get("tamis-ticket") == found.ticket
        return found if is_right else None

    def reach_channel(self, name: str, caller: str) -> Channel | None:
        found = self.channels.get(name)
        return found if found is not None and caller in ("admin", found.owner) else None

    def condition(self, name: str, tag: str) -> tuple[dict[str, str], bool]:
        """The header If-Match, and whether it holds."""
        own = self.held.get(name)
        if tag == "none" or own is None:
            return {}, True
        if tag == "any":
            return {"if-match": "*"}, True
        revision = own.revision if tag == "right" else own.revision - 1
        return {"if-match": f'"{revision}"'}, tag == "right"

    def expect(self, answer: Any, name: str, proof: str, *, may: bool, holds: bool) -> bool:
        """Whether the change had to succeed; if not, the answer says why not."""
        if name not in self.held or not (may or proof == "owner"):
            assert (answer.status_code, answer.json()["code"]) == (404, "unknown-subscription")
        elif not may:  # its owner sees it
            assert (answer.status_code, answer.json()["code"]) == (403, "wrong-ticket")
        elif not holds:
            assert answer.status_code == 412
            assert answer.json()["revision"] == self.held[name].revision
        else:
            return True
        assert answer.headers["content-type"] == "application/problem+json"
        return False

    def changed(self, answer: Any, name: str) -> None:
        """A change has a new revision, which is the entity tag."""
        own, shown = self.held[name], answer.json()
        assert shown["revision"] > max(own.revision, self.last_change)
        assert answer.headers["etag"] == f'"{shown["revision"]}"'
        assert (shown["id"], shown["number"], shown["owner"]) == (name, own.number, own.owner)
        own.revision = self.last_change = shown["revision"]

    def path(self, name: str, more: str = "") -> str:
        return f"/v1/subscriptions/{name.replace('/', '%2F')}{more}"

    # ── subscriptions ──────────────────────────────────────────────────────────────────────

    @rule(owner=owners, name=names, text=expressions, lease=leases)
    def subscribe(self, owner, name, text, lease):
        held = self.see()
        asked = {"id": name, "expression": self.example.texts[text], "lease": lease}
        answer = self.client.post("/v1/subscriptions", json=asked, headers=self.keys[owner])
        if name in held:
            assert (answer.status_code, answer.json()["code"]) == (409, "refused-exists")
            return
        assert answer.status_code == 201
        shown = answer.json()
        assert shown["revision"] == shown["number"] > self.last_change
        assert answer.headers["location"] == f"/v1/subscriptions/{shown_path(name)}"
        self.last_change = shown["revision"]
        end = self.clock.now + timedelta(seconds=lease)
        assert datetime.fromisoformat(shown["valid_until"]) == end
        held[name] = Held(
            name, owner, text, end, shown["revision"], shown["number"], shown["ticket"]
        )

    @rule(owner=owners, name=names)
    def subscribe_what_is_wrong(self, owner, name):
        asked = {"id": name, "expression": "no_such_attribute ="}
        answer = self.client.post("/v1/subscriptions", json=asked, headers=self.keys[owner])
        assert answer.status_code == 422
        assert answer.json()["span"]

    @rule(name=names, text=expressions, proof=proofs, tag=tags)
    def replace(self, name, text, proof, tag):
        self.see()
        (who, may), (condition, holds) = self.prove(name, proof), self.condition(name, tag)
        answer = self.client.patch(
            self.path(name),
            json={"expression": self.example.texts[text]},
            headers=who | condition,
        )
        if self.expect(answer, name, proof, may=may, holds=holds):
            assert answer.status_code == 200
            self.changed(answer, name)
            self.held[name].text = text

    @rule(name=names, lease=leases, proof=proofs, tag=tags)
    def renew(self, name, lease, proof, tag):
        self.see()
        (who, may), (condition, holds) = self.prove(name, proof), self.condition(name, tag)
        answer = self.client.post(
            self.path(name, "/renew"), json={"lease": lease}, headers=who | condition
        )
        if self.expect(answer, name, proof, may=may, holds=holds):
            end = self.clock.now + timedelta(seconds=lease)
            if end < self.held[name].end:
                assert (answer.status_code, answer.json()["code"]) == (409, "refused-shorter")
                return
            assert answer.status_code == 200
            self.changed(answer, name)
            self.held[name].end = end

    @rule(name=names, proof=proofs, tag=tags)
    def unsubscribe(self, name, proof, tag):
        self.see()
        (who, may), (condition, holds) = self.prove(name, proof), self.condition(name, tag)
        answer = self.client.delete(self.path(name), headers=who | condition)
        if self.expect(answer, name, proof, may=may, holds=holds):
            assert answer.status_code == 204
            assert answer.content == b""
            self.ended.append(self.held.pop(name))

    @rule(name=names, caller=callers, tag=tags)
    def get(self, name, caller, tag):
        own = self.see().get(name)
        headers = dict(self.keys[caller])
        if own is not None and tag != "none":
            headers["if-none-match"] = f'"{own.revision - (tag == "stale")}"'
        answer = self.client.get(self.path(name), headers=headers)
        if own is None or caller not in ("admin", own.owner):
            assert answer.status_code == 404
        elif tag in ("right", "any"):
            assert (answer.status_code, answer.content) == (304, b"")
        else:
            shown = answer.json()
            assert shown["expression"] == self.example.texts[own.text]
            assert (shown["revision"], shown["number"]) == (own.revision, own.number)
            assert "ticket" not in shown

    # ── events ─────────────────────────────────────────────────────────────────────────────

    @rule(caller=callers, chosen=some_events, key=st.sampled_from((None, None, "k1", "k2")))
    def publish(self, caller, chosen, key):
        texts = [self.events[at] for at in chosen]
        body = f"[{', '.join(texts)}]"
        headers = {**self.keys[caller], "content-type": "application/json"}
        if key is not None:
            headers["idempotency-key"] = key
        answer = self.client.post("/v1/events?matches=ids", content=body.encode(), headers=headers)
        earlier = self.remembered(caller, key)
        if earlier is not None and earlier.body != body:
            assert (answer.status_code, answer.json()["code"]) == (422, "bad-input")
            return
        assert answer.status_code == 200
        if earlier is None:
            ids = [self.satisfied(text) for text in texts]
            earlier = Answered(body, self.clock.now, self.n_events + 1, ids)
            self.tell(earlier)
            if key is not None:
                self.answered[caller, key] = earlier
        shown = answer.json()
        assert shown["first_event"] == earlier.first
        assert (shown["accepted"], shown["rejected"]) == (len(texts), [])
        assert shown["matches"] == sum(map(len, earlier.ids))
        assert shown["matched"] == sum(map(bool, earlier.ids))
        assert [sorted(own) for own in shown["ids"]] == [
            self.visible(caller, own) for own in earlier.ids
        ]

    def remembered(self, caller: str, key: str | None) -> Answered | None:
        found = None if key is None else self.answered.get((caller, key))
        return found if found is not None and self.clock.now - found.moment <= DAY else None

    def tell(self, published: Answered) -> None:
        for at, ids in enumerate(published.ids):
            for name in ids:
                self.held[name].told.append(published.first + at)
        self.n_events += len(published.ids)

    @rule(caller=callers, at=st.integers(0, N_EVENTS - 1))
    def ask(self, caller, at):
        body = f'{{"event": {self.events[at]}}}'
        headers = {**self.keys[caller], "content-type": "application/json"}
        answer = self.client.post("/v1/match", content=body.encode(), headers=headers)
        assert answer.status_code == 200
        found = sorted(answer.json()["ids"])
        assert found == self.visible(caller, self.satisfied(self.events[at]))

    @rule(name=names, proof=proofs, limit=st.integers(1, 5))
    def read_on(self, name, proof, limit):
        """A page of a mailbox after the cursor of the page before."""
        who, _ = self.prove(name, proof)
        own = self.reach(name, who)
        params: dict[str, Any] = {"limit": limit}
        if own is not None:
            params["after"] = own.cursor
        answer = self.client.get(self.path(name, "/matches"), params=params, headers=who)
        if own is None:
            assert answer.status_code == 404
            return
        assert answer.status_code == 200
        shown = answer.json()
        wanted = own.told[own.n_read : own.n_read + limit]
        assert [one["event"] for one in shown["matches"]] == wanted
        assert all(one["subscriptions"] == [name] for one in shown["matches"])
        assert shown["missed"] is None
        own.cursor, own.n_read = shown["cursor"], own.n_read + len(wanted)

    # ── consumers ──────────────────────────────────────────────────────────────────────────

    @property
    def epoch(self) -> str:
        return self.server.archive.epoch

    @rule(name=names, proof=proofs, consumer=consumers, event=st.integers(0, 30), epoch=epochs)
    def acknowledge(self, name, proof, consumer, event, epoch):
        who, _ = self.prove(name, proof)
        own = self.reach(name, who)
        self.check_acknowledging(own, self.path(name), who, consumer, event, epoch)

    @rule(name=channels, caller=callers, consumer=consumers, event=st.integers(0, 30), epoch=epochs)
    def acknowledge_in_channel(self, name, caller, consumer, event, epoch):
        own, who = self.reach_channel(name, caller), self.keys[caller]
        self.check_acknowledging(own, f"/v1/channels/{name}", who, consumer, event, epoch)

    def check_acknowledging(self, own, path, who, consumer, event, epoch) -> None:
        body = {"event": event, "epoch": self.epoch if epoch == "right" else "other"}
        answer = self.client.post(
            f"{path}/acknowledge", json=body | {"consumer": consumer}, headers=who
        )
        if own is None:
            assert answer.status_code == 404
        elif epoch != "right":
            assert (answer.status_code, answer.json()["code"]) == (410, "history-lost")
        elif event > self.n_events:
            assert answer.status_code == 422
        else:  # never back
            own.consumers[consumer] = max(event, own.consumers.get(consumer, 0))
            found = {"consumer": consumer, "epoch": self.epoch, "event": own.consumers[consumer]}
            assert (answer.status_code, answer.json()) == (200, found)

    @rule(name=names, proof=proofs, consumer=consumers, event=st.integers(0, 30))
    def move_consumer(self, name, proof, consumer, event):
        who, _ = self.prove(name, proof)
        own = self.reach(name, who)
        body = {"event": event, "epoch": self.epoch}
        answer = self.client.put(self.path(name, f"/consumers/{consumer}"), json=body, headers=who)
        if own is None:
            assert answer.status_code == 404
        elif event > self.n_events:
            assert answer.status_code == 422
        else:
            assert (answer.status_code, answer.json()["event"]) == (200, event)
            own.consumers[consumer] = event

    @rule(name=names, proof=proofs, consumer=consumers)
    def forget_consumer(self, name, proof, consumer):
        who, _ = self.prove(name, proof)
        own = self.reach(name, who)
        answer = self.client.delete(self.path(name, f"/consumers/{consumer}"), headers=who)
        assert answer.status_code == (404 if own is None else 204)
        if own is not None:
            own.consumers.pop(consumer, None)

    @rule(name=names, proof=proofs, consumer=consumers)
    def read_what_is_not_acknowledged(self, name, proof, consumer):
        who, _ = self.prove(name, proof)
        own = self.reach(name, who)
        if own is not None:
            path = self.path(name)
            wanted = [event for event in own.told if event > own.consumers.get(consumer, 0)]
            assert self.read_as(path, who, consumer) == wanted
            assert self.list_consumers(path, who) == own.consumers

    def read_as(self, path: str, who: dict[str, str], consumer: str) -> list[int]:
        params = {"consumer": consumer, "limit": "1000"}
        answer = self.client.get(f"{path}/matches", params=params, headers=who)
        assert answer.status_code == 200
        return [one["event"] for one in answer.json()["matches"]]

    def list_consumers(self, path: str, who: dict[str, str]) -> dict[str, int]:
        found = self.client.get(f"{path}/consumers", headers=who).json()["consumers"]
        assert all(own["epoch"] == self.epoch for own in found)
        return {own["consumer"]: own["event"] for own in found}

    # ── channels ───────────────────────────────────────────────────────────────────────────

    @rule(owner=owners, name=channels)
    def create_channel(self, owner, name):
        answer = self.client.post("/v1/channels", json={"name": name}, headers=self.keys[owner])
        if name in self.channels:
            assert (answer.status_code, answer.json()["code"]) == (409, "name-taken")
        else:
            assert (answer.status_code, answer.json()["owner"]) == (201, owner)
            self.channels[name] = Channel(owner)

    @rule(channel=channels, name=names, caller=callers, is_added=st.booleans())
    def change_members(self, channel, name, caller, is_added):
        own, who = self.reach_channel(channel, caller), self.keys[caller]
        path = f"/v1/channels/{channel}/members{'' if is_added else '/remove'}"
        member = self.reach(name, who)
        answer = self.client.post(path, json={"subscriptions": [name]}, headers=who)
        if own is None or (is_added and member is None):
            assert answer.status_code == 404
            return
        before = dict(own.members)
        if is_added:
            own.members[member.number] = member
        else:
            own.members = {number: one for number, one in before.items() if one.name != name}
        assert answer.status_code == 200
        assert answer.json()["changed"] == abs(len(own.members) - len(before))

    @rule(channel=channels, caller=callers, consumer=consumers)
    def read_channel(self, channel, caller, consumer):
        own, who = self.reach_channel(channel, caller), self.keys[caller]
        path = f"/v1/channels/{channel}"
        answer = self.client.get(f"{path}/matches?after=0&limit=1000", headers=who)
        if own is None:
            assert answer.status_code == 404
            return
        told = own.told()
        shown = {one["event"]: one["subscriptions"] for one in answer.json()["matches"]}
        assert list(shown) == sorted(told)
        assert {event: sorted(ids) for event, ids in shown.items()} == {
            event: sorted(ids) for event, ids in told.items()
        }
        wanted = [event for event in sorted(told) if event > own.consumers.get(consumer, 0)]
        assert self.read_as(path, who, consumer) == wanted
        assert self.list_consumers(path, who) == own.consumers

    @rule(channel=channels, caller=callers)
    def delete_channel(self, channel, caller):
        own = self.reach_channel(channel, caller)
        answer = self.client.delete(f"/v1/channels/{channel}", headers=self.keys[caller])
        assert answer.status_code == (404 if own is None else 204)
        if own is not None:
            del self.channels[channel]

    # ── time and restarts ──────────────────────────────────────────────────────────────────

    @rule(seconds=st.sampled_from((1, 10, 500, 2_000, 50_000)))
    def move_clock(self, seconds):
        self.clock.move(seconds)

    @rule()
    def maintain(self):
        self.server.live._maintenance._next_expiry = 0.0
        step(self.server.live)
        self.last_change = max(self.last_change, self.server.live.change)

    @rule()
    def restart(self):
        self.stop()
        self.start()

    @rule(name=names)
    def read_from_the_start(self, name):
        own = self.see().get(name)
        if own is not None:
            answer = self.client.get(
                self.path(name, "/matches?limit=1000"), headers={"tamis-ticket": own.ticket}
            )
            assert [one["event"] for one in answer.json()["matches"]] == own.told

    @invariant()
    def lists_what_the_model_holds(self):
        held = self.see()
        for caller, headers in self.keys.items():
            answer = self.client.get("/v1/subscriptions", headers=headers)
            shown = {one["id"]: one["revision"] for one in answer.json()["subscriptions"]}
            wanted = self.visible(caller, list(held))
            assert shown == {name: held[name].revision for name in wanted}
        ready = self.client.get("/readyz").json()
        assert ready["last_event"] == self.n_events


def shown_path(name: str) -> str:
    return {"c/d": "c%2Fd", "ü": "%C3%BC"}.get(name, name)


@EVERY_STORE
@pytest.mark.parametrize("missing", Missing)
def test_random_lives(missing, request, database):
    folders = []
    is_postgres = database is not None

    def make() -> LifeCycle:
        folders.append(new_folder())
        place = request.getfixturevalue("postgres").new_place() if is_postgres else None
        return LifeCycle(folders[-1], missing, place)

    try:
        with by_hand():
            run_state_machine_as_test(
                make,
                settings=effort(
                    max_examples=examples(3),
                    stateful_step_count=40,
                    phases=[Phase.generate],
                    database=None,
                ),
            )
    finally:
        for folder in folders:
            shutil.rmtree(folder)
