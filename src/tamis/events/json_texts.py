"""Events as JSON texts: the reference parser, and faster ones that return the same events.

`parse_event` is the definition. It raises a `RowError` for a text that is not an event.
"""

from __future__ import annotations

import json
from decimal import Decimal, InvalidOperation
from typing import Any, Final

import orjson

from tamis.errors import RowError
from tamis.events.repeated_keys import find_repeated_key, has_plain_keys
from tamis.language.types import Written

REPEATED_HINT: Final = "keep one of the two values"


def parse_event(text: str | bytes) -> dict[str, Any]:
    """The event of one JSON object; numbers with a point stay exact."""
    return expect_object(parse_value(text))


def parse_exactly(text: str | bytes) -> dict[str, Any]:
    """Like `parse_event`; a number is a double if that loses nothing and changes no rounding."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    return parse_event(text) if _has_long_number(data) else parse_quickly(text)


def parse_quickly(text: str | bytes) -> dict[str, Any]:
    """Like `parse_event`; all numbers with a point are doubles if possible."""
    try:
        event = orjson.loads(text)
    except ValueError:
        # Lone surrogates, NaN and numbers beyond a double are left to the other parser.
        return parse_event(text)
    return expect_object(event)


def parse_record(text: bytes) -> dict[str, Any]:
    """One JSON object in which only integers matter; NaN and numbers beyond a double are not
    JSON.
    """
    try:
        found = expect_object(orjson.loads(text))
    except orjson.JSONDecodeError as error:
        try:
            text.decode()
        except UnicodeDecodeError as encoding_error:
            raise refuse_encoding(encoding_error) from None
        reason = error.msg.partition(": line ")[0]
        raise RowError("bad-json", f"not JSON: {reason} (column {error.pos + 1})") from None
    if not has_plain_keys(text, found) and (key := find_repeated_key(text)) is not None:
        raise RowError("repeated-key", f'the row has the key "{key}" twice', hint=REPEATED_HINT)
    return found


def is_json(text: bytes) -> bool:
    """Whether the text is one JSON value."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def parse_value(text: str | bytes) -> Any:
    """One JSON value of any kind, as `parse_event` reads it; raises a `RowError` otherwise."""
    try:
        return json.loads(text, parse_float=Written)
    except UnicodeDecodeError as error:
        raise refuse_encoding(error) from None
    except json.JSONDecodeError as error:
        raise RowError("bad-json", f"not JSON: {error.msg} (column {error.pos + 1})") from None
    except InvalidOperation:
        reason = "the exponent of a number has more than 18 digits"
        raise RowError("bad-json", f"not JSON that can be read: {reason}") from None
    except (ValueError, TypeError, RecursionError) as error:
        raise RowError("bad-json", f"not JSON that can be read: {error}") from None


def expect_object(value: Any) -> dict[str, Any]:
    """The value, which must be an object."""
    if not isinstance(value, dict):
        raise RowError(
            "bad-row",
            f"expected a JSON object, found {json_kind(value)}",
            hint="write one object on each line, or one list around all objects"
            if isinstance(value, list)
            else None,
        )
    return value


def json_kind(value: Any) -> str:
    """The JSON kind of a value, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float() | Decimal():
            return f"the number {value}"
        case str():
            return "a string"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a value of type {type(value).__name__}"


def refuse_encoding(error: UnicodeDecodeError) -> RowError:
    """The error of a row that is not UTF-8."""
    byte = error.object[error.start]
    return RowError("bad-encoding", f"not UTF-8: byte 0x{byte:02X}", hint="save the file as UTF-8")


# ── numbers ─────────────────────────────────────────────────────────────────────────────────

# A decimal of at most 15 digits is the shortest that reads back as its double, so that the double
# loses no digit. With at most 12 digits after the point it also rounds to the same float: it is a
# tie between two floats, or farther from every tie than from its double. Longer decimals, those
# with an exponent, and integers beyond 64 bits may change.
_SHAPES: Final = bytes(
    0x30 if 0x30 <= byte <= 0x39 else 0x65 if byte in b"eE" else byte if byte == 0x2E else 0x20
    for byte in range(256)
)


def _has_long_number(text: bytes) -> bool:
    """Whether a number in the text, or a similar run of characters, may lose digits as a double.

    All digits are replaced by zeros, which are then searched: a regular expression takes ten times
    as long.
    """
    shapes = text.translate(_SHAPES)
    if b"0e" in shapes or b"0" * 20 in shapes:
        return True
    # All positive integers of 19 digits are read exactly, and negative ones down to -2^63.
    if b"0" * 19 in shapes and b"-9" in text:
        return True
    # Of 14 digits with a point among them, at least seven are on one side of it.
    if b".0000000" not in shapes and b"0000000." not in shapes:
        return False
    return b"0" * 14 in shapes.replace(b".", b"")
