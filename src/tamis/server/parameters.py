"""Query parameters that a route does not take: an error, since a misspelt one would do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.requests import HTTPConnection

from tamis.errors import suggest
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from fastapi import FastAPI

_API: Final = "/v1/"


def expect_known_parameters(connection: HTTPConnection) -> None:
    """A dependency: raise a `Problem` for a query parameter that the route does not take."""
    path = getattr(connection.scope.get("route"), "path", "")
    # The addresses of feeds and pages may have anything.
    if not connection.query_params or not path.startswith(_API):
        return
    method = connection.scope.get("method", "")  # a socket has none
    known = _list_parameters(connection.app, path, method.lower())
    if known is None:
        return
    for name in connection.query_params:
        if name not in known:
            raise _refuse(name, known, method, path)


def _list_parameters(app: FastAPI, path: str, method: str) -> list[str] | None:
    """Those of the OpenAPI document; None for a route that is not in it."""
    operation = app.openapi()["paths"].get(path, {}).get(method)
    if operation is None:
        return None
    return [own["name"] for own in operation.get("parameters", ()) if own["in"] == "query"]


def _refuse(name: str, known: list[str], method: str, path: str) -> Problem:
    likely = suggest(name, known)
    allowed = f"it takes: {', '.join(sorted(known))}" if known else "it takes none"
    return Problem(
        422,
        "unknown-parameter",
        f'{method} {path} has no query parameter "{name[:60]}"',
        hint=f'did you mean "{likely}"?' if likely else allowed,
        parameter=name[:60],
    )
