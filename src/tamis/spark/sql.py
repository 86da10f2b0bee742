"""The SQL interface: `tamis_match` as a table function and as a scalar, registered by one call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as F

from tamis.errors import InputError
from tamis.spark.layout import ID, Layout, only_attributes
from tamis.spark.matching import MatchRows, WorkerQuestion, plain_lists
from tamis.spark.spread import REPLICATE, choose_spread
from tamis.spark.sql_notes import print_notes
from tamis.versions.opening import open_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

    from tamis.match.index import Index

NAME: Final = "tamis_match"
EVENT_ID: Final = "event_id"


def register(  # noqa: PLR0913
    spark: SparkSession,
    index: Any,
    name: str = NAME,
    *,
    event_id_type: str = "string",
    attributes: str | None = None,
    at: Any = None,
) -> str:
    """Register the index in SQL under `name`; returns the name of the version that answers.

    As a table function: `SELECT * FROM tamis_match(TABLE(events))`, where `events` has a column
    event_id of type `event_id_type` and the attributes (or `attributes`, the column of whole
    events): one row (event_id, subscription_id) for each match. As a scalar:
    `tamis_match(struct(*))`, or of a map or JSON, is the array of subscription ids.

    Subscriptions that are valid at the moment `at`, by default now, answer. Call this again to use
    a new version or another moment.

    SQL has no warnings: notes about values and events that cannot be read, and about attributes
    that a batch of events lacks, go to the standard error of the workers, each kind once per
    worker. `tamis.spark.event_rejects` lists what cannot be read.
    """
    parts = open_version(index, at=at)
    (whole,) = choose_spread(spark, parts, REPLICATE, None).groups
    spark.udtf.register(name, _table_function(name, whole, event_id_type, attributes))
    spark.udf.register(name, _scalar_function(name, whole))
    return parts.version.name


@dataclass(frozen=True, slots=True)
class _MatchAndNote(MatchRows):
    """Matches a batch, and prints notes about it."""

    function: str = NAME

    def encode(self, index: Index, batch: pa.RecordBatch) -> Any:
        """The events of a batch as the index reads them."""
        # Slots make a new class, which a bare super() does not find.
        encoded = MatchRows.encode(self, index, batch)
        event = self.layout.event
        source = only_attributes(batch) if event is None else batch.column(event)
        print_notes(self.function, index, encoded, source)
        return encoded


def _table_function(name: str, parts: Any, event_id_type: str, attributes: str | None) -> Any:
    from pyspark.sql.types import DataType

    run = _MatchAndNote(WorkerQuestion(parts, Layout(attributes, DataType(), None)), function=name)

    class TamisMatch:
        """One row for each match."""

        def eval(self, batch: pa.RecordBatch) -> Iterator[pa.Table]:
            names = batch.schema.names
            if EVENT_ID not in names:
                raise InputError(
                    f'the table has no column "{EVENT_ID}"; it has: {", ".join(names)}',
                    hint="name it in the query: SELECT id AS event_id, …",
                )
            named = batch.append_column(ID, batch.column(EVENT_ID))
            for found in run([named]):
                yield pa.Table.from_batches([found])

    returned = f"event_id {event_id_type}, subscription_id string"
    return F.arrow_udtf(TamisMatch, returnType=returned)


def _scalar_function(name: str, parts: Any) -> Any:
    def tamis_match(events: pa.Array) -> pa.Array:
        index = parts.open()
        encoded = index.encode(events)
        print_notes(name, index, encoded, events)
        return plain_lists(index.match_lists(encoded, at=parts.at))

    return F.arrow_udf(tamis_match, "array<string>")  # type: ignore[attr-defined]
