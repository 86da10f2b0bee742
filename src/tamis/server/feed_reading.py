"""Reads feeds of others as long as the application runs, and counts what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from tamis.errors import InputError
from tamis.feeds.fetching import FetchLimits
from tamis.feeds.reading import FeedCounts, FeedOptions
from tamis.feeds.schedule import Pace
from tamis.feeds.worker import FeedWorker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Self

    from prometheus_client.core import Metric

    from tamis.broker.match_server import MatchServer
    from tamis.broker.sources import Source
    from tamis.server.settings import Settings


class FeedReading(Collector):
    """The worker of an application."""

    def __init__(self, server: MatchServer, settings: Settings) -> None:
        self._server = server
        self._options = to_options(settings)
        self._is_enabled = settings.feeds.enabled
        self._worker: FeedWorker | None = None

    async def __aenter__(self) -> Self:
        if not self._server.is_follower:  # the server that writes reads them
            self._worker = FeedWorker(self._server, self._options, polls=self._is_enabled)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._worker is not None:
            await self._worker.close()
            self._worker = None

    async def fetch(self, number: int) -> Source:
        """Read a source now; raises an `UnknownItemError` if there is none, and an `InputError`
        before the application has started and after it has ended.
        """
        if self._worker is None:
            raise InputError("this server reads no feeds now", hint="try again in a moment")
        return await self._worker.fetch(number)

    def describe(self) -> list[Metric]:
        """Nothing: the names need no check."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The numbers, for Prometheus."""
        counts = FeedCounts() if self._worker is None else self._worker.counts
        for name, text, value in (
            ("fetches", "Requests for documents of feeds.", counts.n_fetches),
            ("unchanged", "Answers that nothing is new.", counts.n_unchanged),
            ("failures", "Fetches that failed.", counts.n_failed),
            ("bytes", "Bytes of documents, unpacked.", counts.n_bytes),
            ("items", "Published items of feeds.", counts.n_events),
        ):
            yield CounterMetricFamily(f"tamis_feed_{name}", text, value)
        states = GaugeMetricFamily("tamis_feed_sources", "Feeds to read.", labels=["state"])
        for state, n_sources in self._server.broker.sources.count().items():
            states.add_metric([state], n_sources)
        yield states


def to_options(settings: Settings) -> FeedOptions:
    """How sources are read."""
    own = settings.feeds
    limits = FetchLimits(
        patience=own.fetch_timeout.total_seconds(),
        most_bytes=own.document_size,
        allow_private=own.allow_private_addresses,
        **({"user_agent": own.user_agent} if own.user_agent else {}),
    )
    return FeedOptions(
        limits=limits,
        pace=Pace(own.least_interval.total_seconds(), own.most_interval.total_seconds()),
        parse_patience=own.parse_timeout.total_seconds(),
        parse_memory=own.parse_memory,
        host_pause=own.host_pause.total_seconds(),
        n_connections=own.connections,
        obey_robots=own.obey_robots,
        keep_seen=own.keep_seen,
    )
