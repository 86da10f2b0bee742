"""Kafka through the Python data source, against librdkafka's own mock broker."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

import tamis.spark as ts
from tamis.errors import InputError
from tamis.spark.kafka import KafkaReader, _share
from tests.spark.workloads import subscription_frame
from tests.waiting import HANG_SECONDS

TOPIC = "events"


class Broker:
    """A mock cluster that lives as long as its producer."""

    def __init__(self) -> None:
        self.producer = Producer({"bootstrap.servers": "unused", "test.mock.num.brokers": 1})
        # The mock's address is in the metadata of any topic.
        brokers = self.producer.list_topics(TOPIC, timeout=HANG_SECONDS).brokers
        self.servers = ",".join(f"{broker.host}:{broker.port}" for broker in brokers.values())

    def send(self, rows: list[dict]) -> None:
        for row in rows:
            self.producer.produce(TOPIC, json.dumps(row).encode(), partition=row["id"] % 2)
        assert self.producer.flush(HANG_SECONDS) == 0


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    return Broker()


def test_a_stream_from_kafka_is_exact_and_bounded(spark, broker, tmp_path):
    store, output, checkpoint = (str(tmp_path / name) for name in ("index", "out", "checkpoint"))
    ts.build(subscription_frame(spark, [("one", "a = 1")]), store)
    ts.register_kafka(spark)
    broker.send([{"id": n, "a": n % 3} for n in range(30)])

    def run() -> list[ts.BatchReport]:
        events = (
            spark.readStream.format("tamis_kafka")
            .option("kafka.bootstrap.servers", broker.servers)
            .option("subscribe", TOPIC)
            .option("maxOffsetsPerTrigger", 20)
            .load()
        )
        assert events.columns[:3] == ["key", "value", "topic"]
        frame = events.select(
            F.get_json_object(F.col("value").cast("string"), "$.id").cast("int").alias("id"),
            F.col("value").alias("event"),
        )
        reports: list[ts.BatchReport] = []
        query = ts.stream(
            frame,
            store,
            output,
            checkpoint=checkpoint,
            event_id="id",
            attributes="event",
            trigger={"processingTime": "100 milliseconds"},
            on_batch=reports.append,
        )
        query.processAllAvailable()
        query.stop()
        return reports

    assert [report.n_matches for report in run()] == [7, 3]
    broker.send([{"id": n, "a": 1} for n in range(30, 33)])
    assert sum(report.n_matches for report in run()) == 3
    found = sorted(row["event_id"] for row in spark.read.parquet(output).collect())
    assert found == [n for n in range(30) if n % 3 == 1] + [30, 31, 32]


def test_offsets_are_shared_among_partitions():
    assert _share({"0": 5, "1": 5}, 100) == {"0": 5, "1": 5}
    assert sum(_share({"0": 90, "1": 10, "2": 0}, 11).values()) == 11
    assert _share({"0": 90, "1": 10}, 10) == {"0": 9, "1": 1}


def test_reader_reads_ranges_again(broker):
    options = {"kafka.bootstrap.servers": broker.servers, "subscribe": TOPIC}
    reader = KafkaReader(options)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(4))
    assert sum(end.values()) - sum(start.values()) == 4
    ranges = reader.partitions(start, end)
    once, twice = ([list(reader.read(own)) for own in ranges] for _ in range(2))
    assert once == twice
    assert sum(batch.num_rows for batches in once for batch in batches) == 4
    everything = reader.latestOffset(start, ReadAllAvailable())
    assert everything == KafkaReader(options | {"startingOffsets": "latest"}).initialOffset()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"subscribe": ""}, 'needs the option "subscribe"'),
        ({"kafka.bootstrap.servers": ""}, 'needs the option "kafka'),
        ({"startingOffsets": "middle"}, "allowed: earliest, latest"),
        ({"maxOffsetsPerTrigger": "0"}, "at least 1"),
    ],
)
def test_wrong_options_are_named(options, said):
    complete = {"kafka.bootstrap.servers": "x:1", "subscribe": "t"}
    with pytest.raises(InputError, match=said):
        KafkaReader(complete | options)
