"""Spark answers as the reference evaluator does: all layouts, spreads and outputs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import pytest
from pyspark.sql import functions as F

import tamis
import tamis.spark as ts
import tamis.versions as tv
from tamis.errors import IndexFormatError, InputError
from tamis.spark import matching
from tamis.spark.counting import RUN
from tamis.spark.spread import MEMORY
from tests.spark.workloads import (
    DDL,
    event_frame,
    expected_pairs,
    make_workload,
    pairs_of,
    subscription_frame,
)

SUBSCRIPTIONS, EVENTS = make_workload(11)
VALUES_OF_A = {
    "string": "'{\"a\": 1}'",
    "binary": "'{\"a\": 1}'",
    "map<string, string>": "map('a', '1')",
    "struct<a: int>": "named_struct('a', 1)",
}
PAIRS = expected_pairs(SUBSCRIPTIONS, EVENTS)


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("stores") / "index")
    ts.build(subscription_frame(spark, SUBSCRIPTIONS), path, schema=DDL, parts=3)
    return path


@pytest.fixture(scope="module")
def events(spark):
    return event_frame(spark, EVENTS)[0].persist()


@pytest.mark.parametrize("layout", ["columns", "struct", "json"])
def test_every_layout_gives_the_reference_pairs(spark, store, layout):
    frame, attributes = event_frame(spark, EVENTS, layout)
    assert pairs_of(ts.match(frame, store, event_id="id", attributes=attributes)) == PAIRS


def test_maps_of_texts_give_the_reference_pairs(spark, store):
    plain = [{k: v for k, v in event.items() if k != "tags"} for event in EVENTS]
    frame, attributes = event_frame(spark, plain, "map")
    found = pairs_of(ts.match(frame, store, event_id="id", attributes=attributes))
    assert found == expected_pairs(SUBSCRIPTIONS, plain)


@pytest.mark.parametrize("options", [{"spread": "split"}, {"spread": "product"}, {"groups": 2}])
def test_every_spread_and_output_agrees(events, store, options):
    options = {"event_id": "id", **options}
    assert pairs_of(ts.match(events, store, **options)) == PAIRS
    lists = defaultdict(list)
    for at, name in PAIRS:
        lists[at].append(name)
    found = ts.match_lists(events, store, **options).collect()
    assert {row[0]: sorted(row[1]) for row in found} == {
        at: sorted(lists[at]) for at in range(len(EVENTS))
    }
    counted = dict(map(tuple, ts.count_by_event(events, store, **options).collect()))
    assert counted == {at: len(lists[at]) for at in range(len(EVENTS))}
    del options["event_id"]
    by_name = dict(map(tuple, ts.count_by_subscription(events, store, **options).collect()))
    assert by_name == Counter(name for _, name in PAIRS)


def test_one_artefact_serves_both_runtimes(events, tmp_path):
    index = tamis.build(SUBSCRIPTIONS, DDL)
    index.save(tmp_path / "plain")
    assert pairs_of(ts.match(events, tmp_path / "plain", event_id="id")) == PAIRS
    single = [(at, name) for at, event in enumerate(EVENTS) for name in index.match(event)]
    assert sorted(single) == PAIRS


def test_counts_by_another_column(events, store):
    found = ts.count_by_subscription(events, store, by=(F.col("id") % 3).alias("third"))
    counted = {(row["by"], row["subscription_id"]): row["n"] for row in found.collect()}
    assert counted == Counter((at % 3, name) for at, name in PAIRS)


def test_tags_and_version_come_along(spark, tmp_path):
    rows = [("x", "a = 1", ["red", "blue"]), ("y", "a > 0", None)]
    frame = spark.createDataFrame(
        rows, "subscription_id string, expression string, tags array<string>"
    )
    ts.build(frame, tmp_path / "i")
    events = spark.createDataFrame([("e", 1)], "id string, a int")
    found = ts.match(events, tmp_path / "i", event_id="id", tags=True, version=True)
    assert sorted(map(tuple, found.collect())) == [
        ("e", "x", ["red", "blue"], "v00000001"),
        ("e", "y", [], "v00000001"),
    ]


def test_only_mentioned_columns_leave_the_jvm(events, store):
    plan = ts.match(events, store, event_id="id")._jdf.queryExecution().optimizedPlan().toString()
    assert "unused" not in plan.partition("MapInArrow")[2].partition("\n")[0]


def test_batches_are_cut_and_put_together(events, store, monkeypatch):
    monkeypatch.setattr(matching, "ROWS_AT_ONCE", 7)
    batches = events.select("id").toArrow().to_batches(max_chunksize=20)
    sizes = [batch.num_rows for batch in matching.cut(batches)]
    assert sum(sizes) == len(EVENTS)
    assert max(sizes) <= 7
    monkeypatch.setattr(matching, "ROWS_AT_ONCE", 1000)
    monkeypatch.setattr(matching, "MOST_BYTES", 160)
    wide = [batch.num_rows for batch in matching.cut(batches)]
    assert (sum(wide), max(wide)) == (len(EVENTS), 20)


def test_wrong_values_are_rejects_and_the_others_still_answer(spark, tmp_path):
    ts.build(
        spark.createDataFrame(
            [("x", "a = 1"), ("y", "b = 'u'")], "subscription_id string, expression string"
        ),
        tmp_path / "i",
        parts=2,
    )
    rows = [("e1", '{"a": "one", "b": "u"}'), ("e2", "nonsense"), ("e3", '{"a": 1}'), ("e4", None)]
    frame = spark.createDataFrame(rows, "id string, event string")
    options = {"event_id": "id", "attributes": "event"}
    assert pairs_of(ts.match(frame, tmp_path / "i", **options)) == [("e1", "y"), ("e3", "x")]
    found = ts.event_rejects(frame, tmp_path / "i", **options).collect()
    shown = sorted((row["event_id"], row["attribute"], row["kind"]) for row in found)
    assert shown == [("e1", "a", "wrong-type"), ("e2", None, "bad-row"), ("e4", None, "bad-row")]
    assert next(row["value"] for row in found if row["event_id"] == "e2") == "'nonsense'"


@pytest.mark.parametrize("type_", ["string", "map<string, string>", "struct<a: int>", "binary"])
def test_events_that_are_null_are_listed(spark, tmp_path, type_):
    ts.build(subscription_frame(spark, [("x", "a = 1"), ("y", "a IS NULL")]), tmp_path / "i")
    frame = spark.range(3).selectExpr(
        "id", f"CAST(IF(id = 1, NULL, {VALUES_OF_A[type_]}) AS {type_}) AS event"
    )
    options = {"event_id": "id", "attributes": "event"}
    found = pairs_of(ts.match(frame, tmp_path / "i", **options))
    assert found == [(0, "x"), (1, "y"), (2, "x")]
    (row,) = ts.event_rejects(frame, tmp_path / "i", **options).collect()
    assert (row["event_id"], row["attribute"], row["value"]) == (1, None, "NULL")
    assert row["reason"] == "the event is NULL; it counts as an event without attributes"
    # Where attributes are columns, there is always an event.
    assert ts.event_rejects(frame.selectExpr("id", "NULL AS a"), tmp_path / "i").count() == 0


def test_no_events_give_an_empty_typed_result(events, store):
    none = events.where("id < 0")
    found = ts.match(none, store, event_id="id")
    assert found.dtypes == [("event_id", "bigint"), ("subscription_id", "string")]
    assert found.count() == 0
    assert ts.count_by_subscription(none, store).count() == 0


# ── bad input ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"event_id": "idd"}, 'no column "idd"'),
        ({"attributes": "evnt"}, 'no column "evnt"'),
        ({"attributes": ["agee"]}, 'no column "agee"'),
        ({"attributes": ["unused"]}, "none of the attributes"),
        ({"attributes": "age"}, "no event can be read"),
        ({"spread": "wide"}, 'unknown spread "wide"'),
        ({"groups": 0}, "at least 1"),
        ({"spread": "split"}, "needs the events' ids"),
    ],
)
def test_what_cannot_be_is_said_before_anything_runs(events, store, options, said):
    with pytest.raises(InputError, match=said):
        ts.match(events, store, **options)


def test_an_index_that_is_not_there(events, tmp_path):
    with pytest.raises(IndexFormatError, match="holds no version"):
        ts.match(events, tmp_path / "nothing")


def test_a_corrupt_part_is_named(spark, events, tmp_path):
    report = ts.build(subscription_frame(spark, SUBSCRIPTIONS[:5]), tmp_path / "i")
    (part,) = report.version.parts
    (file,) = (tmp_path / "i" / part.folder).glob("*.bin")
    file.write_bytes(b"\xff" * file.stat().st_size)
    from tamis.spark.failures import raising_worker_errors

    with pytest.raises(IndexFormatError, match="is damaged: the checksum"), raising_worker_errors():
        ts.match(events, tmp_path / "i", event_id="id").collect()


def test_an_index_larger_than_a_worker_is_split_or_refused(spark, events, store):
    parts = tv.open_version(store)
    from tamis.spark.spread import choose_spread, need

    spark.conf.set(MEMORY, str(max(map(need, parts.parts)) + 1))
    try:
        assert len(choose_spread(spark, parts, "auto", None).groups) == 3
        with pytest.raises(InputError, match="a worker has"):
            ts.match(events, store, event_id="id", spread="replicate")
        spark.conf.set(MEMORY, "1000")
        with pytest.raises(InputError, match="build with smaller parts"):
            ts.match(events, store, event_id="id")
    finally:
        spark.conf.unset(MEMORY)


def test_counts_of_more_subscriptions_than_one_run_has(spark, tmp_path):
    """Runs of counts are shuffled: each knows where in its part it begins."""
    n = RUN + 10
    tamis.build({f"s{at}": f"a = {at}" for at in range(n)}).save(tmp_path / "index")
    wanted = [0, 1, RUN - 1, RUN, RUN + 1, n - 1]
    events = spark.createDataFrame([(at,) for at in [*wanted, RUN]], "a int")
    counts = ts.count_by_subscription(events, tmp_path / "index").collect()
    assert {row[0]: row[1] for row in counts} == {f"s{at}": 1 + (at == RUN) for at in wanted}


# ── attributes of events, moments ───────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def people(spark, tmp_path_factory):
    """An index, and events with attributes that no subscription mentions."""
    place = tmp_path_factory.mktemp("people") / "i"
    rows = [("adult", "age >= 18", None), ("later", "age >= 18", "2090-01-01")]
    names = "subscription_id string, expression string, valid_from string"
    ts.build(spark.createDataFrame(rows, names), place, parts=2)
    events = spark.sql(
        "SELECT 1 AS id, 20 AS age, 'eve' AS user, named_struct('os', 'linux') AS host, "
        "named_struct('age', 20, 'user', 'eve', 'host', named_struct('os', 'linux')) AS whole, "
        "map('age', '20', 'user', 'eve', 'host.os', 'linux') AS texts, "
        """'{"age": 20, "user": "eve", "host": {"os": "linux"}}' AS json"""
    )
    return place, events


@pytest.mark.parametrize("attributes", [None, ["age", "user", "host"], "whole", "texts", "json"])
def test_attributes_of_events_come_along(people, attributes):
    place, events = people
    asked = ["user", "host.os", "*"]
    found = ts.match(events, place, event_id="id", attributes=attributes, event_columns=asked)
    assert found.columns == ["event_id", "subscription_id", "user", "host.os", "attributes"]
    ((event_id, one, user, system, whole),) = map(tuple, found.collect())
    assert (event_id, one, user, system) == (1, "adult", "eve", "linux")
    shown = json.loads(whole)
    assert (int(shown["age"]), shown["user"]) == (20, "eve")


def test_attributes_of_events_come_with_all_else(people):
    place, events = people
    options = {"tags": True, "version": True, "columns": ["expression"]}
    found = ts.match(
        events, place, event_id="id", event_columns=["user"], spread="split", groups=2, **options
    )
    assert [row.asDict() for row in found.collect()] == [
        {
            "event_id": 1,
            "subscription_id": "adult",
            "tags": [],
            "version": "v00000001",
            "expression": "age >= 18",
            "user": "eve",
        }
    ]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"event_columns": ["usr"]}, 'no column "usr".*\n.*did you mean "user"'),
        ({"event_columns": ["host.so"], "attributes": "whole"}, 'no column "so"'),
        ({"event_columns": ["version"]}, 'has a column "version" already'),
        ({"event_columns": "user"}, r"write \['user'\]"),
        ({"event_columns": ["subscription_id"]}, 'has a column "subscription_id" already'),
        ({"event_columns": ["user", "user"]}, 'has a column "user" already'),
        ({"event_columns": ["expression"], "columns": ["expression"]}, '"expression" already'),
        ({"columns": ["event_id"]}, 'has a column "event_id" already; columns cannot'),
        ({"columns": ["tags"], "tags": True}, 'has a column "tags" already; columns cannot'),
        ({"columns": ["expression", "expression"]}, 'has a column "expression" already'),
        ({"columns": "expression"}, r"write \['expression'\]"),
    ],
)
def test_wrong_attributes_of_events_are_said(people, options, said):
    place, events = people
    with pytest.raises(InputError, match=said):
        ts.match(events, place, event_id="id", **options)


def test_every_function_asks_of_a_moment(people):
    place, events = people
    own = {"event_id": "id"}
    for at, hit in ((None, ["adult"]), ("2090-01-01", ["adult", "later"])):
        rows = ts.match(events, place, at=at, **own).collect()
        assert sorted(row["subscription_id"] for row in rows) == hit
        (row,) = ts.match_lists(events, place, at=at, **own).collect()
        assert sorted(row["subscription_ids"]) == hit
        (row,) = ts.count_by_event(events, place, at=at, **own).collect()
        assert row["n"] == len(hit)
        rows = ts.count_by_subscription(events, place, at=at).collect()
        assert sorted(row["subscription_id"] for row in rows) == hit
        assert ts.audit(events, place, at=at, share=1.0, **own).n_disagreements == 0
        result = ts.backtest(events, place, at=at, **own).totals.collect()
        assert sorted(row["subscription_id"] for row in result if row["n"]) == hit
        assert ts.diff(events, place, place, at=at, **own).counts.count() == 0


def test_an_opened_version_can_be_asked_of_another_moment(people):
    place, events = people
    parts = tv.open_version(place, at="2020-01-01")
    assert ts.match(events, parts, event_id="id").count() == 1
    assert ts.match(events, parts, event_id="id", at="2090-01-01").count() == 2
    assert tv.open_version(parts, "v00000001") is parts
    with pytest.raises(InputError, match="v00000001 is already open; v00000002 cannot"):
        tv.open_version(parts, "v00000002")


# ── subsets, and the best matches ───────────────────────────────────────────────────────────

SPREADS = [{}, {"spread": "split"}, {"groups": 2}]
NAMES = [name for name, _ in SUBSCRIPTIONS]
TAGGED = set(NAMES[::2])
WEIGHTS = {name: float(at % 5) for at, name in enumerate(NAMES) if at % 4}


@pytest.fixture(scope="module")
def weighed(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("stores") / "weighed")
    rows = [
        (name, text, ["even"] if name in TAGGED else [], WEIGHTS.get(name))
        for name, text in SUBSCRIPTIONS
    ]
    schema = "subscription_id string, expression string, tags array<string>, weight double"
    ts.build(spark.createDataFrame(rows, schema), path, schema=DDL, parts=3)
    return path


@pytest.mark.filterwarnings("ignore:no subscription has the id")
@pytest.mark.parametrize("options", SPREADS)
def test_subsets_of_every_mode(events, weighed, options):
    subset = [*NAMES[::3], "nobody"]
    asked = {"subset": subset, "tagged": "even", **options}
    named = {"event_id": "id", **asked}
    wanted = [pair for pair in PAIRS if pair[1] in subset and pair[1] in TAGGED]
    assert pairs_of(ts.match(events, weighed, **named)) == wanted
    by_event = Counter(at for at, _ in wanted)
    lists = ts.match_lists(events, weighed, **named).collect()
    assert {row[0]: len(row[1]) for row in lists if row[1]} == by_event
    counted = ts.count_by_event(events, weighed, **named).where("n > 0").collect()
    assert dict(map(tuple, counted)) == by_event
    counted = ts.count_by_subscription(events, weighed, **asked).collect()
    assert dict(map(tuple, counted)) == Counter(name for _, name in wanted)


def test_ids_and_tags_that_no_subscription_has_are_reported(events, weighed):
    with pytest.warns(tamis.TamisWarning, match='has the id "nobody" and 1 more of `subset`'):
        ts.match(events, weighed, event_id="id", subset=[NAMES[0], "nobody", "nothing"])
    with pytest.warns(tamis.TamisWarning, match='has the tag "evne"; did you mean "even"?'):
        ts.count_by_event(events, weighed, event_id="id", tagged="evne")


@pytest.mark.parametrize("options", SPREADS)
def test_the_best_matches(events, weighed, options):
    lists = defaultdict(list)
    for at, name in PAIRS:
        lists[at].append((-WEIGHTS.get(name, 0.0), name))
    wanted = {(at, name, -weight) for at in lists for weight, name in sorted(lists[at])[:3]}
    found = ts.match(events, weighed, event_id="id", top=3, **options)
    assert found.columns == ["event_id", "subscription_id", "weight"]
    assert set(map(tuple, found.collect())) == wanted


def test_more_best_matches_than_there_are(events, weighed):
    found = ts.match(events, weighed, event_id="id", top=2**63, spread="split", groups=2)
    assert found.count() == len(PAIRS)


def test_the_best_matches_of_an_index_without_weights_are_reported(events, store):
    with pytest.warns(tamis.TamisWarning, match="no subscription has a weight"):
        ts.match(events, store, event_id="id", top=1)


def test_the_best_matches_have_no_bindings(events, weighed):
    with pytest.raises(InputError, match="top and bindings cannot be combined"):
        ts.match(events, weighed, event_id="id", top=3, bindings=True)
    with pytest.raises(InputError, match="top is 0"):
        ts.match(events, weighed, event_id="id", top=0)
    with pytest.raises(InputError, match="there is no option top here; options: ") as caught:
        ts.match_lists(events, weighed, event_id="id", top=2)
    assert caught.value.hint == "tamis.spark.match takes top"
    with pytest.raises(InputError, match="subset is 'a'"):
        ts.match(events, weighed, event_id="id", subset="a")
