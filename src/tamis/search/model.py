"""The records of a search: the question, its limits, and a page of the answer."""

from __future__ import annotations

import time
from enum import StrEnum
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.archive import ArchivedEvent

MOST_SKIPPED: Final = 10_000  # hits before a page that is ordered by relevance


class Order(StrEnum):
    """Which hits come first."""

    NEWEST = "newest"
    RELEVANCE = "relevance"


class Place(NamedTuple):
    """Where the next page begins; valid within one epoch of the archive."""

    before: int  # the events before this one are left
    skip: int = 0  # and so many of their hits were on earlier pages


class Asked(NamedTuple):
    """Which page of which events is wanted."""

    after: int = 0  # events after this one
    up_to: int | None = None  # and not after that one; None for the last one
    order: Order = Order.NEWEST
    limit: int = 10
    place: Place | None = None  # of the page before
    highlights: bool = True  # whether hits have them


class Budget(NamedTuple):
    """How much a search may read without an index, and for how long."""

    n_events: int = 1 << 62
    seconds: float = float("inf")
    is_cancelled: Callable[[], bool] = lambda: False
    timer: Callable[[], float] = time.monotonic


Highlights = dict[str, list[tuple[int, int]]]  # by attribute: where found words begin and end


class Hit(NamedTuple):
    """An event that the query matches."""

    event: ArchivedEvent
    score: float | None  # the larger, the more relevant; None in other orders
    highlights: Highlights


class Page(NamedTuple):
    """Some hits in the order that was asked for."""

    hits: list[Hit]
    place: Place | None  # of the next page; None if there is none
    n_events: int  # whose texts were read
    n_scanned: int  # of them, those that no index chose
    is_complete: bool  # False if a limit ended it; then the next page goes on, if there is one
