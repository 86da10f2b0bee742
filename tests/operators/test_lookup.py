"""Look-ups ask once, share connections, and recover."""

from __future__ import annotations

import json
import sqlite3
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from tamis.errors import InputError
from tamis.operators.lookup import HttpLookup, Pool, RecentAnswers, SqlLookup
from tests.waiting import HANG_SECONDS

QUERY = "SELECT name, score FROM account WHERE id = ? AND kind = ?"


@pytest.fixture
def accounts(tmp_path):
    """A look-up in a small database, and the connections that it made."""
    path = tmp_path / "accounts.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE account (id INTEGER, kind TEXT, name TEXT, score REAL)")
        rows = [(1, "user", "ann", 0.5), (1, "user", "bob", 0.7), (2, "bot", "crawl", 0.1)]
        database.executemany("INSERT INTO account VALUES (?, ?, ?, ?)", rows)
    database.close()
    made = []

    def connect():
        made.append(sqlite3.connect(path, check_same_thread=False))
        return made[-1]

    lookup = SqlLookup(connect, QUERY, ["id"], connections=2)
    yield lookup, made
    for connection in made:
        connection.close()


def test_rows_are_bindings(accounts):
    lookup, _ = accounts
    assert lookup({"id": 1}, "user") == [("ann", 0.5), ("bob", 0.7)]
    assert lookup({"id": 2}, "user") == []
    assert lookup.exists({"id": 2}, "bot") is True
    assert lookup.exists({"id": 3}, "bot") is False
    assert lookup({"other": 1}, "user") is None
    assert lookup.exists({"id": None}, "user") is None


def test_answers_are_kept_and_connections_shared(accounts):
    lookup, made = accounts
    for _ in range(5):
        lookup({"id": 1}, "user")
        lookup({"id": 2}, "bot")
    assert (lookup.cache.n_hits, lookup.cache.n_misses) == (8, 2)
    assert len(made) == 1


def test_values_are_never_part_of_the_query(accounts):
    lookup, _ = accounts
    assert lookup({"id": 1}, "user' OR '1'='1") == []


def test_a_connection_that_failed_is_not_used_again(accounts):
    lookup, made = accounts
    lookup.query = "SELECT nothing FROM nowhere"
    with pytest.raises(sqlite3.OperationalError):
        lookup({"id": 1}, "user")
    lookup.query = QUERY
    assert lookup({"id": 2}, "bot") == [("crawl", 0.1)]
    assert len(made) == 2


def test_threads_never_share_a_connection_at_one_time():
    made, seen, busy = [], [], set()
    lock = threading.Lock()

    class Connection:
        def close(self):
            pass

    def connect():
        made.append(Connection())
        return made[-1]

    pool = Pool(connect, 3)
    barrier = threading.Barrier(8)

    def work():
        barrier.wait(HANG_SECONDS)
        for _ in range(200):
            with pool.borrow() as connection:
                with lock:
                    seen.append(connection in busy)
                    busy.add(connection)
                with lock:
                    busy.discard(connection)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_SECONDS)
    assert len(seen) == 8 * 200
    assert not any(seen)
    assert len(made) <= 3


def test_cache_forgets_by_age_and_by_number():
    now = [0.0]
    cache = RecentAnswers(2, ttl=10, clock=lambda: now[0])
    cache.put("a", [(1,)])
    assert cache.get("a") == [(1,)]
    now[0] = 10.0
    assert cache.get("a") is None
    for key in "abc":
        cache.put(key, [])
    assert [cache.get(key) for key in "abc"] == [None, [], []]
    cache.get("b")
    cache.put("d", [])
    assert cache.get("b") == []
    assert cache.get("c") is None


def test_an_empty_pool_is_refused():
    with pytest.raises(InputError, match="pool of 0"):
        Pool(object, 0)


# ── HTTP ────────────────────────────────────────────────────────────────────────────────────


class Answers(BaseHTTPRequestHandler):
    """A server that knows two people, and hangs up after each answer to /once."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []

    def do_GET(self):
        self.asked.append(self.path)
        parts = urlsplit(self.path)
        status, answer = 200, parse_qs(parts.query)
        if parts.path == "/people":
            answer = [{"name": "ann", "age": 31}, {"name": "bob", "age": 40}]
        elif parts.path == "/missing":
            status = 404
        elif parts.path == "/broken":
            status = 500
        elif parts.path == "/large":
            answer = "x" * ((1 << 20) + 1000)
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        if parts.path == "/once":
            # As a server that is restarted: the client does not know.
            self.close_connection = True

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    Answers.asked = []
    running = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    running.daemon_threads = True
    thread = threading.Thread(target=running.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join(HANG_SECONDS)


def test_members_are_bindings(server):
    lookup = HttpLookup(f"{server}/people?id={{}}", ["id"], fields=["name", "age"])
    assert lookup({"id": 7}) == [("ann", 31), ("bob", 40)]
    assert lookup({"id": 7}) == [("ann", 31), ("bob", 40)]
    assert Answers.asked == ["/people?id=7"]
    lookup.pool.close()


def test_values_are_quoted(server):
    lookup = HttpLookup(f"{server}/echo?q={{}}&k={{}}", ["text"])
    assert lookup({"text": "a&b=c/é"}, "x y") == [({"q": ["a&b=c/é"], "k": ["x y"]},)]
    lookup.pool.close()


def test_a_connection_that_was_hung_up_is_opened_again(server):
    lookup = HttpLookup(f"{server}/once?q={{}}", ["n"])
    assert [lookup({"n": n}) for n in (1, 2, 3)] == [[({"q": [str(n)]},)] for n in (1, 2, 3)]
    lookup.pool.close()


def test_status_and_size(server):
    lookup = HttpLookup(f"{server}/{{}}", ["path"])
    assert lookup({"path": "missing"}) == []
    with pytest.raises(InputError, match="answered 500"):
        lookup({"path": "broken"})
    with pytest.raises(InputError, match="more than"):
        lookup({"path": "large"})
    assert lookup({"path": "people"}) != []
    lookup.pool.close()


@pytest.mark.parametrize("url", ["ftp://host/x", "people", "http://"])
def test_other_urls_are_refused(url):
    with pytest.raises(InputError, match="is not a valid URL"):
        HttpLookup(url, [])


def test_values_of_several_types_are_several_questions():
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    kind = SqlLookup(lambda: connection, "SELECT typeof(?)", ["v"])
    assert [kind({"v": value}) for value in (1, 1.0, "1")] == [
        [("integer",)],
        [("real",)],
        [("text",)],
    ]
