"""Many streams of Server-Sent Events at once, and what each costs the server."""

from __future__ import annotations

import asyncio
import resource
import time
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from benchmarks.server_process import HOST, ask

if TYPE_CHECKING:
    from benchmarks.server_process import Server

N_SUBSCRIPTIONS: Final = 1_000
AT_ONCE: Final = 100  # streams that are opened at the same time
OTHER_FILES: Final = 500

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Held(NamedTuple):
    """What was measured."""

    n_streams: int
    bytes_each: float  # of memory
    seconds: float  # from a request to publish until each stream has its match


def allow_files(n_streams: int) -> int:
    """Let this process and its children open as many files as there are streams; returns the
    number of streams that are possible.
    """
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    if most == resource.RLIM_INFINITY:
        most = n_streams + OTHER_FILES
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(most, n_streams + OTHER_FILES), most))
    return most - OTHER_FILES


def hold(server: Server, n_streams: int) -> Held:
    """Open streams, publish an event for all of them, and wait until all have it."""
    connection = server.connect()
    for at in range(min(n_streams, N_SUBSCRIPTIONS)):
        body = orjson.dumps({"id": f"s{at}", "expression": "a0 = 'all'"})
        ask(connection, "POST", "/v1/subscriptions", body)
    ask(connection, "POST", "/v1/events", b'{"a0": "none"}')
    before = server.measure_memory()

    async def run() -> Held:
        streams: list[Stream] = []
        for start in range(0, n_streams, AT_ONCE):
            some = range(start, min(start + AT_ONCE, n_streams))
            streams += await asyncio.gather(*(_open(server.port, at) for at in some))
        each = (server.measure_memory() - before) / n_streams
        # The server has closed the other connection, if opening the streams took long.
        publisher = server.connect()
        began = time.perf_counter()
        publish = asyncio.to_thread(ask, publisher, "POST", "/v1/events", b'{"a0": "all"}')
        reads = (reader.readuntil(b"event: match\n") for reader, _ in streams)
        await asyncio.gather(publish, *reads)
        spent = time.perf_counter() - began
        for _, writer in streams:
            writer.close()
        return Held(n_streams, each, spent)

    return asyncio.run(run())


async def _open(port: int, at: int) -> Stream:
    reader, writer = await asyncio.open_connection(HOST, port)
    path = f"/v1/subscriptions/s{at % N_SUBSCRIPTIONS}/stream"
    writer.write(f"GET {path} HTTP/1.1\r\nhost: {HOST}\r\n\r\n".encode())
    await reader.readuntil(b"retry: ")
    return reader, writer
