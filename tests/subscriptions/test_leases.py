"""Leases end at their moment, and a clock that goes back brings nothing back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tamis.errors import StoreError
from tamis.subscriptions import (
    Accepted,
    ChangeKind,
    Reason,
    Renew,
    Replace,
    State,
    Subscribe,
    SubscriptionStore,
    Unsubscribe,
)
from tamis.subscriptions.writer import Writer
from tests.live.killing import counting
from tests.subscriptions.places import START, after


def kinds(store) -> list[ChangeKind]:
    return [change.kind for change in store.changes(after=store.horizon)]


def test_a_lease_ends_at_its_moment_before_that_is_written(store, clock):
    store.apply([Subscribe("a", "x = 1", valid_until=after(10)), Subscribe("b", "x = 1")])
    clock.move(9.999999)
    assert store.get("a") is not None
    assert store.count() == 2
    clock.move(0.000001)
    assert store.get("a") is None
    assert [one.id for one in store.list().subscriptions] == ["b"]
    assert store.count(state=State.EXPIRED) == 1
    assert kinds(store) == [ChangeKind.SUBSCRIBE] * 2
    assert store.expire() == 1
    assert store.expire() == 0
    last = store.latest("a")
    assert last == (3, ChangeKind.EXPIRE, "a", after(10), None)
    assert store.count(state="expired") == 1


def test_ended_leases_are_refused_alike_before_and_after_expire(store, clock):
    store.apply([Subscribe("a", "x = 1", valid_until=after(10))])
    clock.move(10)
    for _ in range(2):
        for late in (Renew("a", after(99)), Replace("a", "x = 2"), Unsubscribe("a")):
            (refused,) = store.apply([late])
            assert refused.reason is Reason.EXPIRED
        store.expire()


def test_an_id_is_free_when_its_lease_has_ended(store, clock):
    store.apply([Subscribe("a", "x = 1", valid_until=after(10))])
    clock.move(10)
    (bad,) = store.apply([Subscribe("a", "x = 2", valid_until=after(5))])
    assert bad.reason is Reason.INVALID
    assert store.apply([Subscribe("a", "x = 2")]) == [Accepted(3)]
    assert kinds(store) == [ChangeKind.SUBSCRIBE, ChangeKind.EXPIRE, ChangeKind.SUBSCRIBE]
    assert store.get("a").created == 3


def test_clock_that_goes_back_resurrects_nothing(store, clock):
    store.apply([Subscribe("a", "x = 1", valid_until=after(10))])
    clock.move(10)
    assert store.get("a") is None
    clock.move(-3600)
    assert store.get("a") is None
    assert store.count() == 0
    assert store.moment == after(10)
    (refused,) = store.apply([Renew("a", after(99))])
    assert refused.reason is Reason.EXPIRED
    assert store.expire() == 1
    moments = [change.moment for change in store.changes(after=0)]
    assert moments == [START, after(10)]


def test_clock_may_be_behind_after_a_restart(place, clock):
    with SubscriptionStore.open(place, clock=clock) as store:
        store.apply([Subscribe("a", "x = 1", valid_until=after(10)), Subscribe("b", "x = 1")])
        clock.move(10)
        store.apply([Unsubscribe("b")])
    clock.move(-3600)
    with SubscriptionStore.open(place, read_only=True, clock=clock) as follower:
        assert follower.get("a") is None
        assert follower.count() == 0
    with SubscriptionStore.open(place, clock=clock) as store:
        assert store.get("a") is None
        assert store.expire() == 1
        assert store.latest("a").moment == after(10)


ANSWERS = {
    "get": lambda store: store.get("a") is None,
    "list": lambda store: not store.list().subscriptions,
    "count": lambda store: store.count() == 0,
    "settled_moment": lambda store: store.settled_moment() == after(10),
    "apply": lambda store: store.apply([Renew("a", None)])[0].reason is Reason.EXPIRED,
}


@pytest.mark.parametrize("leaves_out", ANSWERS.values(), ids=ANSWERS)
def test_an_end_that_an_answer_used_is_on_disk(place, clock, leaves_out):
    """Without an entry in the log, and with a clock that is set back while the store is closed."""
    with SubscriptionStore.open(place, clock=clock) as store:
        store.apply([Subscribe("a", "x = 1", valid_until=after(10))])
        clock.move(10)
        assert leaves_out(store)
        assert store.last_change == 1
    clock.move(-10)
    with SubscriptionStore.open(place, clock=clock) as store:
        assert store.get("a") is None
        assert store.moment == after(10)


def test_only_the_end_of_a_lease_is_written(store, clock):
    leases = [Subscribe(f"s{n}", "x = 1", valid_until=after(10 * n)) for n in (1, 2, 3)]
    store.apply([*leases, Subscribe("b", "x = 1", valid_until=after(5)), Unsubscribe("b")])

    def count_writes(seconds: float) -> int:
        clock.move(seconds)
        with counting(calls=()) as writes:
            for _ in range(3):
                store.settled_moment()
        return writes.n_writes

    wrote = count_writes(10)
    assert wrote > 0
    assert [count_writes(seconds) for seconds in (0, 9, 1, 0)] == [0, 0, wrote, 0]
    store.apply([Subscribe("c", "x = 1", valid_until=after(25))])
    assert [count_writes(seconds) for seconds in (4, 1, 4, 1, 9)] == [0, wrote, 0, wrote, 0]


def test_answers_go_on_if_the_moment_cannot_be_written(store, clock, monkeypatch):
    store.apply([Subscribe("a", "x = 1", valid_until=after(10))])
    clock.move(10)
    failed = []

    def fail(self, connection, group, moment):
        failed.append(moment)
        raise StoreError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(Writer, "_advance", fail)
        assert [store.get("a") for _ in range(3)] == [None] * 3
    assert len(failed) == 1
    store.apply([Subscribe("b", "x = 1", valid_until=after(20))])  # this writes it
    clock.move(10)
    with counting(calls=()) as writes:
        assert store.get("b") is None
    assert writes.n_writes > 0


def test_expire_takes_a_moment(store):
    store.apply([Subscribe(f"s{n}", "x = 1", valid_until=after(n + 1)) for n in range(10)])
    assert store.expire(now=after(5)) == 5
    assert store.moment == after(5)
    assert [store.latest(f"s{n}").number for n in range(5)] == [11, 12, 13, 14, 15]


def test_renewals_extend(store):
    store.apply([Subscribe("a", "x = 1", valid_until=after(10))])
    results = store.apply(
        [
            Renew("a", after(20)),
            Renew("a", after(20)),
            Renew("a", after(19)),
            Renew("a", None),
            Renew("a", after(99)),
            Replace("a", valid_until=after(5)),
        ]
    )
    assert [results[at] for at in (0, 1, 3, 5)] == [Accepted(n) for n in (2, 3, 4, 5)]
    assert [results[at].reason for at in (2, 4)] == [Reason.SHORTER] * 2
    assert "2030-01-01T00:00:20" in results[2].message
    assert "no end" in results[4].message
    assert store.get("a").valid_until == after(5)


def test_states(store, clock):
    store.apply(
        [
            Subscribe("ended", "x = 1", valid_until=after(5)),
            Subscribe("over", "x = 1", valid_until=after(10)),
            Subscribe("removed", "x = 1", valid_until=after(10)),
            Subscribe("later", "x = 1", valid_from=after(20), valid_until=after(30)),
            Subscribe("now", "x = 1", valid_from=after(10)),
        ]
    )
    store.apply([Unsubscribe("removed")])
    store.expire(now=after(5))
    clock.move(10)
    found = {state: [one.id for one in store.list(state=state).subscriptions] for state in State}
    assert found == {
        State.WAITING: ["later"],
        State.VALID: ["now"],
        State.EXPIRING: [],
        State.EXPIRED: ["ended", "over"],
    }
    assert {state: store.count(state=state) for state in State} == {
        state: len(ids) for state, ids in found.items()
    }
    assert [one.id for one in store.list().subscriptions] == ["later", "now"]


@pytest.mark.parametrize(
    ("lease", "left"),
    [
        (timedelta(days=1), timedelta(hours=2, minutes=24)),
        (timedelta(days=7), timedelta(hours=16, minutes=48)),
        (timedelta(days=60), timedelta(days=1)),
        (timedelta(microseconds=15), timedelta(microseconds=2)),
    ],
)
def test_a_lease_expires_soon_when_little_of_it_is_left(store, clock, lease, left):
    end = START + lease
    store.apply([Subscribe("a", "x = 1", valid_until=end), Subscribe("endless", "x = 1")])
    assert store.get("a").expires_soon == end - left
    assert store.get("endless").expires_soon is None
    clock.now = end - left
    assert store.count(state=State.EXPIRING) == 0
    clock.now += timedelta(microseconds=1)
    assert [one.id for one in store.list(state="expiring").subscriptions] == ["a"]
    assert store.count(state=State.VALID) == 2
    store.apply([Renew("a", end + lease)])
    assert store.count(state=State.EXPIRING) == 0
    clock.now = end + lease
    assert store.count(state=State.EXPIRING) == 0
    assert store.count(state=State.EXPIRED) == 1


def test_a_validity_that_begins_later_is_counted_from_there(store, clock):
    store.apply([Subscribe("a", "x = 1", valid_from=after(100), valid_until=after(200))])
    assert store.get("a").expires_soon == after(190)
    clock.move(50)
    assert store.count(state=State.EXPIRING) == 0
    clock.move(141)
    assert store.count(state=State.EXPIRING) == 1
