"""Reads matches with those of histories among them, in order of event numbers."""

from __future__ import annotations

import logging
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.archive import Match, MatchPage
from tamis.errors import ExpressionError, HistoryError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from tamis.archive import Archive
    from tamis.broker.histories import Histories, History
    from tamis.broker.searching import Searcher

_NEAR: Final = 1_000  # events that are looked at first for the last matches
LEAST_LOOKED: Final = 20_000  # events that are looked at for a page, unless it is full before
_MOST_REMEMBERED: Final = 100
_log = logging.getLogger(__name__)


class HistoryPage(NamedTuple):
    """Some matches in order of event numbers."""

    page: MatchPage
    is_cut: bool  # much had to be looked at: it is shorter than it could be, and the next goes on
    failures: dict[int, str]  # why histories are not on it, by subscription


class _Looked:
    """The matches of a history in a range of events that grows."""

    def __init__(self, steps: Iterator[tuple[int, list[int]]], after: int) -> None:
        self.after = after
        self.up_to = after  # has been looked at
        self.numbers: list[int] = []
        self._steps = steps

    def go_on(self) -> bool:
        """Look at some more events; False at the end."""
        step = next(self._steps, None)
        if step is None:
            return False
        self.up_to = step[0]
        self.numbers += step[1]
        return True


class HistoryReader:
    """The matches of an archive, and those of histories. Any thread may read.

    An event is history for a subscription if it was matched by a set that did not have it yet; that
    set is stored with the event. So no event is matched live and found again, and none is neither.
    """

    def __init__(self, archive: Archive, histories: Histories, searcher: Searcher) -> None:
        self._archive = archive
        self._histories = histories
        self._searcher = searcher
        self._lock = Lock()
        self._ends: dict[int, int] = {}  # by subscription: its last event that is history
        self._failed: set[int] = set()
        self._quiet_version: int | None = None  # of the list, when none of it was open
        # By subscription and end of the range; one thread at a time takes one.
        self._looked: OrderedDict[tuple[int, int], _Looked] = OrderedDict()

    def list_open(self) -> list[int]:
        """The subscriptions of which the next events may still be history."""
        version = self._histories.version()
        if version == self._quiet_version:  # as a rule
            return []
        found = [own for own in self._histories.list() if own.subscription not in self._ends]
        for own in found:
            self._find_end(own)
        is_open = [own.subscription for own in found if own.subscription not in self._ends]
        self._quiet_version = None if is_open else version
        return is_open

    def read(
        self, subscriptions: Collection[int], *, after: int, limit: int, up_to: int | None = None
    ) -> HistoryPage:
        """As `Archive.read_matches`, with the matches of histories."""
        page = self._archive.read_matches(subscriptions, after=after, limit=limit, up_to=up_to)
        found: dict[int, list[int]] = {}
        failures: dict[int, str] = {}
        end = page.after
        for own in self._histories.of(subscriptions):
            low = max(after, own.since, self._archive.first_event - 1)
            high = min(end, self._find_end(own))
            if low < high:
                try:
                    looked, numbers = self._find(own, low, high, limit)
                except ExpressionError as error:
                    failures[own.subscription] = self._tell(own, error)
                    continue
                end = min(end, looked) if looked < high else end
                for number in numbers:
                    found.setdefault(number, []).append(own.subscription)
        is_cut = end < page.after
        if found or is_cut:
            page = self._merge(page, found, end, limit)
        return HistoryPage(page, is_cut, failures)

    def read_last(
        self, subscriptions: Collection[int], *, after: int, up_to: int, limit: int
    ) -> list[Match]:
        """The last matches of the events in (after, up_to], in order, at most `limit`."""
        first = max(after, self._archive.first_event - 1)
        width = _NEAR
        while True:
            begin = max(first, up_to - width)
            tail = self._read_tail(subscriptions, begin, up_to, limit)
            if len(tail) == limit or begin <= first:
                return tail
            width *= 8  # there may be few matches among many events

    def _read_tail(
        self, subscriptions: Collection[int], after: int, end: int, limit: int
    ) -> list[Match]:
        tail: list[Match] = []
        while after < end:
            page = self.read(subscriptions, after=after, limit=_NEAR, up_to=end).page
            tail = [*tail, *page.matches][-limit:]
            after = page.after
        return tail

    def count(
        self, subscriptions: Collection[int], *, after: int, up_to: int | None = None
    ) -> dict[int, int]:
        """As `Archive.count_matches`, with the matches of histories."""
        counts = self._archive.count_matches(subscriptions, after=after, up_to=up_to)
        last = self._archive.last_event
        for own in self._histories.of(subscriptions):
            low = max(after, own.since, self._archive.first_event - 1)
            high = min(last if up_to is None else up_to, self._find_end(own))
            try:
                while low < high:
                    low, numbers = self._find(own, low, high, 1 << 62)
                    counts[own.subscription] += len(numbers)
            except ExpressionError as error:
                self._tell(own, error)
        return counts

    def _find_end(self, own: History) -> int:
        """The last event that is history; it is known once the subscription was matched live."""
        if (known := self._ends.get(own.subscription)) is not None:
            return known
        last = self._archive.last_event
        end = self._archive.last_before_change(own.subscription)
        if end < last:
            self._ends[own.subscription] = end
        return end

    def _find(self, own: History, after: int, up_to: int, limit: int) -> tuple[int, list[int]]:
        """Up to where it has looked, and the events after a number that the history matches.

        Raises an `ExpressionError` if its expression is not valid any more: its subscription has
        ended, and others gave its attributes other types.
        """
        key = own.subscription, up_to
        with self._lock:
            looked = self._looked.pop(key, None)
        if looked is None or not looked.after <= after <= looked.up_to:
            query = self._searcher.read(own.expression)
            looked = _Looked(self._searcher.search.find_forward(query, after, up_to), after)
        enough = max(looked.up_to, after) + LEAST_LOOKED
        is_more = True
        while is_more and looked.up_to < up_to:
            n_found = sum(number > after for number in looked.numbers)
            if n_found > limit or looked.up_to >= enough:
                break
            try:
                is_more = looked.go_on()
            except HistoryError:  # retention was faster: the next page says what was missed
                return looked.up_to, [number for number in looked.numbers if number > after]
        end = looked.up_to if is_more and looked.up_to < up_to else up_to
        numbers = [number for number in looked.numbers if number > after]
        with self._lock:
            self._looked[key] = looked
            while len(self._looked) > _MOST_REMEMBERED:
                self._looked.popitem(last=False)
        return end, numbers

    def _tell(self, own: History, error: ExpressionError) -> str:
        """Why a history cannot be read; it is logged once."""
        if own.subscription not in self._failed:
            self._failed.add(own.subscription)
            _log.warning("the history of %d cannot be read: %s", own.subscription, error)
        return f"its expression is not valid any more: {error.message}"

    def _merge(
        self, page: MatchPage, found: dict[int, list[int]], end: int, limit: int
    ) -> MatchPage:
        matches = {own.event: own for own in page.matches if own.event <= end}
        wanted = sorted(number for number in matches.keys() | found.keys() if number <= end)
        chosen = wanted[:limit]
        stamps = {own.number: own for own in self._archive.get_archived(chosen)}
        merged: list[Match] = []
        for number in chosen:
            live = matches[number].subscriptions if number in matches else ()
            if number in stamps:  # otherwise retention has removed it meanwhile
                told = tuple(sorted({*live, *found.get(number, ())}))
                merged.append(Match(number, stamps[number].moment, stamps[number].change, told))
        cursor = chosen[-1] if len(chosen) == limit else end
        return MatchPage(merged, cursor, page.missed)
