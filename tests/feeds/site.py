"""A web site with feeds on a real socket, which answers as a test tells it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass
class Asked:
    """A request."""

    path: str
    headers: dict[str, str]


@dataclass
class Page:
    """An answer. `endless`: bytes that are sent until the client goes away."""

    body: bytes = field(default=b"", repr=False)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    endless: bytes = field(default=b"", repr=False)
    silent: bool = False  # nothing is sent until the site closes
    declared: int | None = None  # the content-length, if it is not true; NO_LENGTH: none is sent


NO_LENGTH = -1


class Site:
    """The pages by path, and the requests in order."""

    def __init__(self) -> None:
        self.pages: dict[str, Page | Callable[[Asked], Page]] = {}
        self.asked: list[Asked] = []
        self.closing = threading.Event()
        self.url = ""

    def put(self, path: str, body: bytes = b"", status: int = 200, **headers: str) -> str:
        """Answer with this body; returns the address."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.pages[path] = Page(body, status, named)
        return self.url + path

    def count(self, path: str) -> int:
        """How often a path was asked for."""
        return sum(own.path == path for own in self.asked)

    def last(self, path: str) -> Asked:
        """The last request for a path."""
        return [own for own in self.asked if own.path == path][-1]


@contextmanager
def run_site() -> Iterator[Site]:
    """Serve on a free port of 127.0.0.1 until the block ends."""
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            own = Asked(self.path, {name.lower(): text for name, text in self.headers.items()})
            site.asked.append(own)
            page = site.pages.get(self.path, Page(status=404))
            page = page(own) if callable(page) else page
            if page.silent:
                site.closing.wait()
                return
            self.send_response(page.status)
            for name, text in page.headers.items():
                self.send_header(name, text)
            n_bytes = len(page.body) if page.declared is None else page.declared
            if not page.endless and page.status != 304 and n_bytes != NO_LENGTH:
                self.send_header("content-length", str(n_bytes))
            self.end_headers()
            self.wfile.write(page.body)
            while page.endless and not site.closing.is_set():
                self.wfile.write(page.endless)

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: object) -> None:
            """Clients that have gone are no errors."""

    with Server(("127.0.0.1", 0), Handler) as server:
        site.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield site
        finally:
            site.closing.set()
            server.shutdown()
            thread.join()
