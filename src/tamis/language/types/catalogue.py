"""The types by name, and how a value is read as one of them."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from tamis.errors import SchemaError
from tamis.language.types import addresses, moments, numbers, texts
from tamis.language.types.numbers import Written, as_printed, decimal_type
from tamis.language.types.texts import STRING, text_type
from tamis.language.types.type import Kind, Type, WrongTypeError, plain_value, wrong
from tamis.text import DEFAULT_ANALYSER

# The type of an attribute of which only the presence is tested (IS NULL): any value is valid.
ANY = Type("any")


def array_type(element: Type) -> Type:
    """The type of arrays of `element`, which must be a scalar."""
    if element.name in ("array", "any") or element.analyser != DEFAULT_ANALYSER:
        raise SchemaError(f"array<{element}> is not supported; allowed: arrays of scalars")
    return Type("array", element=element)


def read_value(value: Any, type_: Type) -> Any:
    """`value` (not None) as a value of `type_`; raises `WrongTypeError` if it is not one.

    Numbers widen to the attribute's numeric type; nothing is coerced between numbers, strings and
    Booleans. -0.0 becomes 0.0, so that equal values have equal bits.
    """
    plain = plain_value(value)
    if plain is not value and (type_.element or type_).name == "number":
        plain = as_printed(value, plain)
    return KINDS[type_.name].read(plain, type_)


def read_text(text: str, type_: Type) -> Any:
    """The value of `type_` that `text` spells; raises `WrongTypeError` if it spells none.

    Numbers are written as in JSON, where a plus sign, leading zeros and a bare point (`.5`, `5.`)
    are also allowed; floats and doubles may be NaN, Infinity or -Infinity. Booleans are true and
    false in any case: pandas writes True, Excel TRUE. Arrays are JSON lists. No spaces are
    stripped.
    """
    try:
        value = KINDS[type_.name].parse(text, type_)
        return read_value(value, type_)
    except (ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, WrongTypeError):
            raise
        # A number of more digits than Python reads, a list that is not JSON.
        raise WrongTypeError(f"{text[:60]!r} is not of type {type_}") from None


def _read_any(value: Any, type_: Type) -> Any:
    return value


def _read_array(value: Any, type_: Type) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise wrong(value, type_)
    assert type_.element is not None
    element = type_.element
    return tuple(None if item is None else read_value(item, element) for item in value)


def _parse_array(text: str, type_: Type) -> Any:
    return json.loads(text, parse_float=Written)


def _arrow_list(pa: Any, type_: Type) -> Any:
    assert type_.element is not None
    element = KINDS[type_.element.name].arrow
    assert element is not None
    return pa.list_(element(pa, type_.element))


KINDS: Final = {
    kind.name: kind
    for kind in (
        *texts.KINDS,
        *numbers.KINDS,
        *moments.KINDS,
        *addresses.KINDS,
        Kind("any", (), _read_any),
        Kind(
            "array",
            (),
            _read_array,
            parse=_parse_array,
            arrow=_arrow_list,
            classes=(list, tuple),
            bulk_classes=frozenset((list, tuple)),
            filler=(),
        ),
    )
}
# The names that Spark, Arrow and people use, in lower case.
_SCALAR_NAMES: Final = {
    name: Type(kind.name)
    for kind in KINDS.values()
    for name in (kind.name, *kind.aliases)
    if kind.name not in ("array", "decimal")
}
_DECIMAL_NAME = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?$")
_ANALYSED_NAME = re.compile(r"text\(\s*(\w+)\s*\)$")
_TEXT_NAME = re.compile(r"(?:varchar|char)\(\s*\d+\s*\)$")
_ARRAY_NAME = re.compile(r"array\s*<(.*)>$", re.DOTALL)


def parse_type(name: str) -> Type:
    """The type of that name: Spark's names (`bigint`, `array<string>`) and ours."""
    folded = name.strip().lower()
    if scalar := _SCALAR_NAMES.get(folded):
        return scalar
    if match := _DECIMAL_NAME.match(folded):
        # Spark's default for a bare DECIMAL is (10, 0).
        return decimal_type(int(match[1] or 10), int(match[2] or 0))
    if _TEXT_NAME.match(folded):
        return STRING
    if match := _ANALYSED_NAME.match(folded):
        return text_type(match[1])
    if match := _ARRAY_NAME.match(folded):
        return array_type(parse_type(match[1]))
    raise SchemaError(
        f'unknown type "{name}"',
        hint="allowed: boolean, integer (bigint, int, …), float, double, decimal(p,s), number, "
        "string, text(analyser), date, timestamp, ip, array<…>",
    )
