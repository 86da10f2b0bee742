"""Live indexes whose subscriptions are in a PostgreSQL database."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest

import tamis
from tamis.errors import StoreError, StoreInUseError, TamisWarning
from tamis.live import LiveIndex, follow
from tests.live.places import by_hand, step
from tests.subscriptions.places import START, Clock
from tests.waiting import HANG_SECONDS

ROOT = Path(__file__).parents[2]


@pytest.fixture
def address(postgres):
    return postgres.new_place()


@pytest.fixture(autouse=True)
def _by_hand():
    with by_hand():
        yield


def expect_same(live, other) -> None:
    for n in range(6):
        event = {"a": n, "b": 3}
        assert sorted(other.match(event)) == sorted(live.match(event))
    assert sorted(other) == sorted(live)


def test_the_store_is_a_database(address, tmp_path):
    folder, clock = tmp_path / "live", Clock()
    with LiveIndex.open(folder, store=address, clock=clock) as live:
        live.add_many({f"s{n}": f"a = {n % 5}" for n in range(20)})
        live.replace("s1", "b = 3")
        live.remove("s2")
        live.add("leased", "a = 1", valid_until=START + timedelta(seconds=10))
        live.compact()
        live.add("late", "a = 1", owner="ann", tags=["new"])
        assert sorted(live.match({"a": 1})) == ["late", "leased", "s11", "s16", "s6"]
        clock.move(11)
        assert sorted(live.match({"a": 1})) == ["late", "s11", "s16", "s6"]
        live._committer.expire()
        with pytest.raises(StoreInUseError):
            LiveIndex.open(tmp_path / "other", store=address)
        with follow(folder, store=address, is_started=False) as follower:
            expect_same(live, follower)
            live.add("new", "a = 1")
            live.store.prune(live.change)
            assert follower.refresh() == live.change
            expect_same(live, follower)
        live.publish(tmp_path / "store")
        with tamis.open(tmp_path / "store") as index:
            assert sorted(index) == sorted(live)
    assert not list(folder.glob("subscriptions.*"))
    with LiveIndex.open(folder, store=address, clock=clock) as live:
        assert sorted(live.match({"a": 1})) == ["late", "new", "s11", "s16", "s6"]
        assert live.get("late").owner == "ann"
        while step(live):
            pass
    with LiveIndex.open(tmp_path / "empty", store=address, clock=clock) as live:  # from the log
        assert sorted(live.match({"a": 1})) == ["late", "new", "s11", "s16", "s6"]


def test_another_database(postgres, tmp_path):
    """It is not used without a word, nor with the types of the first one."""
    folder, first, second = tmp_path / "live", postgres.new_place(), postgres.new_place()
    with LiveIndex.open(folder, store=first) as live:
        live.add("a", "x = 1")
    with pytest.warns(TamisWarning, match="the subscriptions of .* are used from now on"):
        live = LiveIndex.open(folder, store=second)
    live.add("b", "x = 'text'")
    live.close()
    with LiveIndex.open(folder, store=second) as live:  # it is the known one now
        assert list(live) == live.match({"x": "text"}) == ["b"]
    with pytest.warns(TamisWarning, match="are used from now on"):
        live = LiveIndex.open(folder, store=first)
    assert live.match({"x": 1}) == ["a"]
    live.close()


WRITE = """
import sys
from tamis.live import LiveIndex
live = LiveIndex.open(sys.argv[1], store=sys.argv[2])
for n in range(1_000_000):
    live.add(f"s{n}", f"a = {n % 5}")
    print(n, flush=True)
    if n == 30:
        live.compact()
"""


def test_a_killed_writer(address, tmp_path):
    folder = tmp_path / "live"
    with subprocess.Popen(
        [sys.executable, "-c", WRITE, folder, address], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as writer:
        last = 0
        for line in writer.stdout:
            last = int(line)
            if last == 60:
                os.kill(writer.pid, signal.SIGKILL)
    with open_after_a_kill(folder, address) as live:
        n_all = len(live)
        assert n_all in {last + 1, last + 2}
        assert sorted(live) == sorted(f"s{n}" for n in range(n_all))
        assert len(live.match({"a": 1})) == len(range(1, n_all, 5))
        live.remove("s1")
        with follow(folder, store=address, is_started=False) as follower:
            expect_same(live, follower)


def open_after_a_kill(folder, address) -> LiveIndex:
    """The index, once the server knows that its writer is dead."""
    for _ in range(HANG_SECONDS):
        try:
            return LiveIndex.open(folder, store=address)
        except StoreInUseError:
            continue
    raise AssertionError("a dead writer keeps its lock")


def test_a_folder_that_cannot_be_made(address, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(tamis.TamisError, match=str(tmp_path / "file")):
        LiveIndex.open(tmp_path / "file" / "live", store=address)
    with LiveIndex.open(tmp_path / "live", store=address) as live:  # the store is free
        live.add("a", "x = 1")


def test_a_lost_connection(address, postgres, tmp_path):
    with LiveIndex.open(tmp_path / "live", store=address) as live:
        live.add("a", "x = 1")
        with psycopg.connect(postgres.uri, autocommit=True) as other:
            others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            other.execute(f"SELECT pg_terminate_backend(pid) {others} AND datname IS NOT NULL")
        assert live.match({"x": 1}) == ["a"]
        with pytest.raises(StoreError, match="there is no connection"):
            live.add("b", "x = 1")
        assert live.match({"x": 1}) == ["a"]
        live.add("b", "x = 1")
        assert sorted(live.match({"x": 1})) == ["a", "b"]
        assert live.change == live.store.last_change
