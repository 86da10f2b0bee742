"""Statistics, backtest, diff, audit, SQL."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark.sql import functions as F

import tamis
import tamis.spark as ts
import tamis.versions as tv
from tamis.errors import InputError, TamisWarning
from tamis.index import artefact
from tamis.match.learn import count_leaves
from tamis.spark.jobs.audit_sql import render
from tamis.spark.sql_notes import print_notes
from tamis.versions.part_set import _OPEN
from tamis.versions.tuning import read_sample
from tests.spark.workloads import (
    DDL,
    event_frame,
    expected_pairs,
    make_workload,
    subscription_frame,
)

SUBSCRIPTIONS, EVENTS = make_workload(3, n_subscriptions=50, n_events=200)
PAIRS = expected_pairs(SUBSCRIPTIONS, EVENTS)


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("stores") / "index")
    ts.build(subscription_frame(spark, SUBSCRIPTIONS), path, parts=2, schema=DDL)
    return path


@pytest.fixture(scope="module")
def events(spark):
    return event_frame(spark, EVENTS)[0].persist()


# ── statistics ──────────────────────────────────────────────────────────────────────────────


def test_statistics_describe_the_events(events):
    shown = ts.compute_statistics(events, [("age",), ("geo", "city"), ("tags",), ("nothing",)])
    assert shown["n_events"] == len(EVENTS)
    assert shown["attributes"].keys() == {"age", "geo.city", "tags"}
    ages = [event["age"] for event in EVENTS if "age" in event]
    age = shown["attributes"]["age"]
    assert age["present"] == len(ages) / len(EVENTS)
    assert abs(age["distinct"] - len(set(ages))) <= 0.1 * len(set(ages))
    assert age["quantiles"]["0.5"] == pytest.approx(sorted(ages)[len(ages) // 2], abs=3)
    cities = Counter(e["geo"]["city"] for e in EVENTS if e.get("geo"))
    name, share = shown["attributes"]["geo.city"]["top"][0]
    assert share == cities[name] / len(EVENTS) == max(cities.values()) / len(EVENTS)


def test_the_next_build_uses_the_statistics(spark, events, tmp_path):
    path = tmp_path / "i"
    rows = [("x", "age >= 0 AND age = 3 AND country = 'NO'")]
    ts.build(subscription_frame(spark, rows), path)
    version = ts.save_statistics(events, path, sample_rows=150)
    assert version.statistics["sample_rows"] <= 150
    ts.build(subscription_frame(spark, [*rows, ("y", "vip")]), path)
    built = tv.IndexStore(path).current()
    assert built.statistics == version.statistics
    index = tv.open_version(path).open()
    sample = read_sample(tv.IndexStore(path).storage.read(version.statistics["sample"]))
    rates = count_leaves(index.contents, index.encode(sample))
    # The access child is the rarest leaf of the sample: age = 3.
    (access,) = [n for n in range(index.contents.n_leaves) if _is_access(index, n)]
    assert rates[access] == rates[index.contents.nodes.children].min()
    assert index.match({"age": 3, "country": "NO"}) == ["x"]
    with pytest.raises(InputError, match="at least 1"):
        ts.save_statistics(events, path, sample_rows=0)


def _is_access(index, node):
    starts = index.contents.triggers.starts
    return starts[node + 1] > starts[node]


# ── backtest, diff, audit ───────────────────────────────────────────────────────────────────


def test_backtest_counts_all_subscriptions(events, store):
    result = ts.backtest(events, store, event_id="id", day=F.col("id") % 5, n_samples=2)
    counts = Counter(name for _, name in PAIRS)
    totals = {row["subscription_id"]: row for row in result.totals.collect()}
    assert {name: row["n"] for name, row in totals.items()} == {
        name: counts[name] for name, _ in SUBSCRIPTIONS if name != "broken"
    }
    assert all(row["low"] == row["expected"] == row["high"] == row["n"] for row in totals.values())
    by_day = {(row["day"], row["subscription_id"]): row["n"] for row in result.by_day.collect()}
    assert by_day == Counter((at % 5, name) for at, name in PAIRS)
    shown = Counter(row["subscription_id"] for row in result.samples.collect())
    assert shown == {name: min(2, n) for name, n in counts.items()}


def test_backtest_of_a_sample_gives_intervals(events, store):
    result = ts.backtest(events, store, event_id="id", sample=0.5, seed=4)
    assert 0 < result.n_looked_at < result.n_events == len(EVENTS)
    counts = Counter(name for _, name in PAIRS)
    rows = result.totals.collect()
    inside = [row["low"] <= counts[row["subscription_id"]] <= row["high"] for row in rows]
    assert sum(inside) >= 0.8 * len(rows)
    assert all(row["low"] <= row["high"] for row in rows)
    with pytest.raises(InputError, match="sample is 2"):
        ts.backtest(events, store, sample=2)


def test_diff_reports_what_is_gained_and_lost(spark, events, store, tmp_path):
    changed = dict(SUBSCRIPTIONS[:50]) | {"s0": "age < 20", "new": "vip"}
    del changed["s1"]
    other = tmp_path / "other"
    ts.build(subscription_frame(spark, list(changed.items())), other, schema=DDL)
    base = tmp_path / "base"
    ts.build(subscription_frame(spark, SUBSCRIPTIONS[:50]), base, schema=DDL)
    found = ts.diff(events, base, other, event_id="id")
    before = expected_pairs(SUBSCRIPTIONS[:50], EVENTS)
    after = expected_pairs(list(changed.items()), EVENTS)
    counts = [Counter(name for _, name in pairs) for pairs in (before, after)]
    shown = {row["subscription_id"]: tuple(row)[1:] for row in found.counts.collect()}
    kinds = {"s0": "rewritten", "s1": "removed", "new": "added"}
    assert shown == {name: (counts[0][name], counts[1][name], kinds[name]) for name in kinds}
    pairs = sorted((row[0], row[1], row[2]) for row in found.pairs().collect())
    assert pairs == sorted(
        [("gained", *pair) for pair in set(after) - set(before)]
        + [("lost", *pair) for pair in set(before) - set(after)]
    )
    assert ts.diff(events, base, base, event_id="id").counts.count() == 0


@pytest.mark.parametrize(
    ("layout", "by"),
    [
        *((layout, "reference") for layout in ("columns", "struct", "map", "json")),
        *((layout, "spark") for layout in ("columns", "map")),
    ],
)
def test_audit_agrees(spark, store, layout, by):
    plain = [{k: v for k, v in event.items() if k != "tags"} for event in EVENTS]
    frame, attributes = event_frame(spark, plain if layout == "map" else EVENTS, layout)
    rows = ts.audit(
        frame,
        store,
        event_id="id",
        attributes=attributes,
        share=1.0,
        n_subscriptions=40,
        by=by,
    ).rows.collect()
    assert [row for row in rows if row["subscription_id"] is not None] == []
    assert sum(row["n_compared"] for row in rows) >= len(EVENTS) * 40


@pytest.mark.parametrize("by", ["reference", "spark"])
def test_what_is_no_event_matches_nothing_and_is_not_audited(spark, tmp_path, by):
    texts = [("null", "a IS NULL"), ("one", "a = 1")]
    subscriptions = spark.createDataFrame(texts, "subscription_id string, expression string")
    ts.build(subscriptions, tmp_path / "i")
    rows = [(1, '{"a": 1}'), (2, "{"), (3, "{}"), (4, None), (5, "[]")]
    events = spark.createDataFrame(rows, "id bigint, event string")
    where = {"event_id": "id", "attributes": "event"}
    matched = ts.match(events, tmp_path / "i", **where).collect()
    found = sorted((row["event_id"], row["subscription_id"]) for row in matched)
    assert found == [(1, "one"), (3, "null"), (4, "null")]
    audited = ts.audit(events, tmp_path / "i", share=1.0, by=by, **where).rows.collect()
    assert [row for row in audited if row["subscription_id"] is not None] == []
    assert sum(row["n_compared"] for row in audited) == 2 * 3


@pytest.mark.parametrize("by", ["reference", "spark"])
def test_audit_finds_a_wrong_answer(events, tmp_path, by):
    """An index whose texts are swapped answers wrongly; an audit must say so."""
    path = tmp_path / "swapped"
    index = tamis.build({"low": "age < 50", "high": "age >= 50"})
    texts = pa.chunked_array([["age >= 50", "age < 50"]])
    artefact.save(replace(index.contents, texts=texts), path)
    rows = ts.audit(events, path, event_id="id", share=1.0, by=by).rows.collect()
    shown = {(row["event_id"], row["subscription_id"], row["engine"]) for row in rows if row[1]}
    is_low = {at: event["age"] < 50 for at, event in enumerate(EVENTS) if "age" in event}
    assert shown == {
        (at, name, "true" if low == (name == "low") else "not true")
        for at, low in is_low.items()
        for name in ("low", "high")
    }
    _OPEN.clear()


def test_audit_by_spark_sees_a_constant_that_was_rounded(spark, tmp_path):
    path = tmp_path / "index"
    index = tamis.build({"s": "f < 16777216"}, schema="f FLOAT")
    artefact.save(replace(index.contents, texts=pa.chunked_array([["f < 16777217"]])), path)
    events = spark.createDataFrame([(1, 16777216.0)], "id int, f float")
    rows = ts.audit(events, path, event_id="id", share=1.0, by="spark").rows.collect()
    assert [(row["subscription_id"], row["engine"]) for row in rows if row[1]] == [
        ("s", "not true")
    ]
    _OPEN.clear()


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("f < 16777217", "f < 16777217"),
        ("f IN (9007199254740993, 0.5F)", "f IN (9007199254740993, 0.5F)"),
        ("f BETWEEN -0.1 AND (1.5BD)", "f BETWEEN CAST(-0.1 AS FLOAT) AND CAST(1.5 AS FLOAT)"),
        ("f = 1.00000005960464477539062500001F", "f = 1.00000005960464477539062500001F"),
        ("d > 0.1000000000000000055511151231257827021", None),
        # Zeros at the ends count as digits in Spark.
        (f"d > 1.5{40 * '0'}", "d > 1.5"),
        (f"f > 1.5{40 * '0'}", "f > CAST(1.5 AS FLOAT)"),
        ("i = 5.00", "i = 5"),
        ("m = 5.00", "m = 5BD"),
        ("at > '2024-01-31T10:00Z'", "at > TIMESTAMP '2024-01-31 10:00:00Z'"),
        ("array_contains(fs, 16777217)", "array_contains(fs, CAST(16777217 AS float))"),
        ("s = 'it''s'", r"s = 'it\'s'"),
    ],
)
def test_audit_by_spark_asks_with_the_constants_of_the_user(text, asked):
    schema = tamis.Schema.of(
        "f FLOAT, d DOUBLE, i INT, m DECIMAL(9,2), at TIMESTAMP, fs ARRAY<FLOAT>, s STRING"
    )
    assert render({"s": text}, schema).texts == (asked or text,)


def test_audit_by_spark_leaves_out_keywords_and_the_session_as_it_was(spark, tmp_path):
    rows = [("words", "matches(body, 'red wine')"), ("plain", "a = 1 AND body LIKE '%wine'")]
    ts.build(subscription_frame(spark, rows), tmp_path / "i")
    events = spark.createDataFrame([(1, 1, "red wine"), (2, 1, None)], "id int, a int, body string")
    before = spark.conf.get("spark.sql.codegen.wholeStage")
    with pytest.warns(TamisWarning, match="1 of 2 subscriptions have no Spark SQL form"):
        audit = ts.audit(events, tmp_path / "i", event_id="id", share=1.0, by="spark")
    found = audit.rows.collect()
    assert [(row["subscription_id"], row["n_compared"]) for row in found] == [(None, 1)] * 2
    assert spark.conf.get("spark.sql.codegen.wholeStage") == before
    ts.build(subscription_frame(spark, rows[:1]), tmp_path / "words")
    with pytest.raises(InputError, match="has a Spark SQL form"):
        ts.audit(events, tmp_path / "words", event_id="id", share=1.0, by="spark")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"share": 0}, "share is 0"),
        ({"n_subscriptions": 0}, "at least 1"),
        ({"by": "luck"}, 'audit by "luck"; allowed: reference, spark'),
    ],
)
def test_an_audit_that_cannot_be_is_refused(events, store, options, said):
    with pytest.raises(InputError, match=said):
        ts.audit(events, store, **options)


def test_another_meaning_of_missing_has_no_spark_form(spark, events, tmp_path):
    ts.build(
        subscription_frame(spark, [("x", "age = 1")]), tmp_path / "i", missing="satisfies_negation"
    )
    with pytest.raises(InputError, match="no Spark SQL form"):
        ts.audit(events, tmp_path / "i", by="spark")


def test_the_audit_reads_json_as_the_engine_does(spark, tmp_path):
    subscriptions = [
        ("exact", "m = 0.1234567890123456789"),
        ("large", "d > 1"),
        ("none", "s IS NULL"),
    ]
    frame = subscription_frame(spark, subscriptions)
    ts.build(frame, tmp_path / "i", schema="m DECIMAL(30,20), d DOUBLE, s STRING")
    texts = [
        '{"m": 0.1234567890123456789}',
        '{"d": Infinity, "s": ""}',
        '{"d": 1e999}',
        '{"d":',
        "[]",
    ]
    events = spark.createDataFrame(list(enumerate(texts)), "event_id int, event string")
    found = ts.match(events, tmp_path / "i", attributes="event").collect()
    assert {(0, "exact"), (1, "large"), (2, "large")} < set(map(tuple, found))
    rows = ts.audit(events, tmp_path / "i", attributes="event", share=1.0).rows.collect()
    assert [row for row in rows if row["subscription_id"] is not None] == []
    # The last two are no events: nothing is compared, and nothing matches.
    assert sum(row["n_compared"] for row in rows) == (len(texts) - 2) * len(subscriptions)
    assert {row["event_id"] for row in found} == {0, 1, 2}


def test_an_audit_by_spark_reports_what_it_cannot_compare(spark, tmp_path):
    frame = subscription_frame(spark, [("big", "n > 5"), ("words", "matches(t, 'a b')")])
    ts.build(frame, tmp_path / "i", schema="n NUMBER, t TEXT(simple)")
    texts = ['{"n": 6}', '{"n": 1' + 40 * "0" + "}"]
    events = spark.createDataFrame(list(enumerate(texts)), "event_id int, event string")
    with pytest.warns(TamisWarning) as notes:
        audit = ts.audit(events, tmp_path / "i", attributes="event", share=1.0, by="spark")
    messages = sorted(str(one.message) for one in notes)
    assert messages[0].startswith("1 events have a number that no type of Spark holds")
    assert "such as event 1" in messages[0]
    assert messages[1].startswith("1 of 2 subscriptions have no Spark SQL form")
    assert "such as 'words'" in messages[1]
    assert (audit.n_compared, audit.n_disagreements) == (1, 0)
    assert [row["event_id"] for row in audit.left_out.collect()] == [1]


# ── SQL ─────────────────────────────────────────────────────────────────────────────────────


def test_sql_functions_print_notes_of_what_they_cannot_read(capsys):
    index = tamis.build({"adult": "age >= 18"})
    events = ['{"age": "old"}', "{", '{"age": 20}']
    for function in ("of_rows", "of_rows", "of_others"):
        print_notes(function, index, index.encode(events), events)
    table = pa.table({"Age": [20]})
    print_notes("of_names", index, index.encode(table), table)
    shown = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in shown] == ["of_rows", "of_others", "of_names"]
    assert shown[0] == (
        "of_rows: in a batch of events, 2 values and rows were not read and treated as missing, "
        "for example row 1: not JSON: Expecting property name enclosed in double quotes "
        "(column 2); index.encode(events).rejects lists them "
        "(tamis.spark.event_rejects lists what cannot be read)"
    )
    assert 'age (subscription "adult"), but they have Age' in shown[2]


def test_sql_table_function_and_scalar(spark, events, store):
    assert ts.register(spark, store, event_id_type="bigint") == "v00000001"
    events.createOrReplaceTempView("events")
    found = spark.sql("SELECT * FROM tamis_match(TABLE(SELECT id AS event_id, * FROM events))")
    assert found.dtypes == [("event_id", "bigint"), ("subscription_id", "string")]
    assert sorted(map(tuple, found.collect())) == PAIRS
    lists = spark.sql("SELECT id, tamis_match(struct(*)) AS ids FROM events")
    assert sorted((row[0], one) for row in lists.collect() for one in row[1]) == PAIRS
    as_json = spark.sql("SELECT id, explode(tamis_match(to_json(struct(*)))) FROM events")
    assert sorted(map(tuple, as_json.collect())) == PAIRS
