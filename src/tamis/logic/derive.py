"""The result of a function of values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.ast import Derived, Literal
from tamis.language.value_functions import find_overload

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.language.ast import Attribute
    from tamis.language.value_functions import Overload


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
    return overload_of(value).compute(*arguments)


def overload_of(value: Derived) -> Overload:
    """How the value is computed, by the types of its arguments."""
    overload = find_overload(value.function, tuple(own.type for own in value.arguments))
    assert overload is not None, "the value has been checked"
    return overload
