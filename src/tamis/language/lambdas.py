"""Lambdas: the condition over the elements of an array, and its own attributes.

The condition of `exists(tags, t -> t = 'a')` is about another event, whose only attribute is the
element. It cannot use anything else, so it can be checked, indexed and matched separately.
"""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final

from tamis.language.ast import Attribute, Derived, Lambda
from tamis.language.names import DERIVED_MARK
from tamis.language.printer import print_value
from tamis.language.types import paths_in

if TYPE_CHECKING:
    from tamis.language.schema import Path
    from tamis.language.types import Type

# The name of the element where the name that its author chose does not matter.
ELEMENT: Final = "x"


def element_types(element: Type, name: str) -> dict[Path, Type]:
    """The type of each attribute of an element that has this name."""
    if element.name != "struct":
        return {(name,): element}
    return {(name, *path): type_ for path, type_ in paths_in(element)}


def with_parameter(test: Lambda, name: str = ELEMENT) -> Lambda:
    """The same lambda, whose element has another name."""
    if test.parameter == name:
        return test
    return replace(test, parameter=name, body=_rename(test.body, test.parameter, (name,)))


def move_into(test: Lambda, path: Path) -> Lambda:
    """The lambda over a field of the element as a lambda over the element: t -> t = 'a' over
    items.sku is x -> x.sku = 'a' over items.
    """
    return replace(
        test, parameter=ELEMENT, body=_rename(test.body, test.parameter, (ELEMENT, *path))
    )


def _rename(node: Any, old: str, new: Path) -> Any:
    if isinstance(node, tuple):
        return tuple(_rename(own, old, new) for own in node)
    # A lambda inside has its own element, and cannot use this one.
    if isinstance(node, Lambda) or not hasattr(node, "span"):
        return node
    if isinstance(node, Attribute) and not isinstance(node, Derived):
        return replace(node, path=(*new, *node.path[1:])) if node.path[:1] == (old,) else node
    changes = {
        own.name: _rename(getattr(node, own.name), old, new)
        for own in fields(node)
        if own.name not in ("span", "path", "type")
    }
    renamed = replace(node, **changes)
    if isinstance(renamed, Derived) and renamed.path:
        return replace(renamed, path=(DERIVED_MARK + print_value(renamed),))
    return renamed
