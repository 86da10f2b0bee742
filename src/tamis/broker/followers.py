"""Readers of a mailbox that wait for more, and the topic that they share."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from tamis.broker.mail import LostHistory
    from tamis.broker.mailbox import Mailbox

PAGE: Final = 100  # matches that a reader gets at once
MOST_QUEUED: Final = 4 * PAGE  # matches that wait for a slow reader; it reads the others itself


class SpelledMatch(NamedTuple):
    """A match as JSON text, shared by all who read the mailbox."""

    event: int
    data: bytes
    moment: datetime  # when it was published


class News(NamedTuple):
    """What a reader gets; nothing of all, if none came within the timeout."""

    matches: list[SpelledMatch]
    after: int  # everything up to this event has been handed over
    missed: range | None = None  # events that retention removed before they were read
    lost: tuple[LostHistory, ...] = ()


class Follower:
    """One reader; used on the event loop only."""

    def __init__(self, topic: Topic, after: int) -> None:
        self.topic = topic
        self.after = after
        self.is_stopped = False
        self.is_live = False  # everything after `after` will be queued
        self.reached = time.monotonic()  # when it last had everything
        self._queue: deque[SpelledMatch] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def put(self, matches: list[SpelledMatch]) -> None:
        """Hand over matches."""
        if not self.is_live:
            return
        self._queue += matches
        if len(self._queue) > MOST_QUEUED:
            self.fall_behind()
        self._wake()

    def fall_behind(self) -> None:
        """Let the reader read the archive itself."""
        self.is_live = False
        self._queue.clear()
        self._wake()

    def go_live(self) -> None:
        """From now on, new matches are queued."""
        self.is_live = True
        self._queue.clear()

    def stop(self) -> None:
        """End: the reader has gone, or the server stops."""
        self.is_stopped = True
        self._wake()

    def take(self) -> list[SpelledMatch]:
        """The next matches that the reader has not seen, at most a page."""
        found: list[SpelledMatch] = []
        while self._queue and len(found) < PAGE:
            match = self._queue.popleft()
            if match.event > self.after:  # what was read while catching up may come again
                self.after = match.event
                found.append(match)
        return found

    async def wait(self, patience: float) -> None:
        """Return when there is something to do, or after so many seconds."""
        if self._queue or self.is_stopped or not self.is_live:
            return
        self.reached = time.monotonic()
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = loop.call_later(patience, self._wake)
        try:
            await waiter
        finally:
            timer.cancel()
            self._waiter = None

    def has_nothing(self) -> bool:
        """Whether there is nothing to do."""
        return not (self._queue or self.is_stopped) and self.is_live

    def seconds_behind(self) -> float:
        """How long ago it had everything; 0 if it does."""
        return 0.0 if self.has_nothing() else max(0.0, time.monotonic() - self.reached)

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Topic:
    """A mailbox that someone follows."""

    def __init__(self, mailbox: Mailbox, names: Mapping[int, str]) -> None:
        self.mailbox = mailbox
        self.names = names  # replaced, never changed
        self.followers: set[Follower] = set()
        self.since: int | None = None  # woken: there may be matches after this event
        self.is_read = False  # its matches are being read
        self.n_refreshed = 0  # the call that reads its members

    def put(self, matches: list[SpelledMatch]) -> None:
        """Hand matches to all followers."""
        for follower in self.followers:
            follower.put(matches)
