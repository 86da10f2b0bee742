"""The result of a function of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.ast import Derived, Literal
from tamis.language.overloads import NULL
from tamis.language.printer import print_value
from tamis.language.types import spell_value
from tamis.language.value_functions import FUNCTIONS, overload_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.ast import Attribute

    # Called for a function that has no result for its arguments, none of which is missing.
    NoResult = Callable[[Derived, tuple[Any, ...]], None]


def compute_derived(
    value: Derived, value_of: Callable[[Attribute], Any], report: NoResult | None = None
) -> Any:
    """The result for one event; None if an attribute that it needs is None, or if there is no
    result.
    """
    takes_missing = FUNCTIONS[value.function].takes_missing
    arguments = []
    for own in value.arguments:
        if isinstance(own, Literal):
            argument = own.value
        elif isinstance(own, Derived):
            argument = compute_derived(own, value_of, report)
        else:
            argument = value_of(own)
        arguments.append(argument)
    if not takes_missing and None in arguments:
        return None
    result = overload_of(value).compute(*arguments)
    if result is NULL:
        return None
    if result is None and report is not None and not takes_missing:
        report(value, tuple(arguments))
    return result


def find_needed(value: Derived) -> Attribute | None:
    """An attribute without which there is no result; None if there may be one without any."""
    if FUNCTIONS[value.function].takes_missing:
        return None
    for own in value.arguments:
        if not isinstance(own, Literal):
            needed = find_needed(own) if isinstance(own, Derived) else own
            if needed is not None:
                return needed
    return None


def describe_no_result(value: Derived, arguments: tuple[Any, ...]) -> str:
    """Why a function has no result for its arguments."""
    shown = ", ".join(map(spell_value, arguments))
    return f"{FUNCTIONS[value.function].no_result}: {print_value(value)} for {shown}"
