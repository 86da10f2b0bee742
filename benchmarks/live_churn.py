"""Matching while a set changes, against its fresh base.

The base is one part, just built. A percentage of its subscriptions then changes: a third of the
changes add one, a third replace one, a third remove one, of those that exist at random. The base is
kept as a snapshot and measured in turn with the changed set, so that both have the same machine.
"""

from __future__ import annotations

import random
import time
from itertools import cycle
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from benchmarks.live_against_atree import best
from tamis.live import LiveIndex
from tamis.subscriptions import Accepted, Replace, Subscribe, Unsubscribe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tamis.match.index import Index
    from tamis.subscriptions.model import Request

GROUP: Final = 1_000  # changes at once
N_SINGLE: Final = 200  # events that are matched one by one
N_ROUNDS: Final = 150  # changes for the quantiles
PER_ROUND: Final = 4  # matches after each: the first one of them is slower
SMALL_BATCH: Final = 512  # events


class Times(NamedTuple):
    """Seconds of CPU per event."""

    single: float
    batch: float


class Churner:
    """Changes a live set, and knows which subscriptions it has."""

    def __init__(
        self, live: LiveIndex, names: Sequence[str], more: Iterator[tuple[str, str]], seed: int = 1
    ) -> None:
        """`more` has ids and expressions of new subscriptions."""
        self.n_changed = 0
        self._live = live
        self._names = list(names)
        self._more = more
        self._draw = random.Random(seed)

    def change_up_to(self, n_changed: int) -> None:
        """Change the set until so many changes have been made."""
        while self.n_changed < n_changed:
            self.change(min(GROUP, n_changed - self.n_changed))

    def change(self, n: int) -> None:
        """Make some changes in one call."""
        changed: set[str] = set()  # in this call, each id changes once
        results = self._live.apply([self._next(at, changed) for at in range(n)])
        assert all(isinstance(result, Accepted) for result in results)
        self.n_changed += n

    def _next(self, at: int, changed: set[str]) -> Request:
        name, text = next(self._more)
        kind = (self.n_changed + at) % 3
        place = self._draw.randrange(len(self._names))
        if kind == 0 or len(self._names) == 1 or self._names[place] in changed:
            self._names.append(name)
            changed.add(name)
            return Subscribe(name, text)
        changed.add(self._names[place])
        if kind == 1:
            return Replace(self._names[place], text)
        self._names[place], self._names[-1] = self._names[-1], self._names[place]
        return Unsubscribe(self._names.pop())


def settle(live: LiveIndex) -> None:
    """Wait for merges that are due, or would be some seconds later."""
    is_merged = True
    while is_merged:
        live._maintenance._next_measure = 0.0
        is_merged = live._maintenance.step()


def measure_in_turn(fresh: Index, live: Index, events: list[Any]) -> tuple[Times, Times]:
    """The times of the base and of the other index as it is now."""
    few = events[:N_SINGLE]
    now = live.snapshot() if isinstance(live, LiveIndex) else live
    tables = [(index, index.encode(events)) for index in (fresh, now)]
    single, batch = [np.inf, np.inf], [np.inf, np.inf]
    for _ in range(3):
        for at, (index, table) in enumerate(tables):
            match = index.match
            single[at] = min(single[at], best(lambda: [match(one) for one in few]))  # noqa: B023
            batch[at] = min(batch[at], best(lambda: index.match_lists(table)))  # noqa: B023
    own = [Times(single[at] / len(few), batch[at] / len(events)) for at in range(2)]
    return own[0], own[1]


def measure_while_changing(
    fresh: Index, live: LiveIndex, churner: Churner, events: list[Any]
) -> tuple[Times, Times]:
    """The 99th percentiles of the base, and of the set while it changes: a change before every few
    matches, the first of which pays for it.
    """
    found = []
    for index, act in ((fresh, lambda: None), (live, lambda: churner.change(1))):
        single = _quantile(index.match, act, cycle(events))
        batch = _quantile(index.match_lists, act, cycle([events[:SMALL_BATCH]]))
        found.append(Times(single, batch / SMALL_BATCH))
    return found[0], found[1]


def _quantile(match: Callable[[Any], Any], act: Callable[[], None], events: Iterator[Any]) -> float:
    spent = []
    for _ in range(N_ROUNDS):
        act()
        for _ in range(PER_ROUND):
            event = next(events)
            began = time.thread_time()
            match(event)
            spent.append(time.thread_time() - began)
    return float(np.quantile(spent, 0.99))
