"""Leases end at their moment, and a clock that goes back brings nothing back."""

from __future__ import annotations

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
        State.EXPIRED: ["ended", "over"],
    }
    assert {state: store.count(state=state) for state in State} == {
        state: len(ids) for state, ids in found.items()
    }
    assert [one.id for one in store.list().subscriptions] == ["later", "now"]
