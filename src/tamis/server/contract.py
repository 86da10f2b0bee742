"""The OpenAPI document: what FastAPI derives from the routes, and what all of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.server.models import ProblemAnswer
from tamis.server.problems import MEDIA_TYPE, TITLES

if TYPE_CHECKING:
    from fastapi import FastAPI
    from fastapi.routing import APIRoute

_API: Final = "/v1/"
# What ends a request before its route is found: its Host and Origin, many wrong keys.
_ANYWHERE: Final = (400, 403, 421, 429, 500, 503)
_ALL: Final = (401, 422, *_ANYWHERE)
# Routes outside of the API that may need a key; the others have their secret in the address.
_WITH_KEY: Final = ("/metrics",)
_WITH_BODY: Final = (408, 413, 415)
_WITH_NAME: Final = (404, 410)  # of a path that names a thing
_WITH_CHANGE: Final = (409, 412)  # of a thing that others may change too
_PROBLEM: Final = {"$ref": "#/components/schemas/ProblemAnswer"}
_UNUSED: Final = ("HTTPValidationError", "ValidationError")  # those of FastAPI

_SECURITY: Final[dict[str, Any]] = {
    "key": {
        "type": "http",
        "scheme": "bearer",
        "description": "An API key. A server without keys, on the loopback address, needs none.",
    },
    "ticket": {
        "type": "apiKey",
        "in": "header",
        "name": "Tamis-Ticket",
        "description": "The ticket of a subscription, which subscribing returned.",
    },
}


def problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """The `responses` of a route that may end with these problems, besides those that all have."""
    return {status: _document(status) for status in statuses}


def name_operation(route: APIRoute) -> str:
    """The `operationId` of a route: the name of its function."""
    return route.name


def complete_document(app: FastAPI) -> None:
    """Add what routes share to the OpenAPI document of an application."""
    derive = app.openapi

    def make() -> dict[str, Any]:
        if app.openapi_schema is None:
            _complete(derive())
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = make  # type: ignore[method-assign]


def _complete(document: dict[str, Any]) -> None:
    components = document.setdefault("components", {})
    schemas = components.setdefault("schemas", {})
    for name in _UNUSED:
        schemas.pop(name, None)
    schemas["ProblemAnswer"] = ProblemAnswer.model_json_schema()
    components["securitySchemes"] = _SECURITY
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            _add_problems(path, method, operation)
            if path.startswith(_API):
                operation["security"] = [{}, {"key": []}, {"ticket": []}]
            elif path in _WITH_KEY:
                operation["security"] = [{}, {"key": []}]


def _add_problems(path: str, method: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    known = [int(status) for status in responses if status >= "400"]
    for status in [*known, *_list_statuses(path, method, operation)]:
        responses[str(status)] = _document(status)
    operation["responses"] = dict(sorted(responses.items()))


def _list_statuses(path: str, method: str, operation: dict[str, Any]) -> list[int]:
    if not path.startswith(_API):
        return [*_ANYWHERE, *([401] if path in _WITH_KEY else [])]
    found = [*_ALL]
    if "requestBody" in operation:
        found += _WITH_BODY
    if "{" in path:
        found += _WITH_NAME
        if method != "get":
            found += _WITH_CHANGE
    return found


def _document(status: int) -> dict[str, Any]:
    return {"description": TITLES[status], "content": {MEDIA_TYPE: {"schema": _PROBLEM}}}
