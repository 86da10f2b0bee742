"""The build job: the same index as in process, rejects, schema, parts taken over, deltas."""

from __future__ import annotations

from datetime import date, datetime, timedelta

import pytest
from pyspark.sql import functions as F

import tamis
import tamis.spark as ts
import tamis.versions as tv
from tamis.cli.spark_io import read_subscriptions
from tamis.errors import InputError
from tamis.match.index import Index
from tests.cli.shell import run as shell_run
from tests.input.files import write_rows
from tests.spark.workloads import (
    DDL,
    event_frame,
    expected_pairs,
    make_workload,
    pairs_of,
    subscription_frame,
)

SUBSCRIPTIONS, EVENTS = make_workload(5, n_subscriptions=60, n_events=80)


@pytest.mark.parametrize("partition_by", ["hash", "structure"])
def test_builds_what_the_process_builds(spark, tmp_path, partition_by):
    path = tmp_path / "i"
    report = ts.build(
        subscription_frame(spark, SUBSCRIPTIONS).repartition(3).sortWithinPartitions("expression"),
        path,
        parts=4,
        partition_by=partition_by,
    )
    index = tamis.build(SUBSCRIPTIONS)
    assert tv.open_version(path).version.typed_schema() == index.contents.schema
    assert (report.n_subscriptions, report.n_rejects) == (len(index), len(index.rejects))
    found = {(row["subscription_id"], row["code"]) for row in ts.rejects(spark, path).collect()}
    assert found == {(reject.subscription_id, reject.code) for reject in index.rejects}
    kept = {row["subscription_id"] for row in ts.subscriptions(spark, path).collect()}
    assert kept == set(index.contents.ids.to_pylist())


def test_rejects_say_all_that_is_wrong(spark, tmp_path):
    frame = subscription_frame(
        spark, [("bad", "a = 1\n AND AND"), ("ok", "a = 1"), (None, "a = 2"), ("none", None)]
    )
    ts.build(frame, tmp_path / "i")
    rows = {row["subscription_id"]: row for row in ts.rejects(spark, tmp_path / "i").collect()}
    bad = rows["bad"]
    assert (bad["expression"], bad["line"], bad["column"]) == ("a = 1\n AND AND", 2, 6)
    assert bad["code"] == "unexpected-token"
    assert bad["message"]
    assert len(rows) == 3


def test_only_what_changed_is_built_again(spark, tmp_path):
    path = tmp_path / "i"
    first = ts.build(subscription_frame(spark, SUBSCRIPTIONS[:50]), path, parts=5, schema=DDL)
    again = ts.build(
        subscription_frame(spark, SUBSCRIPTIONS[:50]).repartition(3), path, parts=5, schema=DDL
    )
    assert (first.n_built, again.n_built) == (5, 0)
    # The same subscriptions are the same version.
    assert (first.is_published, again.is_published) == (True, False)
    assert again.version == first.version == tv.IndexStore(path).current()
    changed = [*SUBSCRIPTIONS[:49], (SUBSCRIPTIONS[49][0], "age = 1")]
    third = ts.build(subscription_frame(spark, changed), path, parts=5, schema=DDL)
    assert third.n_built == 1
    frame, _ = event_frame(spark, EVENTS)
    found = pairs_of(ts.match(frame, path, event_id="id"))
    assert found == expected_pairs(changed, EVENTS)
    other = ts.build(
        subscription_frame(spark, changed),
        path,
        parts=5,
        schema=DDL.replace("age BIGINT", "age DOUBLE"),
    )
    assert other.n_built == 5  # other types, other meaning
    fresh = ts.build(
        subscription_frame(spark, changed), path, parts=5, schema=DDL, incremental=False
    )
    assert fresh.n_built == 5


def test_owner_tags_and_validity_are_kept(spark, tmp_path):
    moment = datetime(2024, 5, 1, 12)
    rows = [("x", "a = 1", ["t"], "ann", moment, None), ("y", "a = ", None, "bob", None, None)]
    names = (
        "subscription_id string, expression string, tags array<string>, owner string, "
        "valid_from timestamp, valid_until timestamp"
    )
    ts.build(spark.createDataFrame(rows, names), tmp_path / "i")
    assert [tuple(row) for row in ts.subscriptions(spark, tmp_path / "i").collect()] == rows[:1]


DETAILED = (
    "subscription_id string, expression string, owner string, valid_from {type}, valid_until {type}"
)


def test_only_what_is_valid_answers(spark, tmp_path):
    noon = datetime(2024, 5, 1, 12)
    rows = [
        ("always", "a > 0", "ann", None, None),
        ("later", "a > 0", "bob", datetime(2099, 1, 1), None),
        ("until", "a > 0", None, noon, datetime(2099, 1, 1)),
        ("gone", "a > 0", None, None, noon),
        ("gone", "a > 1", None, None, None),
    ]
    path = tmp_path / "i"
    frame = spark.createDataFrame(rows, DETAILED.format(type="timestamp"))
    report = ts.build(frame, path, parts=2)
    assert (report.n_subscriptions, report.n_rejects, report.n_expired) == (4, 0, 1)
    events = spark.createDataFrame([(1, 1)], "id int, a int")

    def ask(at):
        return [name for _, name in pairs_of(ts.match(events, tv.open_version(path, at=at)))]

    assert ask(None) == ask("2024-05-01T12:00") == ["always", "until"]
    assert ask(datetime(2024, 5, 1, 11)) == ["always"]
    assert ask(date(2099, 1, 1)) == ["always", "later"]
    # A change replaces the older one at all times.
    change = [("always", "a > 0", None, datetime(2050, 1, 1), None)]
    ts.update(spark, path, spark.createDataFrame(change, DETAILED.format(type="timestamp")))
    assert (ask(None), ask("2060-01-01")) == (["until"], ["always", "until"])
    for by in ("reference", "spark"):
        rows = ts.audit(events, path, share=1.0, by=by).rows.collect()
        assert [row for row in rows if row["subscription_id"] is not None] == []
    owners = {
        row["subscription_id"]: row["owner"] for row in ts.subscriptions(spark, path).collect()
    }
    assert owners == {"always": None, "later": "bob", "until": None, "gone": None}
    with pytest.raises(InputError, match="'soon' is not a moment"):
        ask("soon")


def test_audits_at_the_first_and_the_last_moment_of_a_validity(spark, tmp_path):
    """Valid from its first moment on, and no longer at its last."""
    begin, end = datetime(2098, 1, 1, 12), datetime(2099, 1, 1, 12)
    rows = [("limited", "a > 0", None, begin, end), ("always", "a > 0", None, None, None)]
    frame = spark.createDataFrame(rows, DETAILED.format(type="timestamp"))
    ts.build(frame, tmp_path / "i")
    events = spark.createDataFrame([(1, 1)], "id int, a int")
    step = timedelta(microseconds=1)
    for at, n_valid in ((begin - step, 1), (begin, 2), (end - step, 2), (end, 1), (end + step, 1)):
        opened = tv.open_version(tmp_path / "i", at=at)
        assert len(pairs_of(ts.match(events, opened))) == n_valid
        for by in ("reference", "spark"):
            found = ts.audit(events, opened, share=1.0, by=by).rows.collect()
            assert [tuple(row) for row in found if row["subscription_id"] is not None] == []


def test_an_expired_change_removes_what_it_replaces(spark, tmp_path):
    path = tmp_path / "i"
    past = datetime(2024, 5, 1)
    ts.build(subscription_frame(spark, [("x", "a > 0"), ("y", "a > 0"), ("z", "a > 0")]), path)
    events = spark.createDataFrame([(1, 1)], "id int, a int")
    rows = [
        ("x", "a > 0", None, None, past),
        ("y", "a > 5", None, None, past),  # of two rows with one id, the one that has not expired
        ("y", "a > 1 OR a = 1", "new", None, None),
        ("new", "a > 0", None, None, past),
        (None, "a > 0", None, None, past),
    ]
    change = spark.createDataFrame(rows, DETAILED.format(type="timestamp"))
    report = ts.update(spark, path, change)
    assert (report.n_subscriptions, report.n_rejects, report.n_expired) == (2, 0, 4)
    assert report.version.n_subscriptions == ts.subscriptions(spark, path).count() == 2
    assert pairs_of(ts.match(events, path, event_id="id")) == [(1, "y"), (1, "z")]
    owners = {
        row["subscription_id"]: row["owner"] for row in ts.subscriptions(spark, path).collect()
    }
    assert owners == {"y": "new", "z": None}
    assert ts.compact(spark, path).n_subscriptions == 2


def test_a_validity_that_cannot_be_read_rejects_one_subscription(spark, tmp_path):
    rows = [("x", "a = 1", "ann", "2024-05-01", "soon"), ("y", "a = 1", "bob", "2024-05-01", None)]
    frame = spark.createDataFrame(rows, DETAILED.format(type="string"))
    report = ts.build(frame, tmp_path / "i")
    assert (report.n_subscriptions, report.n_rejects) == (1, 1)
    (reject,) = ts.rejects(spark, tmp_path / "i").collect()
    assert (reject["subscription_id"], reject["code"]) == ("x", "bad-validity")
    assert reject["message"] == "valid_until is 'soon', not a timestamp"
    (kept,) = ts.subscriptions(spark, tmp_path / "i").collect()
    assert kept["valid_from"] == datetime(2024, 5, 1)


def test_a_validity_that_ends_before_it_begins_rejects_the_subscription(spark, tmp_path):
    rows = [("x", "a = 1", "ann", "2050-05-02", "2050-05-01"), ("y", "a = 1", "bob", None, None)]
    frame = spark.createDataFrame(rows, DETAILED.format(type="string"))
    report = ts.build(frame, tmp_path / "i")
    assert (report.n_subscriptions, report.n_rejects) == (1, 1)
    (reject,) = ts.rejects(spark, tmp_path / "i").collect()
    assert (reject["subscription_id"], reject["code"]) == ("x", "bad-validity")
    said = "valid_until is '2050-05-01 00:00:00', not after valid_from, '2050-05-02 00:00:00'"
    assert reject["message"] == said


@pytest.mark.parametrize(
    ("n_rows", "said"),
    [
        (0, "no version was published: the DataFrame holds no subscriptions"),
        (1, "no version was published: the only subscription has expired"),
        (3, "no version was published: all 3 subscriptions have expired"),
    ],
)
def test_nothing_to_build_publishes_nothing(spark, tmp_path, n_rows, said):
    past = datetime(2020, 1, 1)
    rows = [(f"s{at}", "a = 1", None, None, past) for at in range(n_rows)]
    frame = spark.createDataFrame(rows, DETAILED.format(type="timestamp"))
    with pytest.raises(InputError, match=said):
        ts.build(frame, tmp_path / "i")
    assert not (tmp_path / "i").exists()
    first = ts.build(subscription_frame(spark, SUBSCRIPTIONS[:5]), tmp_path / "i")
    with pytest.raises(InputError, match=said):
        ts.build(frame, tmp_path / "i", incremental=False)
    assert tv.IndexStore(tmp_path / "i").current() == first.version


def test_an_index_whose_subscriptions_are_removed_is_an_index_of_nothing(spark, tmp_path):
    ts.build(subscription_frame(spark, SUBSCRIPTIONS[:2]), tmp_path / "i")
    ts.update(spark, tmp_path / "i", removed=[name for name, _ in SUBSCRIPTIONS[:2]])
    report = ts.compact(spark, tmp_path / "i")
    assert (report.n_subscriptions, report.n_parts) == (0, 1)
    frame, _ = event_frame(spark, EVENTS[:3])
    assert ts.match(frame, tmp_path / "i", event_id="id").count() == 0


def test_a_failed_build_publishes_nothing(spark, tmp_path):
    path = tmp_path / "i"
    first = ts.build(subscription_frame(spark, SUBSCRIPTIONS[:5]), path)
    from pyspark.errors import PySparkException

    broken = subscription_frame(spark, SUBSCRIPTIONS).selectExpr(
        "subscription_id", "IF(subscription_id = 's9', raise_error('no'), expression) expression"
    )
    with pytest.raises(PySparkException):
        ts.build(broken, path)
    assert tv.IndexStore(path).current() == first.version


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("name string, expression string", {}, 'no column "subscription_id"'),
        ("subscription_id string, text string", {}, 'no column "expression"'),
        ("subscription_id double, expression string", {}, "ids are text or integers"),
        ("subscription_id string, expression int", {}, "expressions are text"),
        ("subscription_id string, expression string, tags int", {}, "array<string> or string is"),
        (
            "subscription_id string, expression string, valid_from int",
            {},
            "timestamp, date or text",
        ),
        ("subscription_id string, expression string", {"parts": 0}, "0 parts"),
        ("subscription_id string, expression string", {"partition_by": "luck"}, "unknown partit"),
        ("subscription_id string, expression string", {"missing": "maybe"}, "missing is 'maybe'"),
    ],
)
def test_bad_input_is_said_before_anything_runs(spark, tmp_path, columns, options, said):
    with pytest.raises(InputError, match=said):
        ts.build(spark.createDataFrame([], columns), tmp_path / "i", **options)
    assert not (tmp_path / "i").exists()


def test_deltas_answer_as_a_full_build_would(spark, tmp_path):
    path = tmp_path / "i"
    ts.build(
        subscription_frame(spark, SUBSCRIPTIONS[:40]), path, parts=2, schema=DDL + ", level INT"
    )
    added = [*SUBSCRIPTIONS[40:50], ("s3", "vip"), ("s4", "vip AND"), ("fresh", "level = 7")]
    with pytest.warns(tamis.TamisWarning, match='to no subscription: "unknown"'):
        report = ts.update(spark, path, subscription_frame(spark, added), removed=["s5", "unknown"])
    wanted = dict(SUBSCRIPTIONS[:40]) | dict(added[:11])
    del wanted["s5"]
    assert (report.n_rejects, report.n_subscriptions) == (1, len(wanted) + 1)
    frame = event_frame(spark, EVENTS)[0].withColumn("level", F.lit(None).cast("int"))
    assert pairs_of(ts.match(frame, path, event_id="id")) == expected_pairs(
        list(wanted.items()), EVENTS
    )
    assert sum(row["n"] for row in ts.count_by_event(frame, path, event_id="id").collect()) == len(
        expected_pairs(list(wanted.items()), EVENTS)
    )
    listed = ts.subscriptions(spark, path)
    assert {row[0] for row in listed.collect()} == wanted.keys() | {"fresh"}
    merged = ts.compact(spark, path)
    assert [part.kind for part in merged.version.parts] == ["base", "base"]
    assert merged.n_subscriptions == report.n_subscriptions
    assert pairs_of(ts.match(frame, path, event_id="id")) == expected_pairs(
        list(wanted.items()), EVENTS
    )


def test_many_deltas_are_merged(spark, tmp_path):
    path = tmp_path / "i"
    ts.build(subscription_frame(spark, SUBSCRIPTIONS[:5]), path)
    one = ts.update(spark, path, removed=["s1"], most_deltas=1)
    two = ts.update(spark, path, removed=["s2"], most_deltas=1)
    assert ([p.kind for p in one.version.parts], len(two.version.parts)) == (["base", "delta"], 1)
    assert two.n_subscriptions == 3
    with pytest.raises(InputError, match="list of ids"):
        ts.update(spark, path, removed="s1")


# ── the same file, the same answer ──────────────────────────────────────────────────────────

FILE_ROWS = [
    {"id": "a", "expression": "x > 0", "tags": ["u", "v"], "title": "A", "level": 3},
    {"id": "b", "expression": "x > 0", "tags": [], "link": "http://b", "valid_from": "2090-01-01"},
    {"id": "c", "expression": "x > 0", "tags": None, "valid_until": "2020-01-01"},
    {"id": "c", "expression": "x > 0", "tags": ["w"], "title": "C", "valid_until": "2099-01-01"},
    {"id": "d", "expression": "x > 0", "valid_from": "soon"},
    {"id": "e", "expression": "x >", "nested": {"p": 1}},
    {"id": "f", "expression": "x > 0", "nested": {"p": 1, "q": None}, "level": 1.5},
    {"id": "g", "expression": "x > 0", "valid_from": "2021-01-01", "valid_until": "2020-01-01"},
]


@pytest.mark.parametrize("name", ["x.jsonl", "x.csv", "x.parquet"])
def test_the_same_file_gives_the_same_answers_everywhere(spark, tmp_path, name):
    keys = dict.fromkeys(key for row in FILE_ROWS for key in row)
    rows = [dict.fromkeys(keys) | row for row in FILE_ROWS]
    if name == "x.csv":
        rows = [row | {"tags": ",".join(row["tags"] or ()), "nested": None} for row in rows]
    path = write_rows(tmp_path / name, rows)
    local = tamis.build(path)
    shell_run("build", path, "-o", tmp_path / "saved.tamis")
    opened = tamis.open(tmp_path / "saved.tamis")
    ts.build(read_subscriptions(spark, str(path), None), tmp_path / "store")
    parts = tv.open_version(tmp_path / "store")
    (part,) = (Index(parts.map_part(part)) for part in parts.parts)
    assert sorted(local) == sorted(opened) == sorted(part) == ["a", "b", "c", "f"]
    for index in (opened, part):
        assert {one: index.attributes(one) for one in local} == {
            one: local.attributes(one) for one in local
        }
    events = spark.createDataFrame([(1, 5)], "id int, x int")
    for at, hit in ((None, "acf"), ("2095-01-01", "abcf"), ("2099-01-01", "abf")):
        assert sorted(local.match({"x": 5}, at=at)) == list(hit)
        for one in (tmp_path / "store", tmp_path / "saved.tamis"):
            found = ts.match(events, tv.open_version(one, at=at), event_id="id")
            assert [name for _, name in pairs_of(found)] == list(hit)
    rejected = ts.rejects(spark, tmp_path / "store").collect()
    assert {(row["subscription_id"], row["code"], row["hint"]) for row in rejected} == {
        (reject.subscription_id, reject.code, reject.hint) for reject in local.rejects
    }
    hints = {row["subscription_id"]: row["hint"] for row in rejected}
    assert hints.keys() == {"d", "e", "g"}
    assert hints["g"] == "it would never be valid; are the two swapped?"


def test_columns_of_subscriptions_in_matches(spark, tmp_path):
    rows = [("a", "x > 0", "A", 3, None), ("b", "x > 0", None, 4, datetime(2099, 1, 1))]
    names = "subscription_id string, expression string, title string, level int, valid_until "
    frame = spark.createDataFrame(rows, names + "timestamp")
    ts.build(frame, tmp_path / "i", parts=2)
    events = spark.createDataFrame([(1, 5)], "id int, x int")
    wanted = ["title", "level", "valid_until", "expression"]
    found = ts.match(events, tmp_path / "i", event_id="id", columns=wanted)
    expected = [
        (1, "a", "A", "3", None, "x > 0"),
        (1, "b", None, "4", datetime(2099, 1, 1), "x > 0"),
    ]
    assert sorted(tuple(row) for row in found.collect()) == expected
    with pytest.raises(InputError, match='did you mean "title"'):
        ts.match(events, tmp_path / "i", event_id="id", columns=["titel"])
    # Attributes survive changes, and the merge of changes into a new base.
    names = "subscription_id string, expression string, title string"
    more = spark.createDataFrame([("c", "x > 0", "C")], names)
    ts.update(spark, tmp_path / "i", more)
    ts.compact(spark, tmp_path / "i")
    found = ts.match(events, tmp_path / "i", event_id="id", columns=["title", "level"])
    assert sorted(map(tuple, found.collect()), key=lambda row: row[1]) == [
        *((1, "a", "A", "3"), (1, "b", None, "4"), (1, "c", "C", None)),
    ]


def test_columns_of_any_type_are_kept(spark, tmp_path):
    frame = spark.sql(
        """SELECT 'a' AS subscription_id, 'x > 0' AS expression, 1.50BD AS amount,
        DATE'2024-01-31' AS day, TIMESTAMP'2024-01-31 10:00:00' AS at, map('k', 1) AS counts,
        X'6869' AS bytes, NULL AS nothing, INTERVAL '1' YEAR AS years,
        parse_json('{"p": 1}') AS variant, array(1, NULL) AS list"""
    )
    ts.build(frame, tmp_path / "i")
    part = tv.open_version(tmp_path / "i").open()
    found = part.attributes("a")
    assert {name: found[name] for name in ("amount", "day", "at", "bytes", "list")} == {
        "amount": 1.5,
        "day": "2024-01-31",
        "at": "2024-01-31T10:00:00+00:00",
        "bytes": "hi",
        "list": [1, None],
    }
    assert "nothing" not in found
    assert {"counts", "years", "variant"} <= found.keys()


def test_definitions(spark, tmp_path):
    rules = [("a", "@big AND kind = 'k'"), ("b", "NOT @big"), ("c", "@huge"), ("d", "kind = 'k'")]
    frame = subscription_frame(spark, rules)
    definitions = {"big": "n > 10", "huge": "@big AND n > 100"}
    events = spark.createDataFrame(
        [(0, 11, "k"), (1, 5, "k"), (2, 101, "x")], "id INT, n INT, kind STRING"
    )

    def match():
        found = ts.match(events, tmp_path / "i", event_id="id").collect()
        return {(row["event_id"], row["subscription_id"]) for row in found}

    report = ts.build(frame, tmp_path / "i", definitions=definitions, parts=2)
    assert report.n_rejects == 0
    assert match() == {(0, "a"), (0, "d"), (1, "b"), (1, "d"), (2, "c")}
    # The subscriptions are the same, but what one of them refers to is not.
    report = ts.build(frame, tmp_path / "i", definitions={**definitions, "big": "n > 4"}, parts=2)
    assert report.n_built == 2
    assert match() == {(0, "a"), (0, "d"), (1, "a"), (1, "d"), (2, "c")}
    more = subscription_frame(spark, [("e", "NOT @huge AND kind IS NOT NULL")])
    ts.update(spark, tmp_path / "i", more)
    assert (1, "e") in match()
    with pytest.raises(InputError, match="definitions: @big is wrong"):
        ts.build(frame, tmp_path / "j", definitions={**definitions, "big": "n >"})
