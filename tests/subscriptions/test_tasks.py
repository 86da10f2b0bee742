"""Tasks of other tables: those that wait share a transaction, and a failure stays alone."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event

import pytest
from sqlalchemy import event, text
from sqlalchemy.exc import OperationalError

from tamis.errors import InputError, StoreError
from tamis.subscriptions import Accepted, Subscribe, SubscriptionStore
from tests.waiting import HANG_SECONDS


@pytest.fixture
def notes(store):
    store.run(lambda c: c.execute(text("CREATE TABLE notes (note INTEGER PRIMARY KEY)")))
    return store


def add(note: int):
    def task(connection) -> int:
        connection.execute(text("INSERT INTO notes VALUES (:note)"), {"note": note})
        return note

    return task


def fail_after(note: int, error: Exception):
    def task(connection) -> None:
        add(note)(connection)
        raise error

    return task


def read(store: SubscriptionStore) -> list[int]:
    with store.read() as connection:
        return list(connection.execute(text("SELECT note FROM notes ORDER BY note")).scalars())


@contextmanager
def busy(store: SubscriptionStore):
    """While this lasts, whatever is submitted waits."""
    is_held, may_go_on = Event(), Event()

    def hold(_connection) -> None:
        is_held.set()
        assert may_go_on.wait(HANG_SECONDS)

    held = store.submit_task(hold)
    assert is_held.wait(HANG_SECONDS)
    try:
        yield
    finally:
        may_go_on.set()
        held.result()


def count_commits(store: SubscriptionStore) -> list[None]:
    commits: list[None] = []
    engine = store._writer._connection.engine
    event.listen(engine, "commit", lambda _connection: commits.append(None))
    return commits


def test_what_waits_shares_a_transaction(notes):
    commits = count_commits(notes)
    with busy(notes):
        futures = [notes.submit_task(add(n)) for n in range(50)]
        assert futures.pop(7).cancel()
    assert [future.result() for future in futures] == [n for n in range(50) if n != 7]
    assert len(commits) == 2  # one for what kept the writer busy
    assert read(notes) == [n for n in range(50) if n != 7]


def test_one_that_fails_is_undone_alone(notes):
    notes.run(add(1))
    with busy(notes):
        good = [notes.submit_task(add(n)) for n in (2, 3)]
        bad: list[Future] = [
            notes.submit_task(fail_after(10, InputError("mine"))),
            notes.submit_task(add(1)),
            notes.submit_task(fail_after(11, ZeroDivisionError("mine"))),
        ]
        good.append(notes.submit_task(add(4)))
    assert [future.result() for future in good] == [2, 3, 4]
    with pytest.raises(InputError, match="mine"):
        bad[0].result()
    with pytest.raises(StoreError, match="cannot be used") as raised:
        bad[1].result()
    with pytest.raises(ZeroDivisionError, match="mine"):
        bad[2].result()
    assert "UNIQUE" in str(raised.value).upper()
    assert read(notes) == [1, 2, 3, 4]


def test_a_failure_of_the_database_fails_all_and_stores_nothing(notes):
    error = OperationalError("INSERT", {}, OSError("the disk is on fire"))
    with busy(notes):
        futures = [notes.submit_task(add(n)) for n in (1, 2)]
        refused = notes.submit_task(fail_after(3, InputError("mine")))
        futures.append(notes.submit_task(fail_after(4, error)))
        futures.append(notes.submit_task(add(5)))
    for future in futures:
        with pytest.raises(StoreError, match="on fire"):
            future.result()
    with pytest.raises(InputError, match="mine"):
        refused.result()
    assert read(notes) == []
    assert notes.run(add(6)) == 6  # on another connection
    assert read(notes) == [6]


def test_tasks_and_changes_keep_their_order(notes):
    def count(connection) -> int:
        return connection.execute(text("SELECT count(*) FROM tamis_changes")).scalar_one()

    with busy(notes):
        found = []
        for n in range(5):
            found.append(notes.submit([Subscribe(f"s{n}", "x = 1")]))
            found.append(notes.submit_task(count))
    results = [future.result() for future in found]
    assert results[::2] == [[Accepted(n + 1)] for n in range(5)]
    assert results[1::2] == [1, 2, 3, 4, 5]


def test_a_task_sees_those_before_it(notes):
    def add_next(connection) -> int:
        last = connection.execute(text("SELECT max(note) FROM notes")).scalar_one() or 0
        return add(last + 1)(connection)

    with busy(notes):
        futures = [notes.submit_task(add_next) for _ in range(20)]
    assert [future.result() for future in futures] == list(range(1, 21))


def test_readers_have_no_tasks(place):
    SubscriptionStore.open(place).close()
    with SubscriptionStore.open(place, read_only=True) as reader:
        assert reader.is_read_only
        with pytest.raises(StoreError, match="reading only"):
            reader.run(add(1))
