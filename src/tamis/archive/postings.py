"""Which events a subscription matched: a sorted list of events for each subscription."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator


class Postings(NamedTuple):
    """The matches of some neighbouring events by subscription."""

    subscriptions: np.ndarray  # int64, strictly ascending
    starts: np.ndarray  # int64[n_subscriptions + 1]
    events: np.ndarray  # uint32: numbers of events from the first one of a segment, ascending


class Hits(NamedTuple):
    """Matches of wanted subscriptions, in no particular order."""

    events: np.ndarray  # int64
    subscriptions: np.ndarray  # int64


NO_HITS = Hits(np.empty(0, np.int64), np.empty(0, np.int64))


def build_postings(
    subscriptions: np.ndarray,  # uint32 or int64, not negative
    events: np.ndarray,  # uint32[n_matches]
) -> Postings:
    """The matches sorted by subscription, then by event."""
    if subscriptions.dtype.itemsize == 4:
        # One array of both: NumPy sorts it ten times as fast as it finds an order.
        keys = subscriptions.astype(np.uint64)
        keys <<= np.uint64(32)
        keys |= events
        keys.sort()
        events = keys.astype(np.uint32)
        keys >>= np.uint64(32)
        sorted_subscriptions = keys.view(np.int64)
    else:
        order = np.lexsort((events, subscriptions))
        events, sorted_subscriptions = events[order], subscriptions[order]
    firsts = np.flatnonzero(np.diff(sorted_subscriptions, prepend=-1))
    starts = np.append(firsts, len(events))
    return Postings(sorted_subscriptions[firsts].astype(np.int64), starts, events)


def merge_postings(runs: list[Postings]) -> Postings:
    """The matches of several runs."""
    subscriptions = np.concatenate(
        [np.repeat(run.subscriptions, np.diff(run.starts)) for run in runs]
    )
    if max((int(run.subscriptions[-1]) for run in runs if len(run.events)), default=0) < 1 << 32:
        subscriptions = subscriptions.astype(np.uint32)
    return build_postings(subscriptions, np.concatenate([run.events for run in runs]))


def find_hits(
    postings: Postings,
    wanted: np.ndarray,  # int64, strictly ascending
    begin: int,
    end: int,
    limit: int,
) -> Hits:
    """The matches of events in [begin, end), at most `limit` of each subscription: the first."""
    events, subscriptions = [], []
    for at, low, high in _slices(postings, wanted, begin, end):
        own = postings.events[low : min(high, low + limit)]
        events.append(own)
        subscriptions.append(np.full(len(own), wanted[at]))
    if not events:
        return NO_HITS
    return Hits(np.concatenate(events).astype(np.int64), np.concatenate(subscriptions))


def count_hits(
    postings: Postings, wanted: np.ndarray, begin: int, end: int, counts: np.ndarray
) -> None:
    """Add the number of matches of events in [begin, end) to the count of each subscription."""
    for at, low, high in _slices(postings, wanted, begin, end):
        counts[at] += high - low


def _slices(
    postings: Postings, wanted: np.ndarray, begin: int, end: int
) -> Iterator[tuple[int, int, int]]:
    """For each wanted subscription that has matches there: its place in `wanted`, and theirs."""
    known, starts, events = postings
    if len(known) == 0:
        return
    places = np.searchsorted(known, wanted)
    places[places == len(known)] = 0
    for at in np.flatnonzero(known[places] == wanted).tolist():
        first, last = int(starts[places[at]]), int(starts[places[at] + 1])
        # A Python integer would be compared as int64, and the whole array converted.
        bounds = np.array((begin, end), np.uint32)
        low, high = (first + np.searchsorted(events[first:last], bounds)).tolist()
        if low < high:
            yield at, low, high
