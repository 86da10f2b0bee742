"""How often subscriptions matched lately: over time, and who matched most or never."""

from __future__ import annotations

import itertools
from bisect import bisect_right
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime, timedelta

    from tamis.archive import Archive
    from tamis.live.index import LiveIndex

_PAGE: Final = 10_000  # subscriptions that are listed at a time


class Activity(NamedTuple):
    """Numbers of matches in equal spans of time."""

    since: datetime
    step: timedelta
    counts: dict[str, list[int]]  # by id, the oldest span first


class Ranked(NamedTuple):
    """A subscription and its matches."""

    id: str
    n_matches: int


class RankingPlace(NamedTuple):
    """The last subscription of a page of a ranking."""

    n_matches: int
    number: int


class Ranking(NamedTuple):
    """Subscriptions by their number of matches."""

    since: datetime
    n_subscriptions: int
    n_silent: int  # without a match
    subscriptions: list[Ranked]
    next: RankingPlace | None  # where the next page begins; None if this is the last


def count_activity(
    archive: Archive, numbers: Mapping[str, int], until: datetime, span: timedelta, n_parts: int
) -> Activity:
    """The matches of some subscriptions, given by id and number, in parts of a span of time."""
    since, step = until - span, span / n_parts
    edges = [max(0, archive.event_at(since + step * part)) for part in range(n_parts)]
    edges.append(archive.last_event)
    wanted = sorted(numbers.values())
    counts = np.zeros((len(wanted), n_parts), np.int64)
    places = {number: place for place, number in enumerate(wanted)}
    for part, (after, up_to) in enumerate(itertools.pairwise(edges)):
        if after < up_to and wanted:
            for number, n_found in archive.count_matches(wanted, after=after, up_to=up_to).items():
                counts[places[number], part] = n_found
    found = {name: counts[places[number]].tolist() for name, number in numbers.items()}
    return Activity(since, step, found)


def rank_by_matches(  # noqa: PLR0913 - what is counted, of what, and which are returned
    live: LiveIndex,
    archive: Archive,
    numbers: Mapping[str, int] | None,
    since: datetime,
    limit: int,
    *,
    is_silent: bool,
    after: RankingPlace | None = None,
) -> Ranking:
    """A page of those with the most matches, or of those without any, the oldest first; `numbers`
    are the subscriptions to consider, by id, None for all.

    A page after a place has what is there now: a subscription that matched more in the meantime may
    be on two pages.
    """
    known = list_numbers(live) if numbers is None else numbers
    wanted = sorted(known.values())
    found = archive.count_matches(wanted, after=max(0, archive.event_at(since))) if wanted else {}
    counts = {number: n_matches for number, n_matches in found.items() if n_matches}
    chosen = [number for number in wanted if number not in counts] if is_silent else list(counts)
    order = sorted((-counts.get(number, 0), number) for number in chosen)
    if after is not None:
        order = order[bisect_right(order, (-after.n_matches, after.number)) :]
    names = {number: name for name, number in known.items()}
    ranked = [Ranked(names[number], -negative) for negative, number in order[:limit]]
    following = None
    if len(order) > limit:
        negative, number = order[limit - 1]
        following = RankingPlace(-negative, number)
    return Ranking(since, len(known), len(known) - len(counts), ranked, following)


def list_chosen(live: LiveIndex, **filters: Any) -> dict[str, int]:
    """The ids of the subscriptions that pass the filters of `LiveIndex.list`, with their
    numbers.
    """
    found: dict[str, int] = {}
    after = None
    while True:
        page = live.list(after=after, limit=_PAGE, **filters)
        found |= {own.id: own.created for own in page.subscriptions}
        if (after := page.cursor) is None:
            return found


def list_numbers(live: LiveIndex) -> dict[str, int]:
    """The ids of all subscriptions that answer, with their numbers."""
    catalogue = live.view.catalogue
    numbers = np.concatenate(
        [
            numbering.shown(part.contents.numbers)
            for part, numbering in zip(catalogue.parts, catalogue.numberings, strict=True)
        ]
    )
    names = catalogue.names(np.arange(len(numbers)))
    return dict(zip(names, numbers.tolist(), strict=True))
