"""Arithmetic and functions of numbers, for one value and for many; see `value_functions`.

As in Spark with ANSI on: integers have 64 bits, `/` divides doubles, decimals have the digits that
Spark gives them, and an overflow or a division by zero has no result. What Spark would round to
fit 38 digits is refused. Floats are computed as doubles. Values of type NUMBER are computed by
their kinds: exactly up to 38 digits, and as doubles if one is a double.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal, Inexact, InvalidOperation
from decimal import Overflow as DecimalOverflow
from typing import TYPE_CHECKING, Any, Final

from tamis.language import number_arrays as arrays
from tamis.language.number_arrays import WIDE, round_half_up
from tamis.language.overloads import FROM_ZERO, Function, Overload
from tamis.language.types import (
    DOUBLE,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    MAX_DECIMAL_DIGITS,
    NUMBER,
    WrongTypeError,
    decimal_digits,
    decimal_type,
    fits_decimal,
)
from tamis.language.types.numbers import AS_DECIMAL, to_double

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.overloads import Constants, Parameters
    from tamis.language.types import Type

    Binary = Callable[[Any, Any], Any]

# Wide enough for a product or a quotient of decimals; what it would round has no result.
_EXACT: Final = Context(prec=200, traps=[Inexact, InvalidOperation, DecimalOverflow])
_KEPT_SCALE: Final = 6  # digits after the point that Spark keeps in any case
_SIGN_DIGITS: Final = 34  # that Spark keeps when it changes the sign of a decimal
# An argument that Spark can convert to an integer of 64 bits; otherwise NULL.
_IN_64_BITS: Final = (
    "CASE WHEN isnan({0}) OR {0} >= -9223372036854775808D AND {0} < 9223372036854775808D "
    "THEN {0} END"
)
_INFIX: Final = {
    "+": (int.__add__, float.__add__, _EXACT.add, "try_add"),
    "-": (int.__sub__, float.__sub__, _EXACT.subtract, "try_subtract"),
    "*": (int.__mul__, float.__mul__, _EXACT.multiply, "try_multiply"),
}


# ── one value ───────────────────────────────────────────────────────────────────────────────


def _in_64_bits(number: int) -> int | None:
    return number if INT64_MIN <= number <= INT64_MAX else None


def whole_remainder(left: int, right: int) -> int | None:
    """The remainder, with the sign of the dividend."""
    if right == 0:
        return None
    rest = abs(left) % abs(right)
    return -rest if left < 0 else rest


def double_remainder(left: float, right: float) -> float | None:
    """The remainder of doubles, with the sign of the dividend."""
    if right == 0:
        return None
    if math.isinf(left) or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right) + 0.0


def _decimal_remainder(left: Decimal, right: Decimal) -> Decimal | None:
    return None if right == 0 else _EXACT.remainder(left, right)


def divide(left: Any, right: Any) -> float | None:
    """The quotient of two doubles."""
    left, right = to_double(left), to_double(right)
    return None if right == 0 else left / right + 0.0


def _of_wholes(compute: Binary) -> Binary:
    def compute_whole(left: int, right: int) -> int | None:
        result = compute(left, right)
        return None if result is None else _in_64_bits(result)

    return compute_whole


def _of_doubles(compute: Binary) -> Binary:
    def compute_double(left: Any, right: Any) -> float | None:
        result: float | None = compute(to_double(left), to_double(right))
        return None if result is None else result + 0.0  # -0.0 + 0.0 is 0.0

    return compute_double


def _of_decimals(compute: Binary, result: Type) -> Binary:
    def compute_decimal(left: Any, right: Any) -> Decimal | None:
        found = compute(Decimal(left), Decimal(right))
        return None if found is None or not fits_decimal(found, result) else found or Decimal(0)

    return compute_decimal


def _of_numbers(whole: Binary, double: Binary, exact: Binary) -> Binary:
    compute_double = _of_doubles(double)

    def compute_number(left: Any, right: Any) -> Any:
        if isinstance(left, float) or isinstance(right, float):
            return compute_double(left, right)
        if isinstance(left, int) and isinstance(right, int):
            return _short(whole(left, right))
        try:
            return _short(exact(Decimal(left), Decimal(right)))
        except ArithmeticError:
            return None

    return compute_number


def _short(number: int | Decimal | None) -> int | Decimal | None:
    """An exact number of at most 38 digits; None for a longer one."""
    if number is None or isinstance(number, int):
        return None if number is None or abs(number) >= 10**MAX_DECIMAL_DIGITS else number
    return number if sum(decimal_digits(number)) <= MAX_DECIMAL_DIGITS else None


# ── + - * / % ───────────────────────────────────────────────────────────────────────────────


def _arithmetic(operator: str) -> Function:
    whole, double, exact, spark = _INFIX[operator]
    many = arrays.WHOLE[operator], arrays.DOUBLE[operator]
    return _infix(operator, (whole, double, exact), many, spark, "overflow")


def _remainder() -> Function:
    computed = (whole_remainder, double_remainder, _decimal_remainder)
    many = arrays.remainder_of_wholes, arrays.remainder_of_doubles
    return _infix("%", computed, many, "try_mod", "division by zero")


def _infix(
    operator: str,
    computed: tuple[Binary, Binary, Binary],
    many: tuple[Callable[..., Any], Callable[..., Any]],
    spark: str,
    no_result: str,
) -> Function:
    whole, double, exact = computed
    compute_number = _of_numbers(whole, double, exact)
    of_numbers = Overload((NUMBER, NUMBER), NUMBER, compute_number, spark=f"{spark}({{0}}, {{1}})")

    def resolve(types: Parameters, constants: Constants) -> Overload | None:
        if not all(own.is_numeric for own in types):
            return None
        if NUMBER in types:
            return of_numbers._replace(parameters=types)
        if any(own.is_floating for own in types):
            many_doubles = many[1] if _are_plain(types, constants) else None
            text = f"{spark}({_cast(0, 'DOUBLE')}, {_cast(1, 'DOUBLE')})"
            return Overload(types, DOUBLE, _of_doubles(double), many_doubles, spark=text)
        if types == (INTEGER, INTEGER):
            text = f"{spark}({_cast(0, 'BIGINT')}, {_cast(1, 'BIGINT')})"
            return Overload(types, INTEGER, _of_wholes(whole), many[0], spark=text)
        return _on_decimals(operator, types, constants, exact, spark)

    return Function(
        f"number {operator} number", (of_numbers,), resolve=resolve, no_result=no_result
    )


def _on_decimals(
    operator: str, types: Parameters, constants: Constants, exact: Binary, spark: str
) -> Overload:
    one, other = (_as_decimal(*own) for own in zip(types, constants, strict=True))
    result = _decimal_result(operator, one, other)
    text = f"{spark}({_cast(0, one)}, {_cast(1, other)})"
    return Overload(types, result, _of_decimals(exact, result), spark=text)


def _as_decimal(type_: Type, constant: Any) -> Type:
    """The decimal type of an exact operand: a constant has only the digits that it needs."""
    if type_ != INTEGER:
        return type_
    return AS_DECIMAL if constant is None else decimal_type(len(str(abs(constant))), 0)


def _decimal_result(operator: str, one: Type, other: Type) -> Type:
    """The type that Spark gives the result; raises WrongTypeError if it would round or fail."""
    wholes = (one.precision - one.scale, other.precision - other.scale)
    scale = max(one.scale, other.scale)
    if operator == "%":
        digits = wholes[0] + other.scale  # of the quotient, before the point
        if digits > MAX_DECIMAL_DIGITS:
            raise WrongTypeError(
                f"{one} % {other} can have up to {digits} digits; Spark fails for more than "
                f"{MAX_DECIMAL_DIGITS}"
            )
        return decimal_type(max(1, min(wholes) + scale), scale)
    if operator == "*":
        scale = one.scale + other.scale
        precision = one.precision + other.precision + 1
    else:
        precision = max(wholes) + scale + 1
    if precision <= MAX_DECIMAL_DIGITS:
        return decimal_type(precision, scale)
    if scale > _KEPT_SCALE:
        raise WrongTypeError(
            f"{one} {operator} {other} needs {precision} digits, {scale} of them after the point: "
            f"more than {MAX_DECIMAL_DIGITS}, so that Spark would round"
        )
    return decimal_type(MAX_DECIMAL_DIGITS, scale)


def _divide(types: Parameters, constants: Constants) -> Overload | None:
    if not all(own.is_numeric for own in types):
        return None
    is_floating = any(own.is_floating for own in types)
    if NUMBER not in types and not is_floating and types != (INTEGER, INTEGER):
        raise WrongTypeError("the quotient of decimals is rounded in Spark")
    many = arrays.divide if _are_plain(types, constants) else None
    result = NUMBER if NUMBER in types else DOUBLE
    return _QUOTIENT._replace(parameters=types, result=result, compute_many=many)


def _are_plain(types: Parameters, constants: Constants) -> bool:
    """Whether all arguments but constants are integers, floats or doubles."""
    return all(
        constant is not None or own == INTEGER or own.is_floating
        for own, constant in zip(types, constants, strict=True)
    )


def _cast(at: int, type_: Type | str) -> str:
    return f"CAST({{{at}}} AS {type_})"


# ── functions of one number ─────────────────────────────────────────────────────────────────


def _negative(value: Any) -> Any:
    return -value + 0.0 if isinstance(value, float) else -value


def _of_sign(name: str, compute: Callable[[Any], Any], many: Callable[..., Any]) -> Function:
    """`abs` or `negative`: only the smallest integer of 64 bits has no result."""
    of_numbers = Overload((NUMBER,), NUMBER, lambda value: _short_or_double(compute(value)))

    def resolve(types: Parameters, constants: Constants) -> Overload | None:
        (type_,) = types
        if type_ == INTEGER:
            text = f"{name}(nullif(CAST({{0}} AS BIGINT), {INT64_MIN}L))"
            return Overload(
                types, type_, lambda value: _in_64_bits(compute(value)), many, False, text
            )
        if type_.is_floating:
            text = f"{name}({_cast(0, 'DOUBLE')})"
            return Overload(types, DOUBLE, compute, many, spark=text)
        if type_.name == "decimal":
            if type_.precision > _SIGN_DIGITS:
                raise WrongTypeError(f"Spark rounds {type_} to {_SIGN_DIGITS} digits here")
            return Overload(types, type_, lambda value: compute(value) or Decimal(0))
        return of_numbers if type_ == NUMBER else None

    return Function(f"{name}(number)", (of_numbers,), resolve=resolve, no_result="overflow")


def _short_or_double(number: Any) -> Any:
    return number if isinstance(number, float) else _short(number)


def _rounded(types: Parameters, constants: Constants) -> Overload | None:
    type_ = types[0]
    digits = ", {1}" if len(types) == 2 else ""
    if type_ == INTEGER:
        text = f"round(CAST({{0}} AS BIGINT){digits})"
        return Overload(types, INTEGER, round_half_up, lambda values, *_: values, spark=text)
    if type_.is_floating:
        text = f"round(CAST({{0}} AS DOUBLE){digits})"
        return Overload(types, DOUBLE, round_half_up, arrays.round_doubles, spark=text)
    if type_.name == "decimal":
        n_digits = constants[1] if len(types) == 2 else 0
        scale = min(type_.scale, n_digits)
        whole = type_.precision - type_.scale + 1
        result = decimal_type(min(MAX_DECIMAL_DIGITS, whole + scale), scale)
        return Overload(
            types, result, lambda value, *_: _fitting(round_half_up(value, n_digits), result)
        )
    return _ROUND_NUMBER._replace(parameters=types) if type_ == NUMBER else None


def _fitting(value: Decimal, type_: Type) -> Decimal | None:
    return value if fits_decimal(value, type_) else None


def _round_number(value: Any, n_digits: int = 0) -> Any:
    return _short_or_double(round_half_up(value, n_digits))


def _find_digits_problem(n_digits: int = 0) -> str | None:
    is_known = 0 <= n_digits <= MAX_DECIMAL_DIGITS
    return None if is_known else f"round() keeps 0 to {MAX_DECIMAL_DIGITS} digits after the point"


def _to_whole(name: str, of_double: Callable[[float], int], rounding: str) -> Function:
    """`floor` or `ceil`."""

    def compute(value: Any) -> Any:
        if isinstance(value, int):
            return value
        if isinstance(value, float):
            if math.isnan(value):
                return 0  # as in Spark
            return None if math.isinf(value) else _in_64_bits(of_double(value))
        return value.to_integral_value(rounding, WIDE) or Decimal(0)

    of_numbers = Overload((NUMBER,), NUMBER, compute)

    def resolve(types: Parameters, constants: Constants) -> Overload | None:
        (type_,) = types
        if type_ == INTEGER:
            return Overload(types, INTEGER, compute, lambda values: values)
        if type_.is_floating:
            many = arrays.floor if name == "floor" else arrays.ceil
            return Overload(types, INTEGER, compute, many, spark=f"{name}({_IN_64_BITS})")
        if type_.name == "decimal":
            n_digits = type_.precision - type_.scale + (type_.scale > 0)
            result = decimal_type(min(MAX_DECIMAL_DIGITS, max(1, n_digits)), 0)
            return Overload(types, result, lambda value: _fitting(compute(value), result))
        return of_numbers if type_ == NUMBER else None

    return Function(f"{name}(number)", (of_numbers,), resolve=resolve, no_result="overflow")


_QUOTIENT: Final = Overload(
    (NUMBER, NUMBER),
    NUMBER,
    divide,
    spark=f"try_divide({_cast(0, 'DOUBLE')}, {_cast(1, 'DOUBLE')})",
)
_ROUND_NUMBER: Final = Overload((NUMBER,), NUMBER, _round_number)
ARITHMETIC: Final = {
    "+": _arithmetic("+"),
    "-": _arithmetic("-"),
    "*": _arithmetic("*"),
    "/": Function("number / number", (_QUOTIENT,), resolve=_divide, no_result="division by zero"),
    "%": _remainder(),
}
NUMBER_FUNCTIONS: Final = {
    "abs": _of_sign("abs", abs, arrays.absolute)._replace(range=FROM_ZERO),
    "negative": _of_sign("negative", _negative, arrays.negative),
    "round": Function(
        "round(number, digits)",
        (_ROUND_NUMBER, _ROUND_NUMBER._replace(parameters=(NUMBER, INTEGER))),
        constants=(1,),
        find_problem=_find_digits_problem,
        resolve=_rounded,
        no_result="overflow",
    ),
    "floor": _to_whole("floor", math.floor, ROUND_FLOOR),
    "ceil": _to_whole("ceil", math.ceil, ROUND_CEILING),
}
