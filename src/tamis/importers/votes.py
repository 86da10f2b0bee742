"""The types of fields, from the constants that rules compare them with."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.language.types import BOOLEAN, NUMBER, STRING

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Mapping

    from tamis.language.types import Type

_Field = TypeVar("_Field", bound="Hashable")


def elect_types(uses: Iterable[tuple[_Field, Any]]) -> dict[_Field, Type]:
    """The type that most constants of each field have: string, number or boolean."""
    votes: defaultdict[_Field, Counter[Type]] = defaultdict(Counter)
    for field, constant in uses:
        if constant is not None:
            votes[field][type_of(constant)] += 1
    return {field: own.most_common(1)[0][0] for field, own in votes.items()}


def type_of(constant: Any) -> Type:
    """The type of a constant of JSON."""
    if isinstance(constant, bool):
        return BOOLEAN
    return NUMBER if isinstance(constant, int | float) else STRING


def spell_number(number: float) -> str:
    """A number as a constant: whole numbers without a point, and none with an exponent."""
    if isinstance(number, int):
        return str(number)
    if number.is_integer() and abs(number) < 1e15:
        return str(int(number))
    return repr(number)


def flatten(prefix: str, value: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
    """The members of nested objects by their paths."""
    for name, own in value.items():
        path = f"{prefix}.{name}" if prefix else name
        if isinstance(own, dict):
            yield from flatten(path, own)
        else:
            yield path, own
