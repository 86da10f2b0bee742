"""Reads the sources of a server when they are due, as long as the server runs."""

from __future__ import annotations

import asyncio
import logging
import random
from typing import TYPE_CHECKING, Final

from tamis.broker.states import SourceState
from tamis.errors import UnknownItemError
from tamis.feeds.fetching import Fetcher
from tamis.feeds.hosts import Hosts
from tamis.feeds.outbox import Outbox
from tamis.feeds.parse_process import ParseProcess
from tamis.feeds.reading import FeedOptions, SourceReader, Tools
from tamis.feeds.robots import Robots

if TYPE_CHECKING:
    from collections.abc import Callable

    from tamis.broker.match_server import MatchServer
    from tamis.broker.sources import Source
    from tamis.feeds.parse_process import Parser
    from tamis.feeds.reading import FeedCounts

POLL_SECONDS: Final = 1.0  # between looks for sources that are due
_MOST_DUE: Final = 500
_LOG: Final = logging.getLogger(__name__)


class FeedWorker:
    """The tasks that read; used on one event loop. Without sources, they do nothing."""

    def __init__(  # noqa: PLR0913 - tests replace what is outside
        self,
        server: MatchServer,
        options: FeedOptions | None = None,
        *,
        fetcher: Fetcher | None = None,
        parser: Parser | None = None,
        dice: Callable[[], float] = random.random,
        polls: bool = True,
    ) -> None:
        """`polls`: whether due sources are read; otherwise only those that `fetch` names."""
        options = options or FeedOptions()
        self._server = server
        self._sources = server.broker.sources
        self._fetcher = fetcher or Fetcher(options.limits)
        self._parser = parser or ParseProcess(options.parse_patience, options.parse_memory)
        self._outbox = Outbox(server)
        hosts = Hosts(options.host_pause, options.n_connections)
        robots = Robots(self._fetcher, hosts) if options.obey_robots else None
        tools = Tools(self._fetcher, hosts, self._parser, self._outbox, robots, dice)
        self._reader = SourceReader(server, options, tools)
        self._reading: dict[int, asyncio.Task[Source | None]] = {}  # by number of the source
        self._recovered = asyncio.get_running_loop().create_task(self._recover())
        self._polling = asyncio.get_running_loop().create_task(self._poll_all()) if polls else None

    @property
    def counts(self) -> FeedCounts:
        """What was read since the start."""
        return self._reader.counts

    async def close(self) -> None:
        """End; fetches are cut off, and made again after the next start."""
        tasks = [self._recovered, *self._reading.values()]
        tasks += [] if self._polling is None else [self._polling]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._parser.close()
        await self._fetcher.close()

    async def fetch(self, number: int) -> Source:
        """Read a source now, unless it is being read; returns it afterwards.

        Raises an `UnknownItemError` if there is none.
        """
        await asyncio.wait([self._recovered])
        found = await asyncio.shield(self._start(number, is_asked=True))
        if found is None:
            raise UnknownItemError(f"there is no source {number}")
        return found

    def _start(self, number: int, *, is_asked: bool) -> asyncio.Task[Source | None]:
        """The task that reads a source; if nobody has asked for it, only if it is due."""
        task = self._reading.get(number)
        if task is None:
            task = asyncio.create_task(self._read(number, is_asked))
            self._reading[number] = task
            task.add_done_callback(lambda _: self._reading.pop(number, None))
        return task

    async def _read(self, number: int, is_asked: bool) -> Source | None:
        # As it is now: since it was listed, it may have been read or changed.
        source = await asyncio.to_thread(self._find, number)
        if source is None or not (is_asked or self._is_due(source)):
            return source
        try:
            return await self._reader.read(source)
        except Exception:
            # Of the disk or the database: what is stored is published by `_recover`.
            _LOG.exception("source %d could not be read; trying again", number)
            if self._recovered.done():
                self._recovered = asyncio.create_task(self._recover())
            return await asyncio.to_thread(self._sources.get, number)

    def _find(self, number: int) -> Source | None:
        self._server.expect_items()  # before the first of them is published
        return self._sources.get(number)

    def _is_due(self, source: Source) -> bool:
        is_active = source.state is SourceState.ACTIVE
        return is_active and source.next_fetch <= self._server.live.store.moment

    async def _recover(self) -> None:
        """Publish what an earlier process left, and recall which hosts want a pause; nothing is
        read before that.
        """
        while True:
            try:
                await self._reader.recall_holds()
                if await asyncio.to_thread(self._has_sources):
                    await asyncio.to_thread(self._server.expect_items)
                n_published = await asyncio.to_thread(self._outbox.recover)
            except Exception:
                _LOG.exception("items could not be published; trying again")
                await asyncio.sleep(POLL_SECONDS)
            else:
                self._reader.counts.n_events += n_published
                return

    def _has_sources(self) -> bool:
        return bool(self._sources.list(limit=1).items)

    async def _poll_all(self) -> None:
        while True:
            await asyncio.wait([self._recovered])
            try:
                # Those that are being read, or wait for their host, are due too.
                limit = _MOST_DUE + len(self._reading)
                due = await asyncio.to_thread(self._sources.list_due, limit=limit)
                for source in due:
                    self._start(source.number, is_asked=False)
            except Exception:
                _LOG.exception("sources could not be listed; trying again")
            await asyncio.sleep(POLL_SECONDS)
