"""Tests of the elements of an array, as the constants of a column.

An elements column has an index of its own: its subscriptions are the conditions of all lambdas over
the array, its events are the elements. The constants of the column name them: an event has the code
of `exists …` if some element satisfies the condition, that of `forall …` if it has elements and all
of them do, and that of `empty` if it has none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.language.ast import ElementTest, Lambda
from tamis.language.check import check
from tamis.language.lambdas import ELEMENT, element_types, with_parameter
from tamis.language.limits import NO_LIMITS
from tamis.language.parser import parse
from tamis.language.printer import print_expression
from tamis.language.schema import Schema
from tamis.logic.leaves import inverse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.index.columns import Column
    from tamis.language.ast import Attribute
    from tamis.language.types import Type

EMPTY: Final = "empty"
_EXISTS, _FORALL = "exists", "forall"


def spell_test(leaf: ElementTest) -> tuple[str, ...]:
    """The constants of a test: the test is true for an event that has the code of one of them."""
    spelled = f"{leaf.function} {print_expression(with_parameter(leaf.test).body)}"
    return (spelled,) if leaf.function == _EXISTS else (spelled, EMPTY)


def opposite_of(leaf: ElementTest) -> ElementTest:
    """The test that is true where this one is false."""
    opposite = inverse(leaf)
    assert isinstance(opposite, ElementTest)
    return opposite


def read_test(constants: Iterable[str], attribute: Attribute) -> ElementTest:
    """The test that has these constants."""
    spelled = next(own for own in constants if own != EMPTY)
    function, _, text = spelled.partition(" ")
    body = check(parse(text, NO_LIMITS), element_schema(attribute.type), NO_LIMITS)
    return ElementTest(function, attribute, Lambda(ELEMENT, body))


def element_schema(type_: Type | None) -> Schema:
    """The attributes of the elements of an array."""
    assert type_ is not None
    assert type_.element is not None
    return Schema(element_types(type_.element, ELEMENT))


def conditions_of(column: Column) -> dict[str, str]:
    """The conditions of an elements column, by the number of their constant."""
    return {
        str(number): constant.partition(" ")[2]
        for number, constant in enumerate(column.constants or ())
        if constant != EMPTY
    }


def is_forall(constant: str) -> bool:
    """Whether all elements must satisfy the condition of a constant."""
    return constant.startswith(_FORALL)
