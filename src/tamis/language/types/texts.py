"""Booleans and strings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tamis.language.types.type import Kind, Type, WrongTypeError, wrong
from tamis.text import get_analyser

if TYPE_CHECKING:
    from tamis.language.ast import Literal

BOOLEAN = Type("boolean")
STRING = Type("string")
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_BOOLEANS: Final = {"true": True, "false": False}
# Escaped: characters that end or change a string, those that a text cannot contain, and Spark's
# ${substitution}.
_ESCAPED = re.compile(r"[\\'\x00-\x1f\x7f]|\$(?=\{)")
_ESCAPES: Final = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def text_type(analyser: str) -> Type:
    """The type of strings whose words the analyser of that name splits."""
    return Type("string", analyser=get_analyser(analyser).name)


def print_string(text: str) -> str:
    """The text as a quoted string that both dialects read the same way."""

    def escape(found: re.Match[str]) -> str:
        return _ESCAPES.get(found[0]) or f"\\u{ord(found[0]):04x}"

    return f"'{_ESCAPED.sub(escape, text)}'"


def _read_boolean(value: Any, type_: Type) -> bool:
    if not isinstance(value, bool):
        raise wrong(value, type_)
    return value


def _parse_boolean(text: str, type_: Type) -> bool:
    value = _BOOLEANS.get(text.lower())
    if value is None:
        raise WrongTypeError(f"{text[:60]!r} is not of type boolean; write true or false")
    return value


def _fit_boolean(literal: Literal, type_: Type) -> Literal | None:
    return literal if literal.type == BOOLEAN else None


def _read_string(value: Any, type_: Type) -> str:
    if not isinstance(value, str):
        raise wrong(value, type_)
    if not value.isascii() and _LONE_SURROGATE.search(value):
        raise WrongTypeError(f"{value!r} is not text: it holds a lone surrogate")
    return value


def _fit_string(literal: Literal, type_: Type) -> Literal | None:
    return literal if literal.type == STRING else None


def _hint_at_quotes(literal: Literal, type_: Type) -> str:
    return f"strings are written in quotes: '{literal.value}'"


KINDS = (
    Kind(
        "boolean",
        ("bool",),
        _read_boolean,
        parse=_parse_boolean,
        fit=_fit_boolean,
        print=lambda value: "TRUE" if value else "FALSE",
        arrow=lambda pa, type_: pa.bool_(),
        classes=(bool,),
        bulk_classes=frozenset((bool,)),
        filler=False,
    ),
    Kind(
        "string",
        ("text",),
        _read_string,
        fit=_fit_string,
        hint=_hint_at_quotes,
        print=print_string,
        arrow=lambda pa, type_: pa.string(),
        classes=(str,),
        bulk_classes=frozenset((str,)),
        filler="",
    ),
)
