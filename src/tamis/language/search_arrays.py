"""Arrays of texts, such as tags, in the condition of a search-box query.

Each element is a text of its own: a phrase lies within one. Each word may be in another attribute,
or in another element.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from tamis.language.ast import And, Attribute, Condition, ElementTest, Lambda, Matches, Not, Or
from tamis.text import DEFAULT_ANALYSER, get_analyser
from tamis.text.stop_words import STOP_WORDS

if TYPE_CHECKING:
    from collections.abc import Collection

_ELEMENT: Final = Attribute(("x",))


def with_arrays(condition: Condition, arrays: Collection[Attribute]) -> Condition:
    """The condition, where words are also found in an element of the arrays."""
    match condition:
        case Not():
            return replace(condition, operand=with_arrays(condition.operand, arrays))
        case And() | Or():
            operands: list[Condition] = []
            for one in condition.operands:
                changed = with_arrays(one, arrays)
                is_spread = isinstance(one, Matches) and isinstance(changed, And | Or)
                if is_spread and type(changed) is type(condition):
                    operands += changed.operands
                else:
                    operands.append(changed)
            return replace(condition, operands=tuple(operands))
        case Matches() if any(own in arrays for own in condition.attributes):
            return _spread(condition, arrays)
        case _:
            return condition


def _spread(search: Matches, arrays: Collection[Attribute]) -> Condition:
    """Each word on its own, in the texts or in an element."""
    texts = tuple(own for own in search.attributes if own not in arrays)
    parts: list[Condition] = []
    for query in _split(search.query) if search.mode == "all" else [search.query]:
        one = replace(search, query=query)
        places: list[Condition] = [replace(one, attributes=texts)] if texts else []
        for own in search.attributes:
            if own in arrays:
                body = replace(one, attributes=(_ELEMENT,))
                places.append(ElementTest("exists", own, Lambda("x", body)))
        parts.append(Or(tuple(places)) if len(places) > 1 else places[0])
    return And(tuple(parts)) if len(parts) > 1 else parts[0]


def _split(query: str) -> list[str]:
    """The words of a query. One that is a stop word of some language stays with the next one, since
    alone it might be no word at all.
    """
    parts: list[str] = []
    waiting: list[str] = []
    for word in query.split():
        waiting.append(word)
        if not set(get_analyser(DEFAULT_ANALYSER).words(word)) <= _all_stop_words():
            parts.append(" ".join(waiting))
            waiting = []
    if waiting and parts:
        parts[-1] = " ".join([parts[-1], *waiting])
    return parts or [query]


@cache
def _all_stop_words() -> frozenset[str]:
    words = get_analyser(DEFAULT_ANALYSER).words
    return frozenset(own for listed in STOP_WORDS.values() for own in words(listed))
