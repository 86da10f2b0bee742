"""Which matches of a subscription tell the same story as an earlier one.

A match is similar to the first earlier match of the same subscription that lies within its window
and whose text is similar. That depends on nothing but archived events, and is found whenever a
mailbox is read: so it is the same for every reader, after a restart, and on a follower.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.broker.minhash import expect_library, find_similar, sign
from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from datetime import timedelta

    import numpy as np

    from tamis.archive import Archive
    from tamis.archive.model import Match
    from tamis.broker.groupings import Groupings
    from tamis.broker.history_reading import HistoryReader
    from tamis.broker.mail import MailedMatch

MOST_COMPARED: Final = 2_000  # earlier matches with which one is compared
_MOST_REMEMBERED: Final = 32_768  # signatures
_TEXTS: Final = 32  # events whose texts are read at once
_MOST_STEPS: Final = 50
_log = logging.getLogger(__name__)

Similar = dict[tuple[int, int], int]  # by event and subscription: the event that it is similar to


class SimilarMatches:
    """Finds similar matches in an archive. Every method may be called from any thread."""

    def __init__(self, archive: Archive, matches: HistoryReader, groupings: Groupings) -> None:
        self._archive = archive
        self._matches = matches
        self._groupings = groupings
        self._lock = Lock()
        self._epoch = ""
        self._signatures: OrderedDict[int, np.ndarray | None] = OrderedDict()
        self._is_missing = False

    def is_asked(self, subscriptions: Collection[int]) -> bool:
        """Whether any of the subscriptions asks for similar matches to be grouped."""
        return bool(self._groupings.of(subscriptions))

    def find(self, matches: Sequence[Match]) -> Similar:
        """What is similar among some matches in order, for the subscriptions that ask for it."""
        windows = self._groupings.of({own for match in matches for own in match.subscriptions})
        if not windows or not self._has_library():
            return {}
        found: Similar = {}
        for number, window in windows.items():
            own = [match for match in matches if number in match.subscriptions]
            for event, first in self._find_own(number, window, own):
                found[event, number] = first
        return found

    def find_begin(self, match: MailedMatch) -> int:
        """The event at the beginning of the story that a match continues."""
        subscription, event = min(match.similar.items(), key=lambda own: own[1])
        for _ in range(_MOST_STEPS):
            page = self._matches.read([subscription], after=event - 1, limit=1, up_to=event).page
            earlier = self.find(page.matches).get((event, subscription))
            if earlier is None:
                break
            event = earlier
        return event

    def _find_own(
        self, number: int, window: timedelta, matches: Sequence[Match]
    ) -> Iterator[tuple[int, int]]:
        """The matches of one subscription that are similar to earlier ones, with those."""
        low = self._archive.event_at(matches[0].moment - window)
        line = self._matches.read_last(
            [number], after=low, up_to=matches[0].event - 1, limit=MOST_COMPARED
        )
        n_before, line = len(line), [*line, *matches]
        signatures = self._sign([own.event for own in line])
        begin = 0
        for at in range(n_before, len(line)):
            match = line[at]
            while line[begin].moment <= match.moment - window:
                begin += 1
            begin = max(begin, at - MOST_COMPARED)
            signature = signatures[match.event]
            if signature is not None:
                compared = [own.event for own in line[begin:at]]
                place = find_similar(signature, [signatures[own] for own in compared])
                if place is not None:
                    yield match.event, compared[place]

    def _sign(self, events: Sequence[int]) -> dict[int, np.ndarray | None]:
        """The signatures of some events, by event."""
        epoch = self._archive.epoch
        with self._lock:
            if epoch != self._epoch:  # its numbers mean other events
                self._signatures.clear()
                self._epoch = epoch
            found = {own: self._signatures[own] for own in events if own in self._signatures}
        missing = [own for own in events if own not in found]
        for start in range(0, len(missing), _TEXTS):
            some = missing[start : start + _TEXTS]
            texts = self._archive.get_events(some)
            found |= {own: sign(texts.get(own)) for own in some}
        with self._lock:
            if epoch == self._epoch:
                self._signatures |= found
            for own in events:
                if own in self._signatures:
                    self._signatures.move_to_end(own)
            while len(self._signatures) > _MOST_REMEMBERED:
                self._signatures.popitem(last=False)
        return found

    def _has_library(self) -> bool:
        try:
            expect_library()
        except InputError as error:
            if not self._is_missing:
                _log.warning("similar matches are not grouped: %s; %s", error, error.hint)
            self._is_missing = True
            return False
        return True


class Story(NamedTuple):
    """A match, and those that are similar to it."""

    event: int  # at its beginning; if that is not `match`, it came before those that are shown
    match: MailedMatch
    similar: list[MailedMatch]  # in order

    @property
    def matches(self) -> list[MailedMatch]:
        """All that is shown."""
        return [self.match, *self.similar]


def group(matches: Sequence[MailedMatch], find_begin: Callable[[MailedMatch], int]) -> list[Story]:
    """Matches in order of events, as stories in the order of their first matches.

    `find_begin` says where a story begins if it is not in the matches.
    """
    stories: dict[int, Story] = {}
    begins: dict[int, int] = {}
    for match in matches:
        earlier = match.similar_to
        if earlier is None:
            begin = match.event
        else:
            begin = begins[earlier] if earlier in begins else find_begin(match)
        begins[match.event] = begin
        if begin in stories:
            stories[begin].similar.append(match)
        else:
            stories[begin] = Story(begin, match, [])
    return list(stories.values())
