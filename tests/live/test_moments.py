"""The set changes while a question reads the clock: the answer is that of one moment."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from tamis.live import Follower, LiveIndex, follow
from tests.live.places import by_hand
from tests.subscriptions.places import START, Clock, after

EVENT = {"a": 1}
QUESTIONS = {
    "match": lambda index: index.match(EVENT) == ["s"],
    "match_bindings": lambda index: index.match_bindings(EVENT) == {"s": {}},
    "match_lists": lambda index: index.match_lists([EVENT]).to_pylist() == [["s"]],
    "match_batch": lambda index: len(index.match_batch([EVENT])) == 1,
    "match_chunks": lambda index: sum(map(len, index.match_chunks([EVENT]))) == 1,
    "match_top": lambda index: index.match_top(EVENT, 1) == ["s"],
    "match_top of many": lambda index: len(index.match_top([EVENT], 1)) == 1,
    "count_by_event": lambda index: index.count_by_event([EVENT]).tolist() == [1],
    "count_by_subscription": lambda index: index.count_by_subscription([EVENT]).tolist() == [1],
    "summarise_by_event": lambda index: index.summarise_by_event([EVENT]).counts.tolist() == [1],
    "summarise_by_subscription": (
        lambda index: index.summarise_by_subscription([EVENT]).counts.tolist() == [1]
    ),
    "list_valid": lambda index: index.list_valid().tolist() == [0],
    "explain": lambda index: index.explain("s", EVENT).matches,
    "snapshot": lambda index: index.snapshot().match(EVENT) == ["s"],
}


class BusyClock(Clock):
    """Does something the next time that it is read, before it answers."""

    def __init__(self) -> None:
        super().__init__()
        self.before_answer: Callable[[], None] | None = None

    def __call__(self) -> datetime:
        act, self.before_answer = self.before_answer, None
        if act is not None:
            act()
        return super().__call__()


@pytest.fixture
def clock():
    return BusyClock()


@pytest.fixture
def live(tmp_path, clock):
    with by_hand(), LiveIndex.open(tmp_path / "live", clock=clock) as index:
        index.add("s", "a = 1", valid_until=after(10))
        yield index


@pytest.mark.parametrize("is_matched", QUESTIONS.values(), ids=QUESTIONS)
@pytest.mark.filterwarnings("ignore:no subscription has a weight:tamis.TamisWarning")
def test_a_lease_renewed_while_a_question_reads_the_clock(live, clock, is_matched):
    """It is valid without a gap, so every answer has it."""

    def renew() -> None:
        live.renew("s", after(60))
        clock.move(20)  # the old lease is over

    clock.before_answer = renew
    assert is_matched(live)
    assert clock.now == after(20)
    clock.move(40)
    assert not is_matched(live)


def test_a_lease_that_ends_is_not_renewed_by_a_question(live, clock):
    clock.before_answer = lambda: clock.move(10)
    assert live.match(EVENT) == []


def test_a_follower_reads_on_while_a_question_reads_the_clock(live, monkeypatch):
    now, acts = [START], []

    def read_clock(follower: Follower) -> datetime:
        while acts:
            acts.pop()()
        return now[0]

    monkeypatch.setattr(Follower, "_read_clock", read_clock)
    with follow(live._folder, is_started=False) as follower:

        def renew() -> None:
            live.renew("s", after(60))
            follower.refresh()
            now[0] += timedelta(seconds=20)

        acts.append(renew)
        assert follower.match(EVENT) == ["s"]
        assert now[0] == after(20)
