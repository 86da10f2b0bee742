"""Named conditions: `@office_hours` stands for the condition that a schema defines by that name,
and `subscription('a')` for the expression of another subscription.

The checker replaces a reference by the typed condition. The nodes of the condition have no place
in the text that refers to it; only the whole has, the place of the reference.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from tamis.errors import ExpressionError
from tamis.language.ast import NOWHERE, SUBSCRIPTION, Reference, children, leaves
from tamis.language.parser import parse

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.language.ast import Condition
    from tamis.language.limits import Limits

_MENTIONED: Final = "subscription"


def find_references(*conditions: Condition) -> Iterator[Reference]:
    """Every reference in untyped conditions."""
    return (own for each in conditions for own in leaves(each) if isinstance(own, Reference))


def find_subscriptions(ids: Iterable[str], texts: Iterable[str], limits: Limits) -> dict[str, str]:
    """The definitions of all subscriptions that others refer to. All ids and expressions are given,
    and iterated twice.
    """
    mentioning = [text for text in texts if isinstance(text, str) and _MENTIONED in text.lower()]
    names = {own.name for own in find_references(*parse_good(mentioning, limits))}
    wanted = {name.removeprefix(SUBSCRIPTION) for name in names if name.startswith(SUBSCRIPTION)}
    if not wanted:
        return {}
    pairs = zip(ids, texts, strict=True)
    return {SUBSCRIPTION + own: text for own, text in pairs if own in wanted}


def parse_good(texts: Iterable[str], limits: Limits) -> list[Condition]:
    """The conditions of the texts that can be parsed."""
    found = []
    for text in texts:
        with suppress(ExpressionError):
            found.append(parse(text, limits))
    return found


# ── the tree that stands for a reference ────────────────────────────────────────────────────


def without_places(node: Any) -> Any:
    """The same tree, in which no node has a place in a text."""
    if isinstance(node, tuple):
        return tuple(map(without_places, node))
    if not hasattr(node, "span"):
        return node
    changes = {
        own.name: without_places(getattr(node, own.name))
        for own in fields(node)
        if own.name != "span"
    }
    return replace(node, span=NOWHERE, **changes)


def has_more_leaves(condition: Condition, limit: int) -> bool:
    """Whether a tree has more leaves than allowed, counted no further than that."""
    return sum(1 for _ in islice(leaves(condition), limit + 1)) > limit


def height_of(condition: Condition) -> int:
    """The levels of a tree."""
    return 1 + max(map(height_of, children(condition)), default=0)
