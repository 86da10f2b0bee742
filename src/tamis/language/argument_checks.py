"""Checks the arguments of functions of values."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, NoReturn

from tamis.language.ast import Attribute, Derived, Literal
from tamis.language.fitting import fit_constant, refuse, with_article
from tamis.language.printer import print_value
from tamis.language.types import ANY, DOUBLE, INTEGER, KINDS, NUMBER, decimal_type
from tamis.language.value_functions import FUNCTIONS

if TYPE_CHECKING:
    from tamis.language.ast import Span
    from tamis.language.overloads import Overload
    from tamis.language.types import Type

_INT_MAX: Final = 2**31 - 1  # Spark's positions and lengths are of 32 bits


def refuse_arguments(name: str, arguments: tuple[Attribute | Literal, ...], span: Span) -> NoReturn:
    """Raise an error for the first argument that is not of the type that the function takes."""
    function = FUNCTIONS[name]
    if function.resolve is not None and not function.is_analysed:
        _refuse_types(name, arguments, span)
    for at, own in enumerate(arguments):
        types = list(
            dict.fromkeys(
                overload.parameters[min(at, len(overload.parameters) - 1)]
                for overload in function.overloads
            )
        )
        if own.type in types:
            continue
        allowed = " or ".join(with_article(Literal(None, type_)) for type_ in types)
        shown = print_value(own)
        refuse(
            f"{shown} is {with_article(own)}; {name}() takes {allowed}",
            own.span,
            hint=_hint_at_type(name, own, types[0]),
        )
    shown = f"{name}()" if name.isidentifier() else name
    refuse(f"{shown} does not take these arguments", span, hint=function.signature)


def _hint_at_type(name: str, argument: Attribute | Literal, wanted: Type) -> str:
    """What to write instead of an argument of a wrong type."""
    signature = FUNCTIONS[name].signature
    if not isinstance(argument, Attribute) or isinstance(argument, Derived):
        return signature
    shown = print_value(argument)
    if argument.type is not None and argument.type.element == wanted and name.isidentifier():
        return f"for each element of it, write exists({shown}, e -> {name}(e) = …)"
    return f"declare it as one: {shown} {wanted}"


def _refuse_types(name: str, arguments: tuple[Attribute | Literal, ...], span: Span) -> NoReturn:
    """Raise an error for a function that takes many types."""
    first = arguments[0]
    if FUNCTIONS[name].parameters[0].element is not None:
        shown = print_value(first)
        refuse(
            f"{shown} is {with_article(first)}; {name}() takes an array",
            first.span,
            hint=f"declare it: {shown} ARRAY<STRING>"
            if isinstance(first, Attribute) and not isinstance(first, Derived)
            else None,
        )
    unknown = next((own for own in arguments if own.type == ANY), None)
    if unknown is not None:
        shown = print_value(unknown)
        refuse(
            f"the type of {shown} is not known", unknown.span, hint=f"declare it: {shown} DOUBLE"
        )
    signature = FUNCTIONS[name].signature
    if FUNCTIONS[name].takes_missing:
        kinds = ", ".join(with_article(own) for own in arguments)
        refuse(f"the arguments of {name}() have no common type: {kinds}", span, hint=signature)
    wrong = next(own for own in arguments if own.type is None or not own.type.is_numeric)
    what = f"{name}()" if name.isidentifier() else name
    refuse(
        f"{print_value(wrong)} is {with_article(wrong)}; {what} takes numbers",
        wrong.span,
        hint=signature,
    )


def check_constant_arguments(name: str, arguments: tuple[Attribute | Literal, ...]) -> None:
    """Raise an error for an argument that must be a constant, or for an invalid constant."""
    function = FUNCTIONS[name]
    constants = []
    for at in function.constants:
        if at >= len(arguments):
            continue
        own = arguments[at]
        if not isinstance(own, Literal):
            refuse(
                f"{print_value(own)} must be a constant in {name}()",
                own.span,
                hint=function.signature,
            )
        _check_constant_type(name, at, own)
        constants.append(own)
    problem = function.find_problem and function.find_problem(*(own.value for own in constants))
    if problem:
        refuse(problem, constants[-1].span)


def _check_constant_type(name: str, at: int, constant: Literal) -> None:
    """Raise an error for a constant of a type that the function does not take at that place."""
    function = FUNCTIONS[name]
    types = {own.parameters[at] for own in function.overloads if at < len(own.parameters)}
    if constant.type not in types:
        allowed = " or ".join(sorted(with_article(Literal(None, own)) for own in types))
        refuse(
            f"{print_value(constant)} is {with_article(constant)}; {name}() takes {allowed} there",
            constant.span,
            hint=function.signature,
        )
    if isinstance(constant.value, int) and abs(constant.value) > _INT_MAX:
        refuse(f"{constant.value} is too large; at most {_INT_MAX}", constant.span)


def fit_arguments(
    name: str, arguments: tuple[Attribute | Literal, ...]
) -> tuple[Attribute | Literal, ...]:
    """The arguments of coalesce() with strings that spell a date or an address read as one."""
    if not FUNCTIONS[name].takes_missing:
        return arguments
    spelled = next(
        (own.type for own in arguments if own.type and KINDS[own.type.name].is_spelled), None
    )
    if spelled is None:
        return arguments
    return tuple(
        (fit_constant(own, spelled) or own) if isinstance(own, Literal) else own
        for own in arguments
    )


def refuse_constant(value: Derived, overload: Overload) -> None:
    """Raise an error for a value that has only constant arguments."""
    constants = [own.value for own in value.arguments if isinstance(own, Literal)]
    if len(constants) < len(value.arguments):
        first = value.arguments[0]
        if FUNCTIONS[value.function].takes_missing and isinstance(first, Literal):
            refuse(f"{print_value(value)} is always {print_value(first)}", value.span)
        return
    result = overload.compute(*constants)
    shown = None if result is None else print_constant(result, overload.result)
    refuse(
        f"{print_value(value)} is a constant",
        value.span,
        hint=f"write its value: {shown}" if shown else None,
    )


def print_constant(value: Any, type_: Type) -> str:
    """A value as a constant of an expression."""
    if type_ == NUMBER:
        type_ = DOUBLE if isinstance(value, float) else INTEGER
        type_ = decimal_type(38, 0) if isinstance(value, Decimal) else type_
    return print_value(Literal(value, type_))


def hint_at_digits(name: str) -> str:
    """What to write instead of arithmetic that is not exact."""
    if name == "/":
        return "multiply the other side, or divide doubles: cast(a AS DOUBLE) / b"
    if name == "cast":
        return "to round a double to an integer, write floor(), ceil() or round()"
    return "calculate with doubles: cast(a AS DOUBLE)"
