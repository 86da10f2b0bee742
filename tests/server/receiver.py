"""A receiver of webhooks on a real socket, which does what a test tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import orjson


class Received(NamedTuple):
    """A request."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def id(self) -> str:
        """The same for the same message."""
        return self.headers["webhook-id"]

    @property
    def event(self) -> int:
        """The number of the event in it."""
        return orjson.loads(self.body)["data"]["event"]


class Receiver:
    """What was received, in order, and how to answer: a status, or a function of the request."""

    def __init__(self) -> None:
        self.received: list[Received] = []
        self.answer: int | Callable[[Received], int] = 204
        self.headers: dict[str, str] = {}
        self.release = threading.Event()  # set at the end: a function may wait for it
        self.url = ""

    def events(self) -> list[int]:
        """The events without repeated messages, in order."""
        return list(dict.fromkeys(own.event for own in self.received))


@contextmanager
def run_receiver() -> Iterator[Receiver]:
    """Receive on a free port of 127.0.0.1 until the block ends."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            names = {name.lower(): value for name, value in self.headers.items()}
            own = Received(self.path, names, body)
            receiver.received.append(own)
            status = receiver.answer if isinstance(receiver.answer, int) else receiver.answer(own)
            self.send_response(status)
            for name, value in receiver.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", "6")
            self.end_headers()
            self.wfile.write(b"secret")

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Clients that have gone are no errors."""

    with Server(("127.0.0.1", 0), Handler) as server:
        receiver.url = f"http://127.0.0.1:{server.server_port}/hook"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            receiver.release.set()
            server.shutdown()
            thread.join()
