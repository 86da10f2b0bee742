"""Reads mailboxes: the matches of a subscription or of a channel, with their events."""

from __future__ import annotations

import time
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from tamis.broker.event_texts import to_strict_json
from tamis.broker.mailbox import Mailbox, MailboxKind, Position
from tamis.broker.stories import SimilarMatches, Story, group
from tamis.language.moments import spell_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from tamis.archive import Archive
    from tamis.archive.model import Match
    from tamis.broker.history_reading import HistoryReader
    from tamis.broker.store import Broker
    from tamis.broker.stories import Similar

MOST_BYTES: Final = 8 << 20  # of the events on one page
FRESH_SECONDS: Final = 10.0  # how long the members of a channel are remembered
_MOST_REMEMBERED: Final = 1_000  # channels
_STORY_PAGE: Final = 500  # matches that are read for a page of stories
_TEXTS: Final = 32  # events whose texts are read at once
_MEMBERS: Final = 10_000  # members of a channel that are read at once


class MailedMatch(NamedTuple):
    """An event in a mailbox."""

    event: int
    moment: datetime
    change: int
    numbers: tuple[int, ...]  # of those of the mailbox's subscriptions that it matched
    subscriptions: tuple[str, ...]  # their ids
    content: bytes | None  # the event as one line of JSON; None if the archive does not have it
    # For each subscription that asks for it, the event that this one is similar to, if any.
    similar: Mapping[int, int] = {}

    @property
    def similar_to(self) -> int | None:
        """The earlier event of the mailbox that tells the same story: the first of those of its
        subscriptions. None if this is the first one, or new to one of them.
        """
        if len(self.similar) < len(self.numbers):
            return None
        return min(self.similar.values(), default=None)

    def restrict(self, names: Mapping[int, str]) -> MailedMatch:
        """The match, for a mailbox with fewer subscriptions."""
        numbers = tuple(number for number in self.numbers if number in names)
        ids = tuple(names[number] for number in numbers)
        similar = {own: event for own, event in self.similar.items() if own in numbers}
        return self._replace(numbers=numbers, subscriptions=ids, similar=similar)

    def to_json(self) -> dict[str, Any]:
        """The match as clients see it, for orjson."""
        similar = {} if self.similar_to is None else {"similar_to": self.similar_to}
        return {
            "event": self.event,
            "moment": spell_moment(self.moment),
            "change": self.change,
            "subscriptions": self.subscriptions,
            "content": None if self.content is None else orjson.Fragment(self.content),
            **similar,
        }

    def spell(self) -> bytes:
        """The match as JSON text."""
        return orjson.dumps(self.to_json())


class LostHistory(NamedTuple):
    """A subscription whose history cannot be read; its live matches are not affected."""

    subscription: str
    reason: str


class MailPage(NamedTuple):
    """Some matches in order of event numbers."""

    matches: list[MailedMatch]
    after: int  # the cursor for the next page
    missed: range | None  # events that retention removed
    is_last: bool  # whether all events were looked at
    lost: tuple[LostHistory, ...] = ()


class Mailboxes:
    """The mailboxes of a server. Every method may be called from any thread."""

    def __init__(
        self,
        broker: Broker,
        archive: Archive,
        matches: HistoryReader,
        timer: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._archive = archive
        self._matches = matches
        self.similar = SimilarMatches(archive, matches, broker.groupings)
        self._timer = timer
        self._lock = Lock()
        self._channels: OrderedDict[Mailbox, tuple[float, dict[int, str]]] = OrderedDict()
        self._n_forgotten = 0

    @property
    def head(self) -> Position:
        """The last event."""
        return Position(self._archive.epoch, self._archive.last_event)

    def names(self, mailbox: Mailbox) -> Mapping[int, str]:
        """The ids of the subscriptions whose matches are in a mailbox, by number.

        Empty if there is no such mailbox.
        """
        if mailbox.kind is MailboxKind.SUBSCRIPTION:
            known = self._broker.subscriptions.get(mailbox.number)
            return {} if known is None else {known.number: known.id}
        now = self._timer()
        with self._lock:
            since, members = self._channels.get(mailbox, (0.0, None))
            n_forgotten = self._n_forgotten
        if members is None or now - since > FRESH_SECONDS:
            members = self._read_members(mailbox)
            with self._lock:
                # What was read before a change must not be kept after it.
                if n_forgotten == self._n_forgotten:
                    self._channels[mailbox] = now, members
                while len(self._channels) > _MOST_REMEMBERED:
                    self._channels.popitem(last=False)
        return members

    def forget(self, mailbox: Mailbox) -> None:
        """Read the members of a channel again: they have changed."""
        with self._lock:
            self._n_forgotten += 1
            self._channels.pop(mailbox, None)

    def _read_members(self, mailbox: Mailbox) -> dict[int, str]:
        found: dict[int, str] = {}
        after: int | None = None
        while True:
            page = self._broker.channels.members(mailbox.number, after=after, limit=_MEMBERS)
            found |= {own.subscription: own.subscription_id for own in page.items}
            if (after := page.cursor) is None:
                return found

    def read(
        self, mailbox: Mailbox, *, after: int, limit: int, up_to: int | None = None
    ) -> MailPage:
        """The events after a number that are in a mailbox, at most `limit`."""
        return self.read_named(self.names(mailbox), after=after, limit=limit, up_to=up_to)

    def read_named(
        self, names: Mapping[int, str], *, after: int, limit: int, up_to: int | None = None
    ) -> MailPage:
        """The events after a number that matched some subscriptions, at most `limit`.

        A page with large events is shorter, but never empty if there is a match.
        """
        found = self._matches.read(names.keys(), after=after, limit=limit, up_to=up_to)
        page, is_short = found.page, found.is_cut
        texts = self._read_texts(page.matches)
        mailed = self._mail_all(page.matches[: len(texts)], names, texts)
        is_cut = len(texts) < len(page.matches)
        is_last = not is_cut and not is_short and len(page.matches) < limit
        after = mailed[-1].event if is_cut else page.after
        lost = tuple(LostHistory(names[own], why) for own, why in found.failures.items())
        return MailPage(mailed, after, page.missed, is_last, lost)

    def has(self, subscription: int, event: int) -> bool:
        """Whether an event is in the mailbox of a subscription."""
        start = max(0, event - 1)
        page = self._matches.read([subscription], after=start, limit=1, up_to=event).page
        return any(match.event == event for match in page.matches)

    def count(self, names: Mapping[int, str], *, after: int, up_to: int) -> dict[int, int]:
        """The number of events of each subscription."""
        return self._matches.count(names.keys(), after=after, up_to=up_to)

    def _read_texts(self, matches: Sequence[Match]) -> dict[int, bytes | None]:
        """The texts of the first events, until they are large together."""
        found: dict[int, bytes | None] = {}
        n_bytes = 0
        for start in range(0, len(matches), _TEXTS):
            events = [match.event for match in matches[start : start + _TEXTS]]
            texts = self._archive.get_events(events)
            for event in events:
                n_bytes += len(texts.get(event, b""))
                if found and n_bytes > MOST_BYTES:
                    return found
                found[event] = texts.get(event)
        return found

    def newest(self, mailbox: Mailbox, limit: int) -> list[MailedMatch]:
        """The last events of a mailbox, the newest first; fewer if they are large."""
        names = self.names(mailbox)
        end = self._archive.last_event
        tail = self._matches.read_last(names.keys(), after=0, up_to=end, limit=limit)
        tail.reverse()
        texts = self._read_texts(tail)
        tail = tail[: len(texts)]
        tail.reverse()
        mailed = self._mail_all(tail, names, texts)
        mailed.reverse()
        return mailed

    def read_stories(
        self, names: Mapping[int, str], *, after: int, limit: int, up_to: int
    ) -> tuple[list[Story], MailPage]:
        """The first stories after an event, at most `limit`, and the page they were found on."""
        most = _STORY_PAGE if self.similar.is_asked(names.keys()) else limit
        page = self.read_named(names, after=after, limit=most, up_to=up_to)
        return group(page.matches, self.similar.find_begin)[:limit], page

    def newest_stories(self, mailbox: Mailbox, limit: int) -> list[Story]:
        """The last events of a mailbox as stories, each with its beginning, the newest first."""
        matches = self.newest(mailbox, limit)
        stories = group(matches[::-1], self.similar.find_begin)
        names = self.names(mailbox)
        whole = [self._complete(own, names) for own in stories]
        return sorted(whole, key=lambda own: own.event, reverse=True)

    def _complete(self, story: Story, names: Mapping[int, str]) -> Story:
        """The story with the match at its beginning, if that was not among the last ones."""
        if story.event == story.match.event:
            return story
        after, event = story.event - 1, story.event
        found = self.read_named(names, after=after, limit=1, up_to=event).matches
        return Story(event, found[0], story.matches) if found else story

    def _mail_all(
        self, matches: Sequence[Match], names: Mapping[int, str], texts: Mapping[int, bytes | None]
    ) -> list[MailedMatch]:
        similar = self.similar.find(matches)
        return [_mail(own, names, texts[own.event], similar) for own in matches]


def _mail(
    match: Match, names: Mapping[int, str], text: bytes | None, similar: Similar
) -> MailedMatch:
    ids = tuple(names[number] for number in match.subscriptions)
    content = None if text is None else to_strict_json(text)
    numbers, event = match.subscriptions, match.event
    own = {number: similar[event, number] for number in numbers if (event, number) in similar}
    return MailedMatch(event, match.moment, match.change, numbers, ids, content, own)
