"""Which elements of an array decide the test of a lambda, for explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tamis.language.types import KINDS, spell_value
from tamis.logic.evaluate import attribute_value, test_element

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.ast import ElementTest
    from tamis.logic.evaluate import Missing

_SHOWN: Final = 3
_WORDS: Final = {True: "true", False: "false", None: "undefined"}


def describe_elements(
    node: ElementTest, event: Mapping[str, Any], missing: Missing
) -> tuple[str, ...]:
    """The elements for which the condition has the truth that decides, or is undefined."""
    elements = attribute_value(node.operand, event)
    if elements is None:
        return ()
    if not elements:
        return ("the array is empty",)
    truths = [test_element(node, own, missing) for own in elements]
    decisive = node.function == "exists"
    for truth in (decisive, None):
        places = [at for at, own in enumerate(truths) if own is truth]
        if places:
            shown = [f"element {at + 1}, {_show(node, elements[at])}" for at in places[:_SHOWN]]
            more = [f"{len(places) - _SHOWN} more"] if len(places) > _SHOWN else []
            return (f"{_WORDS[truth]} for {'; '.join([*shown, *more])}",)
    return (f"{_WORDS[not decisive]} for {_count(len(elements))}",)


def _count(n_elements: int) -> str:
    return "its one element" if n_elements == 1 else f"all {n_elements} elements"


def _show(node: ElementTest, element: Any) -> str:
    if element is None:
        return "NULL"
    assert node.operand.type is not None
    assert node.operand.type.element is not None
    show = KINDS[node.operand.type.element.name].show
    text = spell_value(element if show is None else show(element))
    return text if len(text) <= 60 else text[:59] + "…"
