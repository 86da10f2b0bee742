"""Looks at published events as they pass: the newest ones, some of them, or those that satisfy an
expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.broker.questions import find_matched
from tamis.events.json_texts import parse_event
from tamis.match.readouts.numbers import NamedNumbers

if TYPE_CHECKING:
    from tamis.archive import Archive, ArchivedEvent
    from tamis.live.index import LiveIndex
    from tamis.match.index import Index

MOST_READ: Final = 500  # events at a time; those before are not looked at
MOST_SHOWN: Final = 50  # of these
_FILTER: Final = "filter"


class Tapped(NamedTuple):
    """What passed."""

    after: int  # the number of the last event
    n_passed: int  # events, shown or not
    n_chosen: int  # those that the filter and the sample leave
    events: list[ArchivedEvent]  # the newest of these
    subscriptions: dict[int, list[str]]  # that matched, by event


class Tap:
    """A look at the stream of events, with a filter and a sample."""

    def __init__(
        self, live: LiveIndex, archive: Archive, filter_by: str | None, share: float
    ) -> None:
        """Raises the `ExpressionError` of a wrong filter."""
        self._live = live
        self._archive = archive
        self._share = share
        self._filter: Index | None = None
        if filter_by is not None:
            self._filter = live.draft({_FILTER: filter_by})

    def read(self, after: int) -> Tapped:
        """What passed after an event."""
        last = self._archive.last_event
        begin = max(after, last - MOST_READ)
        found = self._archive.read_events(after=begin, limit=MOST_READ).events
        found = [own for own in found if own.number <= last and self._is_sampled(own.number)]
        chosen = found if self._filter is None else self._choose(self._filter, found)
        shown = chosen[-MOST_SHOWN:]
        matched = {}
        if shown:
            first, end = shown[0].number, shown[-1].number
            matched = find_matched(self._live, self._archive, first - 1, end)
        return Tapped(last, last - after, len(chosen), shown, matched)

    def _is_sampled(self, number: int) -> bool:
        """Whether an event is in the sample: the same events for everybody who asks."""
        return (number * 2_654_435_761 & 0xFFFF_FFFF) < self._share * 2**32

    def _choose(self, wanted: Index, events: list[ArchivedEvent]) -> list[ArchivedEvent]:
        kept = [own for own in events if own.event is not None]
        if not kept:
            return []
        view, moment = wanted.view_now()
        encoded = view.encoder.encode([parse_event(own.event) for own in kept if own.event])
        ids = view.ask(None, None, moment).put([encoded], NamedNumbers()).ids
        return [own for own, names in zip(kept, ids, strict=True) if names]
