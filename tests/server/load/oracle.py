"""What should have been delivered: the log of changes, replayed for the archived events.

Each event is stamped with the change as of which it was matched. The reference evaluator judges it
for every subscription that existed then and was valid at its moment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson

from tamis.archive import Archive
from tamis.archive.model import ArchivedEvent
from tamis.subscriptions import Subscription, SubscriptionStore
from tamis.subscriptions.model import Change
from tests.server.load.worlds import is_match, read_values

PAGE = 1_000


class Oracle:
    """The log and the archive of a server, which may be running, and what follows from them."""

    def __init__(self, folder: Path, store: str | None = None) -> None:
        self.changes = read_changes(folder / "index" if store is None else store)
        self.events = read_events(folder / "archive")
        self.matches = judge(self.changes, self.events)
        self._sets = {number: set(own) for number, own in self.matches.items()}
        self.ids = self._find_ids()

    def of(self, numbers: Iterable[int], *, after: int = 0) -> list[int]:
        """The events after one that match any of these subscriptions, in order."""
        found = {event for number in numbers for event in self.matches.get(number, ())}
        return sorted(event for event in found if event > after)

    def who(self, event: int, numbers: Iterable[int]) -> list[str]:
        """The ids of those of these subscriptions that an event matches."""
        matched = (own for own in sorted(numbers) if event in self._sets.get(own, ()))
        return [self.ids[own] for own in matched]

    def content(self, event: int) -> Any:
        """An event."""
        return orjson.loads(self.events[event - 1].event or b"")

    def _find_ids(self) -> dict[int, str]:
        """The ids of all subscriptions that ever were, by number."""
        rows = (own.subscription for own in self.changes)
        return {row.created: row.id for row in rows if row is not None}

    def expect_mailboxes(self, folder: Path) -> None:
        """The archive has the matches of every subscription, and no others."""
        with Archive.open(folder / "archive", read_only=True) as archive:
            for number, name in self.ids.items():
                found = [own.event for own in read_matches(archive, number)]
                assert found == self.of([number]), (name, number)


def read_changes(place: Path | str) -> list[Change]:
    """The whole log, which has no gaps."""
    found: list[Change] = []
    with SubscriptionStore.open(place, read_only=True) as store:
        while more := store.changes(after=len(found), limit=PAGE):
            found += more
    assert [own.number for own in found] == list(range(1, len(found) + 1))
    return found


def read_events(folder: Path) -> list[ArchivedEvent]:
    """All events, which have no gaps; neither changes nor moments go back."""
    found: list[ArchivedEvent] = []
    with Archive.open(folder, read_only=True) as archive:
        while more := archive.read_events(after=len(found), limit=PAGE).events:
            found += more
    assert [own.number for own in found] == list(range(1, len(found) + 1))
    stamps = [(own.change, own.moment) for own in found]
    assert stamps == sorted(stamps)
    return found


def read_matches(archive: Archive, number: int) -> Iterator:
    """All matches of a subscription."""
    after = 0
    while True:
        page = archive.read_matches([number], after=after, limit=PAGE)
        yield from page.matches
        if len(page.matches) < PAGE:
            return
        after = page.after


def judge(changes: list[Change], events: list[ArchivedEvent]) -> dict[int, list[int]]:
    """The events that match each subscription, by number."""
    found: dict[int, list[int]] = {}
    current: dict[str, Subscription] = {}
    at = 0
    for event in events:
        while at < len(changes) and changes[at].number <= event.change:
            change = changes[at]
            current.pop(change.subscription_id, None)
            if change.subscription is not None:
                current[change.subscription_id] = change.subscription
            at += 1
        values = read_values(event.event or b"")
        for own in current.values():
            if is_valid(own, event.moment) and is_match(own.expression, values):
                found.setdefault(own.created, []).append(event.number)
    return found


def is_valid(own: Subscription, moment: datetime) -> bool:
    """Whether a subscription is valid at a moment."""
    begun = own.valid_from is None or own.valid_from <= moment
    return begun and (own.valid_until is None or moment < own.valid_until)
