"""Follows mailboxes for many readers at once, on one event loop.

All readers of a mailbox share a `Topic`. When events are committed, one task reads the matches of
all woken topics together, and hands them to the readers that have seen everything before. So a
wake-up costs one read, however many readers there are, and readers for whom there is nothing cost
nothing. A reader that falls behind reads the archive itself until it has caught up.
"""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Final

from tamis.broker.followers import PAGE, Follower, News, SpelledMatch, Topic
from tamis.broker.mailbox import Mailbox, MailboxKind

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from tamis.broker.hub import Hub
    from tamis.broker.mail import Mailboxes, MailPage

_READERS: Final = 4  # threads for readers that catch up
_LOG: Final = logging.getLogger(__name__)


class LiveMail:
    """All followed mailboxes of a server. It is bound to the event loop of its first reader."""

    def __init__(self, mailboxes: Mailboxes, hub: Hub) -> None:
        self._mailboxes = mailboxes
        self._hub = hub
        self._topics: dict[Mailbox, tuple[Topic, _Wake]] = {}
        self._lock = Lock()  # of what the publishing thread touches: `since`, `_woken`, `_pump`
        self._woken: list[Topic] = []
        self._is_pumping = False
        self._pumping: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pump_thread = ThreadPoolExecutor(1, "tamis-live-mail")
        self._readers = ThreadPoolExecutor(_READERS, "tamis-catch-up")
        self._n_refreshed = 0  # calls of `refresh`
        self.is_closed = False
        hub.listen(self._flush)

    def __len__(self) -> int:
        """The number of readers."""
        return sum(len(topic.followers) for topic, _ in self._topics.values())

    async def join(self, mailbox: Mailbox, after: int) -> Follower:
        """Begin to follow a mailbox after an event; `leave` must be called at the end."""
        self._loop = loop = asyncio.get_running_loop()
        while mailbox not in self._topics:
            n_refreshed = self._n_refreshed
            names = await loop.run_in_executor(self._readers, self._mailboxes.names, mailbox)
            # Another reader may have been faster; or members changed after they were read.
            if mailbox not in self._topics and n_refreshed == self._n_refreshed:
                self._open_topic(Topic(mailbox, names))
        follower = Follower(self._topics[mailbox][0], after)
        follower.topic.followers.add(follower)
        if self.is_closed:
            follower.stop()
        return follower

    def leave(self, follower: Follower) -> None:
        """End following."""
        topic = follower.topic
        topic.followers.discard(follower)
        if not topic.followers and topic.mailbox in self._topics:
            _, wake = self._topics.pop(topic.mailbox)
            self._hub.remove(topic.names, wake)

    async def next(self, follower: Follower, patience: float) -> News | None:
        """The next matches; no matches if none came within the timeout; None at the end."""
        while not follower.is_stopped:
            if not follower.is_live:
                news = await self._catch_up(follower)
            else:
                matches = follower.take()
                news = News(matches, follower.after)
            if news.matches or news.missed is not None or news.lost:
                return news
            if follower.is_live:
                await follower.wait(patience)
                if follower.has_nothing():
                    follower.after = max(follower.after, self._find_quiet(follower))
                    return News([], follower.after)
        return None

    async def follow(self, mailbox: Mailbox, after: int, patience: float) -> AsyncIterator[News]:
        """All that comes, until the server stops."""
        follower = await self.join(mailbox, after)
        try:
            while (news := await self.next(follower, patience)) is not None:
                yield news
        finally:
            self.leave(follower)

    async def refresh(self, mailbox: Mailbox) -> None:
        """Follow the members that a channel has now; if it is gone, its readers end."""
        self._mailboxes.forget(mailbox)
        self._n_refreshed += 1
        if mailbox not in self._topics:
            return
        topic, wake = self._topics[mailbox]
        topic.n_refreshed = n_refreshed = self._n_refreshed
        loop = asyncio.get_running_loop()
        names = await loop.run_in_executor(self._readers, self._mailboxes.names, mailbox)
        # A later call reads later members, and may have been faster.
        is_followed = self._topics.get(mailbox) == (topic, wake)
        if is_followed and topic.n_refreshed == n_refreshed:
            self._hub.add(names, wake)
            self._hub.remove(topic.names.keys() - names.keys(), wake)
            topic.names = names

    async def refresh_all(self) -> None:
        """Follow the members that all followed channels have now."""
        for mailbox in list(self._topics):
            if mailbox.kind is MailboxKind.CHANNEL:
                await self.refresh(mailbox)

    def end(self, mailbox: Mailbox) -> None:
        """End the readers of a mailbox that was deleted."""
        self._mailboxes.forget(mailbox)
        if mailbox in self._topics:
            for follower in self._topics[mailbox][0].followers:
                follower.stop()

    def close(self) -> None:
        """End all readers."""
        self.is_closed = True
        for topic, _ in self._topics.values():
            for follower in topic.followers:
                follower.stop()

    def shut_down(self) -> None:
        """End the threads, after the readers have left."""
        self.close()
        self._pump_thread.shutdown()
        self._readers.shutdown()

    # ── catching up ─────────────────────────────────────────────────────────────────────────

    async def _catch_up(self, follower: Follower) -> News:
        # Live before reading: what is committed after the read is queued.
        follower.go_live()
        loop = asyncio.get_running_loop()
        read = self._mailboxes, follower.topic.names, follower.after
        page, spelled = await loop.run_in_executor(self._readers, _read_page, *read)
        if not page.is_last:
            follower.is_live = False
        follower.after = max(follower.after, page.after)
        return News(spelled, follower.after, page.missed, page.lost)

    def _find_quiet(self, follower: Follower) -> int:
        """An event up to which there is nothing for a reader that has seen all it was woken for.

        Retention would else report events to idle readers that they never had.
        """
        reached = self._hub.reached  # before looking whether it was woken
        topic = follower.topic
        with self._lock:
            is_woken = topic.since is not None or topic.is_read
        return 0 if is_woken else reached

    # ── new matches ─────────────────────────────────────────────────────────────────────────

    def _open_topic(self, topic: Topic) -> None:
        wake = _Wake(self, topic)
        self._topics[topic.mailbox] = topic, wake
        self._hub.add(topic.names, wake)

    def wake(self, topic: Topic) -> None:
        """Called on the publishing thread: there are matches after `Hub.reached`."""
        with self._lock:
            if topic.since is not None:
                return
            topic.since = self._hub.reached
            self._woken.append(topic)

    def _flush(self) -> None:
        """Called on the publishing thread after all were woken, so that one read serves them."""
        with self._lock:
            if self._is_pumping or not self._woken:
                return
            self._is_pumping = True
        assert self._loop is not None
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._start_pump)

    def _start_pump(self) -> None:
        assert self._loop is not None
        self._pumping = self._loop.create_task(self._pump())

    def _take_woken(self) -> tuple[list[Topic], int]:
        """The woken topics, and the event after which they have matches."""
        with self._lock:
            topics, self._woken = self._woken, []
            sinces = [topic.since for topic in topics if topic.since is not None]
            for topic in topics:
                topic.since, topic.is_read = None, True
            self._is_pumping = bool(topics)
            return topics, min(sinces, default=0)

    async def _pump(self) -> None:
        while (taken := self._take_woken())[0]:
            topics, since = taken
            try:
                await self._deliver(topics, since)
            except Exception:
                _LOG.exception("new matches could not be read; readers read them themselves")
                for topic in topics:
                    for follower in topic.followers:
                        follower.fall_behind()
            for topic in topics:
                topic.is_read = False

    async def _deliver(self, topics: list[Topic], after: int) -> None:
        loop, is_last = asyncio.get_running_loop(), False
        while not is_last:
            read = self._mailboxes, topics, after
            page, found = await loop.run_in_executor(self._pump_thread, _read_topics, *read)
            for topic, matches in found.items():
                topic.put(matches)
            after, is_last = page.after, page.is_last


class _Wake:
    """What the hub calls; comparable, unlike a lambda, and without a reference from the topic."""

    def __init__(self, live: LiveMail, topic: Topic) -> None:
        self._live = live
        self._topic = topic

    def __call__(self) -> None:
        self._live.wake(self._topic)


def _read_page(
    mailboxes: Mailboxes, names: Mapping[int, str], after: int
) -> tuple[MailPage, list[SpelledMatch]]:
    page = mailboxes.read_named(names, after=after, limit=PAGE)
    return page, [SpelledMatch(own.event, own.spell(), own.moment) for own in page.matches]


def _read_topics(
    mailboxes: Mailboxes, topics: list[Topic], after: int
) -> tuple[MailPage, dict[Topic, list[SpelledMatch]]]:
    """The next matches of all topics, by topic."""
    names: dict[int, str] = {}
    topics_of: dict[int, list[Topic]] = {}
    for topic in topics:
        names.update(topic.names)
        for number in topic.names:
            topics_of.setdefault(number, []).append(topic)
    page = mailboxes.read_named(names, after=after, limit=PAGE)
    found: dict[Topic, list[SpelledMatch]] = {}
    for match in page.matches:
        own: dict[Topic, list[int]] = {}
        for number in match.numbers:
            for topic in topics_of[number]:
                own.setdefault(topic, []).append(number)
        for topic, numbers in own.items():
            mine = match.restrict({number: names[number] for number in numbers})
            spelled = SpelledMatch(match.event, mine.spell(), match.moment)
            found.setdefault(topic, []).append(spelled)
    return page, found
