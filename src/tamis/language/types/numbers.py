"""Numbers: integers, floats, doubles, exact decimals, and numbers of any of these kinds."""

from __future__ import annotations

import math
import re
import struct
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from tamis.errors import SchemaError
from tamis.language.ast import Literal
from tamis.language.types.texts import STRING
from tamis.language.types.type import INT64_MAX, INT64_MIN, Kind, Type, WrongTypeError, wrong

MAX_DECIMAL_DIGITS: Final = 38
INTEGER = Type("integer")
FLOAT = Type("float")
DOUBLE = Type("double")
# Any number: each value keeps its kind. Integers and decimals are exact, doubles are doubles.
NUMBER = Type("number")

_WHOLE: Final = re.compile(r"[+-]?[0-9]+")
_NUMBER: Final = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_FINITE: Final = re.compile(r"NaN|[+-]?Infinity")


def decimal_type(precision: int, scale: int) -> Type:
    """The exact decimal type with `precision` digits, `scale` of them after the point."""
    if not (1 <= precision <= MAX_DECIMAL_DIGITS and 0 <= scale <= precision):
        raise SchemaError(
            f"decimal({precision},{scale}) is not a type; "
            f"allowed: 1 to {MAX_DECIMAL_DIGITS} digits, 0 to all of them after the point"
        )
    return Type("decimal", precision, scale)


def round_to_float(value: float | Decimal) -> float:
    """The 32-bit float nearest to `value`, as a Python float; infinite if it overflows.

    Integers and decimals are rounded once: rounding to a double first could create a tie. Raises
    `OverflowError` for an integer beyond the doubles.
    """
    wide = float(value)
    if not isinstance(value, float) and math.isfinite(wide) and wide != value:
        wide = _round_to_odd(wide, value)
    try:
        rounded: float = struct.unpack("f", struct.pack("f", wide))[0]
    except OverflowError:
        return math.copysign(math.inf, wide)
    return rounded


def to_double(value: Any) -> float:
    """The nearest double; infinite if the number is too large."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


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
    """Of the two doubles around `value`, one of which is `wide`, the one whose last bit is 1.

    It lies on the same side of every tie between two floats as `value`.
    """
    (bits,) = struct.unpack("<q", struct.pack("<d", wide))
    return wide if bits & 1 else math.nextafter(wide, math.inf if value > wide else -math.inf)


# ── values of events ────────────────────────────────────────────────────────────────────────


def _read_integer(value: Any, type_: Type) -> int:
    # bool is a subclass of int in Python, but a wrong type here.
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise wrong(value, type_)
    if not _is_finite(value) or not INT64_MIN <= value <= INT64_MAX:
        raise wrong(value, type_)
    # pandas converts 5 to 5.0 in a column with a missing value.
    whole = int(value)
    if whole != value:
        raise wrong(value, type_)
    return whole


def _is_finite(value: float | Decimal) -> bool:
    """Whether a number of any size is neither infinite nor NaN."""
    if isinstance(value, Decimal):
        return value.is_finite()
    return not isinstance(value, float) or math.isfinite(value)


class Written(Decimal):
    """A number with a fraction or an exponent, as written in JSON or CSV, with all its digits."""

    __slots__ = ()


def read_number(value: Any, type_: Type) -> int | float | Decimal:
    """The number in its kind: integers and decimals are exact, floats are doubles.

    A number with a fraction in text is a double, as in Spark, unless the double would spell another
    number: then it is a decimal.
    """
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise wrong(value, type_)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) + 0.0  # -0.0 + 0.0 is 0.0
    if not value.is_finite():
        if value.is_snan():
            raise wrong(value, type_)
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


def as_printed(value: Any, plain: Any) -> Any:
    """Narrow floats of NumPy, alone or in an array, as the doubles that they print as."""
    dtype = getattr(value, "dtype", None)
    if dtype is None or dtype.kind != "f" or dtype.itemsize >= 8:
        return plain
    if not isinstance(plain, list):
        return print_as_double(value)
    return [print_as_double(own) for own in value] if value.ndim == 1 else plain


def _read_floating(value: Any, type_: Type) -> float:
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise wrong(value, type_)
    try:
        read = round_to_float(value) if type_ == FLOAT else float(value)
    except (OverflowError, ValueError):  # too large, or Decimal's signalling NaN
        raise wrong(value, type_) from None
    return read + 0.0  # -0.0 + 0.0 is 0.0


def _read_decimal(value: Any, type_: Type) -> Decimal:
    if not isinstance(value, int | float | Decimal) or isinstance(value, bool):
        raise wrong(value, type_)
    # repr is the shortest decimal that reads back as the float: the digits of the JSON text.
    # NumPy's floats are also floats, and have another repr.
    exact = Decimal(repr(float(value))) if isinstance(value, float) else Decimal(value)
    if not exact.is_finite() or not fits_decimal(exact, type_):
        raise wrong(value, type_)
    return exact or Decimal(0)  # -0 is 0


def fits_decimal(value: Decimal, type_: Type) -> bool:
    """Whether `value` is a member of the decimal type, without rounding."""
    integer_digits, fraction_digits = decimal_digits(value)
    return integer_digits <= type_.precision - type_.scale and fraction_digits <= type_.scale


def decimal_digits(value: Decimal) -> tuple[int, int]:
    """The number of digits that `value` needs before and after the point."""
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int), "finite decimals only"
    text = "".join(map(str, digits)).lstrip("0")
    stripped = text.rstrip("0")
    exponent += len(text) - len(stripped)
    if not stripped:
        return 0, 0
    return max(0, len(stripped) + exponent), max(0, -exponent)


# ── values from text ────────────────────────────────────────────────────────────────────────


def _parse_integer(text: str, type_: Type) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    return Decimal(text) if _NUMBER.fullmatch(text) else text


def _parse_number(text: str, type_: Type) -> Any:
    if _WHOLE.fullmatch(text):
        return int(text)
    if _NUMBER.fullmatch(text):
        return Written(text)
    return float(text) if _NOT_FINITE.fullmatch(text) else text


def _parse_floating(text: str, type_: Type) -> Any:
    is_number = _NUMBER.fullmatch(text) or _NOT_FINITE.fullmatch(text)
    read = read_float if type_ == FLOAT else float
    return read(text) if is_number else text


def _parse_decimal(text: str, type_: Type) -> Any:
    return Decimal(text) if _NUMBER.fullmatch(text) else text


# ── constants ───────────────────────────────────────────────────────────────────────────────

AS_DECIMAL: Final = decimal_type(20, 0)  # Spark compares 64-bit integers as this type


def check_digits(one: Type, other: Type) -> None:
    """Raise an error for two decimals that no common decimal type can hold: Spark would round
    them.
    """
    integer_digits = max(one.precision - one.scale, other.precision - other.scale)
    if integer_digits + max(one.scale, other.scale) > MAX_DECIMAL_DIGITS:
        raise WrongTypeError(
            f"{one} and {other} together need more than {MAX_DECIMAL_DIGITS} digits"
        )


def _fit_integer(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == INTEGER:
        return literal
    if literal.type.name != "decimal":
        return None
    value: Decimal = literal.value
    if not INT64_MIN <= value <= INT64_MAX:
        # Spark answers such comparisons without reading values: TRUE or FALSE even on NULL.
        raise WrongTypeError(f"{value} does not fit in 64 bits, as the attribute does")
    if decimal_digits(value)[1] == 0:
        return Literal(int(value), INTEGER, literal.span)
    check_digits(AS_DECIMAL, literal.type)
    return literal


def _fit_double(literal: Literal, type_: Type) -> Literal | None:
    if not literal.type.is_numeric:
        return None
    return Literal(float(literal.value) + 0.0, DOUBLE, literal.span)


def _fit_float(literal: Literal, type_: Type) -> Literal | None:
    if not literal.type.is_numeric or literal.type == DOUBLE:
        return None
    rounded = round_to_float(literal.value)
    if math.isinf(rounded):
        raise WrongTypeError(f"{literal.value} is too large for a float")
    return Literal(rounded + 0.0, FLOAT, literal.span)


def _fit_decimal(literal: Literal, type_: Type) -> Literal | None:
    if literal.type.is_floating or not literal.type.is_numeric:
        return None
    value = Decimal(literal.value)
    before, after = decimal_digits(value)
    check_digits(type_, decimal_type(max(1, before + after), after))
    return Literal(value, type_, literal.span)


def _fit_number(literal: Literal, type_: Type) -> Literal | None:
    """The constant as written: a value of another kind is compared as in Spark."""
    if literal.type.name == "decimal":
        value: Decimal = literal.value
        is_whole = INT64_MIN <= value <= INT64_MAX and value == int(value)
        return Literal(int(value), INTEGER, literal.span) if is_whole else literal
    if literal.type == FLOAT:
        return Literal(_print_as_double(literal.value), DOUBLE, literal.span)
    return literal if literal.type.is_numeric else None


def _print_as_double(value: float) -> float:
    """The double that a 32-bit float prints as: 0.1F is 0.1, like the float 0.1 in an event."""
    if value.is_integer():
        return value
    # Nine digits distinguish all floats; a float prints as the fewest digits that read back.
    spelled = (f"{value:.{n_digits}g}" for n_digits in range(1, 10))
    return next(float(text) for text in spelled if round_to_float(float(text)) == value)


def _hint(literal: Literal, type_: Type) -> str | None:
    if literal.type == STRING:
        return "numbers are written without quotes"
    if type_ in (DOUBLE, NUMBER) or not literal.type.is_floating:
        return None
    plain = format(Decimal(repr(literal.value)), "f")
    return f"write it as a plain number: {plain}" + ("F" if type_ == FLOAT else "")


def _print_decimal(value: Any) -> str:
    # A decimal constant on an integer attribute may be an int here. Equal constants are printed
    # alike, without zeros at the end: the names of derived columns contain them.
    text = format(Decimal(value), "f")
    text = text.rstrip("0").rstrip(".") if "." in text else text
    return text if "." in text else text + "BD"


def _print_number(value: Any) -> str:
    raise AssertionError("a constant is of the kind that it is written as")


def _step(value: int, n_steps: int) -> int | None:
    return value + n_steps if INT64_MIN <= value + n_steps <= INT64_MAX else None


_FAMILY: Final = "number"
_CLASSES: Final = (int, float, Decimal)
_ANY_CLASS: Final = frozenset((int, float, Decimal, Written))
KINDS = (
    Kind(
        "integer",
        ("tinyint", "byte", "smallint", "short", "int", "bigint", "long"),
        _read_integer,
        parse=_parse_integer,
        fit=_fit_integer,
        hint=_hint,
        print=str,
        family=_FAMILY,
        step=_step,
        arrow=lambda pa, type_: pa.int64(),
        classes=_CLASSES,
        bulk_classes=frozenset((int,)),
        filler=0,
    ),
    Kind(
        "float",
        ("real",),
        _read_floating,
        parse=_parse_floating,
        fit=_fit_float,
        hint=_hint,
        print=lambda value: f"{value!r}F",
        family=_FAMILY,
        arrow=lambda pa, type_: pa.float32(),
        classes=_CLASSES,
        bulk_classes=_ANY_CLASS,
        filler=0.0,
    ),
    Kind(
        "double",
        (),
        _read_floating,
        parse=_parse_floating,
        fit=_fit_double,
        hint=_hint,
        print=lambda value: f"{value!r}D",
        family=_FAMILY,
        arrow=lambda pa, type_: pa.float64(),
        classes=_CLASSES,
        bulk_classes=_ANY_CLASS,
        filler=0.0,
    ),
    Kind(
        "decimal",
        (),  # `parse_type` reads its names, which contain digits
        _read_decimal,
        parse=_parse_decimal,
        fit=_fit_decimal,
        hint=_hint,
        print=_print_decimal,
        family=_FAMILY,
        arrow=lambda pa, type_: pa.decimal128(type_.precision, type_.scale),
        classes=_CLASSES,
        bulk_classes=_ANY_CLASS,
        filler=Decimal(0),
    ),
    Kind(
        "number",
        (),
        read_number,
        parse=_parse_number,
        fit=_fit_number,
        hint=_hint,
        print=_print_number,
        family=_FAMILY,
        classes=_CLASSES,
        bulk_classes=frozenset((int, float)),
        filler=0,
    ),
)
