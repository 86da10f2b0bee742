"""Clients that publish and change subscriptions, and remember what was acknowledged.

A worker outlives servers: it is cut off when one is killed, and goes on with the next. What it had
asked then may have happened or not; what was answered must have happened.
"""

from __future__ import annotations

import threading
from collections import Counter
from random import Random
from typing import Any, NamedTuple

import orjson
from httpx2 import Client, Response, TransportError

from tests.server.load.oracle import Oracle
from tests.server.load.worlds import draw_event, draw_expression
from tests.waiting import HANG_SECONDS

LINES = {"content-type": "application/x-ndjson"}
LONG = 1_000_000  # seconds of a lease that does not end in a test


class Worker:
    """Does one step after the other until it is stopped, or the server is gone."""

    def __init__(self, name: str, seed: int) -> None:
        self.name = name
        self.draw = Random(f"{seed} {name}")
        self.url = ""
        self.is_done = False  # there is nothing left to do
        self.cut: TransportError | None = None  # the server went away
        self.error: BaseException | None = None
        self.n_steps = 0
        self.n_wanted: int | None = None  # steps after which it is done; None if it is never
        self._thread: threading.Thread | None = None

    def start(self, url: str, is_over: threading.Event) -> None:
        """Work in a thread."""
        self.url, self.cut = url, None
        self._thread = threading.Thread(target=self._live, args=(is_over,), daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait until it has stopped; raises its error."""
        assert self._thread is not None
        self._thread.join(HANG_SECONDS)
        assert not self._thread.is_alive(), f"{self.name} hangs"
        if self.error is not None:
            raise AssertionError(f"{self.name}: {self.error!r}") from self.error

    def _live(self, is_over: threading.Event) -> None:
        try:
            with open_client(self.url) as client:
                self.begin(client)
                while not (self.is_done or is_over.is_set()):
                    self.step(client)
                    self.n_steps += 1
                    self.is_done |= self.n_steps == self.n_wanted
        except TransportError as error:
            self.cut = error
        except BaseException as error:
            self.error = error

    def begin(self, client: Client) -> None:
        """Compare what the server has with what it acknowledged to earlier lives."""

    def step(self, client: Client) -> None:
        """One action."""
        raise NotImplementedError

    def expect(self, oracle: Oracle) -> None:
        """Compare what was acknowledged with the log and the archive."""


def open_client(url: str) -> Client:
    """A client that waits as long as it takes."""
    return Client(base_url=url, timeout=HANG_SECONDS, trust_env=False)


def expect_answer(answer: Response, status: int = 200) -> Any:
    """The content of an answer with this status."""
    assert answer.status_code == status, f"{answer.status_code}: {answer.text}"
    return answer.json() if answer.content else None


# ── publishing ──────────────────────────────────────────────────────────────────────────────


class Publisher(Worker):
    """Publishes events, each once; those of a request may or may not be there if it was cut."""

    def __init__(self, name: str, seed: int, *, most_events: int = 4) -> None:
        super().__init__(name, seed)
        self.most_events = most_events
        self.n_drawn = 0
        self.acknowledged: dict[int, dict[str, Any]] = {}  # events by number
        self.answers: list[tuple[range, int]] = []  # the events of a request, and its matches

    def step(self, client: Client) -> None:
        events = self.draw_events()
        self.remember(events, expect_answer(self.send(client, events)))

    def draw_events(self) -> list[dict[str, Any]]:
        """Some new events."""
        first = self.n_drawn
        self.n_drawn += self.draw.randint(1, self.most_events)
        names = (f"{self.name}-{number}" for number in range(first, self.n_drawn))
        return [draw_event(self.draw, name) for name in names]

    def send(self, client: Client, events: list[dict[str, Any]], **headers: str) -> Response:
        """Publish: one event, an array or lines."""
        if len(events) == 1:
            return client.post("/v1/events", json=events[0], headers=headers)
        if len(events) % 2:
            return client.post("/v1/events", json=events, headers=headers)
        lines = b"\n".join(map(orjson.dumps, events))
        return client.post("/v1/events", content=lines, headers=LINES | headers)

    def remember(self, events: list[dict[str, Any]], answer: dict[str, Any]) -> None:
        """What was acknowledged."""
        assert (answer["accepted"], answer["rejected"]) == (len(events), [])
        first = answer["first_event"]
        self.acknowledged |= dict(enumerate(events, start=first))
        self.answers.append((range(first, first + len(events)), answer["matches"]))

    def expect(self, oracle: Oracle) -> None:
        held = [orjson.loads(own.event or b"") for own in oracle.events]
        mine = [own["name"] for own in held if own["name"].startswith(f"{self.name}-")]
        assert len(set(mine)) == len(mine)  # nothing twice
        for number, event in self.acknowledged.items():
            assert held[number - 1] == event
        n_matches = Counter(event for own in oracle.matches.values() for event in own)
        for numbers, said in self.answers:
            assert sum(n_matches[number] for number in numbers) == said


class Repeated(NamedTuple):
    """A request that can be sent again."""

    key: str
    events: list[dict[str, Any]]
    answer: dict[str, Any] | None = None


class KeyedPublisher(Publisher):
    """Publishes with idempotency keys, and repeats requests: those that were cut, and others."""

    def __init__(self, name: str, seed: int, *, most_events: int = 4) -> None:
        super().__init__(name, seed, most_events=most_events)
        self.last: Repeated | None = None

    def begin(self, client: Client) -> None:
        if self.last is not None:
            self.repeat(client, self.last)

    def step(self, client: Client) -> None:
        if self.last is not None and self.draw.random() < 0.1:
            self.repeat(client, self.last)
            return
        events = self.draw_events()
        self.last = Repeated(f"{self.name}-{self.n_drawn}", events)
        self.repeat(client, self.last)

    def repeat(self, client: Client, own: Repeated) -> None:
        """Send a request, perhaps again: the answer is the same."""
        answer = expect_answer(self.send(client, own.events, **{"idempotency-key": own.key}))
        if own.answer is None:
            self.remember(own.events, answer)
            self.last = own._replace(answer=answer)
        assert self.last is not None
        assert answer == self.last.answer


# ── changing ────────────────────────────────────────────────────────────────────────────────


class Held(NamedTuple):
    """A subscription as it was acknowledged."""

    expression: str
    revision: int


class Subscriber(Worker):
    """Subscribes, replaces, renews and unsubscribes; nobody else changes its subscriptions."""

    def __init__(
        self, name: str, seed: int, *, n_held: int = 12, lease: float | None = None
    ) -> None:
        """It holds about `n_held`. With `lease`, some end after so many seconds."""
        super().__init__(name, seed)
        self.n_held, self.lease = n_held, lease
        self.n_made = 0
        self.held: dict[str, Held] = {}
        self.log: dict[int, tuple[str, str | None]] = {}  # acknowledged changes: id, expression
        self.ended: list[str] = []
        self.asked: tuple[str, str | None] | None = None  # what was asked last: id, expression

    def begin(self, client: Client) -> None:
        """What was cut has happened or not; everything else is as it was acknowledged."""
        if self.asked is not None:
            self.settle(client, *self.asked)
        for name, own in self.held.items():
            found = expect_answer(client.get(f"/v1/subscriptions/{name}"))
            assert Held(found["expression"], found["revision"]) == own
        for name in self.ended[-20:]:
            expect_answer(client.get(f"/v1/subscriptions/{name}"), 404)

    def settle(self, client: Client, name: str, expression: str | None) -> None:
        """Find out what came of a request that was cut."""
        answer = client.get(f"/v1/subscriptions/{name}")
        before = self.held.pop(name, None)
        if answer.status_code == 404:
            assert before is None or expression is None
            self.ended.append(name)
        else:
            found = expect_answer(answer)
            own = Held(found["expression"], found["revision"])
            has_changed = before is None or own.revision > before.revision
            assert own.expression == expression if has_changed else own == before
            self.held[name] = own
        self.asked = None

    def step(self, client: Client) -> None:
        kinds = [self.replace, self.renew, self.unsubscribe] if self.held else []
        if len(self.held) < self.n_held:
            kinds += [self.subscribe] * (4 if len(self.held) < self.n_held // 2 else 1)
        self.draw.choice(kinds)(client)

    def subscribe(self, client: Client) -> None:
        """A new one; if it is a lease that ends soon, it is not held."""
        name, expression = f"{self.name}-{self.n_made}", draw_expression(self.draw)
        self.n_made += 1
        is_short = self.lease is not None and self.draw.random() < 0.3
        if not is_short:
            self.asked = name, expression
        lease = self.draw.random() * (self.lease or 0) + 0.01 if is_short else LONG
        wanted = {"id": name, "expression": expression, "lease": lease}
        answer = client.post("/v1/subscriptions", json=wanted)
        if is_short and answer.status_code in (404, 422):
            return  # it has ended before it was read, or even before it was stored
        self.acknowledge(name, expect_answer(answer, 201), is_held=not is_short)

    def replace(self, client: Client) -> None:
        name, expression = self.choose(), draw_expression(self.draw)
        self.asked = name, expression
        answer = client.patch(f"/v1/subscriptions/{name}", json={"expression": expression})
        self.acknowledge(name, expect_answer(answer))

    def renew(self, client: Client) -> None:
        name = self.choose()
        self.asked = name, self.held[name].expression
        answer = client.post(f"/v1/subscriptions/{name}/renew", json={"lease": LONG * 2})
        self.acknowledge(name, expect_answer(answer))

    def unsubscribe(self, client: Client) -> None:
        name = self.choose()
        self.asked = name, None
        expect_answer(client.delete(f"/v1/subscriptions/{name}"), 204)
        del self.held[name]
        self.ended.append(name)
        self.asked = None

    def choose(self) -> str:
        """One of those that it holds."""
        return self.draw.choice(list(self.held))

    def acknowledge(self, name: str, found: dict[str, Any], *, is_held: bool = True) -> None:
        """The server has answered."""
        self.log[found["revision"]] = name, found["expression"]
        if is_held:
            self.held[name] = Held(found["expression"], found["revision"])
            self.asked = None

    def expect(self, oracle: Oracle) -> None:
        for number, (name, expression) in self.log.items():
            change = oracle.changes[number - 1]
            assert change.subscription is not None
            assert (change.subscription_id, change.subscription.expression) == (name, expression)
        latest = {own.subscription_id: own for own in oracle.changes}
        for name, own in self.held.items():
            assert latest[name].number == own.revision
        for name in self.ended:
            assert name not in latest or latest[name].subscription is None
