"""The types an attribute can have, and how an event's value is read as one of them."""

from __future__ import annotations

import math
import re
import struct
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from tamis.errors import SchemaError
from tamis.text import DEFAULT_ANALYSER, get_analyser

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
MAX_DECIMAL_DIGITS: Final = 38


@dataclass(frozen=True, slots=True)
class Type:
    """One attribute type; compare with `is` or `==` against the constants below."""

    name: str
    precision: int = 0  # decimals only: all digits, 1..38
    scale: int = 0  # decimals only: digits after the point, 0..precision
    element: Type | None = None  # arrays only: a scalar type
    # Strings only: how `matches` reads the text. It is a string with any analyser.
    analyser: str = field(default=DEFAULT_ANALYSER, compare=False)

    def __str__(self) -> str:
        if self.name == "decimal":
            return f"decimal({self.precision},{self.scale})"
        if self.analyser != DEFAULT_ANALYSER:
            return f"text({self.analyser})"
        return f"array<{self.element}>" if self.element else self.name

    @property
    def is_numeric(self) -> bool:
        """Whether values of the type are numbers."""
        return self.name in ("integer", "float", "double", "decimal", "number")

    @property
    def is_floating(self) -> bool:
        """Whether values are binary floating point, with NaN above everything."""
        return self.name in ("float", "double")


BOOLEAN = Type("boolean")
INTEGER = Type("integer")
FLOAT = Type("float")
DOUBLE = Type("double")
# Any number: each value keeps its kind. Integers and decimals are exact, doubles are doubles.
NUMBER = Type("number")
STRING = Type("string")
DATE = Type("date")
TIMESTAMP = Type("timestamp")
# The type of an attribute of which only presence is ever asked (IS NULL): any value will do.
ANY = Type("any")


def decimal_type(precision: int, scale: int) -> Type:
    """The exact decimal type with `precision` digits, `scale` of them after the point."""
    if not (1 <= precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision):
        raise SchemaError(
            f"decimal({precision},{scale}) is not a type; "
            f"allowed: 1 to {MAX_DECIMAL_DIGITS} digits, 0 to all of them after the point"
        )
    return Type("decimal", precision, scale)


def text_type(analyser: str) -> Type:
    """The type of strings whose words are found by the analyser of that name."""
    return Type("string", analyser=get_analyser(analyser).name)


def array_type(element: Type) -> Type:
    """The type of arrays of `element`, which must be a scalar."""
    if element.name in ("array", "any") or element.analyser != DEFAULT_ANALYSER:
        raise SchemaError(f"array<{element}> is not supported; allowed: arrays of scalars")
    return Type("array", element=element)


# The names Spark, Arrow and people use, in lower case.
_SCALAR_NAMES: Final = {
    "boolean": BOOLEAN,
    "bool": BOOLEAN,
    **dict.fromkeys(
        ("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"), INTEGER
    ),
    "float": FLOAT,
    "real": FLOAT,
    "double": DOUBLE,
    "number": NUMBER,
    "string": STRING,
    "text": STRING,
    "date": DATE,
    "timestamp": TIMESTAMP,
    "timestamp_ntz": TIMESTAMP,
    "timestamp_ltz": TIMESTAMP,
    "any": ANY,
}
_DECIMAL_NAME = re.compile(r"(?:decimal|dec|numeric)(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?$")
_ANALYSED_NAME = re.compile(r"text\(\s*(\w+)\s*\)$")
_TEXT_NAME = re.compile(r"(?:varchar|char)\(\s*\d+\s*\)$")
_ARRAY_NAME = re.compile(r"array\s*<(.*)>$", re.DOTALL)


def parse_type(name: str) -> Type:
    """The type a name stands for: Spark's names (`bigint`, `array<string>`) and our own."""
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
        "string, text(analyser), date, timestamp, array<…>",
    )


# ── values ──────────────────────────────────────────────────────────────────────────────────


class WrongTypeError(ValueError):
    """A value is not of the type its attribute was declared with."""


_DATE_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIMESTAMP_TEXT = re.compile(
    r"(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,6}))?)?(?:[ ]?(Z|[+-]\d{2}:\d{2}))?)?"
)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def parse_date(text: str) -> date:
    """The date written as YYYY-MM-DD."""
    if not _DATE_TEXT.fullmatch(text) or not text.isascii():
        raise WrongTypeError(f"'{text}' is not a date; write YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise WrongTypeError(f"'{text}' is not a date of the calendar") from None


def parse_timestamp(text: str) -> datetime:
    """The instant written as YYYY-MM-DD[ HH:MM[:SS[.ffffff]][[ ]Z|±HH:MM]]; UTC without a zone."""
    match = _TIMESTAMP_TEXT.fullmatch(text)
    if match is None or not text.isascii():
        raise WrongTypeError(
            f"'{text}' is not a timestamp; write YYYY-MM-DD HH:MM:SS with at most six fractional "
            "digits and an optional zone such as Z or +02:00 (UTC without one)"
        )
    day, hour, minute, second, fraction, zone = match.groups()
    try:
        moment = datetime.fromisoformat(day).replace(
            hour=int(hour or 0),
            minute=int(minute or 0),
            second=int(second or 0),
            microsecond=int((fraction or "0").ljust(6, "0")),
            tzinfo=_parse_zone(zone),
        )
        return moment.astimezone(UTC)
    except (ValueError, OverflowError):
        raise WrongTypeError(
            f"'{text}' is not an instant: hours go to 23, minutes and seconds to 59, zones to "
            "18:00, years from 1 to 9999"
        ) from None


def _parse_zone(zone: str | None) -> timezone:
    if zone is None or zone == "Z":
        return UTC
    hours, minutes = int(zone[1:3]), int(zone[4:6])
    # Spark's widest offset; beyond it a zone is a typing mistake.
    if hours * 60 + minutes > 18 * 60 or minutes > 59:
        raise ValueError(zone)
    offset = timedelta(hours=hours, minutes=minutes)
    return timezone(-offset if zone[0] == "-" else offset)


def round_to_float(value: float | Decimal) -> float:
    """The 32-bit float nearest to `value`, as a Python float; infinite where it overflows.

    Integers and decimals are rounded once: a double on the way must not decide a tie that they
    are not. Raises `OverflowError` for an integer beyond the doubles.
    """
    wide = float(value)
    if not isinstance(value, float) and math.isfinite(wide) and wide != value:
        wide = _round_to_odd(wide, value)
    try:
        rounded: float = struct.unpack("f", struct.pack("f", wide))[0]
    except OverflowError:
        return math.copysign(math.inf, wide)
    return rounded


def read_float(text: str) -> float:
    """The 32-bit float nearest to the number that `text` spells, as a Python float."""
    wide = float(text)
    if wide == 0 or not math.isfinite(wide):
        return wide
    try:
        return round_to_float(Decimal(text))
    except InvalidOperation:  # an exponent of more than 18 digits
        return round_to_float(wide)


def _round_to_odd(wide: float, value: int | Decimal) -> float:
    """Of the two doubles around `value`, of which `wide` is one, the one whose last bit is 1.

    It lies on the side of every tie between two floats on which `value` lies.
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", wide))
    return wide if bits & 1 else math.nextafter(wide, math.inf if value > wide else -math.inf)


def read_value(value: Any, type_: Type) -> Any:
    """`value` (not None) as a value of `type_`; raises `WrongTypeError` when it is not one.

    Numbers widen to the attribute's numeric type; nothing is coerced between numbers, strings
    and Booleans. -0.0 becomes 0.0, so that equal values are equal bits.
    """
    plain = plain_value(value)
    if plain is not value and (type_.element or type_).name == "number":
        plain = _as_printed(value, plain)
    return _READERS[type_.name](plain, type_)


def plain_value(value: Any) -> Any:
    """A scalar or array of NumPy as Python's own; anything else as it is."""
    if isinstance(value, str | int | float) or not hasattr(value, "item"):
        return value
    return value.item() if getattr(value, "ndim", 0) == 0 else value.tolist()


def _wrong(value: Any, type_: Type) -> WrongTypeError:
    return WrongTypeError(f"{_shorten(value)} is not of type {type_}")


def _shorten(value: Any) -> str:
    shown = spell_value(value)
    return shown if len(shown) <= 60 else shown[:57] + "…"


def spell_value(value: Any) -> str:
    """The value as people may read it: numbers as they are written, inside lists too."""
    try:
        return _spell(value)
    except Exception:  # integers of more than 4,300 digits and foreign objects may refuse
        return f"a value of class {type(value).__name__}"


def _spell(value: Any) -> str:
    match value:
        case Decimal():
            return str(value)
        case list():
            return f"[{', '.join(map(_spell, value))}]"
        case dict():
            return "{" + ", ".join(f"{key!r}: {_spell(own)}" for key, own in value.items()) + "}"
        case _:
            return repr(value)


def _read_any(value: Any, type_: Type) -> Any:
    return value


def _read_boolean(value: Any, type_: Type) -> bool:
    if not isinstance(value, bool):
        raise _wrong(value, type_)
    return value


def _read_integer(value: Any, type_: Type) -> int:
    # bool is an int in Python, and a wrong type here.
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise _wrong(value, type_)
    if not _is_finite(value) or not INT64_MIN <= value <= INT64_MAX:
        raise _wrong(value, type_)
    # 5.0 is what pandas makes of 5 in a column with a missing value.
    whole = int(value)
    if whole != value:
        raise _wrong(value, type_)
    return whole


def _is_finite(value: float | Decimal) -> bool:
    """Whether a number is neither infinite nor NaN, however large it is."""
    if isinstance(value, Decimal):
        return value.is_finite()
    return not isinstance(value, float) or math.isfinite(value)


class Written(Decimal):
    """A number with a fraction or an exponent, as JSON or CSV spells it: all its digits."""

    __slots__ = ()


def _read_number(value: Any, type_: Type) -> int | float | Decimal:
    """The number as the kind it is: integers and decimals are exact, floats are doubles.

    What text spells with a fraction is a double, as Spark reads it, unless the double would spell
    another number: then it is a decimal.
    """
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise _wrong(value, type_)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) + 0.0  # -0.0 + 0.0 is 0.0
    if not value.is_finite():
        if value.is_snan():
            raise _wrong(value, type_)
        return float(value)
    if isinstance(value, Written):
        double = float(value)
        if math.isfinite(double) and Decimal(repr(double)) == value:
            return double + 0.0
        value = Decimal(value)
    is_whole = INT64_MIN <= value <= INT64_MAX and value == int(value)
    return int(value) if is_whole else value


def print_as_double(value: Any) -> float:
    """A float of 16 or 32 bits as the double that it prints as: 10.1 is 10.1.

    Widened bit by bit it would be 10.100000381469727, which no constant that people write is.
    Whole numbers are what they are.
    """
    wide = float(value)
    return wide if not math.isfinite(wide) or wide.is_integer() else float(str(value))


def _as_printed(value: Any, plain: Any) -> Any:
    """Narrow floats of NumPy, alone or in an array, as the doubles that they print as."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.kind != "f" or dtype.itemsize >= 8:
        return plain
    if not isinstance(plain, list):
        return print_as_double(value)
    return [print_as_double(own) for own in value] if value.ndim == 1 else plain


def _read_floating(value: Any, type_: Type) -> float:
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise _wrong(value, type_)
    try:
        read = round_to_float(value) if type_ == FLOAT else float(value)
    except (OverflowError, ValueError):  # too large, or Decimal's signalling NaN
        raise _wrong(value, type_) from None
    return read + 0.0  # -0.0 + 0.0 is 0.0


def _read_decimal(value: Any, type_: Type) -> Decimal:
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise _wrong(value, type_)
    # repr is the shortest decimal that reads back as the float: what the JSON text said.
    # NumPy's own floats are floats too, and have another repr.
    exact = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or not fits_decimal(exact, type_):
        raise _wrong(value, type_)
    return exact or Decimal(0)  # -0 is 0


def fits_decimal(value: Decimal, type_: Type) -> bool:
    """Whether `value` is a member of the decimal type, without rounding."""
    integer_digits, fraction_digits = decimal_digits(value)
    return integer_digits <= type_.precision - type_.scale and fraction_digits <= type_.scale


def decimal_digits(value: Decimal) -> tuple[int, int]:
    """How many digits `value` needs before and after the point."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "finite decimals only"
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    exponent += len(text) - len(stripped)
    if not stripped:
        return 0, 0
    return max(0, len(stripped) + exponent), max(0, -exponent)


def _read_string(value: Any, type_: Type) -> str:
    if not isinstance(value, str):
        raise _wrong(value, type_)
    if not value.isascii() and _LONE_SURROGATE.search(value):
        raise WrongTypeError(f"{value!r} is not text: it holds a lone surrogate")
    return value


def _read_date(value: Any, type_: Type) -> date:
    if isinstance(value, str):
        return parse_date(value)
    if not isinstance(value, date) or isinstance(value, datetime):
        raise _wrong(value, type_)
    return value


def _read_timestamp(value: Any, type_: Type) -> datetime:
    if isinstance(value, str):
        return parse_timestamp(value)
    if not isinstance(value, date):
        raise _wrong(value, type_)
    if not isinstance(value, datetime):  # a date stands for its midnight
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    # A subclass may be finer than a microsecond, or be no time at all (pandas' NaT).
    if value != value:  # noqa: PLR0124
        raise _wrong(value, type_)
    if getattr(value, "nanosecond", False):
        raise WrongTypeError(f"{value} is not a whole number of microseconds")
    try:
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
    except OverflowError:
        raise _wrong(value, type_) from None


def _read_array(value: Any, type_: Type) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        raise _wrong(value, type_)
    assert type_.element is not None
    element = type_.element
    return tuple(None if item is None else read_value(item, element) for item in value)


_READERS: Final = {
    "any": _read_any,
    "boolean": _read_boolean,
    "integer": _read_integer,
    "float": _read_floating,
    "double": _read_floating,
    "decimal": _read_decimal,
    "number": _read_number,
    "string": _read_string,
    "date": _read_date,
    "timestamp": _read_timestamp,
    "array": _read_array,
}
