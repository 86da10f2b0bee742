"""Questions in JSON whose numbers stay as they are written, as those of published events do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError

from tamis.errors import RowError
from tamis.events.json_texts import expect_object, parse_event
from tamis.server.bodies import read_body
from tamis.server.context import context_of, in_thread
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from starlette.requests import Request

JSON: Final = "application/json"
_LARGE: Final = 1 << 16  # bytes: larger bodies are parsed in another thread

_Model = TypeVar("_Model", bound=BaseModel)


async def read_question(request: Request, model: type[_Model]) -> _Model:
    """The body of a request; raises a `Problem` if it is not JSON, or not of the model.

    A field of the type `Any` has numbers that are as exact as those of `parse_event`.
    """
    context = context_of(request)
    most = context.settings.limits.request_size
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind not in ("", JSON):
        raise Problem(
            415,
            "unknown-media-type",
            f"a question of the media type {kind[:100]!r} cannot be read",
            hint=f"send {JSON}",
        )
    body = await read_body(request, most, context.settings.limits.request_timeout)
    if len(body) < _LARGE:
        return _read(body, model)
    return await in_thread(_read, body, model)


def _read(body: bytes, model: type[_Model]) -> _Model:
    try:
        found = parse_event(body)
    except RowError as error:
        status = 400 if error.code in ("bad-json", "bad-encoding") else 422
        raise Problem(status, error.code, f"the body: {error.message}") from None
    try:
        return model.model_validate(found)
    except ValidationError as error:
        wrong = [{**own, "loc": ("body", *own["loc"])} for own in error.errors()]
        raise RequestValidationError(wrong) from None


def document_body(model: type[BaseModel], **examples: Any) -> dict[str, Any]:
    """What the OpenAPI document says of a body that `read_question` reads."""
    shown = {name.replace("_", " "): {"value": value} for name, value in examples.items()}
    schema = model.model_json_schema()
    # A reference to "#/$defs" would be looked up in the whole document.
    content = {"schema": _inline(schema, schema.pop("$defs", {})), "examples": shown}
    return {"requestBody": {"required": True, "content": {JSON: content}}}


def _inline(schema: Any, definitions: dict[str, Any]) -> Any:
    """The schema with definitions instead of references to them."""
    if isinstance(schema, list):
        return [_inline(one, definitions) for one in schema]
    if not isinstance(schema, dict):
        return schema
    own = {name: _inline(one, definitions) for name, one in schema.items() if name != "$ref"}
    if "$ref" not in schema:
        return own
    name = schema["$ref"].removeprefix("#/$defs/")
    return _inline(definitions[name], definitions) | own


def expect_event(given: Any) -> dict[str, Any]:
    """The event of a question; raises a `Problem` if it is not an object."""
    try:
        return expect_object(given)
    except RowError as error:
        raise Problem(422, error.code, f"body.event: {error.message}") from None
