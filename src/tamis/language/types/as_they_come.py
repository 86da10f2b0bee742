"""Values of other kinds that a schema allows for an attribute: `status INT FROM STRING`.

Logs write a number now as a number and now as a string. By default such a value is of the wrong
type. A type that reads other kinds of values converts them, and each of them is counted.
"""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any, Final

from tamis.errors import SchemaError
from tamis.language.types.numbers import Written, read_number
from tamis.language.types.type import Type, plain_value, wrong

# Objects stand for lists, too: both are read as their JSON text.
_OF_STRINGS: Final = ("number", "boolean", "object")
READS: Final = {
    "string": _OF_STRINGS,
    **dict.fromkeys(("boolean", "integer", "float", "double", "decimal", "number"), ("string",)),
}
_SPELLED_ALREADY: Final = ("date", "timestamp", "ip")
_LONGEST_PLAIN: Final = 40  # digits of a decimal that is written without an exponent


def add_reads(type_: Type, listed: str) -> Type:
    """The type with other kinds of values that it reads: a list such as `number or object`."""
    names = listed.lower().split()
    kinds, words = names[::2], names[1::2]
    allowed = READS.get(type_.name, ())
    if not allowed:
        why = "is read from strings anyway" if type_.name in _SPELLED_ALREADY else "is not allowed"
        raise SchemaError(f"{type_} from {listed.lower()}: {type_} {why}", hint=_HINT)
    if set(words) - {"or"} or len(names) % 2 == 0 or not set(kinds) <= set(allowed):
        raise SchemaError(
            f"{type_} from {listed.lower()}; allowed: {type_} from {' or '.join(allowed)}",
            hint=_HINT,
        )
    return replace(type_, reads=tuple(own for own in allowed if own in kinds))


_HINT: Final = (
    "numbers and Booleans are read from strings, INT FROM STRING; strings from numbers, Booleans "
    "and objects, STRING FROM NUMBER OR BOOLEAN OR OBJECT"
)


def source_of(value: Any) -> str | None:
    """The kind of a plain value, as a schema names it."""
    match value:
        case str():
            return "string"
        case bool():
            return "boolean"
        case int() | float() | Decimal():
            return "number"
        case list() | tuple():
            return "object"
        case _:
            return "object" if hasattr(value, "items") else None


def is_foreign(value: Any, type_: Type) -> bool:
    """Whether the value is of another kind that the type reads."""
    return source_of(value) in type_.reads


def reads_foreign(type_: Type) -> bool:
    """Whether the type, or that of its elements, reads values of other kinds."""
    return bool((type_.element or type_).reads)


def holds_foreign(value: Any, type_: Type) -> bool:
    """Whether the value, or an element of it, is of another kind that the type reads."""
    if type_.element is None:
        return is_foreign(plain_value(value), type_)
    is_one = type_.takes_one and not isinstance(plain_value(value), list | tuple)
    elements = (value,) if is_one else value
    return any(is_foreign(plain_value(own), type_.element) for own in elements)


def spell_foreign(value: Any, type_: Type) -> str:
    """The text of a number, a Boolean, an object or a list; raises `WrongTypeError`."""
    try:
        return _spell(value, type_)
    except (RecursionError, ValueError):  # too deep, or an integer of more than 4,300 digits
        raise wrong(value, type_) from None


def _spell(value: Any, type_: Type) -> str:
    match plain_value(value):
        case bool() as flag:
            return "true" if flag else "false"
        case int() | float() | Decimal() as number:
            return _spell_number(number, type_)
        case str() as text:
            return json.dumps(text, ensure_ascii=False)
        case None:
            return "null"
        case date() as moment:
            return json.dumps(moment.isoformat())
        case list() | tuple() as elements:
            return f"[{','.join(_spell(own, type_) for own in elements)}]"
        case other if hasattr(other, "items"):
            # A member that is NULL is missing, as it is in an Arrow or Spark struct.
            known = ((name, own) for name, own in other.items() if own is not None)
            members = (f"{_spell(str(name), type_)}:{_spell(own, type_)}" for name, own in known)
            return f"{{{','.join(members)}}}"
        case other:
            raise wrong(other, type_)


def _spell_number(value: Any, type_: Type) -> str:
    """An integer by its digits, a double as the shortest text that reads back, a decimal with all
    its digits.
    """
    if not isinstance(value, Decimal) or isinstance(value, Written):
        value = read_number(value, type_)
    if isinstance(value, float):
        special = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
        return special.get(repr(value), repr(value))
    if isinstance(value, Decimal) and abs(value.adjusted()) <= _LONGEST_PLAIN:
        return format(value, "f")
    return str(value)
