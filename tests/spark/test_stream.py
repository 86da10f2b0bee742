"""The match stream: exact, by one version a batch, changes picked up, run again after a stop."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import functions as F

import tamis.spark as ts
from tamis.errors import IndexFormatError, InputError, TamisWarning
from tamis.spark import jobs
from tests.spark.workloads import subscription_frame
from tests.waiting import wait_until

SCHEMA = "id bigint, a int"


def write_events(folder: Path, name: str, rows: list[tuple[int, int]]) -> None:
    folder.mkdir(exist_ok=True)
    draft = folder / f".{name}"
    draft.write_text("".join(json.dumps({"id": i, "a": a}) + "\n" for i, a in rows))
    draft.rename(folder / name)


class Place:
    """A store, a folder of events, and where the stream writes."""

    def __init__(self, spark, folder: Path) -> None:
        self.spark, self.store = spark, str(folder / "index")
        self.events, self.output = folder / "events", str(folder / "matches")
        self.rejects, self.checkpoint = str(folder / "rejects"), str(folder / "checkpoint")
        self.events.mkdir()

    def build(self, **subscriptions: str):
        frame = subscription_frame(self.spark, list(subscriptions.items()))
        return ts.build(frame, self.store, schema="a INT")

    def run(self, **options):
        options = {"trigger": {"availableNow": True}, "event_id": "id", **options}
        events = self.spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        frame = events.json(str(self.events))
        query = ts.stream(frame, self.store, self.output, checkpoint=self.checkpoint, **options)
        query.awaitTermination()

    def rows(self):
        found = self.spark.read.schema(
            "event_id bigint, subscription_id string, version string, batch_id int"
        ).parquet(self.output)
        return sorted(map(tuple, found.collect()))


@pytest.fixture
def place(spark, tmp_path):
    return Place(spark, tmp_path)


def test_each_batch_is_answered_by_one_recorded_version(place):
    place.build(one="a = 1")
    write_events(place.events, "1.json", [(1, 1), (2, 2)])
    reports = []
    place.run(on_batch=reports.append)
    place.build(one="a = 2")
    write_events(place.events, "2.json", [(3, 1), (4, 2)])
    place.run(on_batch=reports.append)
    assert place.rows() == [(1, "one", "v00000001", 0), (4, "one", "v00000002", 1)]
    assert [(r.batch_id, r.version, r.n_matches) for r in reports] == [
        (0, "v00000001", 1),
        (1, "v00000002", 1),
    ]


def test_a_batch_that_runs_again_keeps_its_version_and_its_rows(place):
    place.build(one="a = 1")
    write_events(place.events, "1.json", [(1, 1), (2, 2)])
    place.run()
    before = place.rows()
    place.build(one="a = 2")
    pin = Path(place.checkpoint) / "tamis-versions" / "0"
    assert json.loads(pin.read_text()).keys() == {"version", "at"}
    # As after a crash between the output and Spark's own commit.
    (Path(place.checkpoint) / "commits" / "0").unlink()
    (Path(place.checkpoint) / "commits" / ".0.crc").unlink(missing_ok=True)
    place.run()
    assert place.rows() == before


def test_a_batch_that_runs_again_is_asked_of_the_same_moment(place, monkeypatch):
    """Who was valid then answers, though the validity has ended since."""
    rows = [("ended", "a = 1", datetime(2024, 6, 1)), ("always", "a = 1", None)]
    frame = place.spark.createDataFrame(
        [(*row[:2], datetime(2020, 1, 1), row[2]) for row in rows],
        "subscription_id string, expression string, valid_from timestamp, valid_until timestamp",
    )
    with monkeypatch.context() as patched:
        patched.setattr(jobs.build, "read_at", lambda at: datetime(2024, 5, 1, tzinfo=UTC))
        ts.build(frame, place.store, schema="a INT")
    write_events(place.events, "1.json", [(1, 1)])
    write_events(place.events, "2.json", [(2, 1)])
    pins = Path(place.checkpoint) / "tamis-versions"
    pins.mkdir(parents=True)
    # As after a crash: the first batch has its pin, the second comes now.
    (pins / "0").write_text('{"version": "v00000001", "at": "2024-05-01T00:00:00+00:00"}')
    place.run()
    assert [row[:2] for row in place.rows()] == [(1, "always"), (1, "ended"), (2, "always")]


def test_only_the_latest_pins_are_kept(place, monkeypatch):
    monkeypatch.setattr(jobs.stream, "KEPT_PINS", 2)
    place.build(one="a = 1")
    for number in range(4):
        write_events(place.events, f"{number}.json", [(number, 1)])
    place.run()
    assert sorted(row[3] for row in place.rows()) == [0, 1, 2, 3]
    pins = (Path(place.checkpoint) / "tamis-versions").iterdir()
    assert sorted(pin.name for pin in pins if pin.name.isdecimal()) == ["2", "3"]


def test_a_pinned_version_that_vanished_is_named(place):
    place.build(one="a = 1")
    write_events(place.events, "1.json", [(1, 1)])
    pins = Path(place.checkpoint) / "tamis-versions"
    pins.mkdir(parents=True)
    (pins / "0").write_text('{"version": "v00000099"}')
    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException, match="v00000099") as refused:
        place.run()
    assert f"let the current one answer: delete {pins}/0" in str(refused.value)
    assert not Path(place.output).exists()
    (pins / "0").unlink()
    place.run()
    assert place.rows() == [(1, "one", "v00000001", 0)]


def test_columns_that_are_not_there_are_said_before_the_first_batch(place):
    place.build(one="a = 1")
    for options, said in (
        ({"event_id": "key"}, 'no column "key"'),
        ({"attributes": "event"}, 'no column "event"'),
        ({"spread": "wide"}, 'unknown spread "wide"'),
    ):
        with pytest.raises(InputError, match=said):
            place.run(**options)
    assert not Path(place.checkpoint).exists()


def test_a_version_that_looks_at_other_attributes_does_not_stop_the_stream(place):
    place.build(one="a = 1")
    write_events(place.events, "1.json", [(1, 1)])
    write_events(place.events, "2.json", [(2, 1)])
    other = subscription_frame(place.spark, [("two", "c = 'x'"), ("none", "c IS NULL")])

    def publish(report: ts.BatchReport) -> None:
        if report.batch_id == 0:
            ts.build(other, place.store, schema="c STRING")

    with pytest.warns(TamisWarning, match="missing in the columns of the events: c "):
        place.run(rejects=Path(place.rejects), on_batch=publish)
    assert place.rows() == [(1, "one", "v00000001", 0), (2, "none", "v00000002", 1)]


def test_rejects_and_metrics(place):
    place.build(one="a = 1")
    write_events(place.events, "1.json", [(1, 1), (2, 2)])
    metrics: list[ts.StreamMetrics] = []
    listener = ts.MetricsListener(metrics.append)
    place.spark.streams.addListener(listener)
    events = place.spark.readStream.schema("value string").text(str(place.events))
    frame = events.select(F.lit(7).alias("id"), F.concat("value", F.lit("x")).alias("event"))
    good = events.select(F.lit(8).alias("id"), F.col("value").alias("event"))
    try:
        query = ts.stream(
            frame.union(good),
            place.store,
            place.output,
            checkpoint=place.checkpoint,
            rejects=place.rejects,
            event_id="id",
            attributes="event",
            trigger={"availableNow": True},
            on_batch=listener.on_batch,
        )
        query.awaitTermination()
        wait_until(lambda: metrics, "the listener hears of the batch")
    finally:
        place.spark.streams.removeListener(listener)
    (note,) = metrics
    assert (note.version, note.n_matches, note.n_rejects) == ("v00000001", 1, 2)
    assert note.n_events >= 2
    assert json.loads(note.to_json())["batch_id"] == 0
    rejects = place.spark.read.parquet(place.rejects)
    assert [row["kind"] for row in rejects.collect()] == ["bad-row", "bad-row"]


def test_a_sink_of_ones_own(place):
    place.build(one="a = 1")
    write_events(place.events, "1.json", [(1, 1)])
    taken = {}
    events = place.spark.readStream.schema(SCHEMA).json(str(place.events))
    ts.stream(
        events,
        place.store,
        lambda frame, batch_id: taken.update({batch_id: frame.collect()}),
        checkpoint=place.checkpoint,
        event_id="id",
        trigger={"availableNow": True},
    ).awaitTermination()
    assert [(row["event_id"], row["version"]) for row in taken[0]] == [(1, "v00000001")]


def test_what_is_no_stream_is_refused(place):
    frame = place.spark.createDataFrame([], SCHEMA)
    with pytest.raises(InputError, match="not a stream"):
        ts.stream(frame, place.store, place.output, checkpoint=place.checkpoint)
    events = place.spark.readStream.schema(SCHEMA).json(str(place.events))
    with pytest.raises(IndexFormatError, match="holds no version"):
        ts.stream(events, place.store, place.output, checkpoint=place.checkpoint)
