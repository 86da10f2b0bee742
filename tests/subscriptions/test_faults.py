"""Kills, full disks, damaged files, lost connections: nothing acknowledged is lost."""

from __future__ import annotations

import os
import shutil
import sqlite3

import psycopg
import pytest

from tamis.errors import StoreError, StoreFormatError
from tamis.subscriptions import Accepted, Subscribe, SubscriptionStore, sqlite
from tests.effort import examples
from tests.scripts import run_script

FILE = "subscriptions.sqlite"


def test_killed_writers_lose_nothing(place, seed):
    out = run_script("-m", "tests.subscriptions.victim", place, "15", str(seed))
    assert out.startswith("15 runs")


@pytest.mark.slow
def test_hundreds_of_killed_writers_lose_nothing(place, seed):
    n_runs = str(examples(30))
    assert run_script("-m", "tests.subscriptions.victim", place, n_runs, str(seed + 1000))


def fill(store: SubscriptionStore) -> tuple[int, StoreError]:
    """Subscribe until it fails; the last number that was acknowledged."""
    last = 0
    try:
        for turn in range(10_000):
            results = store.apply([Subscribe(f"{turn}-{n}", "x = 1" * 50) for n in range(10)])
            last = results[-1].number
    except StoreError as error:
        return last, error
    pytest.fail("there is no end to it")


def test_a_full_disk(folder, monkeypatch):
    monkeypatch.setattr(sqlite, "_PRAGMAS", (*sqlite._PRAGMAS, "max_page_count = 60"))
    with SubscriptionStore.open(folder) as store:
        last, error = fill(store)
        assert "the disk is full" in error.message
        assert "none of these changes was stored" in error.hint
        assert last > 100
        assert store.last_change == last == store.count()
        with pytest.raises(StoreError, match="the disk is full"):
            store.apply([Subscribe(f"more-{n}", "x = 1" * 50) for n in range(10)])
    monkeypatch.undo()
    with SubscriptionStore.open(folder) as store:
        assert len(list(store.state_at(last))) == last
        assert store.apply([Subscribe("more", "x = 1")]) == [Accepted(last + 1)]


FILL_SMALL_FILES = """
import resource, signal, sys
from tests.subscriptions.test_faults import fill
from tamis.subscriptions import SubscriptionStore
store = SubscriptionStore.open(sys.argv[1])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
last, error = fill(store)
assert store.last_change == last
print(last, error)
"""


def test_a_file_that_cannot_grow(folder):
    last, _, message = run_script("-c", FILL_SMALL_FILES, str(folder)).partition(" ")
    assert "the file system reports an error" in message or "the disk is full" in message
    with SubscriptionStore.open(folder) as store:
        assert store.last_change == int(last) == store.count()
        assert store.apply([Subscribe("more", "x = 1")]) == [Accepted(int(last) + 1)]


OPEN_AS_NOBODY = """
import os, sys
from tamis.errors import TamisError
from tamis.subscriptions import Subscribe, SubscriptionStore
place, other = sys.argv[1:]
with SubscriptionStore.open(other) as store:  # loads all that is loaded late
    store.apply([Subscribe("a", "x = 1")]), store.get("a")
with SubscriptionStore.open(place) as store:
    store.apply([Subscribe("a", "x = 1")])
os.chmod(place, 0o555)
os.chmod(place + "/subscriptions.sqlite", 0o444)
if os.geteuid() == 0:
    os.setuid(65534)
try:
    SubscriptionStore.open(place)
except TamisError as error:
    print(error)
with SubscriptionStore.open(place, read_only=True) as store:
    print(store.get("a").expression, store.last_change)
"""


def test_a_folder_that_cannot_be_written(folder):
    os.chmod(folder.parent, 0o755)
    out = run_script("-c", OPEN_AS_NOBODY, str(folder), str(folder) + "-other")
    assert "ermission denied" in out
    assert "hint: make it writable for this user, or open it with read_only=True" in out
    assert out.endswith("x = 1 1\n")


@pytest.mark.parametrize("at", [0, 4096 * 3])
def test_a_damaged_file(folder, at):
    with SubscriptionStore.open(folder) as store:
        store.apply([Subscribe(f"s{n}", "x = 1") for n in range(1_000)])
    with open(folder / FILE, "r+b") as file:
        file.seek(at)
        file.write(b"\xa5" * (4096 if at == 0 else 100_000))
    with pytest.raises(StoreFormatError, match="it is damaged") as raised:
        use(folder, read_only=True)
    assert "restore it from a backup" in raised.value.hint
    with pytest.raises(StoreFormatError, match="it is damaged"):
        use(folder, read_only=False)


def use(place, *, read_only: bool) -> None:
    with SubscriptionStore.open(place, read_only=read_only) as store:
        if not read_only:
            store.apply([Subscribe(f"s{n}", "x = 1") for n in range(1_000)])
        list(store.state_at(1_000))


def test_another_file_in_its_place(folder):
    folder.mkdir()
    connection = sqlite3.connect(folder / FILE)
    connection.execute("CREATE TABLE tamis_changes (a INTEGER)")
    connection.close()
    with pytest.raises(StoreError):
        SubscriptionStore.open(folder)
    shutil.rmtree(folder)
    folder.write_text("a file")
    with pytest.raises(StoreError):
        SubscriptionStore.open(folder)
    with pytest.raises(StoreFormatError, match="there is no store"):
        SubscriptionStore.open(folder, read_only=True)


def test_a_torn_write_at_the_end_of_the_log(folder):
    with SubscriptionStore.open(folder) as store:
        store.apply([Subscribe(f"s{n}", "x = 1") for n in range(100)])
        torn = folder.with_name("torn")
        shutil.copytree(folder, torn)
    with open(torn / (FILE + "-wal"), "ab") as log:
        log.write(os.urandom(2_000))
    with SubscriptionStore.open(torn) as store:
        assert store.count() == store.last_change == 100
        assert store.apply([Subscribe("more", "x = 1")]) == [Accepted(101)]


def test_a_lost_connection_comes_back(postgres):
    place = postgres.new_place()
    with SubscriptionStore.open(place) as store:
        assert store.apply([Subscribe("a", "x = 1")]) == [Accepted(1)]
        assert store.get("a").revision == 1
        with psycopg.connect(postgres.uri, autocommit=True) as other:
            others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            other.execute(f"SELECT pg_terminate_backend(pid) {others} AND datname IS NOT NULL")
        assert store.get("a").revision == 1  # readers connect again
        with pytest.raises(StoreError, match="there is no connection") as raised:
            store.apply([Subscribe("b", "x = 1")])
        assert "may or may not be stored" in raised.value.hint
        assert store.apply([Subscribe("b", "x = 1")]) == [Accepted(2)]
        assert store.get("b").revision == 2
        with pytest.raises(StoreError, match="another writer"):
            SubscriptionStore.open(place)
