"""A match server with a clock that tests set, and a site with feeds."""

from __future__ import annotations

import asyncio
import random
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from tamis.broker.match_server import MatchServer, MatchServerSettings
from tamis.broker.rights import LOCAL
from tamis.broker.sources import NewSource
from tamis.feeds.documents import FeedDocument
from tamis.feeds.fetching import FetchLimits
from tamis.feeds.parsing import read_document
from tamis.feeds.reading import FeedOptions
from tamis.feeds.worker import FeedWorker
from tests.effort import SEED
from tests.feeds.site import run_site
from tests.subscriptions.conftest import postgres
from tests.waiting import HANG_SECONDS

__all__ = ["postgres"]

OPTIONS = FeedOptions(
    limits=FetchLimits(patience=HANG_SECONDS, allow_private=True, most_bytes=1 << 20),
    parse_patience=HANG_SECONDS,
    host_pause=0.0,
)


class Clock:
    """The time of the match server."""

    def __init__(self) -> None:
        self.now = datetime(2026, 6, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, **durations: float) -> None:
        self.now += timedelta(**durations)


class OwnProcess:
    """Parses in this process: starting another one takes most of the time of a test."""

    async def read_document(self, body: bytes, content_type: str, url: str) -> FeedDocument:
        return read_document(body, content_type, url)

    async def close(self) -> None:
        pass


class Reading:
    """A match server whose sources tests read."""

    def __init__(self, server: MatchServer, clock: Clock) -> None:
        self.server = server
        self.clock = clock
        self.options = OPTIONS
        self.sources = server.broker.sources
        self._dice = random.Random(SEED)

    def add(self, url: str, **given) -> int:
        """Add a source."""
        return self.sources.create(LOCAL, NewSource(url, **given)).number

    def fetch(self, *numbers: int):
        """Read sources, and return the last one afterwards."""
        return self._run(numbers, is_together=False)[-1]

    def fetch_together(self, numbers: list[int]):
        """Read sources at once."""
        return self._run(numbers, is_together=True)

    def _run(self, numbers, *, is_together: bool):
        async def main():
            worker = FeedWorker(
                self.server,
                self.options,
                parser=OwnProcess(),
                dice=self._dice.random,
                polls=False,
            )
            try:
                if is_together:
                    return await asyncio.gather(*map(worker.fetch, numbers))
                return [await worker.fetch(number) for number in numbers]
            finally:
                await worker.close()

        return asyncio.run(main())

    def events(self) -> list[dict]:
        """All published events."""
        page = self.server.archive.read_events(after=0, limit=10_000)
        return [orjson.loads(own.event) for own in page.events]

    def titles(self) -> list[str]:
        """The titles of all published events."""
        return [own["title"] for own in self.events()]


@pytest.fixture
def site():
    with run_site() as running:
        yield running


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(request) -> str | None:
    """The address of the store; SQLite unless a test asks for PostgreSQL."""
    if getattr(request, "param", "sqlite") == "sqlite":
        return None
    return request.getfixturevalue("postgres").new_place()


@pytest.fixture
def reading(tmp_path, clock, store):
    settings = MatchServerSettings(store=store)
    with MatchServer.open(tmp_path / "server", settings, clock=clock) as server:
        yield Reading(server, clock)
