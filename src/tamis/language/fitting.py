"""Which values can be compared: constants converted to attributes' types, types with a common
order.

Raises `TypeCheckError` if two values cannot be compared exactly.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, NoReturn

from tamis.errors import TypeCheckError
from tamis.language.array_keys import key_of
from tamis.language.ast import Arithmetic, Attribute, Literal, Span, Value, Variable
from tamis.language.printer import print_value
from tamis.language.types import (
    ANY_ARRAY,
    DOUBLE,
    FLOAT,
    INTEGER,
    IP,
    KINDS,
    MAX_DECIMAL_DIGITS,
    NUMBER,
    STRING,
    Type,
    WrongTypeError,
    decimal_digits,
    round_to_float,
)
from tamis.language.types.numbers import AS_DECIMAL, check_digits

if TYPE_CHECKING:
    from collections.abc import Callable


def fit_literal(literal: Literal, attribute: Attribute | Variable) -> Literal:
    """The constant as it is compared with the attribute; raises an error if that is not exact.

    On integers a decimal constant stays a decimal if it is not an integer: `level < 4.5` is exact.
    On floats and doubles it is rounded to the attribute's type. An integer and a float are compared
    as doubles: an integer that equals no float stays an integer, rounded to a double.
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
    """The constant as a value of the attribute's type, as Spark converts members of arrays."""
    type_ = attribute.type
    assert type_ is not None
    fitted = fit_constant(literal, type_)
    if fitted is None:
        _refuse_literal(literal, attribute)
    return fitted


def fit_array(literal: Literal, array: Attribute) -> Literal:
    """The key of a constant array whose elements are of the attribute's type."""
    assert array.type is not None
    element = array.type.element
    assert element is not None
    if literal.type != ANY_ARRAY:
        _refuse_literal(literal, array)
    values: list[Any] = []
    for own in literal.value:
        fitted = None if own is None else fit_constant(own, element)
        if own is not None and (fitted is None or not _is_of(fitted, element)):
            refuse(
                f"{print_value(own)} is not of the type of the elements of {spell(array)}, "
                f"{element}: the arrays would never be equal",
                own.span,
            )
        values.append(None if fitted is None else fitted.value)
    return Literal(key_of(tuple(values)), STRING, literal.span)


def _is_of(literal: Literal, type_: Type) -> bool:
    """Whether a constant is a value of the type, without rounding."""
    if type_.name == "decimal" and literal.type.name in ("decimal", "integer"):
        before, after = decimal_digits(Decimal(literal.value))
        return before <= type_.precision - type_.scale and after <= type_.scale
    return literal.type.name == type_.name or (literal.type.is_floating and type_.is_floating)


def fit_constant(literal: Literal, type_: Type) -> Literal | None:
    """The constant as a value of the type; None if constants of its type cannot be such values."""
    if literal.type == ANY_ARRAY:
        refuse("an array is compared with an array, by =, <>, <=> or IN", literal.span)
    try:
        return KINDS[type_.name].fit(literal, type_)
    except WrongTypeError as error:
        refuse(str(error), literal.span)


def _refuse_literal(literal: Literal, attribute: Attribute | Variable) -> NoReturn:
    type_ = attribute.type
    assert type_ is not None
    hint = KINDS[type_.name].hint(literal, type_)
    kind = "decimal" if literal.type.name == "decimal" else str(literal.type)
    article = "an" if kind[0] in "aeiou" else "a"
    refuse(
        f"{spell(attribute)} is {with_article(attribute)}, compared with {article} {kind}",
        literal.span,
        hint=hint,
    )


# ── pairs ───────────────────────────────────────────────────────────────────────────────────


def check_number(value: Value) -> None:
    """Raise an error for arithmetic on a value that is not a number."""
    if isinstance(value, Arithmetic):
        return
    assert value.type is not None
    if not value.type.is_numeric:
        refuse(f"{with_article(value)} where arithmetic needs a number", value.span)


def check_pair(left: Attribute | Variable, right: Attribute | Variable, span: Span) -> None:
    """Raise an error for a comparison of two attributes whose types have no common order."""
    one, other = left.type, right.type
    assert one is not None
    assert other is not None
    if {one.name, other.name} <= {"decimal", "integer"}:
        exact_one = AS_DECIMAL if one == INTEGER else one
        _check_digits(exact_one, AS_DECIMAL if other == INTEGER else other, span)
    if one == other or (one.is_numeric and other.is_numeric):
        return
    refuse(
        f"{spell(left)} is {with_article(left)} and {spell(right)} {with_article(right)}: "
        "they cannot be compared",
        span,
    )


def _check_digits(one: Type, other: Type, span: Span) -> None:
    """Raise an error for two decimals that no common decimal type can hold: Spark would round
    them.
    """
    try:
        check_digits(one, other)
    except WrongTypeError as error:
        refuse(str(error), span)


def check_list(operand: Attribute, values: tuple[Literal, ...], span: Span) -> None:
    """Raise an error for an IN list that no common decimal type can hold: Spark would round its
    members.
    """
    type_ = operand.type
    assert type_ is not None
    if type_ == NUMBER or all(value.type.name != "decimal" for value in values):
        return
    one = AS_DECIMAL if type_ == INTEGER else type_
    digits = [decimal_digits(Decimal(value.value)) for value in values]
    whole = max(one.precision - one.scale, *(before for before, _ in digits))
    scale = max(one.scale, *(after for _, after in digits))
    if whole + scale > MAX_DECIMAL_DIGITS:
        refuse(
            f"{spell(operand)} and the list together need more than {MAX_DECIMAL_DIGITS} digits",
            span,
        )


def check_constants(left: Literal, right: Literal, span: Span) -> None:
    """Raise an error for a comparison of constants of different kinds; `1 = 1` is common in
    generated text.
    """
    if ANY_ARRAY in (left.type, right.type):
        refuse("one side of a comparison of arrays must be an attribute", span)
    one, other = (AS_DECIMAL if x.type == INTEGER else x.type for x in (left, right))
    if one.name == other.name == "decimal":
        _check_digits(one, other, span)
    if left.type == right.type or (left.type.is_numeric and right.type.is_numeric):
        return
    refuse(f"{with_article(left)} and {with_article(right)} cannot be compared", span)


# ── messages ────────────────────────────────────────────────────────────────────────────────


def spell(value: Attribute | Variable) -> str:
    """The attribute or variable as it is written."""
    return print_value(value)


def with_article(value: Attribute | Literal | Variable) -> str:
    """Its type, with an article."""
    if value.type == IP:
        return "an IP address"
    shown = str(value.type)
    return f"an {shown}" if shown[0] in "aeiou" else f"a {shown}"


def refuse(message: str, span: Span, *, hint: str | None = None) -> NoReturn:
    """Raise the error for a value that cannot be compared."""
    raise TypeCheckError("type-mismatch", message, span=span, hint=hint)
