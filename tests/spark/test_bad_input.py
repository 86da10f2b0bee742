"""What users get wrong: an error that names the thing, or an empty result; nothing half-made."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as F

import tamis
import tamis.spark as ts
import tamis.versions as tv
from tamis.errors import IndexFormatError, InputError, TamisWarning
from tamis.spark.failures import raising_worker_errors
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
    (part,) = tv.IndexStore(store).current().parts
    (file,) = (store / part.folder).glob("*.bin")
    file.write_bytes(b"\xff" * file.stat().st_size)


FUNCTIONS = [ts.match, ts.match_lists, ts.count_by_event, ts.count_by_subscription]
FUNCTIONS += [ts.count_terms, ts.event_rejects, ts.audit, ts.backtest, ts.save_statistics]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize(("make", "what"), [(pd.DataFrame, "a pandas DataFrame"), (list, "list")])
def test_events_that_are_not_of_spark(store, function, make, what):
    said = f"events must be a Spark DataFrame, not {what}\n.*spark.createDataFrame"
    with pytest.raises(InputError, match=said):
        function(make([{"a": 1}]), store)
    with pytest.raises(InputError, match=said):
        ts.diff(make([{"a": 1}]), store, store)


# ── versions and parts ──────────────────────────────────────────────────────────────────────


def test_versions_of_a_store_that_is_not_there(tmp_path):
    with pytest.raises(IndexFormatError, match="nope holds no version of an index"):
        tv.versions(tmp_path / "nope")
    tamis.build({"a": "a = 1"}).save(tmp_path / "saved")
    with pytest.raises(InputError, match="is one saved index, without versions"):
        tv.versions(tmp_path / "saved")


def test_a_version_that_is_not_there(events, store):
    with pytest.raises(IndexFormatError, match='no version "v00000007"') as refused:
        ts.match(events, tv.open_version(store, 7))
    assert refused.value.hint == "existing versions: v00000001"


def test_a_part_that_vanishes_after_the_version_was_opened(events, store):
    found = ts.match(events, store, event_id="id")
    (part,) = tv.IndexStore(store).current().parts
    shutil.rmtree(store / part.folder)
    with pytest.raises(IndexFormatError, match=part.id), raising_worker_errors():
        found.collect()


@pytest.mark.parametrize("command", ["match", "backtest", "audit"])
def test_a_corrupt_part_leaves_no_output(shell_session, store, tmp_path, command):
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


def rebuild(spark, store: Path) -> ts.BuildReport:
    return ts.build(subscription_frame(spark, SUBSCRIPTIONS), store, schema="a INT, b STRING")


def truncate(store: Path) -> None:
    (file,) = store.glob("parts/*/*.bin")
    file.write_bytes(file.read_bytes()[:100])


def lose_manifest(store: Path) -> None:
    (file,) = store.glob("parts/*/manifest.json")
    file.unlink()


def lose_part(store: Path) -> None:
    shutil.rmtree(store / "parts")


def spoil_version(store: Path) -> None:
    (store / "v00000001" / "manifest.json").write_text("{")


@pytest.mark.parametrize("damage", [spoil, truncate, lose_manifest, lose_part, spoil_version])
def test_building_anew_mends_what_is_damaged(spark, events, store, damage):
    damage(store)
    report = rebuild(spark, store)
    assert (report.version.name, report.n_built) == ("v00000002", 1)
    found = ts.match(events, store, event_id="id").collect()
    assert sorted(found) == [(1, "one"), (2, "two")]
    assert rebuild(spark, store).n_built == 0


def test_a_damaged_version_is_not_updated(spark, store):
    spoil_version(store)
    with pytest.raises(IndexFormatError, match="not the manifest of an index version"):
        ts.update(spark, store, removed=["one"])
    assert tv.IndexStore(store).numbers() == [1]


def test_a_damaged_table_of_a_part_is_named(spark, store):
    (file,) = store.glob("parts/*/rejects.parquet")
    file.write_bytes(b"PAR1")
    with (
        pytest.raises(IndexFormatError, match=r"rejects\.parquet is damaged") as refused,
        raising_worker_errors(),
    ):
        ts.rejects(spark, store).collect()
    assert refused.value.hint == "rebuild the index, or use an older version"


def test_subscriptions_of_a_damaged_part_are_refused(spark, store):
    (file,) = store.glob("parts/*/content-*")
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(IndexFormatError, match="bytes instead of"), raising_worker_errors():
        ts.subscriptions(spark, store).collect()


# ── where an index is to be ─────────────────────────────────────────────────────────────────


def test_an_index_cannot_be_built_there(spark, tmp_path):
    frame = subscription_frame(spark, SUBSCRIPTIONS)
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot write .*file/index/parts: Not a directory"):
        ts.build(frame, tmp_path / "file" / "index")
    with pytest.raises(InputError, match="the path of the storage is empty"):
        ts.build(frame, "")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_saved_index_is_no_folder_of_versions(spark, tmp_path):
    saved = tmp_path / "one.tamis"
    tamis.build(dict(SUBSCRIPTIONS)).save(saved)
    before = sorted(saved.iterdir())
    for call in (
        lambda: rebuild(spark, saved),
        lambda: ts.update(spark, saved, removed=["one"]),
        lambda: tv.IndexStore(saved).current(),
    ):
        with pytest.raises(InputError, match=r"one\.tamis is one saved index, without versions"):
            call()
    assert sorted(saved.iterdir()) == before


# ── subscriptions ───────────────────────────────────────────────────────────────────────────


def test_subscriptions_that_are_no_table_of_subscriptions(spark, tmp_path):
    with pytest.raises(
        InputError, match="subscriptions must be a Spark DataFrame, not str"
    ) as refused:
        ts.build("people.parquet", tmp_path / "index")
    assert "spark.read" in refused.value.hint
    frame = pd.DataFrame({"id": ["a"], "expression": ["a = 1"]})
    with pytest.raises(InputError, match="a Spark DataFrame, not a pandas DataFrame") as refused:
        ts.build(frame, tmp_path / "index")
    assert "spark.createDataFrame" in refused.value.hint
    frame = subscription_frame(spark, SUBSCRIPTIONS)
    for name in ("expression", "owner"):
        twice = frame.select("*", F.lit("x").alias(name), F.lit("y").alias(name))
        with pytest.raises(InputError, match=f'two columns "{name}"') as refused:
            ts.build(twice, tmp_path / "index")
        assert refused.value.hint == "drop or rename one"
    assert list(tmp_path.iterdir()) == []


def test_a_repeated_subscription_lends_no_tags(spark, events, tmp_path):
    rows = [("one", "a = 1", None), ("one", "a = 2", ["late"]), ("two", "a = 2", ["own"])]
    frame = spark.createDataFrame(
        rows, "subscription_id string, expression string, tags array<string>"
    )
    ts.build(frame.coalesce(1), tmp_path / "index")
    found = ts.match(events, tmp_path / "index", event_id="id", tags=True).collect()
    assert sorted(found) == [(1, "one", []), (2, "two", ["own"])]


# ── events ──────────────────────────────────────────────────────────────────────────────────


def test_columns_of_another_type_are_rejects(spark, store):
    events = spark.createDataFrame([(1, "1", "x"), (2, None, "x")], "id int, a string, b string")
    with pytest.warns(TamisWarning, match="a is string, not integer"):
        assert ts.match(events, store, event_id="id").count() == 0
    rows = ts.event_rejects(events, store, event_id="id").collect()
    assert [(row["event_id"], row["attribute"], row["kind"]) for row in rows] == [
        (1, "a", "wrong-type")
    ]


@pytest.mark.parametrize(
    "call",
    [
        *(ts.match, ts.match_lists, ts.count_by_event, ts.count_by_subscription, ts.count_terms),
        *(ts.event_rejects, ts.backtest, ts.audit, ts.save_statistics),
        lambda events, store: ts.diff(events, store, store),
        lambda events, store: ts.stream(events, store, store, checkpoint=store),
    ],
)
def test_events_that_are_no_frame_of_spark(store, call):
    with pytest.raises(
        InputError, match="events must be a Spark DataFrame, not a pandas DataFrame"
    ):
        call(pd.DataFrame({"a": [1]}), store)


@pytest.mark.parametrize("call", [ts.audit, ts.event_rejects, ts.match_lists, ts.count_by_event])
def test_a_missing_id_column_is_named_by_every_job(events, store, call):
    with pytest.raises(InputError, match='no column "key"'):
        call(events, store, event_id="key")


def test_a_missing_id_column_is_named_by_a_diff(events, store):
    found = ts.diff(events, store, store, event_id="key")  # counts need no ids
    with pytest.raises(InputError, match='no column "key"'):
        found.pairs()


def test_the_column_event_id_names_events_unless_told_otherwise(events, store):
    named = events.withColumnRenamed("id", "event_id")
    assert sorted(ts.match(named, store).collect()) == [(1, "one"), (2, "two")]
    assert sorted(ts.match_lists(named, store).collect()) == [(1, ["one"]), (2, ["two"])]
    found = ts.match(named.withColumn("id", F.lit("k")), store, event_id="id").collect()
    assert sorted(found) == [("k", "one"), ("k", "two")]


@pytest.mark.parametrize("by", ["n", "subscription_id"])
def test_counts_by_a_column_that_the_counts_have(events, store, by):
    with pytest.raises(InputError, match=f'cannot count by "{by}"'):
        ts.count_by_subscription(events.withColumn(by, F.lit(1)), store, by=by)


def test_counts_by_a_column_that_is_not_there(events, store):
    with pytest.raises(InputError, match='no column "day"; they have: id, a, b'):
        ts.count_by_subscription(events, store, by="day")
    with pytest.raises(InputError, match='no column "day"'):
        ts.backtest(events, store, day="day")


def test_counts_by_a_field(events, store):
    nested = events.select("*", F.struct(F.col("b").alias("c")).alias("s"))
    found = ts.count_by_subscription(nested, store, by="s.c").collect()
    assert sorted(found) == [("x", "one", 1), ("x", "two", 1)]


def test_no_events_at_all(events, store):
    none = events.where("id < 0")
    assert ts.match_lists(none, store, event_id="id").count() == 0
    assert ts.event_rejects(none, store, event_id="id").count() == 0
    assert ts.audit(none, store, event_id="id", share=1.0).rows.count() == 0
    assert ts.audit(none, store, event_id="id", share=1.0, by="spark").rows.count() == 0
    totals = ts.backtest(none, store, event_id="id").totals.collect()
    assert [(row["subscription_id"], row["n"]) for row in totals] == [("one", 0), ("two", 0)]
    assert ts.diff(none, store, store, event_id="id").counts.count() == 0
    shown = ts.save_statistics(none, store).statistics
    assert (shown["n_events"], shown["sample_rows"]) == (0, 0)
    assert shown["attributes"]["a"] == {"present": 0.0, "distinct": 0}
    rebuilt = ts.build(
        subscription_frame(none.sparkSession, SUBSCRIPTIONS), store, incremental=False
    )
    assert rebuilt.n_subscriptions == 2


def test_an_index_of_nothing(spark, events, tmp_path):
    ts.build(subscription_frame(spark, [("x", "a = 1")]), tmp_path / "i")
    ts.update(spark, tmp_path / "i", removed=["x"])
    ts.compact(spark, tmp_path / "i")
    assert ts.count_by_event(events, tmp_path / "i", event_id="id").collect() == [(1, 0), (2, 0)]
    assert ts.subscriptions(spark, tmp_path / "i").count() == 0
    assert ts.rejects(spark, tmp_path / "i").count() == 0
    assert ts.audit(events, tmp_path / "i", event_id="id", share=1.0).rows.count() == 0


# ── memory ──────────────────────────────────────────────────────────────────────────────────


def test_memory_that_is_no_number(spark, events, store):
    spark.conf.set("spark.tamis.memory", "8g")
    try:
        with pytest.raises(InputError, match='memory is "8g"; a number of bytes'):
            ts.match(events, store, event_id="id", spread="replicate")
    finally:
        spark.conf.unset("spark.tamis.memory")
