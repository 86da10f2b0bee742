"""Events in the body of a request: JSON, JSON lines, Arrow, CloudEvents."""

from __future__ import annotations

import hashlib
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson
import pyarrow as pa

from tamis.events.json_source import JsonObjects, JsonSpans, split_lines
from tamis.input.json_arrays import BrokenArrayError, is_array, read_elements
from tamis.server.arrow_bodies import read_arrow
from tamis.server.cloud_events import check_event, is_binary, join_event, list_attributes
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JSON: Final = "application/json"
CLOUD_EVENT: Final = "application/cloudevents+json"
CLOUD_EVENTS: Final = "application/cloudevents-batch+json"
ARROW: Final = "application/vnd.apache.arrow.stream"
HEAD_BYTES: Final = 4096  # of a body that show whether it is an array
_OBJECT: Final = {"type": "object"}
_OBJECTS: Final = {"type": "array", "items": _OBJECT}

_CE_EXAMPLE: Final = {
    "specversion": "1.0",
    "id": "17",
    "source": "/shop",
    "type": "order",
    "data": {"price": 10.1},
}


class MediaType(NamedTuple):
    """How the OpenAPI document describes a body."""

    schema: dict[str, Any]
    example: Any


def _document_media(own: MediaType) -> dict[str, Any]:
    """What the OpenAPI document says of a media type."""
    shown = {} if own.example is None else {"example": own.example}
    return {"schema": own.schema, **shown}


_LINES: Final = MediaType({"type": "string"}, '{"age": 20}\n{"age": 30}\n')

MEDIA_TYPES: Final = {
    JSON: MediaType({"oneOf": [_OBJECT, _OBJECTS]}, {"age": 20, "country": "FR"}),
    "application/x-ndjson": _LINES,
    "application/jsonl": _LINES,
    ARROW: MediaType({"type": "string", "format": "binary"}, None),
    CLOUD_EVENT: MediaType(_OBJECT, _CE_EXAMPLE),
    CLOUD_EVENTS: MediaType(_OBJECTS, [_CE_EXAMPLE]),
}
_ANY_DATA: Final = {
    "type": "string",
    "format": "binary",
    "description": "The data of a CloudEvent in binary mode, with the required ce- headers.",
}
_REQUIRED: Final = "Required for a CloudEvent in binary mode: "
_CE_HEADERS: Final = {
    "ce-id": f"{_REQUIRED}its id.",
    "ce-source": f"{_REQUIRED}where it comes from.",
    "ce-specversion": f"{_REQUIRED}1.0.",
    "ce-type": f"{_REQUIRED}what kind of event it is.",
    "ce-subject": "What a CloudEvent in binary mode is about.",
    "ce-time": "When a CloudEvent in binary mode happened. Other attributes have headers too.",
}
# What the OpenAPI document says of a request to publish. Binary mode takes data of any media type.
DOCUMENTED: Final[dict[str, Any]] = {
    "parameters": [
        {
            "name": name,
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "description": text,
        }
        for name, text in _CE_HEADERS.items()
    ],
    "requestBody": {
        "required": True,
        "content": {
            **{kind: _document_media(own) for kind, own in MEDIA_TYPES.items()},
            "*/*": {"schema": _ANY_DATA},
        },
    },
}


class GivenEvents(NamedTuple):
    """The events of a request."""

    events: JsonSpans | pa.RecordBatch
    largest: int  # bytes of the largest event


def read_events(
    headers: Mapping[str, str], body: bytes, most: int, most_events: int
) -> GivenEvents:
    """The events of a body; raises a `Problem` if it has none that can be read, if they take more
    than `most` bytes, or if there are more than `most_events`.
    """
    given = _read_all(headers, body, most, most_events)
    if len(given.events) > most_events:
        raise Problem(
            413,
            "too-many-events",
            f"the request has more than {most_events:,} events",
            hint="send several smaller requests",
            limit=most_events,
        )
    return given


def _read_all(headers: Mapping[str, str], body: bytes, most: int, most_events: int) -> GivenEvents:
    """All events, or one more than `most_events`."""
    kind = _find_kind(headers)
    if is_binary(headers, kind):
        return _hold([join_event(headers, kind, body)])
    if kind == ARROW:
        return GivenEvents(*read_arrow(body, most))
    read = _READERS.get(kind)
    if read is None:
        raise Problem(
            415,
            "unknown-media-type",
            f"events of the media type {kind!r} cannot be read",
            hint=f"send one of {', '.join(MEDIA_TYPES)}",
        )
    return read(body, most_events)


def digest_request(headers: Mapping[str, str], body: bytes, matches: str) -> bytes:
    """A digest of all that decides which events a request has and what its answer shows: two
    requests with one idempotency key must have the same.
    """
    kind = _find_kind(headers)
    attributes = list_attributes(headers) if is_binary(headers, kind) else []
    read_as = headers.get("content-type", "") if attributes else kind or JSON
    digest = hashlib.sha256(orjson.dumps([read_as, matches, attributes]))
    digest.update(b"\n")  # which the JSON before it does not have
    digest.update(body)
    return digest.digest()


def _find_kind(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", JSON).partition(";")[0].strip().lower()


def _read_json(body: bytes, most_events: int) -> GivenEvents:
    start = body.lstrip()[:1]
    if start == b"[":
        return _hold(_elements(body, most_events))
    return _hold([body])


def _elements(body: bytes, most_events: int) -> list[Any]:
    try:
        # No more than needed: an element of two bytes takes more than a hundred here.
        elements = list(islice(read_elements(BytesIO(body)), most_events + 1))
    except BrokenArrayError as error:
        # An array that is cut off is no error of one event: nothing of it is published.
        where = f"line {error.line}: {error.message}"
        raise Problem(400, "bad-json", f"the body is not a JSON array: {where}") from None
    return [one.text.encode(errors="surrogateescape") for one in elements]


def _read_lines(body: bytes, _most_events: int) -> GivenEvents:
    if is_array(body[:HEAD_BYTES]):  # its lines would be rejected, but for some that are objects
        raise Problem(
            400,
            "bad-json",
            "the body is a JSON array, not one JSON object per line",
            hint=f"send it as {JSON}",
        )
    texts = split_lines(body, len(body)).texts
    sizes = texts.ends - texts.starts
    return GivenEvents(texts, int(sizes.max(initial=0)))


def _read_cloud_event(body: bytes, _most_events: int) -> GivenEvents:
    return _hold([check_event(body)])


def _read_cloud_events(body: bytes, most_events: int) -> GivenEvents:
    return _hold([check_event(one) for one in _elements(body, most_events)])


def _hold(texts: list[Any]) -> GivenEvents:
    sizes = [len(text) for text in texts if isinstance(text, bytes)]
    return GivenEvents(JsonObjects(texts), max(sizes, default=0))


_READERS: Final[dict[str, Callable[[bytes, int], GivenEvents]]] = {
    JSON: _read_json,
    "": _read_json,
    "application/x-ndjson": _read_lines,
    "application/jsonl": _read_lines,
    "application/json-lines": _read_lines,
    CLOUD_EVENT: _read_cloud_event,
    CLOUD_EVENTS: _read_cloud_events,
}
