"""Metrics of running streams: Spark's metrics of a batch, together with those of matching."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import StreamingQueryListener

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql.streaming.listener import (
        QueryIdleEvent,
        QueryProgressEvent,
        QueryStartedEvent,
        QueryTerminatedEvent,
    )

    from tamis.spark.jobs.stream import BatchReport


@dataclass(frozen=True, slots=True)
class StreamMetrics:
    """One micro-batch in numbers."""

    batch_id: int  # Spark's number
    timestamp: str  # when the batch began
    version: str | None  # of the index that answered
    n_events: int  # rows that Spark read
    n_matches: int  # rows that were written
    n_rejects: int  # values that were treated as missing; 0 unless requested
    events_per_second: float  # as Spark reports it
    seconds: float  # the whole trigger
    lag: dict[str, Any]  # by source: its report on the backlog

    def to_json(self) -> str:
        """One line for a file or a log."""
        return json.dumps(asdict(self))


class MetricsListener(StreamingQueryListener):
    """Passes metrics to `report` after each batch. Add it with `spark.streams.addListener`, and let
    `stream(on_batch=…)` call its `on_batch`.
    """

    def __init__(self, report: Callable[[StreamMetrics], None]) -> None:
        self._report = report
        self._reports: dict[int, BatchReport] = {}

    def on_batch(self, report: BatchReport) -> None:
        """Store the matching's report on a batch, which comes before Spark's progress."""
        self._reports[report.batch_id] = report

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """Spark's metrics for a batch."""
        progress = event.progress
        report = self._reports.pop(progress.batchId, None)
        if report is None:
            return  # a trigger without new events
        self._report(
            StreamMetrics(
                progress.batchId,
                progress.timestamp,
                report.version,
                progress.numInputRows,
                report.n_matches,
                report.n_rejects,
                progress.processedRowsPerSecond or 0.0,
                progress.durationMs.get("triggerExecution", 0) / 1000,
                {
                    str(source.description): dict(source.metrics or {})
                    for source in progress.sources
                },
            )
        )

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Does nothing: there is nothing to count yet."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Does nothing: there is nothing to count."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Does nothing: there is nothing more to count."""
