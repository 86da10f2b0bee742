"""The result of a function of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.ast import Derived, Literal
from tamis.language.value_functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.ast import Attribute


def compute_derived(value: Derived, value_of: Callable[[Attribute], Any]) -> Any:
    """The result for one event; None if the value of an attribute is None."""
    arguments = []
    for own in value.arguments:
        if isinstance(own, Literal):
            argument = own.value
        elif isinstance(own, Derived):
            argument = compute_derived(own, value_of)
        else:
            argument = value_of(own)
        if argument is None:
            return None
        arguments.append(argument)
    return FUNCTIONS[value.function].compute(*arguments)
