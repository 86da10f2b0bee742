"""Casts between types that have an exact reading; see `value_functions`."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from tamis.language.overloads import Function, Overload
from tamis.language.types import (
    ANY,
    BOOLEAN,
    DATE,
    DOUBLE,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    STRING,
    TIMESTAMP,
    WrongTypeError,
    fits_decimal,
    parse_date,
    parse_timestamp,
    parse_type,
)
from tamis.language.types.addresses import IP, parse_address
from tamis.language.types.numbers import to_double
from tamis.language.types.texts import print_string

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.overloads import Constants, Parameters
    from tamis.language.types import Type

# As in Spark, control characters and blanks around a number are ignored.
_BLANKS: Final = "".join(map(chr, (*range(0x21), 0x7F)))
_WHOLE: Final = re.compile(r"([+-]?)(?=[0-9])0*([0-9]*)")
_NUMBER: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)[dDfF]?")
_NOT_FINITE: Final = re.compile(r"[+-]?inf(?:inity)?|nan", re.IGNORECASE)
_BOOLEANS: Final = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}


def _read_whole(text: str) -> int | None:
    found = _WHOLE.fullmatch(text.strip(_BLANKS))
    if found is None or len(found[2]) > 19:  # digits that 64 bits have
        return None
    number = int(found[1] + (found[2] or "0"))
    return number if INT64_MIN <= number <= INT64_MAX else None


def _read_double(text: str) -> float | None:
    text = text.strip(_BLANKS)
    if found := _NUMBER.fullmatch(text):
        return float(found[1]) + 0.0
    return float(text) if _NOT_FINITE.fullmatch(text) else None


def _read_boolean(text: str) -> bool | None:
    return _BOOLEANS.get(text.strip(_BLANKS).lower())


def _read_spelled(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            return parse(text)
        except WrongTypeError:
            return None

    return read


def _print_timestamp(moment: datetime) -> str:
    text = moment.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def _to_decimal(result: Type) -> Callable[[Any], Decimal | None]:
    def convert(value: Any) -> Decimal | None:
        exact = Decimal(value)
        return exact if fits_decimal(exact, result) else None

    return convert


# By the types before and after: how a value is converted; None if it cannot be.
_CASTS: Final[dict[tuple[str, str], Callable[[Any], Any]]] = {
    ("string", "integer"): _read_whole,
    ("string", "double"): _read_double,
    ("string", "boolean"): _read_boolean,
    ("string", "date"): _read_spelled(parse_date),
    ("string", "timestamp"): _read_spelled(parse_timestamp),
    ("string", "ip"): _read_spelled(parse_address),
    ("integer", "double"): float,
    ("integer", "string"): str,
    ("boolean", "integer"): int,
    ("boolean", "string"): lambda value: "true" if value else "false",
    ("float", "double"): float,
    ("decimal", "double"): float,
    ("number", "double"): lambda value: to_double(value) + 0.0,
    ("date", "string"): lambda value: value.isoformat(),
    ("date", "timestamp"): lambda value: datetime(value.year, value.month, value.day, tzinfo=UTC),
    ("timestamp", "date"): lambda value: value.date(),
    ("timestamp", "string"): _print_timestamp,
}
_SPARK_NAMES: Final = {"integer": "BIGINT"}
# What Spark reads as a moment here: alone it also reads 2024-1-5, other years, and 10:30 as today.
_DAY: Final = r"\A(?!0000)[0-9]{4}-[0-9]{2}-[0-9]{2}"
_TIME: Final = r"[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.][0-9]{1,6})?)?"
_ZONE: Final = r" ?(Z|[+-]((0[0-9]|1[0-7]):[0-5][0-9]|18:00))"
_SPELLINGS: Final = {"date": rf"{_DAY}\z", "timestamp": rf"{_DAY}({_TIME}({_ZONE})?)?\z"}


def _read_in_spark(target: Type) -> str:
    """The cast of a string to a date or a timestamp, which uses the string once."""
    pattern = print_string(_SPELLINGS[target.name]).replace("{", "{{").replace("}", "}}")
    read = f"try_cast(regexp_extract({{0}}, {pattern}, 0) AS {target.name.upper()})"
    if target == DATE:
        return read
    # A zone may move the first and the last day out of the years that there are.
    return f"get(filter(array({read}), x -> year(x) BETWEEN 1 AND 9999), 0)"


def _resolve(types: Parameters, constants: Constants) -> Overload | None:
    source, target = types[0], parse_type(constants[1])
    convert = _CASTS.get((source.name, target.name))
    if target.name == "decimal" and _holds(target, source):
        convert = _to_decimal(target)
    if source == target and source.element is None:
        convert = _same
    if convert is None and source == ANY:
        raise WrongTypeError(f"what is cast to {target} has no known type")
    if convert is None:
        raise WrongTypeError(f"a cast from {source} to {target} is not exact")
    name = _SPARK_NAMES.get(target.name, str(target).upper())
    spark = f"try_cast({{0}} AS {name})" if target != IP or source == IP else ""
    if source == STRING and target.name in _SPELLINGS:
        spark = _read_in_spark(target)
    return Overload(types, target, lambda value, _: convert(value), spark=spark)


def _same(value: Any) -> Any:
    return value


def _holds(target: Type, source: Type) -> bool:
    """Whether a decimal type has all digits after the point of a number."""
    return source == INTEGER or (source.name == "decimal" and source.scale <= target.scale)


def target_of(constants: Constants) -> Type:
    """The type of a cast, given the constants of its arguments."""
    return parse_type(constants[1])


CAST: Final = Function(
    "cast(value AS type)",
    (Overload((STRING, STRING), NUMBER, lambda value, type_: value),),
    constants=(1,),
    resolve=_resolve,
    no_result="not a value of the type",
)
# What is most likely cast to a type, for inference.
LIKELY_SOURCES: Final = {
    type_.name: source
    for type_, source in (
        *((own, STRING) for own in (INTEGER, DOUBLE, BOOLEAN, TIMESTAMP, IP)),
        (DATE, TIMESTAMP),
    )
}
