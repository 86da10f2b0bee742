"""Values spelled as text, one at a time: fields of CSV and of `map<string,string>`."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from tamis.language.types import FLOAT, Written, WrongTypeError, read_float, read_value

if TYPE_CHECKING:
    from tamis.language.types import Type

_BOOLEANS: Final = {"true": True, "false": False}
_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"NaN|[+-]?Infinity")


def read_text(text: str, type_: Type) -> Any:
    """The value of `type_` that `text` spells; raises `WrongTypeError` if it spells none.

    Numbers are written as in JSON, where a plus sign, leading zeros and a bare point (`.5`, `5.`)
    are also allowed; floats and doubles may be NaN, Infinity or -Infinity. Booleans are true and
    false in any case: pandas writes True, Excel TRUE. Arrays are JSON lists. No spaces are
    stripped.
    """
    try:
        value = _parse(text, type_)
        if type_.name == "boolean" and value is text:
            raise WrongTypeError(f"{text[:60]!r} is not of type boolean; write true or false")
        return read_value(value, type_)
    except (ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, WrongTypeError):
            raise
        # A number of more digits than Python reads, a list that is not JSON.
        raise WrongTypeError(f"{text[:60]!r} is not of type {type_}") from None


def _parse(text: str, type_: Type) -> Any:
    """The Python value that `text` spells; the text itself if it spells none."""
    match type_.name:
        case "boolean":
            return _BOOLEANS.get(text.lower(), text)
        case "integer":
            if _WHOLE.fullmatch(text):
                return int(text)
            return Decimal(text) if _NUMBER.fullmatch(text) else text
        case "number":
            if _WHOLE.fullmatch(text):
                return int(text)
            if _NUMBER.fullmatch(text):
                return Written(text)
            return float(text) if _NOT_FINITE.fullmatch(text) else text
        case "float" | "double":
            is_number = _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text)
            read = read_float if type_ == FLOAT else float
            return read(text) if is_number else text
        case "decimal":
            return Decimal(text) if _NUMBER.fullmatch(text) else text
        case "array":
            return json.loads(text, parse_float=Written)
        case _:
            return text


class SpelledEvent(dict[str, Any]):
    """An event of texts. As a mapping it has values in the types that expressions use; `texts` are
    the original texts, for readers that use other types.
    """

    __slots__ = ("texts",)

    def __init__(self) -> None:
        super().__init__()
        self.texts: dict[str, Any] = {}

    def put(self, path: tuple[str, ...], text: Any, type_: Type | None) -> None:
        """Add an attribute; the first of a name is kept. A text that its type rejects is also kept,
        as an invalid value.
        """
        value = text
        if isinstance(text, str) and type_ is not None:
            try:
                value = read_text(text, type_)
            except WrongTypeError:
                value = text
        _put(self, path, value)
        _put(self.texts, path, text)


def _put(event: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        inside = event.setdefault(step, {})
        if not isinstance(inside, dict):  # "a" and "a.b": the first is kept
            return
        event = inside
    event.setdefault(path[-1], value)
