"""Cursors: they never move back by themselves, and know which history they belong to."""

from __future__ import annotations

from functools import partial
from threading import Thread

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from sqlalchemy.exc import OperationalError

from tamis.broker.cursors import find_missed
from tamis.broker.mailbox import Mailbox, Position
from tamis.broker.store import Broker
from tamis.errors import EpochError, InputError, StoreError
from tamis.subscriptions import SubscriptionStore
from tests.broker.places import SECRET, read_all
from tests.broker.running import run_lives
from tests.subscriptions.places import Clock, after
from tests.subscriptions.test_tasks import busy
from tests.waiting import HANG_SECONDS

BOX = Mailbox.of_subscription(7)
ARCHIVE = Position("one", 100)


def test_a_cursor_moves_forward_only(broker, clock):
    cursors = broker.cursors
    assert cursors.get(BOX, "me") is None
    clock.move(1)
    assert cursors.acknowledge(BOX, "me", Position("one", 5), ARCHIVE) == ("one", 5)
    clock.move(1)
    assert cursors.acknowledge(BOX, "me", Position("one", 3), ARCHIVE) == ("one", 5)
    assert cursors.get(BOX, "me") == (BOX, "me", Position("one", 5), after(1))
    assert cursors.acknowledge(BOX, "me", ARCHIVE, ARCHIVE) == ARCHIVE
    assert cursors.reset(BOX, "me", Position("one", 0), ARCHIVE) == ("one", 0)
    assert cursors.get(BOX, "me").position == ("one", 0)
    assert cursors.get(BOX, "other") is cursors.get(Mailbox.of_channel(7), "me") is None
    assert cursors.delete(BOX, "me")
    assert not cursors.delete(BOX, "me")


def test_another_epoch_is_refused(broker):
    cursors, restored = broker.cursors, Position("two", 50)
    cursors.acknowledge(BOX, "me", Position("one", 70), ARCHIVE)
    with pytest.raises(EpochError, match="70 belongs to the epoch 'one'; that of the archive is"):
        cursors.acknowledge(BOX, "me", Position("one", 70), restored)
    with pytest.raises(EpochError, match="is at event 70 of the epoch 'one'") as raised:
        cursors.acknowledge(BOX, "me", Position("two", 10), restored)
    assert "reset the cursor" in raised.value.hint
    with pytest.raises(EpochError):
        cursors.reset(BOX, "me", Position("one", 10), restored)
    assert cursors.get(BOX, "me").position == ("one", 70)
    assert cursors.reset(BOX, "me", Position("two", 10), restored) == ("two", 10)
    assert cursors.acknowledge(BOX, "me", Position("two", 11), restored) == ("two", 11)


@pytest.mark.parametrize(
    ("consumer", "position", "message"),
    [
        ("me", Position("one", 101), "is 101; the last event is 100"),
        ("me", Position("one", -1), "at least 0"),
        ("me", Position("one", True), "at least 0"),
        ("me", 5, "a Position is expected"),
        ("", ARCHIVE, "consumer is empty"),
        ("x" * 513, ARCHIVE, "at most 512"),
        ("a\tb", ARCHIVE, "control character"),
    ],
)
def test_wrong_values(broker, consumer, position, message):
    for act in (broker.cursors.acknowledge, broker.cursors.reset):
        with pytest.raises(InputError, match=message):
            act(BOX, consumer, position, ARCHIVE)
    assert broker.cursors.list(BOX).items == []


def test_a_text_is_not_a_mailbox(broker):
    with pytest.raises(InputError, match="a Mailbox is expected"):
        broker.cursors.acknowledge("subscription/7", "me", ARCHIVE, ARCHIVE)


def test_many_at_once(broker):
    def work(n: int) -> None:
        futures = [
            broker.cursors.submit(BOX, f"c{n}-{k % 3}", Position("one", k), ARCHIVE)
            for k in range(60)
        ]
        assert [future.result().event for future in futures] == list(range(60))

    threads = [Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    found = read_all(lambda **rest: broker.cursors.list(BOX, **rest), limit=5)
    assert [(one.consumer, one.position.event) for one in found] == [
        (f"c{n}-{k}", 57 + k) for n in range(4) for k in range(3)
    ]


def test_those_that_wait_are_written_together(broker, monkeypatch):
    monkeypatch.setattr("tamis.broker.acknowledging._BATCH_SIZE", 40)
    cursors = broker.cursors
    cursors.acknowledge(BOX, "old", Position("one", 3), ARCHIVE)
    restored = Position("two", 50)
    with busy(broker.store):
        futures = [cursors.submit(BOX, f"c{n % 7}", Position("one", n), ARCHIVE) for n in range(99)]
        back = [cursors.submit(BOX, "c0", Position("one", n), ARCHIVE) for n in (5, 100, 7)]
        refused = [
            cursors.submit(BOX, "old", Position("two", 4), restored),
            cursors.submit(BOX, "c1", Position("two", 4), restored),
        ]
        fresh = cursors.submit(BOX, "new", Position("two", 4), restored)
        cancelled = cursors.submit(BOX, "gone", Position("one", 4), ARCHIVE)
        assert cancelled.cancel()
        last = cursors.submit(BOX, "last", Position("one", 4), ARCHIVE)
    assert [future.result().event for future in futures] == list(range(99))
    assert [future.result().event for future in back] == [98, 100, 100]
    for future in refused:
        with pytest.raises(EpochError, match="reset the cursor"):
            future.result()
    assert fresh.result() == ("two", 4)
    assert last.result() == ("one", 4)
    found = {one.consumer: one.position.event for one in read_all(partial(cursors.list, BOX))}
    expected = {f"c{n % 7}": n for n in range(92, 99)} | {"c0": 100, "old": 3, "new": 4, "last": 4}
    assert found == expected | {"gone": 4}


def test_a_failure_of_the_database_reaches_all_that_wait(broker, monkeypatch):
    def fail(*_given):
        raise OperationalError("UPDATE", {}, OSError("the disk is on fire"))

    with monkeypatch.context() as patched:
        patched.setattr("tamis.broker.acknowledging.write_all", fail)
        with busy(broker.store):
            futures = [broker.cursors.submit(BOX, f"c{n}", ARCHIVE, ARCHIVE) for n in range(3)]
        for future in futures:
            with pytest.raises(StoreError, match="on fire"):
                future.result()
    assert broker.cursors.list(BOX).items == []
    assert broker.cursors.acknowledge(BOX, "c0", ARCHIVE, ARCHIVE) == ARCHIVE


def test_a_closed_store_takes_none(place):
    store = SubscriptionStore.open(place)
    cursors = Broker(store, SECRET).cursors
    future = cursors.submit(BOX, "me", ARCHIVE, ARCHIVE)
    store.close()
    assert future.result() == ARCHIVE
    for _ in range(2):
        with pytest.raises(StoreError, match="is closed"):
            cursors.submit(BOX, "me", ARCHIVE, ARCHIVE)


@pytest.mark.parametrize(
    ("acknowledged", "first_kept", "missed"),
    [(0, 1, None), (0, 5, range(1, 5)), (4, 5, None), (3, 5, range(4, 5)), (9, 5, None)],
)
def test_what_retention_took(acknowledged, first_kept, missed):
    assert find_missed(acknowledged, first_kept) == missed


BOXES = [BOX, Mailbox.of_channel(7), Mailbox.of_subscription(70)]
boxes, consumers = st.sampled_from(BOXES), st.sampled_from(["me", "Me", "ü"])
positions = st.builds(Position, st.sampled_from(["one", "two"]), st.integers(0, 12))


class CursorMachine(RuleBasedStateMachine):
    """Cursors against a dictionary; the archive grows, and is restored under another epoch."""

    def __init__(self, place: str) -> None:
        super().__init__()
        self.place = place
        self.clock = Clock()
        self.open()
        self.archive = Position("one", 0)
        self.model: dict[tuple[Mailbox, str], Position] = {}

    def open(self) -> None:
        self.store = SubscriptionStore.open(self.place, clock=self.clock)
        self.cursors = Broker(self.store, SECRET).cursors

    def teardown(self) -> None:
        self.store.close()

    @rule(n_events=st.integers(1, 6))
    def grow(self, n_events):
        self.archive = self.archive._replace(event=self.archive.event + n_events)

    @rule(archive=positions)
    def restore(self, archive):
        self.archive = archive

    @rule()
    def reopen(self):
        self.store.close()
        self.open()

    def is_right(self, position: Position) -> bool:
        return position.epoch == self.archive.epoch and position.event <= self.archive.event

    @rule(box=boxes, consumer=consumers, position=positions)
    def acknowledge(self, box, consumer, position):
        before = self.model.get((box, consumer), position)
        if not self.is_right(position) or before.epoch != position.epoch:
            with pytest.raises((EpochError, InputError)):
                self.cursors.acknowledge(box, consumer, position, self.archive)
            return
        self.model[box, consumer] = max(before, position)
        found = self.cursors.acknowledge(box, consumer, position, self.archive)
        assert found == self.model[box, consumer]

    @rule(box=boxes, consumer=consumers, position=positions)
    def reset(self, box, consumer, position):
        if not self.is_right(position):
            with pytest.raises((EpochError, InputError)):
                self.cursors.reset(box, consumer, position, self.archive)
            return
        self.model[box, consumer] = position
        self.cursors.reset(box, consumer, position, self.archive)

    @rule(box=boxes, consumer=consumers)
    def delete(self, box, consumer):
        is_there = self.model.pop((box, consumer), None) is not None
        assert self.cursors.delete(box, consumer) == is_there

    @invariant()
    def cursors_are_those_of_the_model(self):
        for box in BOXES:
            found = self.cursors.list(box).items
            expected = {name: at for (own, name), at in self.model.items() if own == box}
            assert {one.consumer: one.position for one in found} == expected


@pytest.mark.parametrize(("kind", "n_lives"), [("sqlite", 25), ("postgres", 6)])
def test_random_lives(kind, n_lives, request):
    run_lives(CursorMachine, kind, n_lives, request)
