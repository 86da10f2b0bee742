"""Single events and changes at a rate, and how long each takes.

The load is open: a request has a moment at which it should be sent, and its latency begins then,
even if all connections are busy. So a server that stops for a while is seen to do so.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from itertools import count, cycle
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import orjson

from benchmarks.server_process import HOST

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

N_CONNECTIONS: Final = 32
CHANGES_PER_SECOND: Final = 200.0  # 100 subscribe, and 100 unsubscribe
N_CHURNED: Final = 50  # subscriptions that exist for a while


class Latencies(NamedTuple):
    """How long requests took."""

    milliseconds: Sequence[float]
    rate: float = 0.0  # of the requests, per second
    saturated: float = 0.0  # the highest rate
    n_subscribed: int = 0  # meanwhile
    n_unsubscribed: int = 0
    seconds: float = 0.0  # until all were answered

    def quantile(self, share: float) -> float:
        """A quantile of the latencies."""
        return float(np.quantile(self.milliseconds, share))


def measure(
    port: int, events: Sequence[bytes], expressions: Sequence[str], seconds: float
) -> Latencies:
    """Publish single events as fast as possible, then at half that rate, while the set changes."""
    return asyncio.run(_measure(port, events, expressions, seconds))


async def _measure(
    port: int, events: Sequence[bytes], expressions: Sequence[str], seconds: float
) -> Latencies:
    bodies = cycle(events)
    changes = _Changes(expressions)

    async def publish(connection: Connection) -> None:
        await connection.ask("POST", "/v1/events", next(bodies))

    async with _connections(port) as publishing, _connections(port) as changing:
        is_over = asyncio.Event()
        churn = asyncio.create_task(_send(changing, changes.make, CHANGES_PER_SECOND, is_over))
        saturated = await _saturate(publishing, publish, seconds)
        before, began = changes.n_made, time.perf_counter()
        half = asyncio.Event()
        asyncio.get_running_loop().call_later(seconds, half.set)
        found = await _send(publishing, publish, saturated / 2, half)
        made, spent = changes.n_made, time.perf_counter() - began
        is_over.set()
        await churn
    n_subscribed, n_unsubscribed = (now - then for now, then in zip(made, before, strict=True))
    return Latencies(found, saturated / 2, saturated, n_subscribed, n_unsubscribed, spent)


def measure_first(port: int, n_times: int) -> Latencies:
    """From a request to subscribe until the first match has come, of an event that is published as
    soon as the subscription is acknowledged.
    """
    return asyncio.run(_measure_first(port, n_times))


async def _measure_first(port: int, n_times: int) -> Latencies:
    found = []
    async with _connections(port) as pool:
        subscribing, reading = pool.get_nowait(), pool.get_nowait()
        for at in range(n_times):
            name, value = f"first{at}", f"first{at}"
            body = orjson.dumps({"id": name, "expression": f"a0 = '{value}'"})
            began = time.perf_counter()
            await subscribing.ask("POST", "/v1/subscriptions", body)
            path = f"/v1/subscriptions/{name}/matches?wait=60"
            page = asyncio.create_task(reading.ask("GET", path))
            await subscribing.ask("POST", "/v1/events", orjson.dumps({"a0": value}))
            assert len((await page)["matches"]) == 1
            found.append((time.perf_counter() - began) * 1e3)
        for own in (subscribing, reading):
            pool.put_nowait(own)
    return Latencies(found)


# ── load ────────────────────────────────────────────────────────────────────────────────────


class _Changes:
    """Subscribes, and unsubscribes what was subscribed a while ago, in turn."""

    def __init__(self, expressions: Sequence[str]) -> None:
        self._expressions = cycle(expressions)
        self._held: list[str] = []
        self._n_named = 0
        self._n_subscribed = 0
        self._n_ended = 0

    @property
    def n_made(self) -> tuple[int, int]:
        """How many subscribed, and how many unsubscribed; each was answered."""
        return self._n_subscribed, self._n_ended

    async def make(self, connection: Connection) -> None:
        if len(self._held) > N_CHURNED:
            name = self._held.pop(0)
            await connection.ask("DELETE", f"/v1/subscriptions/{name}")
            self._n_ended += 1
        else:
            name = f"churned{self._n_named}"
            self._n_named += 1
            body = orjson.dumps({"id": name, "expression": next(self._expressions)})
            await connection.ask("POST", "/v1/subscriptions", body)
            self._held.append(name)
            self._n_subscribed += 1


async def _saturate(pool: Pool, request: Request, seconds: float) -> float:
    """Requests per second, if each connection sends the next as soon as it has an answer."""
    n_answered, end = 0, time.perf_counter() + seconds

    async def send() -> None:
        nonlocal n_answered
        connection = await pool.get()
        while time.perf_counter() < end:
            await request(connection)
            n_answered += 1
        pool.put_nowait(connection)

    await asyncio.gather(*(send() for _ in range(N_CONNECTIONS)))
    return n_answered / seconds


async def _send(pool: Pool, request: Request, rate: float, is_over: asyncio.Event) -> list[float]:
    """Send requests at a rate; returns the milliseconds from when each was due to its answer."""
    found: list[float] = []
    running: set[asyncio.Task[None]] = set()
    began = time.perf_counter()

    async def send(due: float) -> None:
        connection = await pool.get()
        await request(connection)
        pool.put_nowait(connection)
        found.append((time.perf_counter() - due) * 1e3)

    for at in count():
        if is_over.is_set():
            break
        due = began + at / rate
        if (early := due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        task = asyncio.create_task(send(due))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    return found


# ── connections ─────────────────────────────────────────────────────────────────────────────


class Connection:
    """A connection that stays open; one request at a time."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def ask(self, method: str, path: str, body: bytes = b"") -> Any:
        """The answer to a request, which must succeed."""
        head = (
            f"{method} {path} HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        self._writer.write(head.encode() + body)
        lines = (await self._reader.readuntil(b"\r\n\r\n")).lower().split(b"\r\n")
        sizes = [int(own[15:]) for own in lines if own.startswith(b"content-length:")]
        content = await self._reader.readexactly(sizes[0]) if sizes else b""
        assert lines[0].startswith(b"http/1.1 2"), (lines[0], content)
        return orjson.loads(content) if content else None

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


Pool = asyncio.Queue[Connection]
if TYPE_CHECKING:
    Request = Callable[[Connection], Any]


@asynccontextmanager
async def _connections(port: int) -> AsyncIterator[Pool]:
    pool: Pool = asyncio.Queue()
    made = [Connection(*await asyncio.open_connection(HOST, port)) for _ in range(N_CONNECTIONS)]
    for own in made:
        pool.put_nowait(own)
    yield pool
    for own in made:
        own.close()
