"""What users get wrong: an error that names the thing, or an empty result; nothing half-made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException

import tamis.spark as ts
from tamis.errors import IndexFormatError, InputError
from tamis.spark.failures import telling
from tests.cli.shell import run
from tests.spark.test_stream import Place, write_events
from tests.spark.workloads import subscription_frame

SUBSCRIPTIONS = [("one", "a = 1"), ("two", "b = 'x' AND a > 1")]


@pytest.fixture(scope="module")
def built(spark, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("built") / "index"
    ts.build(subscription_frame(spark, SUBSCRIPTIONS), path, schema="a INT, b STRING")
    return path


@pytest.fixture
def store(built, tmp_path) -> Path:
    """A copy for each test to spoil."""
    return shutil.copytree(built, tmp_path / "index")


@pytest.fixture
def events(spark):
    return spark.createDataFrame([(1, 1, "x"), (2, 2, "x")], "id int, a int, b string")


def spoil(store: Path) -> None:
    (part,) = ts.IndexStore(store).current().parts
    (file,) = (store / part.folder).glob("*.bin")
    file.write_bytes(b"\xff" * file.stat().st_size)


# ── versions and parts ──────────────────────────────────────────────────────────────────────


def test_a_version_that_is_not_there(events, store):
    with pytest.raises(IndexFormatError, match='no version "v00000007"') as refused:
        ts.match(events, ts.open_version(store, 7))
    assert refused.value.hint == "there are: v00000001; older ones were pruned"


def test_a_part_that_vanishes_after_the_version_was_opened(events, store):
    found = ts.match(events, store, event_id="id")
    (part,) = ts.IndexStore(store).current().parts
    shutil.rmtree(store / part.folder)
    with pytest.raises(IndexFormatError, match=part.id), telling():
        found.collect()


@pytest.mark.parametrize("command", ["match", "backtest", "audit"])
def test_a_corrupt_part_leaves_no_output(spark, store, tmp_path, monkeypatch, command):
    monkeypatch.setattr("tamis.cli.spark._local", lambda context: spark)
    monkeypatch.setattr("tamis.cli.spark.close_session", lambda session: None)
    spoil(store)
    (tmp_path / "events.jsonl").write_text('{"id": 1, "a": 1}\n')
    result = run(
        *("spark", command, "--index", store, "--events", tmp_path / "events.jsonl"),
        *("--event-id", "id", "--output", tmp_path / "out"),
        *(["--share", "1"] if command == "audit" else []),
    )
    assert (result.exit_code, "is damaged: the checksum" in result.stderr) == (1, True)
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "out").exists()


def test_a_stream_over_a_corrupt_part_leaves_no_rows_and_goes_on_when_mended(spark, tmp_path):
    place = Place(spark, tmp_path)
    place.build(one="a = 1")
    copy = tmp_path / "copy"
    shutil.copytree(place.store, copy)
    spoil(Path(place.store))
    write_events(place.events, "1.json", [(1, 1), (2, 2)])
    with pytest.raises(StreamingQueryException, match="is damaged: the checksum"):
        place.run()
    assert list(Path(place.output).rglob("*.parquet")) == []
    shutil.rmtree(place.store)
    shutil.copytree(copy, place.store)
    place.run()
    assert [row[:2] for row in place.rows()] == [(1, "one")]


# ── events ──────────────────────────────────────────────────────────────────────────────────


def test_columns_of_another_type_are_rejects(spark, store):
    events = spark.createDataFrame([(1, "1", "x"), (2, None, "x")], "id int, a string, b string")
    assert ts.match(events, store, event_id="id").count() == 0
    rows = ts.event_rejects(events, store, event_id="id").collect()
    assert [(row["event_id"], row["attribute"], row["kind"]) for row in rows] == [
        (1, "a", "wrong-type")
    ]


@pytest.mark.parametrize("call", [ts.audit, ts.event_rejects, ts.match_lists, ts.count_by_event])
def test_a_missing_id_column_is_named_by_every_job(events, store, call):
    with pytest.raises(InputError, match='no column "key"'):
        call(events, store, event_id="key")


def test_a_missing_id_column_is_named_by_a_diff(events, store):
    found = ts.diff(events, store, store, event_id="key")  # counts need no ids
    with pytest.raises(InputError, match='no column "key"'):
        found.pairs()


def test_no_events_at_all(events, store):
    none = events.where("id < 0")
    assert ts.match_lists(none, store, event_id="id").count() == 0
    assert ts.event_rejects(none, store, event_id="id").count() == 0
    assert ts.audit(none, store, event_id="id", share=1.0).count() == 0
    assert ts.audit(none, store, event_id="id", share=1.0, by="spark").count() == 0
    totals = ts.backtest(none, store, event_id="id").totals.collect()
    assert [(row["subscription_id"], row["n"]) for row in totals] == [("one", 0), ("two", 0)]
    assert ts.diff(none, store, store, event_id="id").counts.count() == 0
    told = ts.save_statistics(none, store).statistics
    assert (told["n_events"], told["sample_rows"]) == (0, 0)
    assert told["attributes"]["a"] == {"present": 0.0, "distinct": 0}
    rebuilt = ts.build(
        subscription_frame(none.sparkSession, SUBSCRIPTIONS), store, incremental=False
    )
    assert rebuilt.n_subscriptions == 2


def test_an_index_of_nothing(spark, events, tmp_path):
    ts.build(subscription_frame(spark, []), tmp_path / "i")
    assert ts.count_by_event(events, tmp_path / "i", event_id="id").collect() == [(1, 0), (2, 0)]
    assert ts.subscriptions(spark, tmp_path / "i").count() == 0
    assert ts.rejects(spark, tmp_path / "i").count() == 0
    assert ts.audit(events, tmp_path / "i", event_id="id", share=1.0).count() == 0


# ── memory ──────────────────────────────────────────────────────────────────────────────────


def test_memory_that_is_no_number(spark, events, store):
    spark.conf.set("spark.tamis.memory", "8g")
    try:
        with pytest.raises(InputError, match='memory is "8g"; a number of bytes'):
            ts.match(events, store, event_id="id", spread="replicate")
    finally:
        spark.conf.unset("spark.tamis.memory")
