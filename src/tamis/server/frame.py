"""What surrounds every request: its id, its path as it came, its log line, and errors."""

from __future__ import annotations

import logging
import re
import secrets
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Final

from tamis.broker.secrets import redact
from tamis.errors import TamisError
from tamis.server.logs import REQUEST_ID
from tamis.server.metrics import UNKNOWN
from tamis.server.problems import Problem, describe

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tamis.server.metrics import Metrics

_LOG: Final = logging.getLogger("tamis.server")
_REQUEST_ID: Final = re.compile(rb"[A-Za-z0-9._-]{1,64}")
# For answers that have none of their own. No page may show, load or embed an answer.
_HEADERS: Final = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
)


class Frame:
    """The outermost layer of the application."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        _use_raw_path(scope)
        request_id = _find_request_id(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        REQUEST_ID.set(request_id)
        if scope["type"] == "websocket":
            with self._metrics.streaming("socket"):
                await self._app(scope, receive, send)
            return
        framed = _FramedAnswer(scope, send, self._metrics, request_id)
        try:
            await self._app(scope, receive, framed.send)
        except Exception as error:
            if framed.status:
                raise
            problem = _to_problem(error, request_id)
            await problem.to_response(request_id)(scope, receive, framed.send)
        finally:
            framed.close()


class _FramedAnswer:
    """Adds headers to an answer, measures it, and logs it."""

    def __init__(self, scope: Scope, send: Send, metrics: Metrics, request_id: str) -> None:
        self.status = 0
        self._scope = scope
        self._send = send
        self._metrics = metrics
        self._request_id = request_id
        self._began = time.perf_counter()
        self._stream = ExitStack()

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = dict(message["headers"])
            more = [pair for pair in _HEADERS if pair[0] not in headers]
            more.append((b"x-request-id", self._request_id.encode()))
            message["headers"] = [*message["headers"], *more]
            self._measure()
            if headers.get(b"content-type", b"").startswith(b"text/event-stream"):
                self._stream.enter_context(self._metrics.streaming("events"))
        await self._send(message)

    def _measure(self) -> None:
        route = getattr(self._scope.get("route"), "path", UNKNOWN)
        seconds = time.perf_counter() - self._began
        self._metrics.observe_request(self._scope["method"], route, self.status, seconds)

    def close(self) -> None:
        """Log the request, when the answer has ended."""
        self._stream.close()
        seconds = time.perf_counter() - self._began
        _LOG.info(
            "%s %s %d %.1f ms",
            self._scope["method"],
            # Percent-encoded: it cannot break a line. The address of a feed is a secret.
            redact(self._scope["path"]),
            self.status,
            seconds * 1e3,
            extra={
                "request_id": self._request_id,
                "key_id": self._scope["state"].get("key_id", ""),
                "status": self.status,
                "seconds": seconds,
            },
        )


def _to_problem(error: Exception, request_id: str) -> Problem:
    if isinstance(error, Problem):
        return error
    if isinstance(error, TamisError):
        return describe(error)
    _LOG.exception("request %s failed", request_id, extra={"request_id": request_id})
    return Problem(
        500, "internal", "the server has a fault", hint=f"the log has more, for {request_id}"
    )


def _use_raw_path(scope: Scope) -> None:
    """Match routes by the path as it came: an encoded slash is a part of an id."""
    raw: Any = scope.get("raw_path")
    if raw:
        path = raw.partition(b"?")[0].decode("ascii", errors="replace")
        scope["path"] = re.sub(r"[^\x21-\x7e]", "�", path)


def _find_request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return str(value.decode())
    return secrets.token_hex(8)
