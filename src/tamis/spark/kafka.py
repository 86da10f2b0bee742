"""Kafka as a Python data source, for installations without Spark's connector.

The checkpoint holds the offsets, and nothing is committed to Kafka: a batch that runs again reads
the same ranges. The columns are those of Spark's connector.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tamis.errors import InputError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit

FORMAT: Final = "tamis_kafka"
SCHEMA: Final = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp"
)
SECONDS: Final = 30.0  # to wait for a broker
BATCH: Final = 10_000  # messages in one Arrow batch
SERVERS: Final = "kafka.bootstrap.servers"


def register_kafka(spark: SparkSession) -> None:
    """Register `spark.readStream.format("tamis_kafka")`."""
    if find_spec("confluent_kafka") is None:
        raise MissingDependencyError(
            "reading from Kafka needs confluent-kafka, which is not installed",
            hint="pip install 'tamis[kafka]'",
        )
    spark.dataSource.register(KafkaSource)


class KafkaSource(DataSource):
    """`format("tamis_kafka")`: options `kafka.bootstrap.servers`, `subscribe` (one topic),
    `startingOffsets` (earliest or latest), `maxOffsetsPerTrigger`, and any `kafka.…` setting of
    librdkafka."""

    @classmethod
    def name(cls) -> str:
        """The name used in `format`."""
        return FORMAT

    def schema(self) -> str:
        """The columns of Spark's connector."""
        return SCHEMA

    def streamReader(self, schema: Any) -> KafkaReader:  # noqa: N802 - Spark's name
        """A reader of the topic."""
        return KafkaReader(dict(self.options))


@dataclass
class OffsetRange(InputPartition):
    """Messages of one partition of the topic."""

    partition: int
    begin: int
    end: int


class KafkaReader(DataSourceStreamReader):
    """Offsets are {partition: next offset}; partition numbers are strings, as in JSON."""

    def __init__(self, options: dict[str, str]) -> None:
        # Spark passes options with names in lower case or as written.
        self._options = {key.lower(): value for key, value in options.items()}
        for name in (SERVERS, "subscribe"):
            if not self._options.get(name):
                raise InputError(f'the Kafka source needs the option "{name}"')
        self._topic = self._options["subscribe"]
        self._start = self._options.get("startingoffsets", "earliest")
        if self._start not in ("earliest", "latest"):
            raise InputError(f'startingOffsets is "{self._start}"; allowed: earliest, latest')
        limit = self._options.get("maxoffsetspertrigger", "")
        if limit and (not limit.isdecimal() or int(limit) < 1):
            raise InputError(
                f'maxOffsetsPerTrigger is "{limit}"; a number of at least 1 is allowed'
            )
        self._limit = int(limit) if limit else None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """As many messages as maxOffsetsPerTrigger allows."""
        return ReadAllAvailable() if self._limit is None else ReadMaxRows(self._limit)

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        """The offsets at which a new stream starts."""
        return {
            partition: low if self._start == "earliest" else high
            for partition, (low, high) in self._watermarks().items()
        }

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: N802
        """The end of the next batch: the newest messages, or as many as allowed."""
        # A partition that was added meanwhile is read from its start.
        found = self._watermarks()
        begins = {p: start.get(p, low) for p, (low, _) in found.items()}
        waiting = {p: max(0, high - begins[p]) for p, (_, high) in found.items()}
        most = limit.max_rows if isinstance(limit, ReadMaxRows) else sum(waiting.values())
        shares = _share(waiting, most)
        return {p: begins[p] + shares[p] for p in sorted(found, key=int)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """One task for each partition with messages."""
        return [
            OffsetRange(int(partition), start.get(partition, 0), stop)
            for partition, stop in end.items()
            if stop > start.get(partition, 0)
        ]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The messages of a range: all of them, or an error."""
        from confluent_kafka import TopicPartition

        assert isinstance(partition, OffsetRange)
        consumer = self._consumer()
        try:
            consumer.assign([TopicPartition(self._topic, partition.partition, partition.begin)])
            waited_until = time.monotonic() + SECONDS
            at = partition.begin
            while at < partition.end:
                polled = consumer.consume(min(BATCH, partition.end - at), timeout=1.0)
                for message in polled:
                    if message.error():
                        raise InputError(f"Kafka topic {self._topic}: {message.error()}")
                own = [message for message in polled if at <= message.offset() < partition.end]
                if own:
                    yield _to_batch(own)
                    waited_until = time.monotonic() + SECONDS
                if polled:  # offsets may have gaps: compaction, transactions
                    at = polled[-1].offset() + 1
                elif time.monotonic() > waited_until:
                    at = self._skip_gap(consumer, partition, at)
        finally:
            consumer.close()

    def commit(self, end: dict[str, int]) -> None:
        """Does nothing: the checkpoint has the offsets."""

    def _skip_gap(self, consumer: Any, partition: OffsetRange, at: int) -> int:
        from confluent_kafka import TopicPartition

        low, _ = consumer.get_watermark_offsets(
            TopicPartition(self._topic, partition.partition), timeout=SECONDS
        )
        if low > at:
            raise InputError(
                f"Kafka topic {self._topic}, partition {partition.partition}: messages {at:,} to "
                f"{min(low, partition.end) - 1:,} are gone",
                hint="they were deleted before they were read; start with a new checkpoint",
            )
        raise InputError(
            f"Kafka topic {self._topic}, partition {partition.partition}: no answer within "
            f"{SECONDS:g} seconds at offset {at:,}"
        )

    def _watermarks(self) -> dict[str, tuple[int, int]]:
        """The first and the next offset of each partition."""
        from confluent_kafka import KafkaException, TopicPartition

        consumer = self._consumer()
        try:
            topic = consumer.list_topics(self._topic, timeout=SECONDS).topics[self._topic]
            if topic.error is not None:
                raise InputError(f"Kafka topic {self._topic}: {topic.error}")
            return {
                str(p): consumer.get_watermark_offsets(
                    TopicPartition(self._topic, p), timeout=SECONDS
                )
                for p in topic.partitions
            }
        except KafkaException as error:
            servers = self._options[SERVERS]
            raise InputError(f"Kafka at {servers} does not answer: {error}") from None
        finally:
            consumer.close()

    def _consumer(self) -> Any:
        from confluent_kafka import Consumer

        own = {
            key.removeprefix("kafka."): value
            for key, value in self._options.items()
            if key.startswith("kafka.")
        }
        return Consumer({"group.id": "tamis", "enable.auto.commit": False, "log_level": 0, **own})


def _share(waiting: dict[str, int], most: int) -> dict[str, int]:
    """How many of `most` messages each partition gives, in proportion to its waiting messages."""
    total = sum(waiting.values())
    if total <= most:
        return dict(waiting)
    shares = {p: n * most // total for p, n in waiting.items()}
    left = most - sum(shares.values())
    for p in sorted(waiting, key=lambda p: shares[p] - waiting[p]):
        more = min(left, waiting[p] - shares[p], 1)
        shares[p] += more
        left -= more
    return shares


def _to_batch(messages: list[Any]) -> pa.RecordBatch:
    moments = [message.timestamp()[1] * 1000 for message in messages]
    return pa.RecordBatch.from_pydict(
        {
            "key": pa.array([message.key() for message in messages], pa.binary()),
            "value": pa.array([message.value() for message in messages], pa.binary()),
            "topic": pa.array([message.topic() for message in messages], pa.string()),
            "partition": pa.array([message.partition() for message in messages], pa.int32()),
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
            "timestamp": pa.array(moments, pa.timestamp("us", "UTC")),
        }
    )
