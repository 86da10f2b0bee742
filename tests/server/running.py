"""A server on a real socket, in a thread of this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import orjson
from httpx2 import Client, Response

from tamis.broker.match_server import MatchServer
from tamis.server import Settings, create_app
from tamis.server.context import ServerContext
from tamis.server.running import _configure, _Server
from tests.waiting import HANG_SECONDS, wait_until


class Running:
    """A server that runs, and what tests look at."""

    def __init__(self, url: str, context: ServerContext, stop: Callable[[], None]) -> None:
        self.url = url
        self.context = context
        self.stop = stop  # as a signal does

    def client(self, **options) -> Client:
        """A client of this server."""
        return Client(base_url=self.url, timeout=HANG_SECONDS, trust_env=False, **options)


@contextmanager
def run_server(
    match_server: MatchServer,
    settings: Settings,
    *,
    is_open: bool = True,
    heartbeat: float = 15.0,
    port: int = 0,
) -> Iterator[Running]:
    """Serve on a port of 127.0.0.1, by default a free one, until the block ends."""
    app = create_app(match_server, settings, is_open=is_open)
    app.state.context.heartbeat = heartbeat
    urls: list[str] = []
    server = _Server(_configure(app, settings), app, urls.append)
    server.config.port = port

    def stop() -> None:
        server.should_exit = True

    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: urls or not thread.is_alive(), "the server listens")
        yield Running(urls[0], app.state.context, stop)
    finally:
        stop()
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()


def read_stream(answer: Response) -> Iterator[dict]:
    """The events of a stream, comments as {"comment": …}."""
    fields: dict = {}
    for line in answer.iter_lines():
        if not line:
            if fields:
                yield fields
            fields = {}
            continue
        name, _, value = line.partition(": ")
        name = name or "comment"
        fields[name.rstrip(":") or "comment"] = orjson.loads(value) if name == "data" else value
