"""The match stream: micro-batches, each answered by one recorded version, exactly once.

Before a batch is matched, the version that answers it and the moment of the question are recorded
next to the checkpoint under the batch's number. A batch that runs again after a crash finds the
record and produces the same rows. Its output is the folder of that number, overwritten as a whole;
a file in it, written last, records that it is complete.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Observation
from pyspark.sql import functions as F
from pyspark.sql.utils import is_remote

from tamis.errors import IndexFormatError, InputError
from tamis.spark.columns import report_columns
from tamis.spark.layout import expect_frame
from tamis.spark.operators import LearnedStatistics
from tamis.spark.transforms import event_rejects, match
from tamis.versions.log_position import LogPosition
from tamis.versions.opening import open_version
from tamis.versions.storage import Storage
from tamis.versions.store import IndexStore
from tamis.versions.stream_output import BatchRecord, read_stream_id

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

    from tamis.versions.part_set import PartSet

    Sink = Callable[[DataFrame, int], None]

PINS: Final = "tamis-versions"
KEPT_PINS: Final = 1000  # Spark may rerun only its last batch; the others are for people


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The result of one micro-batch."""

    batch_id: int  # Spark's number
    version: str  # the name of the one that answered
    n_matches: int  # rows that were written
    n_rejects: int  # values that were treated as missing; 0 unless requested
    seconds: float  # from the batch's arrival until all was written
    n_faults: int = 0  # calls of operators without an answer, by event


@dataclass
class MatchBatch:
    """The function that `foreachBatch` calls."""

    store: IndexStore
    checkpoint: Storage
    matches: Sink
    rejects: Sink | None
    options: dict[str, Any]
    operators: str | Sequence[str] = ()
    learned: LearnedStatistics | None = None
    on_batch: Callable[[BatchReport], None] | None = None
    output: Storage | None = None  # in which complete batches are recorded
    compared: str | None = None  # the version whose attributes were compared with the columns
    reports: list[BatchReport] = field(default_factory=list)  # of the last batches

    def __call__(self, batch: DataFrame, batch_id: int) -> None:
        started = time.monotonic()
        parts = self.pin(batch_id).with_operators(self.operators)
        if self.learned is None and parts.version.typed_schema().operators:
            self.learned = LearnedStatistics(batch.sparkSession)
        n_before = self._count_faults()
        where = {key: self.options[key] for key in ("event_id", "attributes")}
        if parts.version.name != self.compared:
            report_columns(batch, parts, self.options["attributes"])
            self.compared = parts.version.name
        parts = replace(parts, is_compared=True)
        batch = with_some(batch, parts.version.attributes, self.options["attributes"])
        if self.rejects is not None:
            batch = batch.persist()  # it is read twice
        try:
            found = match(batch, parts, version=True, learned=self.learned, **self.options)
            n_matches = _write_counted(found, self.matches, batch_id)
            n_rejects = 0
            if self.rejects is not None:
                refused = event_rejects(batch, parts, **where)
                n_rejects = _write_counted(refused, self.rejects, batch_id)
            self._record(parts, batch_id, n_matches)
        finally:
            if self.rejects is not None:
                batch.unpersist()
        seconds = time.monotonic() - started
        n_faults = self._count_faults() - n_before
        name = parts.version.name
        self._report(BatchReport(batch_id, name, n_matches, n_rejects, seconds, n_faults))

    def _record(self, parts: PartSet, batch_id: int, n_matches: int) -> None:
        """Record that the batch is complete, for those who take it elsewhere."""
        if self.output is not None:
            BatchRecord(
                read_stream_id(self.checkpoint),
                batch_id,
                parts.version.name,
                LogPosition.of(parts.version),
                (parts.at or datetime.now(UTC)).isoformat(),
                n_matches,
                secrets.token_hex(8),
            ).write(self.output)

    def _count_faults(self) -> int:
        faults = [] if self.learned is None else self.learned.faults
        return sum(fault.n_events for fault in faults)

    def pin(self, batch_id: int) -> PartSet:
        """The version that answers this batch, and the moment of the question: the current version
        and time, recorded before they are used.
        """
        name = f"{PINS}/{batch_id}"
        recorded = self.checkpoint.read(name)
        if recorded is None:
            pin = {"version": self.store.current().name, "at": datetime.now(UTC).isoformat()}
            if self.checkpoint.create(name, json.dumps(pin).encode()):
                self.checkpoint.delete(f"{PINS}/{batch_id - KEPT_PINS}")
            recorded = self.checkpoint.read(name)
        pin = json.loads(recorded or b"{}")
        try:
            return open_version(self.store, pin["version"], pin.get("at"))
        except IndexFormatError as error:
            raise IndexFormatError(
                f"{error.message}, which answers batch {batch_id}",
                hint="restore the version, or let the current one answer: delete "
                + self.checkpoint.where(name),
            ) from error

    def _report(self, report: BatchReport) -> None:
        self.reports[:] = [*self.reports[-99:], report]
        if self.on_batch is not None:
            self.on_batch(report)


def with_some(batch: DataFrame, paths: Sequence[tuple[str, ...]], attributes: Any) -> DataFrame:
    """The batch with an added column of NULLs that the version uses, if it uses no other column.

    Publishing a version that no longer uses these events must not stop the stream.
    """
    names = sorted({path[0] for path in paths if path})
    is_seen = () in paths or bool(set(names) & set(batch.columns))
    if attributes is not None or not names or is_seen:
        return batch
    return batch.withColumn(names[0], F.lit(None).cast("string"))


def _write_counted(frame: DataFrame, sink: Sink, batch_id: int) -> int:
    observed = Observation()
    sink(frame.observe(observed, F.count(F.lit(1)).alias("n")), batch_id)
    return int(observed.get["n"])


def _as_sink(output: str | os.PathLike[str] | Sink) -> Sink:
    return parquet_sink(os.fspath(output)) if isinstance(output, str | os.PathLike) else output


def parquet_sink(path: str) -> Sink:
    """Writes each batch to its own folder below `path`, overwriting what a crash left there."""

    def write(frame: DataFrame, batch_id: int) -> None:
        frame.write.mode("overwrite").parquet(f"{path}/batch_id={batch_id}")

    return write


def stream(  # noqa: PLR0913
    events: DataFrame,
    store: str | os.PathLike[str] | IndexStore,
    output: str | os.PathLike[str] | Sink,
    *,
    checkpoint: str | os.PathLike[str],
    rejects: str | os.PathLike[str] | Sink | None = None,
    event_id: str | None = None,
    attributes: Any = None,
    tags: bool = False,
    bindings: bool = False,
    event_columns: Sequence[str] = (),
    operators: str | Sequence[str] = (),
    learned: LearnedStatistics | None = None,
    spread: str = "auto",
    groups: int | None = None,
    trigger: dict[str, Any] | None = None,
    name: str | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
) -> StreamingQuery:
    """Match a stream of events against the store's current version, batch by batch; returns the
    running query.

    `output` is a path for Parquet, a folder for each batch, or a function of a DataFrame and the
    batch's number, which must be idempotent: a batch can be repeated after a crash. Each row
    contains the version that answered. `checkpoint` is the folder in which Spark records what it
    has read, and in which each batch's version is recorded. `rejects` is a destination like
    `output`, for the rows of `event_rejects`. `trigger` is as for Spark: `{"availableNow": True}`;
    `name` is the name of the query in Spark. `on_batch` is called with a `BatchReport` after each
    batch. `event_id`, `attributes`, `tags`, `bindings`, `event_columns`, `operators`, `learned`,
    `spread` and `groups` are as for `match`.
    """
    if is_remote():
        raise InputError(
            "a match stream needs a classic session: it reads the index's versions between batches",
            hint="run it where the driver is, through spark-submit",
        )
    expect_frame(events, "events")
    if not events.isStreaming:
        raise InputError(
            "the events are not a stream", hint="read them with spark.readStream, or use match"
        )
    target = store if isinstance(store, IndexStore) else IndexStore(store)
    options = {
        "event_id": event_id,
        "attributes": attributes,
        "tags": tags,
        "bindings": bindings,
        "event_columns": event_columns,
        "spread": spread,
        "groups": groups,
    }
    # A missing index or column is reported now, not in the first batch.
    parts = open_version(target)
    match(events, parts, **options)
    place = os.fspath(checkpoint)
    refused = None if rejects is None else _as_sink(rejects)
    batch = MatchBatch(
        *(target, Storage(place), _as_sink(output), refused, options, operators, learned, on_batch),
        output=Storage(output) if isinstance(output, str | os.PathLike) else None,
        compared=parts.version.name,
    )
    writer = events.writeStream.foreachBatch(batch).option("checkpointLocation", place)
    writer = writer.queryName(name) if name else writer
    return writer.trigger(**(trigger or {"processingTime": "1 second"})).start()
