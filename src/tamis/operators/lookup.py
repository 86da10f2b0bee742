"""Look-ups in a database or by HTTP, as an example to build upon.

    owner = SqlLookup(lambda: sqlite3.connect("file:accounts.db?mode=ro", uri=True),
                      "SELECT name, score FROM account WHERE id = ?", attributes=["account_id"])
    owner.register("owner(?string, ?double)")   owner(?name, ?score): a binding for each row
    owner.register("is_owned()")                is_owned(): whether there is any row

A look-up gets attributes of the event, then the constants of the call. Connections are pooled; one
thread at a time uses a connection. The `size` most recently used answers are cached for `ttl`
seconds.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from queue import Empty, LifoQueue
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar
from urllib.parse import quote, urlsplit

import orjson

from tamis.errors import InputError
from tamis.language.signatures import parse_reads, parse_signature
from tamis.logic.evaluate import value_at
from tamis.operators.registry import operator
from tamis.operators.views import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Connection = TypeVar("Connection")
Rows = list[tuple[Any, ...]]
MAX_BYTES: Final = 1 << 20  # of an HTTP response


class Pool(Generic[Connection]):
    """At most `size` connections, made when needed; a failed connection is discarded."""

    def __init__(self, connect: Callable[[], Connection], size: int) -> None:
        if size < 1:
            raise InputError(f"a pool of {size} connections; at least 1")
        self._connect = connect
        self._idle: LifoQueue[Connection] = LifoQueue()
        self._free = threading.Semaphore(size)

    @contextmanager
    def borrow(self) -> Iterator[Connection]:
        """A connection for exclusive use until it is returned."""
        with self._free:
            try:
                connection = self._idle.get_nowait()
            except Empty:
                connection = self._connect()
            try:
                yield connection
            except BaseException:
                _close(connection)
                raise
            self._idle.put(connection)

    def close(self) -> None:
        """Close the idle connections."""
        while not self._idle.empty():
            _close(self._idle.get_nowait())


class RecentAnswers:
    """A cache of the most recently used answers, which expire."""

    def __init__(self, size: int, ttl: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._size, self._ttl, self._clock = size, ttl, clock
        self._answers: OrderedDict[Any, tuple[float, Rows]] = OrderedDict()
        self._lock = threading.Lock()
        self.n_hits = self.n_misses = 0

    def get(self, key: Any) -> Rows | None:
        """The cached answer, unless it has expired."""
        with self._lock:
            kept = self._answers.get(key)
            if kept is None or self._clock() - kept[0] >= self._ttl:
                self.n_misses += 1
                return None
            self._answers.move_to_end(key)
            self.n_hits += 1
            return kept[1]

    def put(self, key: Any, rows: Rows) -> None:
        """Store an answer."""
        with self._lock:
            self._answers[key] = self._clock(), rows
            self._answers.move_to_end(key)
            while len(self._answers) > self._size:
                self._answers.popitem(last=False)


class Lookup(Generic[Connection]):
    """Base class of look-ups: attributes, pool and cache. A subclass implements `ask`."""

    def __init__(
        self, pool: Pool[Connection], attributes: Sequence[str], size: int, ttl: float
    ) -> None:
        self.pool = pool
        self.reads = parse_reads(type(self).__name__, attributes)
        self.cache = RecentAnswers(size, ttl)

    def register(self, signature: str, **options: Any) -> Callable[..., Any]:
        """Register an operator of that signature, which returns all rows if it binds a variable,
        and otherwise whether there is a row.

        `options` are those of `tamis.operator`.
        """
        function: Any = self.__call__ if parse_signature(signature).bound else self.exists
        reads = [str(read) for read in self.reads]
        made: Callable[..., Any] = operator(signature, reads=reads, **options)(function)
        return made

    def __call__(self, event: Mapping[str, Any], *constants: Any) -> Rows | None:
        """All rows, as bindings; None if the event lacks an attribute of the look-up."""
        values = tuple(value_at(event, read.path) for read in self.reads)
        if None in values:
            return None
        key = values + constants
        rows = self.cache.get(frozen(key))
        if rows is None:
            with self.pool.borrow() as connection:
                rows = self.ask(connection, key)
            self.cache.put(frozen(key), rows)
        return rows

    def exists(self, event: Mapping[str, Any], *constants: Any) -> bool | None:
        """Whether there is any row."""
        rows = self(event, *constants)
        return None if rows is None else bool(rows)

    def ask(self, connection: Connection, values: tuple[Any, ...]) -> Rows:
        """The rows for one set of parameters."""
        raise NotImplementedError


class SqlLookup(Lookup[Any]):
    """A query with a placeholder for each attribute and constant; `connect` returns a DB-API 2
    connection.

    One thread at a time uses a connection of sqlite3, but not always the one that opened it: open
    connections with check_same_thread=False.
    """

    def __init__(  # noqa: PLR0913 - what is asked, of whom, and how much is kept
        self,
        connect: Callable[[], Any],
        query: str,
        attributes: Sequence[str],
        *,
        connections: int = 4,
        size: int = 10_000,
        ttl: float = 60.0,
    ) -> None:
        super().__init__(Pool(connect, connections), attributes, size, ttl)
        self.query = query

    def ask(self, connection: Any, values: tuple[Any, ...]) -> Rows:
        """The rows of the query."""
        cursor = connection.cursor()
        try:
            cursor.execute(self.query, values)
            return [tuple(row) for row in cursor.fetchall()]
        finally:
            cursor.close()


class HttpLookup(Lookup[HTTPConnection]):
    """An HTTP GET of a URL with `{}` for each attribute and constant, quoted; the response is JSON.

    A list gives one row for each member, an object one row: its `fields`, or without them the
    member itself. Status 404 gives no row; any status except 200 and 404 is an error.
    """

    def __init__(  # noqa: PLR0913 - what is asked, of whom, and how much is kept
        self,
        url: str,
        attributes: Sequence[str],
        *,
        fields: Sequence[str] = (),
        timeout: float = 5.0,
        connections: int = 4,
        size: int = 10_000,
        ttl: float = 60.0,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise InputError(f'"{url}" is not a valid URL; allowed: http://… or https://…')
        kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        pool = Pool(lambda: kind(parts.netloc, timeout=timeout), connections)
        super().__init__(pool, attributes, size, ttl)
        self.fields = tuple(fields)
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")

    def ask(self, connection: HTTPConnection, values: tuple[Any, ...]) -> Rows:
        """The rows of the response; if the server closed an idle connection, a new one is
        opened.
        """
        target = self._target.format(*(quote(str(value), safe="") for value in values))
        try:
            status, body = _get(connection, target)
        except (HTTPException, ConnectionError):
            connection.close()
            status, body = _get(connection, target)
        if status == 404:
            return []
        if status != 200:
            raise InputError(f"{target}: the server answered {status}")
        found = orjson.loads(body)
        return [self._row_of(member) for member in (found if isinstance(found, list) else [found])]

    def _row_of(self, member: Any) -> tuple[Any, ...]:
        return tuple(member[name] for name in self.fields) if self.fields else (member,)


def _get(connection: HTTPConnection, target: str) -> tuple[int, bytes]:
    connection.request("GET", target, headers={"Accept": "application/json"})
    with connection.getresponse() as response:
        body = response.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise InputError(f"{target}: the answer has more than {MAX_BYTES:,} bytes")
    return response.status, body


def _close(connection: Any) -> None:
    connection.close()
