"""Query parameters that a route does not take: an error, since a misspelt one would do nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from starlette.requests import HTTPConnection

from tamis.errors import suggest
from tamis.server.contract import API
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi.dependencies.models import Dependant


async def expect_known_parameters(connection: HTTPConnection) -> None:
    """A dependency: raise a `Problem` for a query parameter that the route does not take."""
    if connection.scope["type"] == "http":  # a socket reports it once it is open
        refuse_unknown_parameters(connection)


def refuse_unknown_parameters(connection: HTTPConnection) -> None:
    """Raise a `Problem` for a query parameter that the route does not take."""
    route = connection.scope["route"]
    # The addresses of feeds and pages may have anything.
    if not connection.query_params or not route.path.startswith(API):
        return
    known = sorted(list_parameters(route.dependant))
    for name in connection.query_params:
        if name not in known:
            likely = suggest(name, known)
            allowed = f"it takes: {', '.join(known)}" if known else "it takes none"
            raise Problem(
                422,
                "unknown-parameter",
                f'{route.path} has no query parameter "{name[:60]}"',
                hint=f'did you mean "{likely}"?' if likely else allowed,
                parameter=name[:60],
            )


def list_parameters(dependant: Dependant) -> Iterator[str]:
    """The names of the query parameters of a route and of what it depends on."""
    yield from (own.alias for own in dependant.query_params)
    for other in dependant.dependencies:
        yield from list_parameters(other)
