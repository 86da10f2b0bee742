"""Spark reads the folders of closed segments as they are."""

from __future__ import annotations

import pyarrow as pa
import pytest

import tamis
import tamis.spark
from tamis.archive import Archive, ArchiveSettings, ArrowEvents
from tests.archive.places import json_events, with_events
from tests.match.examples import RANDOM_EVENTS

pytestmark = RANDOM_EVENTS

SUBSCRIPTIONS = {
    "1": "age >= 18",
    "2": "city = 'Oslo' OR age < 10",
    "3": "seen >= TIMESTAMP '2024-01-02 00:00:00' AND price < 2.5",
    "4": "array_contains(tags, 'a')",
}
SCHEMA = "age INT, city STRING, seen TIMESTAMP, price DOUBLE, tags ARRAY<STRING>"


@pytest.fixture
def index():
    return tamis.build(SUBSCRIPTIONS, schema=SCHEMA)


def publish(archive: Archive, index, events, source, change: int) -> None:
    """Append events with what they match."""
    lists = index.match_lists(source).to_pylist()
    numbers = [[int(own) for own in matched] for matched in lists]
    archive.append([with_events(events, numbers, change, change, None)])


def test_spark_matches_the_archive(spark, folder, index, tmp_path):
    texts = [
        b'{"age": %d, "city": "%s", "price": %d.25, "tags": ["a", "b"]}' % (n, city, n % 5)
        for n, city in zip(range(0, 60, 3), [b"Oslo", b"Paris"] * 10, strict=True)
    ]
    batch = pa.record_batch(
        {
            "age": pa.array([5, None, 40], pa.int32()),
            "seen": pa.array([1_704_153_600, 0, None], pa.timestamp("s", "UTC")),
            "price": [2.0, 1.0, None],
            "tags": [["a"], None, []],
        }
    )
    index.save(tmp_path / "index")
    settings = ArchiveSettings(segment_bytes=1)
    with Archive.open(folder, settings=settings) as archive:
        publish(archive, index, json_events(texts), texts, 1)
        publish(archive, index, ArrowEvents(batch), batch, 2)
        publish(archive, index, json_events(texts[:3]), texts[:3], 3)
        archive.seal()
        assert archive.stats()["closed_segments"] == 3
        page = archive.read_matches(range(9), after=0, limit=1000)
        events = spark.read.parquet(str(folder / "events"))
        assert events.dtypes == [
            ("number", "bigint"),
            ("moment", "timestamp"),
            ("change", "bigint"),
            ("event", "string"),
        ]
        read = {row.number: row.event.encode() for row in events.collect()}
        assert read == archive.get_events(range(100))
    appended = {(match.event, str(own)) for match in page.matches for own in match.subscriptions}
    matched = tamis.spark.match(
        events, str(tmp_path / "index"), event_id="number", attributes="event"
    )
    pairs = {(row.event_id, row.subscription_id) for row in matched.collect()}
    assert pairs == appended
    assert {own for _, own in pairs} == set(SUBSCRIPTIONS)
    stored = spark.read.parquet(str(folder / "matches")).collect()
    assert {(row.number, str(own)) for row in stored for own in row.subscriptions} == appended
