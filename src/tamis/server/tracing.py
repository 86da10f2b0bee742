"""OpenTelemetry spans of requests, if `operations.traces` is set and its package is there.

Only the interface (`opentelemetry-api`) is used. Who exports the spans is configured outside, for
example by running the server with `opentelemetry-instrument`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final

from tamis.broker.secrets import redact
from tamis.server.metrics import UNKNOWN

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG: Final = logging.getLogger("tamis.server")
_FAULT: Final = 500


def find_tracer() -> Any:
    """The tracer; None if the package is missing."""
    try:
        from opentelemetry import trace
    except ImportError:
        _LOG.warning("operations.traces is set, but opentelemetry-api is not installed: no traces")
        return None
    return trace.get_tracer("tamis.server")


class Tracing:
    """A layer around the application that makes a span for each request."""

    def __init__(self, app: ASGIApp, tracer: Any) -> None:
        self._app = app
        self._tracer = tracer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle a request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from opentelemetry.propagate import extract
        from opentelemetry.trace import SpanKind, Status, StatusCode

        carrier = {name.decode("latin-1"): own.decode("latin-1") for name, own in scope["headers"]}
        with self._tracer.start_as_current_span(
            scope["method"], context=extract(carrier), kind=SpanKind.SERVER
        ) as span:

            async def watch(message: Message) -> None:
                if message["type"] == "http.response.start":
                    _describe(span, scope, message["status"])
                    if message["status"] >= _FAULT:
                        span.set_status(Status(StatusCode.ERROR))
                await send(message)

            await self._app(scope, receive, watch)


def _describe(span: Any, scope: Scope, status: int) -> None:
    route = getattr(scope.get("route"), "path", UNKNOWN)
    state = scope.get("state", {})
    span.update_name(f"{scope['method']} {route}")
    span.set_attributes(
        {
            "http.request.method": scope["method"],
            "http.route": route,
            "http.response.status_code": status,
            "url.path": redact(scope["path"]),
            "tamis.request_id": state.get("request_id", ""),
            "tamis.key_id": state.get("key_id", ""),
        }
    )
