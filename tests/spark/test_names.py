"""Columns whose names have a dot or a backtick are columns like others, in every job."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import functions as F
from pyspark.sql.types import (
    FloatType,
    IntegerType,
    StringType,
    StructField,
    StructType,
)

import tamis.spark as ts
import tamis.versions as tv
from tamis.versions.tuning import read_sample
from tests.spark.workloads import subscription_frame

EVENT_ID = "ev.id"
DAY = "day`of.week"
SUBSCRIPTIONS = [
    ("dot", "`geo.city` = 'Oslo'"),
    ("backtick", "`a``b` > 1"),
    ("inside", "geo.`x.y` = 1 AND geo.`p``q` = 2"),
    ("plain", "geo.zip = 5"),
]
DDL = "`geo.city` STRING, `a``b` FLOAT, geo.`x.y` INT, geo.`p``q` INT, geo.zip INT"
PAIRS = {(1, "dot"), (1, "backtick"), (2, "inside"), (2, "plain"), (3, "dot")}
INTEGER = IntegerType()
SCHEMA = StructType(
    [
        StructField(EVENT_ID, INTEGER),
        StructField("geo.city", StringType()),
        StructField("a`b", FloatType()),
        StructField(
            "geo",
            StructType(
                [
                    StructField("x.y", INTEGER),
                    StructField("p`q", INTEGER),
                    StructField("zip", INTEGER),
                ]
            ),
        ),
        StructField(DAY, StringType()),
    ]
)
ROWS = [
    (1, "Oslo", 1.5, (1, 1, 4), "Monday"),
    (2, "Bergen", 0.5, (1, 2, 5), "Monday"),
    (3, "Oslo", None, None, "Sunday"),
]


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("stores") / "index")
    rows = subscription_frame(spark, SUBSCRIPTIONS)
    report = ts.build(rows, path, parts=2, schema=DDL)
    assert report.n_rejects == 0
    return path


@pytest.fixture(scope="module")
def events(spark):
    return spark.createDataFrame(ROWS, SCHEMA)


def pairs_of(frame):
    return {(row["event_id"], row["subscription_id"]) for row in frame.collect()}


@pytest.mark.parametrize("spread", ["replicate", "split"])
def test_matches_lists_and_counts(events, store, spread):
    how = {"event_id": EVENT_ID, "spread": spread}
    assert pairs_of(ts.match(events, store, **how)) == PAIRS
    lists = ts.match_lists(events, store, **how).collect()
    assert {(r["event_id"], name) for r in lists for name in r["subscription_ids"]} == PAIRS
    assert dict(ts.count_by_event(events, store, **how).collect()) == {1: 2, 2: 2, 3: 1}
    counted = ts.count_by_subscription(events, store, spread=spread).collect()
    assert dict(counted) == {"dot": 2, "backtick": 1, "inside": 1, "plain": 1}


def test_counts_by_a_column_or_a_field(events, store):
    counted = ts.count_by_subscription(events, store, by=DAY)
    assert counted.columns[0] == DAY
    assert {tuple(row) for row in counted.collect() if row[1] == "dot"} == {
        ("Monday", "dot", 1),
        ("Sunday", "dot", 1),
    }
    counted = ts.count_by_subscription(events, store, by="geo.`x.y`")
    assert {tuple(row) for row in counted.collect() if row[1] == "dot"} == {
        (1, "dot", 1),
        (None, "dot", 1),
    }


def test_columns_that_are_named(events, store):
    named = ["geo.city", "a`b"]
    found = ts.match(events, store, event_id=EVENT_ID, attributes=named)
    assert pairs_of(found) == {pair for pair in PAIRS if pair[1] in ("dot", "backtick")}


def test_a_column_of_whole_events(events, store):
    fields = [F.col(f"`{name.replace('`', '``')}`") for name in events.columns if name != EVENT_ID]
    whole = events.select(F.col(f"`{EVENT_ID}`"), F.struct(*fields).alias("whole.`event"))
    found = ts.match(whole, store, event_id=EVENT_ID, attributes="whole.`event")
    assert pairs_of(found) == PAIRS


def test_rejects(spark, events, store):
    wrong = events.withColumn("geo.city", F.lit(5))
    rows = ts.event_rejects(wrong, store, event_id=EVENT_ID).collect()
    assert {(row["event_id"], row["attribute"]) for row in rows} == {
        (at, "`geo.city`") for at in (1, 2, 3)
    }


@pytest.mark.parametrize("by", ["reference", "spark"])
def test_audits(events, store, by):
    rows = ts.audit(events, store, event_id=EVENT_ID, share=1.0, by=by).rows.collect()
    assert [row for row in rows if row["subscription_id"] is not None] == []
    assert sum(row["n_compared"] for row in rows) == len(ROWS) * len(SUBSCRIPTIONS)


def test_backtest_diff_and_statistics(spark, events, store):
    tried = ts.backtest(events, store, event_id=EVENT_ID, day=DAY)
    assert {(r["event_id"], r["subscription_id"]) for r in tried.samples.collect()} == PAIRS
    assert {(row["day"], row["n"]) for row in tried.by_day.collect() if row[1] == "dot"} == {
        ("Monday", 1),
        ("Sunday", 1),
    }
    assert ts.diff(events, store, store, event_id=EVENT_ID).counts.count() == 0
    version = ts.save_statistics(events, store)
    assert version.statistics["attributes"]["`geo.city`"]["distinct"] == 2
    assert version.statistics["attributes"]["geo.`x.y`"]["present"] == pytest.approx(2 / 3)
    sample = read_sample(tv.IndexStore(store).storage.read(version.statistics["sample"]))
    assert set(sample.column_names) == {"geo.city", "a`b", "geo"}
    assert pairs_of(ts.match(events, store, event_id=EVENT_ID)) == PAIRS


def test_sql(spark, events, store):
    ts.register(spark, store, "match_odd_names", event_id_type="int")
    events.withColumnRenamed(EVENT_ID, "event_id").createOrReplaceTempView("odd_names")
    found = spark.sql("SELECT * FROM match_odd_names(TABLE(odd_names))")
    assert pairs_of(found) == PAIRS
    lists = spark.sql("SELECT event_id, match_odd_names(struct(*)) AS ids FROM odd_names")
    assert {(row["event_id"], name) for row in lists.collect() for name in row["ids"]} == PAIRS


def test_a_stream(spark, events, store, tmp_path):
    events.write.parquet(str(tmp_path / "events"))
    arriving = spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "events"))
    query = ts.stream(
        arriving,
        store,
        str(tmp_path / "out"),
        checkpoint=str(tmp_path / "checkpoint"),
        rejects=str(tmp_path / "rejects"),
        event_id=EVENT_ID,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    assert pairs_of(spark.read.parquet(str(tmp_path / "out"))) == PAIRS


def test_csv_in_the_shell(spark, store, tmp_path):
    from tamis.cli.spark_io import read_events

    (tmp_path / "events.csv").write_text("a`b,geo.city,`geo.city`,i`d\n2,x,Oslo,7\n")
    found = read_events(spark, str(tmp_path / "events.csv"), None, "i`d", None)
    matched = ts.match(found.frame, store, event_id=found.event_id, attributes=found.attributes)
    assert json.dumps(sorted(pairs_of(matched))) == json.dumps([["7", "backtick"], ["7", "dot"]])
