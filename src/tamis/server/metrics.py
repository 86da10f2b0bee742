"""Numbers for Prometheus. Each application has its own registry."""

from __future__ import annotations

import os
from collections import Counter as Counts
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from prometheus_client import CollectorRegistry, Gauge, Histogram, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from tamis.broker.state import describe_state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from prometheus_client.core import Metric

    from tamis.broker.match_server import MatchServer

UNKNOWN: Final = "unknown"  # the route of a path that does not exist
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)
_LAGS: Final = (0.01, 0.05, 0.1, 0.5, 1, 5, 30, 60, 300, 3_600, 86_400)
_DISTANCES: Final = (0, 1, 10, 100, 1_000, 10_000, 100_000, 1_000_000)


class HandedOver(Protocol):
    """A match that someone got."""

    @property
    def event(self) -> int:
        """The number of the event."""

    @property
    def moment(self) -> datetime:
        """When it was published."""


class Metrics:
    """Measures requests, and reads the rest from the match server when it is asked."""

    def __init__(self, server: MatchServer) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)  # memory, CPU time, open files
        self.registry.register(_State(server))
        self._requests = Histogram(
            "tamis_request_seconds",
            "Time until an answer begins.",
            ("method", "route", "status"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._publishing = Histogram(
            "tamis_publish_seconds",
            "Time from a request to publish until its events and matches are on disk.",
            buckets=_SECONDS,
            registry=self.registry,
        )
        self._lags = Histogram(
            "tamis_delivery_lag_seconds",
            "Time from the publication of an event until it is handed over.",
            ("kind",),
            buckets=_LAGS,
            registry=self.registry,
        )
        self._distances = Histogram(
            "tamis_delivery_lag_events",
            "Newer events that were published before an event was handed over.",
            ("kind",),
            buckets=_DISTANCES,
            registry=self.registry,
        )
        self._streams = Gauge(
            "tamis_open_streams", "Open streams.", ("kind",), registry=self.registry
        )
        self.n_requests: Counts[str] = Counts()  # by first digit of the status
        self.n_streams: Counts[str] = Counts()

    def add(self, collector: Collector) -> None:
        """Collect the numbers of another part of the server too."""
        self.registry.register(collector)

    def observe_request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count an answer."""
        self._requests.labels(method, route, status).observe(seconds)
        self.n_requests[f"{status // 100}xx"] += 1

    def observe_publishing(self, seconds: float) -> None:
        """Count a request to publish that was answered."""
        self._publishing.observe(seconds)

    def observe_delivery(
        self, kind: str, matches: Sequence[HandedOver], head: int, now: datetime
    ) -> None:
        """Count events that were handed over: by a page, a stream, a webhook, …"""
        lags, distances = self._lags.labels(kind), self._distances.labels(kind)
        for match in matches:
            lags.observe(max(0.0, (now - match.moment).total_seconds()))
            distances.observe(max(0, head - match.event))

    def estimate_times(self) -> dict[str, Any]:
        """How long things took since the start: the median and the slowest hundredth, by estimate
        from the histograms.
        """
        requests, publishing, lags = map(
            _read_buckets, (self._requests, self._publishing, self._lags)
        )
        return {
            "requests": _estimate(sum(requests.values(), Counts())),
            "publishing": _estimate(sum(publishing.values(), Counts())),
            "delivery": {kind: _estimate(own) for (kind,), own in lags.items()},
        }

    @contextmanager
    def streaming(self, kind: str) -> Iterator[None]:
        """Count a stream while it is open."""
        self._streams.labels(kind).inc()
        self.n_streams[kind] += 1
        try:
            yield
        finally:
            self._streams.labels(kind).dec()
            self.n_streams[kind] -= 1


def _read_buckets(histogram: Histogram) -> dict[tuple[str, ...], Counts[float]]:
    """How many were at most as large as each bound, by labels."""
    found: dict[tuple[str, ...], Counts[float]] = {}
    for metric in histogram.collect():
        for sample in metric.samples:
            if sample.name.endswith("_bucket"):
                labels = dict(sample.labels)
                bound = float(labels.pop("le"))
                found.setdefault(tuple(labels.values()), Counts())[bound] += int(sample.value)
    return found


def _estimate(at_most: Counts[float]) -> dict[str, float | None]:
    n_all = max(at_most.values(), default=0)
    return {
        "count": n_all,
        "p50": _find_quantile(at_most, n_all * 0.5),
        "p99": _find_quantile(at_most, n_all * 0.99),
    }


def _find_quantile(at_most: Counts[float], wanted: float) -> float | None:
    """The value below which so many are, on a line between the bounds of its bucket."""
    below, n_below = 0.0, 0
    for bound, n_found in sorted(at_most.items()):
        if n_found >= wanted and n_found > 0:
            if bound == float("inf"):
                return below
            return below + (bound - below) * (wanted - n_below) / max(1, n_found - n_below)
        below, n_below = bound, n_found
    return None


class _State(Collector):
    """The numbers of a match server, when they are asked for."""

    def __init__(self, server: MatchServer) -> None:
        self._server = server

    def describe(self) -> list[Metric]:
        """Nothing: their names need no check, and the server may not be asked yet."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The numbers."""
        found = describe_state(self._server)
        published, index, archive = found["published"], found["set"], found["archive"]
        yield _count("events", "Published events.", published["n_events"])
        yield _count("matched_events", "Events with a match.", published["n_matched"])
        yield _count("matches", "Matches of published events.", published["n_matches"])
        yield _count("rejected_rows", "Rows that are not an event.", published["n_rejected"])
        yield _count("ignored_values", "Values of another type.", published["n_ignored"])
        yield _count("publish_failures", "Requests not stored.", published["n_failed"])
        yield _count("changes", "Changes of the set, ever.", index["change"])
        yield _gauge("store_change", "The last change of the store.", index["store_change"])
        yield _gauge("is_writer", "0 if the server follows.", int(found["role"] == "writer"))
        yield _gauge("subscriptions", "Subscriptions that answer.", index["subscriptions"])
        yield _gauge("hidden_subscriptions", "Replaced or removed ones.", index["hidden"])
        yield _gauge("hidden_share", "Their share of all.", index["hidden_share"])
        yield _gauge("overlay_share", "Outside of the largest part.", index["overlay_share"])
        yield _gauge("parts", "Parts of the live index.", len(index["parts"]))
        sizes = GaugeMetricFamily(
            "tamis_part_subscriptions",
            "Of each part, the oldest first.",
            labels=["part"],
        )
        for number, part in enumerate(index["parts"]):
            sizes.add_metric([str(number)], part["subscriptions"])
        yield sizes
        yield _gauge("archive_segments", "Segments of the archive.", archive["segments"])
        yield _gauge("archive_bytes", "Bytes of the archive.", archive["bytes"])
        yield _gauge("last_event", "The number of the last event.", archive["last_event"])
        yield from _collect_taken(found["taken"])
        yield from _collect_operators(found["operators"])
        audit = found["audit"]
        yield _gauge("audit_share", "The share of events that is judged again.", audit["share"])
        yield _count("audited_events", "Events judged again.", audit["n_events"])
        yield _count("audited_pairs", "Pairs judged again.", audit["n_pairs"])
        yield _count("audit_disagreements", "Wrong answers found.", audit["n_disagreements"])


def measure_memory() -> int | None:
    """The bytes of memory that the process has; None if the system does not report it."""
    try:
        n_pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return n_pages * os.sysconf("SC_PAGE_SIZE")


def _collect_taken(found: dict[str, Any] | None) -> Iterator[Metric]:
    """The matches that were taken from a stream, if there is one."""
    if found is None:
        return
    batch = -1 if found["batch"] is None else found["batch"]
    yield _gauge("stream_batch", "The last batch of the stream that was taken.", batch)
    yield _gauge("stream_is_blocked", "1 if a batch cannot be taken.", int(bool(found["problem"])))
    yield _count("stream_matches", "Matches taken from the stream.", found["n_matches"])
    yield _count("stream_events", "Events taken from the stream.", found["n_events"])
    yield _count("stream_lost_batches", "Gone before they were taken.", found["n_lost_batches"])
    lost = CounterMetricFamily(
        "tamis_stream_undelivered", "Matches that cannot be delivered.", labels=["reason"]
    )
    for reason, n_matches in found["undelivered"].items():
        lost.add_metric([reason], n_matches)
    yield lost


def _collect_operators(found: dict[str, Any]) -> Iterator[Metric]:
    for name, text in (("calls", "Recent calls."), ("seconds", "Time of recent calls.")):
        own = GaugeMetricFamily(f"tamis_operator_{name}", text, labels=["operator"])
        for operator, numbers in found["by_name"].items():
            own.add_metric([operator], numbers[name])
        yield own
    faults = GaugeMetricFamily(
        "tamis_operator_faults", "Events with a failed call.", labels=["operator", "kind"]
    )
    counts: Counts[tuple[str, str]] = Counts()
    for fault in found["faults"]:
        counts[fault["call"].partition("(")[0], fault["kind"]] += fault["n_events"]
    for labels, n_events in counts.items():
        faults.add_metric(list(labels), n_events)
    yield faults
    yield _gauge("operators_blocked", "Calls that failed too often.", len(found["blocked"]))


def _count(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"tamis_{name}", text, value)


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"tamis_{name}", text, value)
