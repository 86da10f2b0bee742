"""Reads one source: fetches it, parses its document, stores what is new, and publishes that."""

from __future__ import annotations

import asyncio
import logging
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.broker.mailbox import Position
from tamis.broker.source_fetches import Fetch, HostHold, ReadDocument
from tamis.broker.sources import Hints
from tamis.broker.states import SourceState
from tamis.feeds.documents import NotAFeedError
from tamis.feeds.fetching import Answer, FetchError, FetchLimits
from tamis.feeds.headers import read_freshness, read_retry_after
from tamis.feeds.hosts import HeldError, find_host
from tamis.feeds.parse_process import MEMORY
from tamis.feeds.schedule import (
    LONGEST_HOST_HOLD,
    Pace,
    Plan,
    plan_failure,
    plan_held,
    plan_success,
)
from tamis.feeds.selecting import select_items
from tamis.language.types.moments import to_microseconds

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from datetime import datetime

    from tamis.broker.match_server import MatchServer
    from tamis.broker.sources import Source
    from tamis.feeds.documents import FeedDocument
    from tamis.feeds.fetching import Fetcher
    from tamis.feeds.hosts import Hosts
    from tamis.feeds.outbox import Outbox
    from tamis.feeds.parse_process import Parser
    from tamis.feeds.robots import Robots

_HOLDING: Final = (429, 503)  # answers with a Retry-After that is meant for the whole host
_SHOWN_LINKS: Final = 5
_LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True)
class FeedOptions:
    """How sources are read."""

    limits: FetchLimits = field(default_factory=FetchLimits)
    pace: Pace = field(default_factory=Pace)
    parse_patience: float = 30.0  # seconds
    parse_memory: int = MEMORY  # bytes
    host_pause: float = 1.0  # seconds between two requests to a host
    n_connections: int = 32
    obey_robots: bool = False
    keep_seen: timedelta = timedelta(days=400)  # after an item was last shown


@dataclass
class FeedCounts:
    """What was read since the start."""

    n_fetches: int = 0
    n_unchanged: int = 0
    n_failed: int = 0
    n_bytes: int = 0
    n_events: int = 0


class Tools(NamedTuple):
    """What reading needs."""

    fetcher: Fetcher
    hosts: Hosts
    parser: Parser
    outbox: Outbox
    robots: Robots | None
    dice: Callable[[], float]


class _PageError(Exception):
    """A source is a web page, which names one feed."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.url = url


class SourceReader:
    """Reads sources; each by one task at a time."""

    def __init__(self, server: MatchServer, options: FeedOptions, tools: Tools) -> None:
        self._server = server
        self._options = options
        self._tools = tools
        self.counts = FeedCounts()

    async def read(self, source: Source) -> Source | None:
        """Read a source, whether it is due or not; returns it then, None if it was removed."""
        try:
            fetch = await self._read(source, source.url)
        except _PageError as page:
            try:
                fetch = await self._read(source, page.url)
            except _PageError:
                fetch = self._fail(source, FetchError("the linked feed is a web page"))
        archive = self._server.published
        head = Position(archive.epoch, archive.last_event)
        record = self._server.broker.source_fetches.record
        found = await asyncio.to_thread(record, source.number, fetch, head)
        if fetch.document is not None and fetch.document.events and found is not None:
            publish = self._tools.outbox.publish
            self.counts.n_events += await asyncio.to_thread(publish, source.number)
        return found

    async def _read(self, source: Source, url: str) -> Fetch:
        try:
            answer = await self._ask(source, url)
        except HeldError as held:
            plan = plan_held(self._now, source.interval, held.seconds, self._tools.dice)
            return replace(_plan(plan, None, error=str(held)), is_held=True)
        except FetchError as error:
            # A temporary target, or a feed that a page names, may be gone without the source.
            if error.status == 410 and error.is_moved_for_good and url == source.url:
                reason = "its server says that it no longer exists (410)"
                return replace(self._fail(source, error), state=SourceState.GONE, reason=reason)
            return self._fail(source, error)
        self.counts.n_bytes += len(answer.body)
        if answer.status == 304:
            self.counts.n_unchanged += 1
            fresh_for = read_freshness(answer.headers)
            fetch = self._succeed(source, answer.status, source.hints, fresh_for, 0)
            return replace(fetch, url=answer.permanent_url)
        return await self._take(source, answer)

    async def _ask(self, source: Source, url: str) -> Answer:
        """The answer of a server, when it is polite to ask."""
        fetch = self._tools.fetcher.fetch
        if url != source.url:
            return await fetch(url, turn=self._turn)
        return await fetch(url, source.etag, source.modified, turn=self._turn)

    @asynccontextmanager
    async def _turn(self, url: str) -> AsyncIterator[None]:
        """The turn of a request; a redirect is another one."""
        tools = self._tools
        pause = 0.0
        if tools.robots is not None:
            rule = await tools.robots.find_rule(url)
            if not rule.is_allowed:
                raise FetchError("robots.txt does not allow to fetch it")
            pause = rule.pause
        async with tools.hosts.turn(url, pause):
            self.counts.n_fetches += 1
            yield

    async def _take(self, source: Source, answer: Answer) -> Fetch:
        """Store what a document says."""
        kind = answer.headers.get("content-type", "")
        try:
            document = await self._tools.parser.read_document(answer.body, kind, answer.url)
        except NotAFeedError as error:
            if error.links and not source.kind and answer.url not in error.links:
                if len(error.links) == 1:
                    raise _PageError(error.links[0]) from None
                shown = ", ".join(error.links[:_SHOWN_LINKS])
                message = f"the page names {len(error.links)} feeds; add one of them: {shown}"
                return self._fail(source, FetchError(message, answer.status))
            return self._fail(source, FetchError(str(error), answer.status))
        read = await asyncio.to_thread(self._select, source, document, answer)
        fresh_for = read_freshness(answer.headers)
        n_new = len(read.events)
        fetch = self._succeed(source, answer.status, read.hints, fresh_for, n_new)
        keep = to_microseconds(self._now - self._options.keep_seen)
        url = answer.permanent_url
        return replace(fetch, document=read, url=url, forget_before=max(0, keep))

    def _select(self, source: Source, document: FeedDocument, answer: Answer) -> ReadDocument:
        named = source._replace(title=source.title or document.title)
        fetches = self._server.broker.source_fetches

        find = partial(fetches.find_items, source.number)
        found = select_items(named, document, find, self._server.live.store.now())
        notes = document.notes.to_json()
        # What is broken may be cut off: with its validators, the rest would never be sent.
        is_whole = all(note["kind"] != "broken-xml" for note in notes)
        return ReadDocument(
            kind=document.kind,
            title=document.title,
            home=document.home,
            policy=found.policy.value,
            hints=Hints(document.least_interval, document.skip_hours, document.skip_days),
            notes=notes,
            etag=answer.headers.get("etag") if is_whole else None,
            modified=answer.headers.get("last-modified") if is_whole else None,
            items=found.items,
            events=found.events,
        )

    @property
    def _now(self) -> datetime:
        return self._server.live.store.moment

    def _succeed(
        self, source: Source, status: int, hints: Hints, fresh_for: float, n_new: int
    ) -> Fetch:
        pace, dice = self._options.pace, self._tools.dice
        plan = plan_success(self._now, source.interval, pace, hints, fresh_for, n_new, dice)
        return _plan(plan, status)

    def _fail(self, source: Source, error: FetchError) -> Fetch:
        self.counts.n_failed += 1
        _LOG.info("source %d (%s) was not read: %s", source.number, source.url, error)
        retry_after = read_retry_after(error.retry_after, self._now)
        hold = None
        if retry_after and error.status in _HOLDING:
            hold = self._hold(find_host(error.url or source.url), retry_after)
        plan = plan_failure(
            self._now,
            source.interval,
            self._options.pace,
            source.n_failed + 1,
            retry_after,
            self._tools.dice,
        )
        return replace(_plan(plan, error.status, error=str(error)), hold=hold)

    def _hold(self, host: str, retry_after: float) -> HostHold:
        """Let all sources of a host wait; returns what is to be stored of that."""
        seconds = min(retry_after, LONGEST_HOST_HOLD)
        self._tools.hosts.hold(host, seconds)
        return HostHold(host, to_microseconds(self._now + timedelta(seconds=seconds)))

    async def recall_holds(self) -> None:
        """Let the sources of hosts wait that asked for it before the last start."""
        holds = await asyncio.to_thread(self._server.broker.source_fetches.list_holds)
        now = to_microseconds(self._now)
        for hold in holds:
            # A clock that was wrong when it was stored must not hold a host for longer.
            seconds = min((hold.until - now) / 1e6, LONGEST_HOST_HOLD)
            self._tools.hosts.hold(hold.host, seconds)


def _plan(plan: Plan, status: int | None, error: str | None = None) -> Fetch:
    return Fetch(status, to_microseconds(plan.at), round(plan.interval), error)
