"""Which values may meet: constants fitted to attributes, types that have a common order.

Raises `TypeCheckError` where two values cannot be compared exactly.
"""

from __future__ import annotations

import math
from decimal import Decimal
from typing import TYPE_CHECKING, Final, NoReturn

from tamis.errors import TypeCheckError
from tamis.language.ast import Arithmetic, Attribute, Literal, Span, Value, Variable
from tamis.language.names import print_path
from tamis.language.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    MAX_DECIMAL_DIGITS,
    NUMBER,
    STRING,
    TIMESTAMP,
    Type,
    WrongTypeError,
    decimal_digits,
    decimal_type,
    parse_date,
    parse_timestamp,
    round_to_float,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_AS_DECIMAL: Final = decimal_type(20, 0)  # what Spark compares 64-bit integers as


def fit_literal(literal: Literal, attribute: Attribute | Variable) -> Literal:
    """The constant as it is compared with the attribute; refused where that has no exact sense.

    On integers a decimal constant stays a decimal where it is no whole number: `level < 4.5` is
    exact. On floats and doubles it is rounded to the attribute's type. An integer and a float are
    compared as doubles: an integer that no float is stays an integer, rounded to a double.
    """
    if attribute.type == FLOAT and literal.type == INTEGER:
        double = float(literal.value)
        if round_to_float(double) != double:
            return Literal(int(double), INTEGER, literal.span)
    return fit_element(literal, attribute)


def fit_members(
    values: tuple[Literal, ...],
    attribute: Attribute,
    fit: Callable[[Literal, Attribute | Variable], Literal],
) -> tuple[Literal, ...]:
    """The constants of a list, each fitted to the attribute. In a list that a number is sought in,
    one double makes all of them doubles, as in Spark."""
    fitted = tuple(fit(value, attribute) for value in values)
    if attribute.type != NUMBER or all(value.type != DOUBLE for value in fitted):
        return fitted
    return tuple(Literal(float(value.value), DOUBLE, value.span) for value in fitted)


def fit_element(literal: Literal, attribute: Attribute | Variable) -> Literal:
    """The constant as a value of the attribute's type, as members of arrays are in Spark."""
    type_ = attribute.type
    assert type_ is not None
    fitted = FITTERS[type_.name](literal, type_)
    if fitted is None:
        _refuse_literal(literal, attribute)
    return fitted


def _fit_boolean(literal: Literal, type_: Type) -> Literal | None:
    return literal if literal.type == BOOLEAN else None


def _fit_integer(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == INTEGER:
        return literal
    if literal.type.name != "decimal":
        return None
    value: Decimal = literal.value
    if not INT64_MIN <= value <= INT64_MAX:
        # Spark answers such comparisons without looking: TRUE or FALSE even on NULL.
        refuse(f"{value} does not fit in 64 bits, as the attribute does", literal.span)
    if decimal_digits(value)[1] == 0:
        return Literal(int(value), INTEGER, literal.span)
    _check_digits(_AS_DECIMAL, literal.type, literal.span)
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
        refuse(f"{literal.value} is too large for a float", literal.span)
    return Literal(rounded + 0.0, FLOAT, literal.span)


def _fit_decimal(literal: Literal, type_: Type) -> Literal | None:
    if literal.type.is_floating or not literal.type.is_numeric:
        return None
    value = Decimal(literal.value)
    before, after = decimal_digits(value)
    _check_digits(type_, decimal_type(max(1, before + after), after), literal.span)
    return Literal(value, type_, literal.span)


def _fit_number(literal: Literal, type_: Type) -> Literal | None:
    """The constant as it is written: a value of another kind is compared as Spark does."""
    if literal.type.name == "decimal":
        value: Decimal = literal.value
        is_whole = INT64_MIN <= value <= INT64_MAX and value == int(value)
        return Literal(int(value), INTEGER, literal.span) if is_whole else literal
    if literal.type == FLOAT:
        return Literal(_print_as_double(literal.value), DOUBLE, literal.span)
    return literal if literal.type.is_numeric else None


def _print_as_double(value: float) -> float:
    """The double that a 32-bit float prints as: 0.1F is 0.1, as the float 0.1 in an event is."""
    if value.is_integer():
        return value
    # Nine digits tell all floats apart; the fewest that read back are what it prints as.
    spelled = (f"{value:.{n_digits}g}" for n_digits in range(1, 10))
    return next(float(text) for text in spelled if round_to_float(float(text)) == value)


def _fit_string(literal: Literal, type_: Type) -> Literal | None:
    return literal if literal.type == STRING else None


def _fit_date(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == DATE:
        return literal
    if literal.type != STRING:
        return None
    try:
        return Literal(parse_date(literal.value), DATE, literal.span)
    except WrongTypeError as error:
        refuse(str(error), literal.span)


def _fit_timestamp(literal: Literal, type_: Type) -> Literal | None:
    if literal.type == TIMESTAMP:
        return literal
    if literal.type not in (STRING, DATE):
        return None
    text = literal.value if literal.type == STRING else literal.value.isoformat()
    try:
        return Literal(parse_timestamp(text), TIMESTAMP, literal.span)
    except WrongTypeError as error:
        refuse(str(error), literal.span)


FITTERS: Final = {
    "boolean": _fit_boolean,
    "integer": _fit_integer,
    "float": _fit_float,
    "double": _fit_double,
    "decimal": _fit_decimal,
    "number": _fit_number,
    "string": _fit_string,
    "date": _fit_date,
    "timestamp": _fit_timestamp,
}


def _refuse_literal(literal: Literal, attribute: Attribute | Variable) -> NoReturn:
    type_ = attribute.type
    assert type_ is not None
    hint = None
    if type_ == STRING:
        hint = f"strings are written in quotes: '{literal.value}'"
    elif type_.is_numeric and literal.type == STRING:
        hint = "numbers are written without quotes"
    elif type_ in (INTEGER, FLOAT) or type_.name == "decimal":
        if literal.type.is_floating:
            plain = format(Decimal(repr(literal.value)), "f")
            hint = f"write it as a plain number: {plain}" + ("F" if type_ == FLOAT else "")
    elif type_ in (DATE, TIMESTAMP):
        hint = f"write {str(type_).upper()} '2024-01-31'"
    kind = "decimal" if literal.type.name == "decimal" else str(literal.type)
    article = "an" if kind[0] in "aeiou" else "a"
    refuse(
        f"{spell(attribute)} is {with_article(attribute)}, compared with {article} {kind}",
        literal.span,
        hint=hint,
    )


# ── pairs ───────────────────────────────────────────────────────────────────────────────────


def check_number(value: Value) -> None:
    """Refuse arithmetic on what is no number."""
    if isinstance(value, Arithmetic):
        return
    assert value.type is not None
    if not value.type.is_numeric:
        refuse(f"{with_article(value)} where arithmetic needs a number", value.span)


def check_pair(left: Attribute | Variable, right: Attribute | Variable, span: Span) -> None:
    """Refuse to compare two attributes of which the types have no common order."""
    one, other = left.type, right.type
    assert one is not None
    assert other is not None
    if {one.name, other.name} <= {"decimal", "integer"}:
        exact_one = _AS_DECIMAL if one == INTEGER else one
        _check_digits(exact_one, _AS_DECIMAL if other == INTEGER else other, span)
    if one == other or (one.is_numeric and other.is_numeric):
        return
    refuse(
        f"{spell(left)} is {with_article(left)} and {spell(right)} {with_article(right)}: "
        "they cannot be compared",
        span,
    )


def _check_digits(one: Type, other: Type, span: Span) -> None:
    """Refuse two decimals that no common decimal type can hold: Spark would round them."""
    integer_digits = max(one.precision - one.scale, other.precision - other.scale)
    if integer_digits + max(one.scale, other.scale) > MAX_DECIMAL_DIGITS:
        refuse(f"{one} and {other} together need more than {MAX_DECIMAL_DIGITS} digits", span)


def check_list(operand: Attribute, values: tuple[Literal, ...], span: Span) -> None:
    """Refuse an IN list that no common decimal type can hold: Spark would round its members."""
    type_ = operand.type
    assert type_ is not None
    if type_ == NUMBER or all(value.type.name != "decimal" for value in values):
        return
    one = _AS_DECIMAL if type_ == INTEGER else type_
    digits = [decimal_digits(Decimal(value.value)) for value in values]
    whole = max(one.precision - one.scale, *(before for before, _ in digits))
    scale = max(one.scale, *(after for _, after in digits))
    if whole + scale > MAX_DECIMAL_DIGITS:
        refuse(
            f"{spell(operand)} and the list together need more than {MAX_DECIMAL_DIGITS} digits",
            span,
        )


def check_constants(left: Literal, right: Literal, span: Span) -> None:
    """Refuse to compare two constants of different kinds; `1 = 1` is common in generated text."""
    one, other = (_AS_DECIMAL if x.type == INTEGER else x.type for x in (left, right))
    if one.name == other.name == "decimal":
        _check_digits(one, other, span)
    if left.type == right.type or (left.type.is_numeric and right.type.is_numeric):
        return
    refuse(f"{with_article(left)} and {with_article(right)} cannot be compared", span)


# ── what is said ────────────────────────────────────────────────────────────────────────────


def spell(value: Attribute | Variable) -> str:
    """The attribute or variable as it is written."""
    return f"?{value.name}" if isinstance(value, Variable) else print_path(value.path)


def with_article(value: Attribute | Literal | Variable) -> str:
    """Its type, with an article."""
    shown = str(value.type)
    return f"an {shown}" if shown[0] in "aeiou" else f"a {shown}"


def refuse(message: str, span: Span, *, hint: str | None = None) -> NoReturn:
    """Raise the error of a value that does not fit."""
    raise TypeCheckError("type-mismatch", message, span=span, hint=hint)
