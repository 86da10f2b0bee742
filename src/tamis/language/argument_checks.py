"""Checks the arguments of functions of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from tamis.language.ast import Attribute, Derived, Literal
from tamis.language.fitting import refuse, with_article
from tamis.language.printer import print_value
from tamis.language.value_functions import FUNCTIONS

if TYPE_CHECKING:
    from tamis.language.ast import Span

_INT_MAX: Final = 2**31 - 1  # Spark's positions and lengths are of 32 bits


def refuse_arguments(name: str, arguments: tuple[Attribute | Literal, ...], span: Span) -> NoReturn:
    """Raise an error for the first argument that is not of the type that the function takes."""
    function = FUNCTIONS[name]
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
        is_named = isinstance(own, Attribute) and not isinstance(own, Derived)
        refuse(
            f"{shown} is {with_article(own)}; {name}() takes {allowed}",
            own.span,
            hint=f"declare it as one: {shown} {types[0]}" if is_named else function.signature,
        )
    refuse(f"{name}() does not take these arguments", span, hint=function.signature)


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
        if isinstance(own.value, int) and abs(own.value) > _INT_MAX:
            refuse(f"{own.value} is too large; at most {_INT_MAX}", own.span)
        constants.append(own)
    problem = function.find_problem and function.find_problem(*(own.value for own in constants))
    if problem:
        refuse(problem, constants[-1].span)
