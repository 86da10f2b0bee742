"""The types by name, and how a value is read as one of them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import SchemaError
from tamis.language.types import addresses, moments, numbers, texts
from tamis.language.types.as_they_come import add_reads, is_foreign, spell_foreign
from tamis.language.types.numbers import Written, as_printed, decimal_type
from tamis.language.types.structs import split_fields, struct_type
from tamis.language.types.texts import STRING, text_type
from tamis.language.types.type import Kind, Type, WrongTypeError, plain_value, wrong
from tamis.text import DEFAULT_ANALYSER

if TYPE_CHECKING:
    from collections.abc import Callable

# The type of an attribute of which only the presence is tested (IS NULL): any value is valid.
ANY = Type("any")


def array_type(element: Type) -> Type:
    """The type of arrays of `element`, which must be a scalar or a struct."""
    if element.name in ("array", "any") or element.analyser != DEFAULT_ANALYSER:
        raise SchemaError(
            f"array<{element}> is not supported; allowed: arrays of scalars and structs"
        )
    return Type("array", element=element)


STRINGS = array_type(STRING)
# The type of an array of whose elements nothing is known: only its size is tested, and whether an
# element is NULL.
ANY_ARRAY = Type("array", element=ANY)


def read_value(value: Any, type_: Type) -> Any:
    """`value` (not None) as a value of `type_`; raises `WrongTypeError` if it is not one.

    Numbers widen to the attribute's numeric type; nothing is coerced between numbers, strings and
    Booleans. -0.0 becomes 0.0, so that equal values have equal bits.
    """
    plain = plain_value(value)
    if plain is not value and _needs_kind(type_.element or type_):
        plain = as_printed(value, plain)
    if type_.reads and is_foreign(plain, type_):
        return _read_foreign(plain, type_)
    return KINDS[type_.name].read(plain, type_)


def _needs_kind(type_: Type) -> bool:
    return type_.name == "number" or bool(type_.reads)


def _read_foreign(value: Any, type_: Type) -> Any:
    """A value of another kind that the schema allows for the attribute."""
    if isinstance(value, str):
        return read_text(value, type_)
    return KINDS[type_.name].read(spell_foreign(value, type_), type_)


def read_text(text: str, type_: Type) -> Any:
    """The value of `type_` that `text` spells; raises `WrongTypeError` if it spells none.

    Numbers are written as in JSON, where a plus sign, leading zeros and a bare point (`.5`, `5.`)
    are also allowed; floats and doubles may be NaN, Infinity or -Infinity. Booleans are true and
    false in any case: pandas writes True, Excel TRUE. Arrays are JSON lists. No spaces are
    stripped.
    """
    try:
        value = KINDS[type_.name].parse(text, type_)
        return KINDS[type_.name].read(value, type_)
    except (ValueError, ArithmeticError, RecursionError) as error:
        if isinstance(error, WrongTypeError):
            raise
        # A number of more digits than Python reads, a list that is not JSON.
        raise WrongTypeError(f"{text[:60]!r} is not of type {type_}") from None


def _read_any(value: Any, type_: Type) -> Any:
    return value


def _read_struct(value: Any, type_: Type) -> Any:
    """Any object: its fields are read when they are tested."""
    if not hasattr(value, "get"):
        raise wrong(value, type_)
    return value


def _read_array(value: Any, type_: Type) -> tuple[Any, ...]:
    assert type_.element is not None
    element = type_.element
    if not isinstance(value, list | tuple):
        if type_.takes_one:
            return (read_value(value, element),)
        raise wrong(value, type_)
    return tuple(None if item is None else read_value(item, element) for item in value)


def _parse_array(text: str, type_: Type) -> Any:
    if type_.takes_one and not text.startswith("["):
        assert type_.element is not None
        return KINDS[type_.element.name].parse(text, type_.element)
    return json.loads(text, parse_float=Written)


def _arrow_struct(pa: Any, type_: Type) -> Any:
    fields = []
    for name, own in type_.fields:
        arrow = KINDS[own.name].arrow
        assert arrow is not None
        fields.append(pa.field(name, arrow(pa, own)))
    return pa.struct(fields)


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
        Kind("struct", (), _read_struct, arrow=_arrow_struct),
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
    if kind.name not in ("array", "decimal", "struct")
}
_DECIMAL_NAME = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?$")
_ANALYSED_NAME = re.compile(r"text\(\s*(\w+)\s*\)$")
_TEXT_NAME = re.compile(r"(?:varchar|char)\(\s*\d+\s*\)$")
_ARRAY_NAME = re.compile(r"array\s*<(.*)>$", re.DOTALL | re.IGNORECASE)
_ONE_OR_MANY_NAME = re.compile(r"one_or_many\s*<(.*)>$", re.DOTALL | re.IGNORECASE)
_STRUCT_NAME = re.compile(r"\s*struct\s*<(.*)>\s*", re.DOTALL | re.IGNORECASE)
_DECLARED_NAME = re.compile(r"([^<>]+?)\s+from\s+([^<>]+)", re.DOTALL | re.IGNORECASE)


def parse_type(name: str) -> Type:
    """The type of that name: Spark's names (`bigint`, `array<string>`) and ours."""
    return _parse_type(name, parse_type)


def parse_declared(name: str) -> Type:
    """The type of an attribute of a schema, which may read other kinds of values too: `bigint from
    string`.
    """
    if match := _DECLARED_NAME.fullmatch(name.strip()):
        return add_reads(parse_type(match[1]), match[2])
    return _parse_type(name, parse_declared)


def _parse_type(name: str, parse_element: Callable[[str], Type]) -> Type:
    folded = name.strip().lower()
    if scalar := _SCALAR_NAMES.get(folded):
        return scalar
    if folded == str(ANY_ARRAY):
        return ANY_ARRAY
    if match := _DECIMAL_NAME.match(folded):
        # Spark's default for a bare DECIMAL is (10, 0).
        return decimal_type(int(match[1] or 10), int(match[2] or 0))
    if _TEXT_NAME.match(folded):
        return STRING
    if match := _ANALYSED_NAME.match(folded):
        return text_type(match[1])
    if match := _ONE_OR_MANY_NAME.match(name.strip()):
        return replace(array_type(_parse_member(match[1], parse_element)), takes_one=True)
    if match := _ARRAY_NAME.match(name.strip()):  # names of fields keep their case
        return array_type(_parse_member(match[1], parse_element))
    raise SchemaError(
        f'unknown type "{name}"',
        hint="allowed: boolean, integer (bigint, int, …), float, double, decimal(p,s), number, "
        "string, text(analyser), date, timestamp, ip, array<…>, array<struct<name: type, …>>, "
        "one_or_many<…>",
    )


def _parse_member(text: str, parse: Callable[[str], Type]) -> Type:
    """The type of an element or a field, which may be a struct."""
    match = _STRUCT_NAME.fullmatch(text)
    if match is None:
        return parse(text)
    fields = split_fields(match[1])
    if fields is None:
        raise SchemaError(f"'{match[1]}' does not list fields; write: name: TYPE, name: TYPE")
    return struct_type({name: _parse_member(own, parse) for name, own in fields})
