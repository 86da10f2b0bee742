"""Rows in batches of bounded number and size, for rows of any size."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

Item = TypeVar("Item")

MOST_BYTES: Final = 32 << 20  # of values in one batch; a single row may have more


def batched(
    items: Iterable[Item], n_items: int, weigh: Callable[[Item], int]
) -> Iterator[list[Item]]:
    """Lists of at most this many items, each ended by the item that makes it heavy enough."""
    batch: list[Item] = []
    n_bytes = 0
    for item in items:
        batch.append(item)
        n_bytes += weigh(item)
        if len(batch) == n_items or n_bytes >= MOST_BYTES:
            yield batch
            batch, n_bytes = [], 0
    if batch:
        yield batch


def first_repeated(names: Sequence[str]) -> str | None:
    """The first name that is repeated."""
    counted = Counter(names)
    return next((name for name in names if counted[name] > 1), None)


def peek(items: Iterable[Item]) -> tuple[Item | None, Iterator[Item]]:
    """The first item, None if there is none, and all items with it."""
    iterator = iter(items)
    first = next(iterator, _NOTHING)
    if first is _NOTHING:
        return None, iterator
    return first, chain([first], iterator)  # type: ignore[list-item, return-value]


_NOTHING: Final = object()
