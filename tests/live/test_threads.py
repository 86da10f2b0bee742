"""Threads read while others change the set: each answer is that of a moment during its call.

Every reader notes the last change that was visible before its call and the last one that was stored
when it returned, and the same of the clock. Afterwards the log is replayed: the answer must be that
of one of the changes in between, at one of the moments in between.
"""

from __future__ import annotations

import random
import shutil
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from functools import cache, partial
from typing import NamedTuple
from unittest.mock import patch

import pytest

import tamis
from tamis.errors import RefusedError
from tamis.live import LiveIndex, live_set, maintenance, merging
from tamis.subscriptions import Subscription
from tests.effort import examples
from tests.live.places import by_hand
from tests.subscriptions.places import Clock, new_folder
from tests.waiting import HANG_SECONDS

EVENTS = [{"v": value, "w": value % 2} for value in range(6)]
EXPRESSIONS = [
    text
    for value in range(len(EVENTS))
    for text in (f"v = {value}", f"v <= {value} AND w = 0", f"NOT v = {value}")
]
TRUE_FOR = {  # the numbers of the events
    text: {at for at, event in enumerate(EVENTS) if tamis.evaluate(text, event)}
    for text in EXPRESSIONS
}
N_WRITERS, N_READERS = 3, 3
N_NAMES = 25  # of each writer


# ── what was seen ───────────────────────────────────────────────────────────────────────────


class Seen(NamedTuple):
    """An answer, and what can be the moment of it."""

    first: int  # the last change that was visible before the call
    last: int  # the last change that was stored when it returned
    start: datetime
    end: datetime
    event: int
    ids: frozenset[str]


class Watch:
    """Collects the answers of one thread."""

    def __init__(self, live: LiveIndex, clock: Clock) -> None:
        self.live, self.clock = live, clock
        self.seen: list[Seen] = []

    def ask(self, question: Callable[[], list[list[str]]], events: list[int]) -> None:
        first, start = self.live.change, self.clock.now
        found = question()
        last, end = self.live.store.last_change, self.clock.now
        for event, ids in zip(events, found, strict=True):
            assert len(set(ids)) == len(ids)
            self.seen.append(Seen(first, last, start, end, event, frozenset(ids)))


def expect_moments(live: LiveIndex, seen: list[Seen]) -> None:
    """Each answer is that of some change and moment between call and return."""
    waiting = deque(sorted(seen, key=lambda own: own.first))
    unexplained: list[Seen] = []
    for number, states in replay(live):
        while waiting and waiting[0].first <= number:
            unexplained.append(waiting.popleft())
        answer = cache(partial(find_answer, states))
        unexplained = [
            own
            for own in unexplained
            if not any(own.ids == answer(own.event, at) for at in ticks(own))
        ]
        assert all(number < own.last for own in unexplained), (number, unexplained)
    assert not unexplained
    assert not waiting


def replay(live: LiveIndex) -> Iterator[tuple[int, dict[str, Subscription]]]:
    """The states of the set, change by change."""
    states: dict[str, Subscription] = {}
    number = 0
    yield number, states
    while changes := live.store.changes(after=number):
        for change in changes:
            number = change.number
            states.pop(change.subscription_id, None)
            if change.subscription is not None:
                states[change.subscription_id] = change.subscription
            yield number, states


def ticks(seen: Seen) -> Iterator[datetime]:
    """The moments of the clock between call and return."""
    at = seen.start
    while at <= seen.end:
        yield at
        at += timedelta(seconds=1)


def find_answer(states: dict[str, Subscription], event: int, at: datetime) -> frozenset[str]:
    return frozenset(
        name
        for name, own in states.items()
        if event in TRUE_FOR[own.expression] and (own.valid_until is None or own.valid_until > at)
    )


# ── what is done ────────────────────────────────────────────────────────────────────────────


class Churn:
    """Writers, readers and a clock that moves, on one index."""

    def __init__(self, live: LiveIndex, clock: Clock, seed: int, n_changes: int) -> None:
        self.live, self.clock, self.seed, self.n_changes = live, clock, seed, n_changes
        self.is_over = threading.Event()

    def run(self) -> list[Seen]:
        """All answers of all readers."""
        with ThreadPoolExecutor(N_WRITERS + N_READERS + 1) as pool:
            readers = [pool.submit(self.read, self.seed + n) for n in range(N_READERS)]
            others = [pool.submit(self.write, n) for n in range(N_WRITERS)]
            others.append(pool.submit(self.move))
            try:
                for future in others:
                    future.result(HANG_SECONDS)
            finally:
                self.is_over.set()
            return [one for reader in readers for one in reader.result(HANG_SECONDS)]

    def write(self, own: int) -> None:
        """Change some subscriptions, which no other thread changes."""
        draw = random.Random(self.seed * 100 + own)
        for _ in range(self.n_changes):
            name = f"n{own}-{draw.randrange(N_NAMES)}"
            with suppress(RefusedError):  # it is there already, it is not there, or it has ended
                number = draw.choice((self.add, self.add, self.replace, self.remove, self.renew))(
                    name, draw
                )
                assert self.live.change >= number

    def add(self, name: str, draw: random.Random) -> int:
        end = self.end(draw) if draw.random() < 0.5 else None
        return self.live.add(name, draw.choice(EXPRESSIONS), valid_until=end)

    def replace(self, name: str, draw: random.Random) -> int:
        return self.live.replace(name, draw.choice(EXPRESSIONS))

    def remove(self, name: str, draw: random.Random) -> int:
        return self.live.remove(name)

    def renew(self, name: str, draw: random.Random) -> int:
        return self.live.renew(name, self.end(draw))

    def end(self, draw: random.Random) -> datetime:
        return self.clock.now + timedelta(seconds=draw.randrange(1, 30))

    def move(self) -> None:
        """The clock moves, leases are ended, and all parts are merged now and then."""
        for turn in range(self.n_changes // 4):
            self.clock.move(1)
            if turn % 3 == 0:
                self.live._committer.expire()
            if turn % 10 == 0:
                self.live.compact()

    def read(self, seed: int) -> list[Seen]:
        draw = random.Random(seed)
        watch, everything = Watch(self.live, self.clock), list(range(len(EVENTS)))
        while not self.is_over.is_set() or not watch.seen:
            at = draw.randrange(len(EVENTS))
            watch.ask(lambda at=at: [self.live.match(EVENTS[at])], [at])
            watch.ask(lambda: self.live.match_lists(EVENTS).to_pylist(), everything)
            watch.ask(self.ask_a_snapshot, everything)
        return watch.seen

    def ask_a_snapshot(self) -> list[list[str]]:
        frozen = self.live.snapshot()
        found = frozen.match_lists(EVENTS).to_pylist()
        assert [frozen.match(event) for event in EVENTS] == found
        return found


@contextmanager
def many_merges(*, in_this_process: bool) -> Iterator[None]:
    """Small parts, which are merged all the time."""
    with (
        by_hand(has_thread=True) if in_this_process else patch.object(merging, "FAN_IN", 3),
        patch.object(live_set, "MOST_NEWEST", 8),
        patch.object(maintenance, "INTERVAL", 0.001),
    ):
        yield


def churn(seed: int, n_changes: int, *, in_this_process: bool) -> None:
    folder, clock = new_folder(), Clock()
    try:
        with many_merges(in_this_process=in_this_process):
            with LiveIndex.open(folder / "live", clock=clock) as live:
                seen = Churn(live, clock, seed, n_changes).run()
                assert live.change == live.store.last_change
                expect_moments(live, seen)
            with LiveIndex.open(folder / "live", clock=clock) as live:
                watch = Watch(live, clock)
                watch.ask(lambda: live.match_lists(EVENTS).to_pylist(), [*range(len(EVENTS))])
                expect_moments(live, watch.seen)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("in_this_process", [True, False])
def test_answers_are_of_a_moment_of_the_call(in_this_process, seed):
    churn(seed, 60, in_this_process=in_this_process)


@pytest.mark.slow
@pytest.mark.parametrize("in_this_process", [True, False])
def test_answers_are_of_a_moment_of_the_call_for_long(in_this_process, seed):
    churn(seed + 1, examples(300), in_this_process=in_this_process)


def test_a_wrong_answer_is_noticed(tmp_path):
    """The check itself: an answer of no moment fails it."""
    clock = Clock()
    with by_hand(), LiveIndex.open(tmp_path / "live", clock=clock) as live:
        live.add("a", "v = 1")
        live.add("b", "v = 1")
        live.remove("a")
        seen = Seen(2, 3, clock.now, clock.now, 1, frozenset({"b"}))
        expect_moments(live, [seen, seen._replace(ids=frozenset({"a", "b"}))])
        for wrong in ({"a"}, {"a", "b", "c"}, set()):
            with pytest.raises(AssertionError):
                expect_moments(live, [seen._replace(ids=frozenset(wrong))])
