"""The log: followers, states of the past, and pruning."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path

import pytest

from tamis.errors import HistoryError, InputError, StoreError
from tamis.subscriptions import (
    ChangeKind,
    Renew,
    Replace,
    Subscribe,
    SubscriptionStore,
    Unsubscribe,
)
from tests.subscriptions.places import START, after, follow


def churn(store, seed: int, n_changes: int = 120) -> None:
    """Changes of a few subscriptions, in small groups."""
    draw = random.Random(seed)
    for _ in range(n_changes // 4):
        requests = []
        for _ in range(4):
            name = f"s{draw.randrange(12)}"
            requests.append(
                draw.choice(
                    [
                        Subscribe(name, f"x = {draw.randrange(99)}", valid_until=after(1000)),
                        Subscribe(name, f"x = {draw.randrange(99)}"),
                        Replace(name, f"x = {draw.randrange(99)}"),
                        Renew(name, after(1000 + draw.randrange(99))),
                        Unsubscribe(name),
                    ]
                )
            )
        store.apply(requests)


def states(store) -> list[dict]:
    """The set as of each change, from the log."""
    held, found = {}, [{}]
    for change in store.changes(after=0, limit=10_000):
        held.pop(change.subscription_id, None)
        if change.subscription is not None:
            held[change.subscription_id] = change.subscription
        found.append(dict(held))
    return found


def at(store, number: int) -> dict:
    return {one.id: one for one in store.state_at(number)}


def test_a_follower_reaches_the_same_state(store, place, seed):
    held, reached = {}, 0
    with SubscriptionStore.open(place, read_only=True) as follower:
        for round_ in range(4):
            churn(store, seed + round_, 40)
            reached = follow(follower, held, reached)
            assert reached == store.last_change
            assert held == at(store, reached)
        assert follower.changes(after=reached) == []
        assert follower.epoch == store.epoch


def test_every_state_can_be_rebuilt(store, seed):
    churn(store, seed)
    found = states(store)
    assert len(found) == store.last_change + 1
    for number, state in enumerate(found):
        assert at(store, number) == state


def test_pruning_keeps_states_from_the_horizon_on(store, seed):
    churn(store, seed)
    found = states(store)
    n_deleted = 0
    for before in (0, 30, 30, 55, 20):
        n_deleted += store.prune(before=before)
        horizon = store.horizon
        for number in range(horizon, len(found)):
            assert at(store, number) == found[number]
        assert store.changes(after=horizon)[0].number == horizon + 1
    assert store.horizon == 55
    assert n_deleted > 20
    for pruned in (lambda: store.state_at(54), lambda: store.changes(after=54)):
        with pytest.raises(HistoryError, match="begins at change 55; 54 is before") as raised:
            pruned()
        assert "start from a version" in raised.value.hint


def test_numbers_are_not_used_again(place):
    with SubscriptionStore.open(place) as store:
        store.apply([Subscribe("a", "x = 1"), Unsubscribe("a")])
        assert store.prune(before=2) == 2
        assert store.latest("a") is None
    with SubscriptionStore.open(place) as store:
        assert store.last_change == 2
        assert list(store.state_at(2)) == []
        assert store.apply([Subscribe("a", "x = 1")])[0].number == 3


def test_future_is_refused(store):
    store.apply([Subscribe("a", "x = 1")])
    with pytest.raises(HistoryError, match="ends at change 1; 2 is after") as raised:
        store.changes(after=2)
    assert "history was lost" in raised.value.hint
    with pytest.raises(HistoryError):
        store.state_at(2)
    with pytest.raises(InputError, match="the last change is 1"):
        store.prune(before=2)
    with pytest.raises(InputError):
        store.changes(after=-1)


def test_another_epoch_is_noticed(store, place):
    store.apply([Subscribe("a", "x = 1")])
    with SubscriptionStore.open(place, read_only=True) as follower:
        epoch = follower.epoch
        assert len(follower.changes(after=0, epoch=epoch)) == 1
        renewed = store.renew_epoch()
        assert renewed == follower.epoch != epoch
        with pytest.raises(HistoryError, match="another history"):
            follower.changes(after=0, epoch=epoch)


def test_state_is_exact_while_the_writer_goes_on(store):
    names = [f"s{n:04}" for n in range(2_500)]
    store.apply([Subscribe(name, "x = 1") for name in names])
    reading = store.state_at(2_500)
    found = [next(reading)]
    store.apply([Replace(name, "x = 2") for name in names[::2]])
    store.apply([Unsubscribe(name) for name in names[1::2]])
    found += reading
    assert [one.id for one in found] == names
    assert {one.expression for one in found} == {"x = 1"}


def test_state_pruned_while_it_is_read(store):
    names = [f"s{n:04}" for n in range(2_500)]
    store.apply([Subscribe(name, "x = 1") for name in names])
    reading = store.state_at(2_500)
    next(reading)
    store.apply([Unsubscribe(name) for name in names])
    store.prune(before=2_501)
    with pytest.raises(HistoryError, match="begins at change 2501"):
        list(reading)


def test_pruning_goes_by_pages(store, monkeypatch, seed):
    monkeypatch.setattr("tamis.subscriptions.store._PRUNE_SIZE", 7)
    churn(store, seed)
    found = states(store)
    store.prune(before=50)
    assert at(store, 50) == found[50]
    n_kept = len(store.changes(after=50, limit=1000)) + len(found[50])
    assert store.prune(before=store.last_change) <= n_kept


def test_change_at_a_moment(store, clock):
    assert store.change_at(START) == 0
    for n in range(10):
        store.apply([Subscribe(f"s{n}", "x = 1"), Subscribe(f"t{n}", "x = 1")])
        clock.move(10)
    assert store.change_at(after(-1)) == 0
    assert store.change_at(START) == 2
    assert store.change_at(after(39.9)) == 8
    assert store.change_at(after(9999)) == 20
    store.prune(before=10)
    assert store.change_at(START) == 10
    assert store.change_at(after(50)) == 12


def test_the_log_says_what_happened_and_when(store, clock):
    store.apply([Subscribe("a", "x = 1", valid_until=after(30))])
    clock.move(5)
    store.apply([Renew("a", after(40))])
    first, second = store.changes(after=0)
    assert first == (1, ChangeKind.SUBSCRIBE, "a", START, first.subscription)
    assert second == (2, ChangeKind.RENEW, "a", after(5), store.get("a"))
    assert second.subscription.revision == 2
    assert store.changes(after=0, limit=1) == [first]


def test_states_in_ranges_of_revisions(store):
    churn(store, seed=6)
    last = store.last_change
    for at in (last, last - 40):
        whole = list(store.state_at(at))
        bounds = [0, 7, 8, 50, last, last + 9]
        parts = [list(store.state_at(at, after=low, up_to=high)) for low, high in pairwise(bounds)]
        assert [one for part in parts for one in part] == whole
        assert all(
            low < one.revision for low, part in zip(bounds, parts, strict=False) for one in part
        )
    with pytest.raises(InputError, match="after is -1"):
        store.state_at(last, after=-1)


def test_vacuum_returns_pruned_space(place, store):
    for n in range(30):
        request = Subscribe if n == 0 else Replace
        store.apply([request(f"s{m}", f"x = '{n}{'y' * 2_000}'") for m in range(50)])
    store.prune(store.last_change)
    file = Path(place) / "subscriptions.sqlite"
    before = file.stat().st_size if file.exists() else None
    store.vacuum()
    if before is not None:
        assert file.stat().st_size < before / 5
    store.apply([Subscribe("new", "x = 1"), Unsubscribe("s0")])
    assert store.count() == 50
    assert {one.expression[:6] for one in store.state_at(1_500)} == {"x = '29"[:6]}
    with SubscriptionStore.open(place, read_only=True) as reader:
        assert reader.count() == 50
        with pytest.raises(StoreError, match="reading only"):
            reader.vacuum()


def test_vacuum_while_followers_read(store):
    store.apply([Subscribe(f"s{n:04}", "x = 1") for n in range(2_500)])
    state = store.state_at(2_500)
    first = next(state)
    store.apply([Unsubscribe("s0001")])
    store.vacuum()
    assert [first.id, *(one.id for one in state)] == [f"s{n:04}" for n in range(2_500)]
