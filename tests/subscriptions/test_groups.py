"""Many callers, one writer: what waits is committed together, in order."""

from __future__ import annotations

import itertools
import time
from threading import Barrier, Event, Thread

import pytest

from tamis.errors import StoreError
from tamis.subscriptions import Accepted, Reason, Replace, Subscribe, SubscriptionStore
from tests.waiting import HANG_SECONDS, wait_until

N_THREADS = 8


def run_threads(work) -> None:
    threads = [Thread(target=work, args=(n,)) for n in range(N_THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)


def test_each_caller_gets_its_own_results(place):
    groups, numbers = [], [[] for _ in range(N_THREADS)]
    with SubscriptionStore.open(place, on_commit=groups.append) as store:

        def work(n: int) -> None:
            for turn in range(25):
                requests = [Subscribe(f"{n}-{turn}-{k}", f"x = {n}") for k in range(n % 3 + 1)]
                results = store.apply([*requests, Subscribe(f"{n}-0-0", "x = 1")])
                assert results[-1].reason is Reason.EXISTS
                got = [result.number for result in results[:-1]]
                assert got == list(range(got[0], got[0] + len(requests)))  # none between them
                numbers[n] += got
                assert store.get(f"{n}-{turn}-0").revision == got[0]

        run_threads(work)
        assert sorted(itertools.chain(*numbers)) == list(range(1, store.last_change + 1))
    committed = [change.number for group in groups for change in group]
    assert committed == list(range(1, len(committed) + 1))
    assert all(one == sorted(one) for one in numbers)


def test_what_waits_becomes_one_transaction(place):
    groups, is_first, may_go_on = [], Event(), Event()

    def note(changes) -> None:
        groups.append([change.subscription_id for change in changes])
        is_first.set()
        assert may_go_on.wait(HANG_SECONDS)

    with SubscriptionStore.open(place, on_commit=note) as store:
        futures = [store.submit([Subscribe("first", "x = 1")])]
        assert is_first.wait(HANG_SECONDS)
        futures += [store.submit([Subscribe(f"s{n}", "x = 1")]) for n in range(50)]
        cancelled = futures.pop(10)
        assert cancelled.cancel()
        may_go_on.set()
        assert [future.result() for future in futures] == [[Accepted(n + 1)] for n in range(50)]
        assert store.get("s9") is None
    assert [len(group) for group in groups] == [1, 49]


def test_one_that_is_cancelled_alone_stops_nothing(place):
    is_first, may_go_on = Event(), Event()

    def note(_changes) -> None:
        is_first.set()
        assert may_go_on.wait(HANG_SECONDS)

    with SubscriptionStore.open(place, on_commit=note) as store:
        first = store.submit([Subscribe("first", "x = 1")])
        assert is_first.wait(HANG_SECONDS)
        assert store.submit([Subscribe("never", "x = 1")]).cancel()
        may_go_on.set()
        first.result()
        assert store.apply([Subscribe("second", "x = 1")]) == [Accepted(2)]


def test_of_many_editors_one_wins_each_revision(store):
    store.apply([Subscribe("a", "0")])
    won = [0] * N_THREADS
    barrier = Barrier(N_THREADS)

    def work(n: int) -> None:
        for _ in range(10):
            barrier.wait(HANG_SECONDS)
            revision = store.get("a").revision
            barrier.wait(HANG_SECONDS)
            (result,) = store.apply([Replace("a", f"{n}", if_revision=revision)])
            won[n] += isinstance(result, Accepted)

    run_threads(work)
    assert sum(won) == 10
    assert store.get("a").revision == 11


def test_pruning_and_expiring_go_between_groups(store):
    is_done = Event()

    def prune() -> None:
        while not is_done.is_set():
            store.prune(before=store.last_change)
            store.expire()
            time.sleep(0)

    pruning = Thread(target=prune)
    pruning.start()
    run_threads(lambda n: [store.apply([Subscribe(f"{n}-{k}", "x = 1")]) for k in range(25)])
    is_done.set()
    pruning.join(HANG_SECONDS)
    assert store.count() == len(list(store.state_at(store.last_change))) == 25 * N_THREADS


def test_close_finishes_what_was_submitted(place):
    store = SubscriptionStore.open(place)
    futures = [store.submit([Subscribe(f"s{n}", "x = 1")]) for n in range(30)]
    store.close()
    store.close()
    assert all(isinstance(future.result()[0], Accepted) for future in futures)
    for late in (lambda: store.apply([Subscribe("late", "x = 1")]), store.renew_epoch, store.list):
        with pytest.raises(StoreError, match="is closed"):
            late()
    with SubscriptionStore.open(place) as store:
        assert store.count() == 30


def test_a_listener_that_fails_does_not_stop_the_store(place):
    seen = []

    def listen(changes) -> None:
        seen.append(len(changes))
        if len(seen) == 1:
            raise RuntimeError("listener")

    with SubscriptionStore.open(place, on_commit=listen) as store:
        with pytest.raises(RuntimeError, match="listener"):
            store.apply([Subscribe("a", "x = 1")])
        assert store.get("a") is not None  # it was on disk before
        assert store.apply([Subscribe("b", "x = 1")]) == [Accepted(2)]
        wait_until(lambda: len(seen) == 2, "both groups were seen")
