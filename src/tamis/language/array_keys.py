"""Equality of arrays: each array is a text, its key, and arrays are equal if their keys are.

So a comparison of arrays is one of texts: a column like any other. Elements are compared as in
Spark: NULL equals NULL, NaN equals NaN, and 1.50 equals 1.5.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from tamis.language.ast import Derived, Literal
from tamis.language.overloads import Function, Overload
from tamis.language.types import ANY_ARRAY, STRING

if TYPE_CHECKING:
    from tamis.language.ast import Value
    from tamis.language.overloads import Constants, Parameters
    from tamis.language.types import Type

# The function that returns the key. Nobody can write it: the checker makes it, and the printer
# prints its argument.
ARRAY_KEY: Final = "array key"
# Types whose elements are not compared: what equals what depends on the kinds of both.
_UNCOMPARED: Final = ("any", "struct", "number")


def has_keys(element: Type | None) -> bool:
    """Whether arrays of such elements can be compared."""
    return element is not None and element.name not in _UNCOMPARED


def key_of(elements: tuple[Any, ...]) -> str:
    """The text that equal arrays have in common."""
    keys = [None if own is None else _spell(own) for own in elements]
    return json.dumps(keys, ensure_ascii=False, separators=(",", ":"))


def _spell(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, Decimal):
        text = format(value, "f")
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return "0" if text == "-0" else text
    if isinstance(value, float):
        return repr(value + 0.0)
    if isinstance(value, datetime):  # of UTC, with or without its zone
        return value.replace(tzinfo=None).isoformat()
    return value.isoformat() if isinstance(value, date) else str(value)


def elements_of(key: str, element: Type) -> tuple[Literal | None, ...]:
    """The elements of a constant array, from its key."""
    return tuple(
        None if own is None else Literal(_read(own, element), element) for own in json.loads(key)
    )


def _read(text: str, element: Type) -> Any:
    if element.is_floating:
        return float(text)
    match element.name:
        case "integer":
            return int(text)
        case "decimal":
            return Decimal(text)
        case "boolean":
            return text == "True"
        case "date":
            return date.fromisoformat(text)
        case "timestamp":
            return datetime.fromisoformat(text).replace(tzinfo=UTC)
        case _:
            return text


def compared_array(value: Value) -> Type | None:
    """The type of the array whose key the value is; None for other values."""
    if isinstance(value, Derived) and value.function == ARRAY_KEY:
        return value.arguments[0].type
    return None


def _resolve(types: Parameters, constants: Constants) -> Overload | None:
    return Overload(types, STRING, key_of) if has_keys(types[0].element) else None


FUNCTION: Final = Function(
    "key of an array", (Overload((ANY_ARRAY,), STRING, key_of),), resolve=_resolve
)
