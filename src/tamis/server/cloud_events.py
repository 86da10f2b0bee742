"""CloudEvents 1.0: in JSON (structured and batch mode), and in headers (binary mode)."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_to_bytes

import orjson

from tamis.errors import RowError
from tamis.events.json_texts import parse_event, parse_value, refuse_encoding

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

STRUCTURED: Final = "application/cloudevents"  # how the media types of whole CloudEvents begin
_JSON: Final = "application/json"
_PREFIX: Final = "ce-"
_VERSION: Final = "1.0"
_REQUIRED: Final = ("id", "source", "specversion", "type")
_ATTRIBUTE: Final = re.compile(r"[a-z0-9]+", re.ASCII)
_ESCAPED: Final = re.compile(r"\\(.)")  # in a quoted header
_IN_BODY: Final = ("data", "datacontenttype")  # binary mode has them elsewhere


def is_binary(headers: Mapping[str, str], kind: str) -> bool:
    """Whether a request with a body of the media type `kind` is a CloudEvent in binary mode."""
    if kind.startswith(STRUCTURED):
        return False
    return any(f"{_PREFIX}{name}" in headers for name in _REQUIRED)


def list_attributes(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The headers with the attributes of a CloudEvent, as they came."""
    return sorted(pair for pair in headers.items() if pair[0].startswith(_PREFIX))


def check_event(text: bytes) -> bytes | RowError:
    """The text of a CloudEvent in JSON, or why it is invalid."""
    try:
        event = parse_event(text)
    except RowError:
        return text  # its error is found again when it is read
    wrong = _find_wrong(event)
    if wrong is None and "data" in event and "data_base64" in event:
        wrong = "the CloudEvent has both data and data_base64"
    return text if wrong is None else _refuse(wrong)


def join_event(headers: Mapping[str, str], kind: str, body: bytes) -> bytes | RowError:
    """The event of binary mode, in the form that structured mode has, or why it is invalid."""
    try:
        event = _read_attributes(list_attributes(headers))
        return _add_data(event, kind, headers.get("content-type", ""), body)
    except RowError as error:
        return error


def _read_attributes(given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    event: dict[str, Any] = {}
    for header, value in given:
        name = header.removeprefix(_PREFIX)
        if name in _IN_BODY or not _ATTRIBUTE.fullmatch(name):
            raise _refuse(
                f"the header {header[:100]} is no attribute of a CloudEvent",
                hint="names have lower-case letters and digits; the body is the data, and the "
                "header content-type is its type",
            )
        if name in event:
            raise _refuse(f"the CloudEvent has the header {header[:100]} twice")
        try:
            event[name] = _decode(value)
        except UnicodeDecodeError:
            raise _refuse(f"the header {header[:100]} is not UTF-8, percent-encoded") from None
    wrong = _find_wrong(event)
    if wrong is not None:
        raise _refuse(wrong, hint=f"binary mode has attributes in headers such as {_PREFIX}id")
    return event


def _decode(value: str) -> str:
    """The value of a header: quotation marks first, then one round of percent-encoding."""
    if len(value) > 1 and value[0] == value[-1] == '"':
        value = _ESCAPED.sub(r"\1", value[1:-1])
    return unquote_to_bytes(value.encode("latin-1")).decode()


def _find_wrong(event: Mapping[str, Any]) -> str | None:
    """What is wrong with the required attributes."""
    missing = [name for name in _REQUIRED if not _is_text(event.get(name))]
    if missing:
        return f"the CloudEvent has no {', '.join(missing)}"
    if event["specversion"] != _VERSION:
        return f'specversion is "{event["specversion"][:100]}"; "{_VERSION}" is expected'
    return None


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _add_data(event: dict[str, Any], kind: str, given_kind: str, body: bytes) -> bytes:
    if not body:
        return orjson.dumps(event)
    if kind not in ("", _JSON):
        event["datacontenttype"] = given_kind
    if kind in ("", _JSON) or kind.endswith("+json"):
        return _splice(event, body)
    try:
        event["data"] = body.decode()
    except UnicodeDecodeError:
        event["data_base64"] = base64.b64encode(body).decode()
    return orjson.dumps(event)


def _splice(event: dict[str, Any], body: bytes) -> bytes:
    """The event with JSON data as it came: its numbers stay exact."""
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        raise refuse_encoding(error) from None
    parse_value(text)  # one value, and nothing after it that would be another attribute
    return orjson.dumps(event)[:-1] + b',"data":' + body + b"}"


def _refuse(detail: str, hint: str | None = None) -> RowError:
    return RowError("bad-cloud-event", detail, hint=hint)
