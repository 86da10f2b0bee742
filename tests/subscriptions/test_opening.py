"""One writer, many readers; formats of other versions; invalid places."""

from __future__ import annotations

import shutil
import socket
import sqlite3
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from tamis.errors import (
    HistoryError,
    InputError,
    StoreError,
    StoreFormatError,
    StoreInUseError,
)
from tamis.subscriptions import Accepted, Subscribe, SubscriptionStore, postgres, sqlite, tables
from tamis.subscriptions.reading import reading
from tests.subscriptions.places import Clock
from tests.waiting import HANG_SECONDS

OPEN_AND_SAY = """
import sys
from tamis.errors import TamisError
from tamis.subscriptions import SubscriptionStore
try:
    store = SubscriptionStore.open(sys.argv[1], read_only=sys.argv[2] == "ro")
except TamisError as error:
    print(type(error).__name__, error)
else:
    print(store.get("a").expression, flush=True)
    store.close()
"""


def open_elsewhere(place: str, how: str) -> str:
    finished = subprocess.run(
        [sys.executable, "-c", OPEN_AND_SAY, place, how],
        capture_output=True,
        text=True,
        check=True,
        timeout=HANG_SECONDS,
    )
    return finished.stdout


def test_a_second_writer_is_refused(store, place):
    store.apply([Subscribe("a", "x = 1")])
    with pytest.raises(StoreInUseError, match="another writer has the store") as raised:
        SubscriptionStore.open(place)
    assert "read_only=True" in raised.value.hint
    assert open_elsewhere(place, "rw").startswith("StoreInUseError another writer")
    assert open_elsewhere(place, "ro") == "x = 1\n"
    assert store.apply([Subscribe("b", "x = 1")]) == [Accepted(2)]
    store.close()
    assert open_elsewhere(place, "rw") == "x = 1\n"
    assert open_elsewhere(place, "ro") == "x = 1\n"


def test_reading_only(place):
    with pytest.raises(StoreFormatError, match="there is no store of subscriptions"):
        SubscriptionStore.open(place, read_only=True)
    SubscriptionStore.open(place).close()
    with SubscriptionStore.open(place, read_only=True) as reader:
        assert (reader.count(), reader.last_change) == (0, 0)
        for write in (
            lambda: reader.apply([Subscribe("a", "x = 1")]),
            reader.expire,
            lambda: reader.prune(before=0),
            reader.renew_epoch,
        ):
            with pytest.raises(StoreError, match="reading only"):
                write()
        # The writer comes after its reader.
        with SubscriptionStore.open(place) as writer:
            writer.apply([Subscribe("a", "x = 1")])
            assert reader.get("a").expression == "x = 1"


def run_sql(place: str, *statements: str) -> None:
    if place.startswith("postgresql"):
        with psycopg.connect(place, autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement)
    else:
        connection = sqlite3.connect(Path(place) / "subscriptions.sqlite")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()


def test_a_newer_format_is_refused(place):
    SubscriptionStore.open(place).close()
    run_sql(place, "UPDATE tamis_store SET format = 9")
    for read_only in (False, True):
        with pytest.raises(StoreFormatError, match="format 9, newer than 3") as raised:
            SubscriptionStore.open(place, read_only=read_only)
        assert "newer version of Tamis" in raised.value.hint
    run_sql(place, "UPDATE tamis_store SET format = 3")
    SubscriptionStore.open(place).close()  # the lock was released


def test_an_older_format_is_migrated_in_one_transaction(place, monkeypatch):
    monkeypatch.setattr(tables, "MIGRATIONS", ())
    with SubscriptionStore.open(place) as store:
        store.apply([Subscribe("a", "x = 1")])

    def mark(connection) -> None:
        connection.execute(text("UPDATE tamis_changes SET owner = owner || '!'"))

    def fail(connection) -> None:
        connection.execute(text("CREATE TABLE half (a INTEGER)"))
        connection.execute(text("SELECT nonsense FROM nowhere"))

    monkeypatch.setattr(tables, "MIGRATIONS", (mark, fail))
    with pytest.raises(StoreError):
        SubscriptionStore.open(place)
    monkeypatch.setattr(tables, "MIGRATIONS", (mark, mark))
    with pytest.raises(StoreFormatError, match="has format 1; this version reads format 3"):
        SubscriptionStore.open(place, read_only=True)
    for _ in range(2):
        with SubscriptionStore.open(place) as store:
            assert store.get("a").owner == "!!"
    run_sql(place, "CREATE TABLE half (a INTEGER)")  # nothing of the failure was left


def test_a_store_of_format_1_is_read(tmp_path):
    connection = sqlite3.connect(tmp_path / "subscriptions.sqlite")
    connection.executescript((Path(__file__).parent / "format_1.sql").read_text(encoding="utf-8"))
    connection.close()
    with SubscriptionStore.open(tmp_path, clock=Clock()) as store:
        assert (store.last_change, store.horizon) == (6, 2)
        assert store.epoch == "0123456789abcdef0123456789abcdef"
        found = store.get("a")
        assert (found.owner, found.tags, found.attributes) == ("ann", ("news", "urgent"), {"k": 1})
        assert (found.ticket_hash, found.revision, found.created) == (b"hash", 4, 1)
        assert found.valid_until.isoformat() == "2031-01-01T00:00:00+00:00"
        assert [change.kind.value for change in store.changes(after=2)] == [
            "replace",
            "renew",
            "unsubscribe",
            "expire",
        ]
        assert store.apply([Subscribe("b", "x = 1")]) == [Accepted(7)]
        assert [one.id for one in store.list(tag="urgent").subscriptions] == ["a"]


def test_a_restored_backup_is_noticed(tmp_path):
    place, backup = tmp_path / "store", tmp_path / "backup"
    with SubscriptionStore.open(place) as store:
        store.apply([Subscribe("a", "x = 1")])
    shutil.copytree(place, backup)
    with SubscriptionStore.open(place) as store:
        store.apply([Subscribe("b", "x = 1")])
    with SubscriptionStore.open(place, read_only=True) as follower:
        epoch = follower.epoch
        assert len(follower.changes(after=0)) == 2
        shutil.rmtree(place)
        shutil.move(backup, place)
        with pytest.raises(HistoryError, match="ends at change 1"):
            follower.changes(after=2, epoch=epoch)
        with SubscriptionStore.open(place) as store:
            store.renew_epoch()
            with pytest.raises(HistoryError, match="another history"):
                follower.changes(after=1, epoch=epoch)


@pytest.mark.parametrize("place", [5, None, "mysql://host/db", b"folder"])
def test_invalid_places(place):
    with pytest.raises(InputError, match="is not the place of a store"):
        SubscriptionStore.open(place)


def test_passwords_are_not_shown():
    address = "postgresql://user:secret@127.0.0.1:1/nowhere"
    with pytest.raises(StoreError, match="there is no connection") as raised:
        SubscriptionStore.open(address)
    assert "secret" not in str(raised.value)
    assert "user:***@127.0.0.1" in str(raised.value)
    assert "is the server running" in raised.value.hint


def test_a_file_system_without_shared_memory(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "_PRAGMAS", ("journal_mode = DELETE",))
    with pytest.raises(StoreError, match="no shared memory"):
        SubscriptionStore.open(folder)
    monkeypatch.undo()
    SubscriptionStore.open(folder).close()


def test_readers_of_postgres_cannot_write(postgres):
    place = postgres.new_place()
    with SubscriptionStore.open(place) as store, reading(store._database) as connection:
        with pytest.raises(DBAPIError, match="read-only transaction"):
            connection.execute(text("UPDATE tamis_store SET epoch = 'mine'"))
        connection.rollback()


@pytest.mark.parametrize("how", ["default", "address", "environment"])
def test_a_server_that_does_not_answer_is_given_up(monkeypatch, how):
    limit = 2  # seconds, the least that PostgreSQL's library takes
    monkeypatch.setattr(postgres, "CONNECT_SECONDS", limit if how == "default" else 10 * 86_400)
    if how == "environment":
        monkeypatch.setenv("PGCONNECT_TIMEOUT", str(limit))
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"postgresql://user@127.0.0.1:{silent.getsockname()[1]}/database"
        if how == "address":
            address += f"?connect_timeout={limit}"
        with pytest.raises(StoreError, match="timeout"):
            SubscriptionStore.open(address)
