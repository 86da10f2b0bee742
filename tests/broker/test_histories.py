"""History and live: no gap, nothing twice, in any interleaving and through kills."""

from __future__ import annotations

import random
from collections import deque
from concurrent.futures import ThreadPoolExecutor

import pytest

from tamis.archive.maintenance import Maintenance
from tamis.broker import history_reading
from tamis.broker.mailbox import Mailbox
from tamis.broker.match_server import MatchServer
from tamis.search import searching
from tamis.subscriptions import Subscribe, Unsubscribe
from tests.broker.history_places import WORDS as KNOWN
from tests.broker.history_places import draw_title, match_now, read_all, subscribe, write
from tests.effort import SEED, examples
from tests.scripts import run_script
from tests.subscriptions.places import new_folder


class Model:
    """A server whose publisher is played by hand, and lists that say what mailboxes have."""

    def __init__(self, folder, draw: random.Random) -> None:
        self.folder, self.draw = folder, draw
        self.server = MatchServer.open(folder)
        self.titles: list[str] = []
        self.in_flight: deque = deque()  # matched by some set, not yet written
        self.words: dict[int, str] = {}
        self.since: dict[int, int] = {}
        self.cursors: dict[int, int] = {}
        self.read: dict[int, list[int]] = {}

    def match(self) -> None:
        titles = [draw_title(self.draw) for _ in range(self.draw.choice([1, 1, 3]))]
        self.in_flight.append((titles, match_now(self.server, titles)))

    def write(self) -> None:
        if self.in_flight:
            titles, matched = self.in_flight.popleft()
            write(self.server, matched)
            self.titles += titles

    def subscribe(self) -> None:
        name, word = f"s{len(self.words)}", self.draw.choice(KNOWN)
        last = len(self.titles)
        since = self.draw.choice([0, 0, self.draw.randint(0, last), last])
        number = subscribe(self.server, name, word, since)
        self.words[number], self.since[number] = word, since
        self.cursors[number], self.read[number] = 0, []

    def page(self) -> None:
        """A reader of some mailbox goes on."""
        if self.words:
            number = self.draw.choice([*self.words])
            limit = self.draw.choice([1, 2, 9])
            after = self.cursors[number]
            page = self.server.mailboxes.read_named({number: "s"}, after=after, limit=limit)
            self.read[number] += [match.event for match in page.matches]
            self.cursors[number] = page.after

    def seal(self) -> None:
        self.server.archive.seal()

    def index(self) -> None:
        indexes = self.server.histories._searcher.search._indexes
        indexes.build(indexes.plan())

    def restart(self) -> None:
        while self.in_flight:  # a server that closes writes what is matched
            self.write()
        self.server.close()
        self.server = MatchServer.open(self.folder)

    def expected(self, number: int) -> list[int]:
        word, since = self.words[number], self.since[number]
        numbered = enumerate(self.titles, start=1)
        return [at for at, title in numbered if at > since and word in title.split()]

    def check(self) -> None:
        for number in self.words:
            expected = self.expected(number)
            rest = read_all(self.server, [number], self.cursors[number], self.draw)
            assert self.read[number] + [event for event, _ in rest] == expected
            counted = self.server.mailboxes.count({number: "s"}, after=0, up_to=len(self.titles))
            assert counted == {number: len(expected)}
        together = read_all(self.server, [*self.words], 0, self.draw)
        by_event = {}
        for number in self.words:
            for event in self.expected(number):
                by_event.setdefault(event, []).append(number)
        assert together == [(event, tuple(sorted(by_event[event]))) for event in sorted(by_event)]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    monkeypatch.setattr(history_reading, "LEAST_LOOKED", 5)
    monkeypatch.setattr(searching, "MOST_CANDIDATES", 3)
    monkeypatch.setattr(Maintenance, "start", lambda self: None)


def interleave(draw: random.Random, n_steps: int) -> int:
    model = Model(new_folder() / "server", draw)
    steps = [model.match] * 12 + [model.write] * 12 + [model.page] * 12 + [model.subscribe] * 6
    steps += [model.seal, model.index]
    for at in range(n_steps):
        draw.choice(steps)()
        if at % 150 == 149:
            model.restart()
    while model.in_flight:
        model.write()
    model.check()
    model.server.close()
    return len(model.words)


def test_history_and_live_join_in_any_interleaving(seed):
    n_joined = sum(interleave(random.Random(seed + at), 400) for at in range(examples(10)))
    assert n_joined > 200


@pytest.mark.slow
def test_history_and_live_join_in_a_thousand_interleavings(seed):
    n_joined = sum(interleave(random.Random(seed + at), 1_000) for at in range(examples(8)))
    assert n_joined > 800


def test_events_that_were_matched_before_wake_those_who_wait(tmp_path):
    with MatchServer.open(tmp_path / "server") as server:
        matched = match_now(server, ["oil"])
        number = subscribe(server, "a", "oil", 0)
        assert server.histories.list_open() == [number]
        write(server, matched)
        assert server.histories.list_open() == [number]
        write(server, match_now(server, ["oil"]))
        assert server.histories.list_open() == []
        assert read_all(server, [number], 0, random.Random(SEED)) == [
            (1, (number,)),
            (2, (number,)),
        ]
        assert server.mailboxes.has(number, 1)
        assert [
            own.event for own in server.mailboxes.newest(Mailbox.of_subscription(number), 5)
        ] == [2, 1]


@pytest.mark.parametrize("is_made", [False, True])
def test_a_crash_leaves_a_subscription_with_its_history_or_neither(tmp_path, is_made):
    with MatchServer.open(tmp_path / "server") as server:
        write(server, match_now(server, ["oil"]))
        ticket = server.broker.tickets.make()
        expression = "matches(title, 'oil')"
        server.broker.histories.announce("a", ticket.hash, 0, expression)
        if is_made:
            made = Subscribe("a", expression, ticket_hash=ticket.hash)
            server.live.submit([made]).result()
    with MatchServer.open(tmp_path / "server") as server:
        assert len(server.broker.histories.list()) == is_made
        number = (
            subscribe(server, "a", "oil", None) if not is_made else server.live.get("a").created
        )
        found = read_all(server, [number], 0, random.Random(SEED))
        assert found == ([(1, (number,))] if is_made else [])


def test_another_subscription_with_the_id_has_no_history(tmp_path):
    with MatchServer.open(tmp_path / "server") as server:
        write(server, match_now(server, ["oil"]))
        first = subscribe(server, "a", "oil", 0)
        server.live.submit([Unsubscribe("a")]).result()
        second = subscribe(server, "a", "oil", None)
        draw = random.Random(SEED)
        assert read_all(server, [first], 0, draw) == [(1, (first,))]
        assert read_all(server, [second], 0, draw) == []


def test_events_that_retention_removed_are_missed(tmp_path):
    with MatchServer.open(tmp_path / "server") as server:
        for _ in range(2):
            write(server, match_now(server, ["oil"]))
            server.archive.seal()
        number = subscribe(server, "a", "oil", 0)
        server.archive.prune(before=2)
        page = server.mailboxes.read_named({number: "a"}, after=0, limit=10)
        assert (page.missed, [own.event for own in page.matches]) == (range(1, 2), [2])


def test_subscribers_at_once_all_get_their_history(tmp_path):
    """Each of them makes others read the list of histories, while theirs are announced."""
    with MatchServer.open(tmp_path / "server") as server:
        write(server, match_now(server, ["oil"]))
        with ThreadPoolExecutor(8) as pool:
            names = [f"s{at}" for at in range(examples(200))]
            numbers = list(pool.map(lambda name: subscribe(server, name, "oil", 0), names))
        assert {own.subscription for own in server.broker.histories.list()} == {*numbers}
        draw = random.Random(SEED)
        for number in numbers[:20]:
            assert read_all(server, [number], 0, draw) == [(1, (number,))]


def test_killed_servers_join_history_and_live(tmp_path, seed):
    out = run_script("-m", "tests.broker.history_victim", str(tmp_path), "3", str(seed))
    assert out.startswith("3 runs")
    assert int(out.split()[2]) > 0


@pytest.mark.slow
def test_many_killed_servers_join_history_and_live(tmp_path, seed):
    runs = str(examples(20))
    assert run_script("-m", "tests.broker.history_victim", str(tmp_path), runs, str(seed + 1_000))
