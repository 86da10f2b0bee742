"""Which subscription a number is: from the log, and after the log has lost it."""

from __future__ import annotations

import random

import pytest

from tamis.broker.channels import Mailbox
from tamis.broker.mailbox import Position
from tamis.broker.subscriptions import KnownSubscription
from tamis.subscriptions import Accepted, Replace, Subscribe, Unsubscribe
from tests.broker.places import ANN
from tests.subscriptions.places import after


def apply(store, *requests) -> int:
    results = store.apply(requests)
    assert all(isinstance(one, Accepted) for one in results), results
    return results[-1].number


def test_a_subscription_keeps_its_number(broker, store, clock):
    first = apply(store, Subscribe("a", "x = 1", owner="ann", ticket_hash=b"t"))
    known = KnownSubscription(first, "a", "ann", b"t", None, None)
    assert broker.subscriptions.get(first) == broker.subscriptions.find("a") == known
    revision = apply(store, Replace("a", owner="bob"))
    known = known._replace(owner="bob")
    assert broker.subscriptions.get(first) == broker.subscriptions.find("a") == known
    assert broker.subscriptions.get(revision) is None
    clock.move(5)
    end = apply(store, Unsubscribe("a"))
    known = known._replace(ended=end, ended_at=after(5))
    assert broker.subscriptions.get(first) == broker.subscriptions.find("a") == known
    assert broker.subscriptions.get(end) is None
    second = apply(store, Subscribe("a", "x = 2"))
    assert broker.subscriptions.find("a").number == second
    assert broker.subscriptions.get_many([first, second, 99]).keys() == {first, second}
    assert broker.subscriptions.get(first) == known


def test_a_lease_that_ends(broker, store, clock):
    number = apply(store, Subscribe("a", "x = 1", valid_until=after(10)))
    clock.move(11)
    assert broker.subscriptions.get(number).ended is None  # not written yet
    store.expire()
    assert broker.subscriptions.get(number).ended_at == after(11)


@pytest.mark.parametrize("wrong", ["", "b", "\0", "\ud800", 5, None])
def test_unknown_ids(broker, store, wrong):
    apply(store, Subscribe("a", "x = 1"))
    assert broker.subscriptions.find(wrong) is None


def test_pruning_keeps_mailboxes_with_mail(broker, store, clock):
    kept, gone = (apply(store, Subscribe(name, "x = 1", owner="ann")) for name in ("a", "b"))
    alive = apply(store, Subscribe("c", "x = 1", owner="ann"))
    apply(store, Replace("c", "x = 2"))
    archive = Position("e", 100)
    for number in (kept, gone, alive):
        broker.cursors.acknowledge(Mailbox.of_subscription(number), "me", archive, archive)
    broker.channels.create(ANN, "news")
    broker.channels.add(ANN, "news", [kept, gone, alive])
    clock.move(1)
    apply(store, Unsubscribe("a"), Unsubscribe("b"))
    known = broker.subscriptions.get(kept)

    pruned = broker.prune(store.last_change, lambda numbers: {kept, alive} & set(numbers))
    assert [one.mailbox.number for one in pruned.mailboxes] == [gone]
    assert (pruned.mailboxes[0].n_cursors, pruned.mailboxes[0].n_members) == (1, 1)
    assert pruned.n_changes > 0
    assert broker.subscriptions.get(kept) == broker.subscriptions.find("a") == known
    assert known.ended_at == after(1)
    assert broker.subscriptions.get(gone) is broker.subscriptions.find("b") is None
    assert broker.subscriptions.get(alive).id == "c"
    assert broker.cursors.get(Mailbox.of_subscription(kept), "me").position == archive
    assert broker.cursors.get(Mailbox.of_subscription(gone), "me") is None

    again = broker.prune(store.last_change, lambda _numbers: ())
    assert [one.mailbox.number for one in again.mailboxes] == [kept]
    assert broker.subscriptions.get(kept) is None
    assert [one.subscription for one in broker.channels.members(1).items] == [alive]


def test_an_id_whose_earlier_holder_was_remembered(broker, store):
    first = apply(store, Subscribe("a", "x = 1"))
    apply(store, Unsubscribe("a"))
    broker.prune(store.last_change, set)
    second = apply(store, Subscribe("a", "x = 1"))
    assert broker.subscriptions.find("a").number == second
    apply(store, Unsubscribe("a"))
    broker.prune(store.last_change, set)
    assert broker.subscriptions.find("a").number == second
    assert broker.subscriptions.get_many([first, second]).keys() == {first, second}


def test_random_lives_against_a_dictionary(broker, store, monkeypatch, seed):
    monkeypatch.setattr("tamis.broker.subscriptions._PAGE_SIZE", 3)
    draw = random.Random(seed)
    held: dict[str, int] = {}
    known: dict[int, tuple[str, str, int | None]] = {}
    for turn in range(150):
        name, owner = draw.choice("abcdef"), draw.choice(["", "ann", "bob"])
        kind = draw.random()
        if name not in held:
            held[name] = number = apply(store, Subscribe(name, "x = 1", owner=owner))
            known[number] = (name, owner, None)
        elif kind < 0.5:
            apply(store, Replace(name, owner=owner))
            known[held[name]] = (name, owner, None)
        else:
            number = held.pop(name)
            known[number] = (*known[number][:2], apply(store, Unsubscribe(name)))
        if turn % 10 == 9:
            mail = set(draw.sample(sorted(known), len(known) // 2))
            before = draw.randint(store.horizon, store.last_change)
            ended = broker.prune(before, lambda numbers, mail=mail: mail & set(numbers))
            for one in ended.mailboxes:
                assert known.pop(one.mailbox.number)[2] is not None
                assert one.mailbox.number not in mail
        if turn % 5:
            continue
        asked = range(1, store.last_change + 1)
        found = broker.subscriptions.get_many(asked)
        assert {one.number: (one.id, one.owner, one.ended) for one in found.values()} == known
        for name in "abcdef":
            last = max((number for number, one in known.items() if one[0] == name), default=None)
            one = broker.subscriptions.find(name)
            assert (None if one is None else one.number) == last
