"""What does the store of subscriptions cost? Against plain SQLite, which is as durable.

The baseline is one table without a log, in a file with the same settings: each commit waits for the
disk. Both are measured in turn, and the best round counts.
"""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from itertools import count, islice
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from tamis.subscriptions import Accepted, Subscribe, SubscriptionStore

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "The store of subscriptions, operations per second against plain SQLite"
N_ROUNDS = 3
N_SINGLE = 400  # added one by one in a round
N_THREADS = 16
N_BULK = 50_000  # added in thousands in a round
SIZE: Final = 1_000  # of a group, and of a page
N_TAGS = 5_000
_COLUMNS: Final = "id, expression, owner, tags, attributes"


class Plain:
    """Subscriptions in one table of SQLite."""

    def __init__(self, folder: Path) -> None:
        self._connection = sqlite3.connect(
            folder / "plain.sqlite", isolation_level=None, check_same_thread=False
        )
        self._lock = Lock()
        for statement in (
            "PRAGMA journal_mode = WAL",
            "PRAGMA synchronous = FULL",
            "PRAGMA wal_autocheckpoint = 4000",
            "PRAGMA cache_size = -65536",
            f"CREATE TABLE subscriptions ({_COLUMNS}, PRIMARY KEY (id))",
            "CREATE INDEX owners ON subscriptions (owner, id)",
        ):
            self._connection.execute(statement).fetchall()

    def add(self, requests: list[Subscribe]) -> None:
        """Add subscriptions in one transaction."""
        rows = [(one.id, one.expression, one.owner, " ".join(one.tags), "{}") for one in requests]
        with self._lock:
            self._connection.execute("BEGIN IMMEDIATE")
            insert = "INSERT INTO subscriptions VALUES (?, ?, ?, ?, ?)"
            self._connection.executemany(insert, rows)
            self._connection.execute("COMMIT")

    def pages(self) -> Iterator[list[Any]]:
        """All subscriptions, in pages by id."""
        query = f"SELECT {_COLUMNS} FROM subscriptions WHERE id > ? ORDER BY id LIMIT {SIZE}"
        last = ""
        while page := self._connection.execute(query, (last,)).fetchall():
            yield page
            last = page[-1][0]

    def tagged(self, tag: str) -> list[Any]:
        """The subscriptions with one tag."""
        query = f"SELECT {_COLUMNS} FROM subscriptions WHERE instr(tags, ?) ORDER BY id"
        return self._connection.execute(query, (tag,)).fetchall()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()


def run() -> list[dict[str, Any]]:
    """One row per operation."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        plain, numbers = Plain(folder), count()
        with SubscriptionStore.open(folder / "store") as store:
            rows = _measure_adds(store, plain, numbers)
            rows += _measure_reads(store, plain, n_held=next(numbers))
        plain.close()
        return rows


def _measure_adds(
    store: SubscriptionStore, plain: Plain, numbers: Iterator[int]
) -> list[dict[str, Any]]:
    def add(requests: list[Subscribe]) -> None:
        assert all(isinstance(result, Accepted) for result in store.apply(requests))

    rows = []
    for n_threads, n_added, size in (
        (1, N_SINGLE, 1),
        (N_THREADS, N_SINGLE * 4, 1),
        (1, N_BULK, SIZE),
    ):
        best: dict[Any, float] = {}
        for _ in range(N_ROUNDS):
            requests = list(map(_make, islice(numbers, n_added)))
            groups = [requests[at : at + size] for at in range(0, n_added, size)]
            for apply in (add, plain.add):
                seconds = _time(lambda: _run(apply, groups, n_threads))  # noqa: B023
                best[apply] = min(seconds, best.get(apply, seconds))
        n = f"{n_threads} thread{'s' * (n_threads > 1)}"
        what = "add in thousands" if size > 1 else f"add one by one, {n}"
        rows.append(_compare(what, n_added, best[add], best[plain.add]))
    return rows


def _run(apply: Callable[[list[Subscribe]], None], groups: list[Any], n_threads: int) -> None:
    with ThreadPoolExecutor(n_threads) as pool:
        deque(pool.map(apply, groups), maxlen=0)


def _measure_reads(store: SubscriptionStore, plain: Plain, n_held: int) -> list[dict[str, Any]]:
    tag = f"t{N_TAGS // 2}."
    n_tagged = store.count(tag=tag)
    assert n_tagged == len(plain.tagged(tag))
    return [
        _compare(what, n_read, *(min(_time(read) for _ in range(N_ROUNDS)) for read in reads))
        for what, n_read, reads in (
            ("list all pages", n_held, (lambda: _walk(store), lambda: _exhaust(plain.pages()))),
            (
                "list by a tag that few have",
                n_tagged,
                (lambda: store.list(tag=tag), lambda: plain.tagged(tag)),
            ),
            (
                "state as of the last change",
                n_held,
                (
                    lambda: _exhaust(store.state_at(store.last_change)),
                    lambda: _exhaust(plain.pages()),
                ),
            ),
        )
    ]


def _walk(store: SubscriptionStore) -> None:
    page = store.list(limit=SIZE)
    while page.cursor is not None:
        page = store.list(after=page.cursor, limit=SIZE)


def _exhaust(found: Iterator[Any]) -> None:
    deque(found, maxlen=0)


def _time(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def _compare(what: str, n: int, ours: float, plain: float) -> dict[str, Any]:
    return {
        "operation": what,
        "n": n,
        "store": round(n / ours),
        "plain SQLite": round(n / plain),
        "store / plain": round(plain / ours, 2),
    }


def _make(number: int) -> Subscribe:
    spread = number * 7_919 % 1_000_003  # ids do not arrive in order
    return Subscribe(
        f"s{spread:07}",
        f"country = 'C{number % 200}' AND age >= {number % 90} AND score < {number % 77}",
        owner=f"o{number % 5_000}",
        tags=(f"t{number % N_TAGS}.",),
    )
