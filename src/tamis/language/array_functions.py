"""Functions of arrays that return one value; see `value_functions`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.language.overloads import FROM_ZERO, NULL, Function, Overload
from tamis.language.types import ANY, ANY_ARRAY, INTEGER

if TYPE_CHECKING:
    from tamis.language.overloads import Constants, Parameters


def _resolve_size(types: Parameters, constants: Constants) -> Overload | None:
    return Overload(types, INTEGER, len) if types[0].element is not None else None


def _resolve_element(types: Parameters, constants: Constants) -> Overload | None:
    element = types[0].element
    if element is None or element.name in ("any", "struct") or types[1] != INTEGER:
        return None
    return Overload(types, element, _element_at, spark="try_element_at({0}, {1})")


def _element_at(elements: tuple[Any, ...], position: int) -> Any:
    place = position - 1 if position > 0 else len(elements) + position
    if not 0 <= place < len(elements):
        return None
    return NULL if elements[place] is None else elements[place]


def _find_position_problem(position: Any) -> str | None:
    if position != 0:
        return None
    return "positions in an array count from 1, or from the end if negative"


SIZE: Final = Function(
    "size(array)", (Overload((ANY_ARRAY,), INTEGER, len),), resolve=_resolve_size, range=FROM_ZERO
)
ELEMENT_AT: Final = Function(
    "element_at(array, position)",
    (Overload((ANY_ARRAY, INTEGER), ANY, _element_at),),
    constants=(1,),
    find_problem=_find_position_problem,
    resolve=_resolve_element,
    no_result="the array has no such element",
)
