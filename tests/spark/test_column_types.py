"""Columns of every type that Spark has: what is reported before a job runs, and what workers do."""

from __future__ import annotations

import warnings

import pytest
from pyspark.sql import functions as F

import tamis.spark as ts
import tamis.versions as tv
from tamis import TamisWarning
from tamis.errors import InputError
from tamis.spark import columns
from tamis.spark.jobs.stream import MatchBatch
from tamis.versions.storage import Storage
from tests.spark.workloads import subscription_frame

# By a name for columns: values that are good wherever their type is.
ATOMS = {
    "boolean": "true",
    "byte": "1Y",
    "short": "1S",
    "int": "1",
    "long": "1L",
    "float": "1F",
    "double": "1D",
    "decimal": "1BD",
    "string": "'2024-05-01'",
    "collated": "'2024-05-01' COLLATE UNICODE_CI",
    "char": "CAST('2024-05-01' AS CHAR(10))",
    "binary": "CAST('x' AS BINARY)",
    "date": "DATE'2024-05-01'",
    "timestamp": "TIMESTAMP'2024-05-01 00:00:00'",
    "timestamp_ntz": "TIMESTAMP_NTZ'2024-05-01 00:00:00'",
    "time": "TIME'10:00:00'",
    "days": "INTERVAL '1' DAY",
    "calendar": "make_interval(1, 2)",
    "variant": "parse_json('1')",
}
# By a name: the attribute's type and a test that every value of ours satisfies.
TESTS = {
    "boolean": ("BOOLEAN", "{}"),
    "integer": ("INT", "{} = 1"),
    "double": ("DOUBLE", "{} = 1"),
    "number": ("DECIMAL(10, 2)", "{} = 1"),
    "string": ("STRING", "{} = '2024-05-01'"),
    "date": ("DATE", "{} = DATE '2024-05-01'"),
    "timestamp": ("TIMESTAMP", "{} = TIMESTAMP '2024-05-01 00:00:00'"),
    "integers": ("ARRAY<INT>", "array_contains({}, 1)"),
    "strings": ("ARRAY<STRING>", "array_contains({}, '2024-05-01')"),
    "instants": (
        "ARRAY<TIMESTAMP>",
        "array_contains({}, TIMESTAMP '2024-05-01 00:00:00')",
    ),
}
VALUES = {
    **ATOMS,
    **{f"array_{name}": f"array({atom})" for name, atom in ATOMS.items()},
    **{f"map_{name}": f"map('k', {atom})" for name, atom in ATOMS.items()},
    **{f"struct_{name}": f"named_struct('f', {atom})" for name, atom in ATOMS.items()},
    "deep": "array(named_struct('f', array(map('k', TIMESTAMP'2024-05-01 00:00:00'))))",
}
NAMES = {f"{value}_as_{test}": (value, test) for value in VALUES for test in TESTS}


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "index"
    expressions = [(name, TESTS[test][1].format(name)) for name, (_, test) in NAMES.items()]
    schema = ", ".join(f"{name} {TESTS[test][0]}" for name, (_, test) in NAMES.items())
    report = ts.build(subscription_frame(spark, expressions), path, schema=schema, parts=1)
    assert report.n_rejects == 0
    return path


@pytest.fixture(scope="module")
def events(spark):
    values = [F.expr(VALUES[value]).alias(name) for name, (value, _) in NAMES.items()]
    return spark.range(1).coalesce(1).select("id", *values)


def unfit(call):
    """The attributes that a call reports, and what it returns."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        returned = call()
    (note,) = [str(one.message) for one in caught if issubclass(one.category, TamisWarning)]
    listed = note.partition("the index reads: ")[2].split("; ")
    return {text.partition(" is ")[0] for text in listed}, returned


@pytest.fixture(scope="module")
def refused(events, store):
    rows = ts.event_rejects(events, store, event_id="id").collect()
    return {row["attribute"] for row in rows}


def test_what_workers_refuse(refused):
    assert len(refused) > len(VALUES)
    good = {name for name in NAMES if name not in refused}
    assert {"timestamp_as_timestamp", "timestamp_ntz_as_timestamp", "date_as_timestamp"} < good
    assert {"array_timestamp_as_instants", "array_string_as_strings", "float_as_number"} < good
    assert not {name for name in good if name.startswith(("map", "struct", "deep"))}


@pytest.mark.parametrize("is_whole", [False, True], ids=["columns", "struct"])
def test_jobs_report_what_workers_refuse(events, store, refused, monkeypatch, is_whole):
    monkeypatch.setattr(columns, "SHOWN", len(NAMES))
    options = {}
    if is_whole:
        events = events.select("id", F.struct(*NAMES).alias("event"))
        options["attributes"] = "event"
    shown, found = unfit(lambda: ts.match(events, store, event_id="id", **options))
    assert shown == refused
    assert {row["subscription_id"] for row in found.collect()} == NAMES.keys() - refused
    shown, counted = unfit(lambda: ts.count_by_subscription(events, store, **options))
    assert shown == refused
    assert {row["subscription_id"] for row in counted.collect()} == NAMES.keys() - refused


def test_a_stream_reports_what_workers_refuse(events, store, refused, monkeypatch, tmp_path):
    monkeypatch.setattr(columns, "SHOWN", len(NAMES))
    rows = []
    sink = lambda frame, _: rows.extend(frame.collect())  # noqa: E731
    options = {"event_id": "id", "attributes": None}
    batch = MatchBatch(tv.IndexStore(store), Storage(str(tmp_path)), sink, None, options)
    assert unfit(lambda: batch(events, 0))[0] == refused
    assert {row["subscription_id"] for row in rows} == NAMES.keys() - refused


def test_sql_answers_for_all_of_them(spark, events, store, refused):
    ts.register(spark, store, "match_all_types")
    events.createOrReplaceTempView("events_of_all_types")
    (row,) = spark.sql("SELECT match_all_types(struct(*)) FROM events_of_all_types").collect()
    assert set(row[0]) == NAMES.keys() - refused


@pytest.mark.parametrize(
    ("value", "is_reported"),
    [("array(NULL)", False), ("array()", False), ("map('k', NULL)", True), ("NULL", True)],
)
def test_columns_without_values(spark, tmp_path, value, is_reported):
    rows = subscription_frame(spark, [("x", "array_contains(a, 1)"), ("y", "b = 1")])
    ts.build(rows, tmp_path / "i")
    events = spark.range(1).selectExpr("id", f"{value} AS a", "1 AS b")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = ts.match(events, tmp_path / "i", event_id="id").collect()
    assert [row["subscription_id"] for row in found] == ["y"]
    assert bool(caught) == is_reported


@pytest.mark.parametrize(
    "value", ["{}", "array({})", "map('k', {})", "named_struct('f', {})"], ids=str
)
def test_intervals_of_months_are_refused(spark, tmp_path, value):
    ts.build(subscription_frame(spark, [("x", "a = 1"), ("y", "b = 1")]), tmp_path / "i")
    months = value.format("INTERVAL '1' YEAR")
    events = spark.range(1).selectExpr("id", f"{months} AS a", "1 AS b")
    for call in (ts.match, ts.event_rejects):
        with pytest.raises(InputError, match=r"cannot read intervals of years and months.*: a\n"):
            call(events, tmp_path / "i", event_id="id")
    found = ts.match(events, tmp_path / "i", event_id="id", attributes=["b"]).collect()
    assert [row["subscription_id"] for row in found] == ["y"]


def test_columns_of_other_kinds_that_the_schema_allows(spark, tmp_path):
    schema = "status INT FROM STRING, code STRING FROM NUMBER, request STRING FROM OBJECT"
    rules = {
        "failed": "status >= 500",
        "found": "code = '404'",
        "text": """request = '{"bucket":"b"}'""",
    }
    ts.build(subscription_frame(spark, list(rules.items())), tmp_path / "i", schema=schema)
    events = spark.range(1).selectExpr(
        "id",
        "'503' AS status",
        "404S AS code",
        "named_struct('bucket', 'b', 'n', CAST(NULL AS INT)) AS request",
    )
    found = ts.match(events, tmp_path / "i", event_id="id").collect()
    assert {row["subscription_id"] for row in found} == rules.keys()
    text = """{"status": "503", "code": 404, "request": {"bucket": "b", "n": null}}"""
    as_json = spark.createDataFrame([(0, text)], "id INT, event STRING")
    found = ts.match(as_json, tmp_path / "i", event_id="id", attributes="event").collect()
    assert {row["subscription_id"] for row in found} == rules.keys()


def test_strings_of_any_column(spark, tmp_path):
    rules = {"a": "any_attribute(v -> v ILIKE '%needle%')", "b": "n > 3"}
    ts.build(subscription_frame(spark, list(rules.items())), tmp_path / "i")
    rows = [(0, 5, "a Needle"), (1, 5, "x"), (2, 1, None)]
    events = spark.createDataFrame(rows, "id INT, n INT, text STRING")
    nested = events.selectExpr("id", "n", "array(named_struct('t', text)) AS inner")
    texts = events.selectExpr("id", "to_json(struct(n, text)) AS event")
    for frame, options in ((events, {}), (nested, {}), (texts, {"attributes": "event"})):
        found = ts.match(frame, tmp_path / "i", event_id="id", **options).collect()
        pairs = {(row["event_id"], row["subscription_id"]) for row in found}
        assert pairs == {(0, "a"), (0, "b"), (1, "b")}
