"""HTTP/1.1 with limits for headers: uvicorn bounds neither their size nor their time."""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from tamis.server.answers import spell_json
from tamis.server.problems import MEDIA_TYPE, Problem

if TYPE_CHECKING:
    import asyncio
    from datetime import timedelta

    from tamis.server.settings import LimitSettings

_OVERHEAD: Final = 32  # bytes that a header costs besides its text
_BROKEN: Final = Problem(400, "bad-http", "the request is not valid HTTP")
_SLOW: Final = Problem(408, "slow-request", "the headers did not arrive in time")
_LARGE: Final = Problem(
    431, "headers-too-large", "the headers are too large", hint="limits.header_size allows more"
)


class _Place(Enum):
    """What is expected next on a connection."""

    BETWEEN = 0
    HEAD = 1
    BODY = 2


class BoundedProtocol(HttpToolsProtocol):
    """A connection. `limited` makes the class for some limits."""

    limits: ClassVar[LimitSettings]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timer: asyncio.TimerHandle | None = None  # closes the connection
        self._place = _Place.BETWEEN
        self._n_counted = 0  # bytes of headers that have ended
        self._n_received = 0  # bytes since the request began

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_timer(self.limits.header_timeout)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.transport.is_closing() or self.transport.get_protocol() is not self:
            return  # closed, or a WebSocket now
        is_answered = self.cycle is None or self.cycle.response_complete
        if self._place is _Place.HEAD:
            self._start_timer(self.limits.header_timeout)
            # A header that has not ended is not counted by `on_header`.
            self._n_received += len(data)
            if self._n_received > 2 * self.limits.header_size:
                self._refuse(_LARGE)
        elif is_answered and self._place is _Place.BODY:
            self._start_timer(self.limits.request_timeout)  # nobody reads the rest
        elif is_answered:
            self._start_timer(self.limits.header_timeout)

    def on_message_begin(self) -> None:
        self._place = _Place.HEAD
        self._n_counted = self._n_received = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value) + _OVERHEAD)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._place = _Place.BODY
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._place = _Place.BETWEEN
        self._stop_timer()
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        if self._n_counted > self.limits.header_size:
            self._refuse(_LARGE)
        else:
            self._answer(_BROKEN)
            self.transport.close()

    def _count(self, n_bytes: int) -> None:
        self._n_counted += n_bytes
        if self._n_counted > self.limits.header_size:
            raise ValueError("the headers are too large")  # ends the parser

    def _start_timer(self, timeout: timedelta) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(timeout.total_seconds(), self._give_up)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self._refuse(_SLOW)

    def _refuse(self, problem: Problem) -> None:
        """Close the connection, with an answer unless another one is being sent."""
        if self.transport.is_closing():
            return
        is_answered = self.cycle is None or self.cycle.response_complete
        if is_answered and self._place is not _Place.BODY:
            self._answer(problem)
        self.transport.close()

    def _answer(self, problem: Problem) -> None:
        body = spell_json(problem.to_json())
        head = (
            f"HTTP/1.1 {problem.status} {HTTPStatus(problem.status).phrase}\r\n"
            f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)


def limited(limits: LimitSettings) -> type[BoundedProtocol]:
    """The protocol with these limits."""
    return type("LimitedProtocol", (BoundedProtocol,), {"limits": limits})
