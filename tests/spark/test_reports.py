"""What is misspelt, missing or of another type, as jobs report it."""

from __future__ import annotations

import warnings
from dataclasses import replace

import pytest

import tamis
import tamis.spark as ts
import tamis.versions as tv
from tamis import TamisWarning
from tamis.language.lookalikes import Lookalike, Use
from tamis.spark.jobs.stream import MatchBatch
from tamis.versions.manifest import read_version
from tamis.versions.storage import Storage
from tests.spark.workloads import subscription_frame

RULES = [(f"r{number:02}", f"age > {number} AND user.name = 'x'") for number in range(20)]
SCHEMA = "age INT, user.name STRING"


def warned(call):
    """What a call returns, and its warnings, which must be ours."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        returned = call()
    shown = [one for one in caught if issubclass(one.category, TamisWarning)]
    assert all(one.filename == __file__ for one in shown)
    return returned, [str(one.message) for one in shown]


# ── builds ──────────────────────────────────────────────────────────────────────────────────


def test_a_build_reports_a_misspelt_attribute(spark, tmp_path):
    rows = subscription_frame(spark, [*RULES, ("typo", "agee > 3")])
    report, notes = warned(lambda: ts.build(rows, tmp_path / "i", parts=3))
    assert report.misspelt == (Lookalike("agee", "age", 1, 20, "typo"),)
    (message,) = notes
    assert 'agee (subscription "typo") looks like age (20 subscriptions)' in message
    assert "misspelt" in repr(report)
    # The parts are reused, and so are the reports about them.
    again, notes = warned(lambda: ts.build(rows, tmp_path / "i", parts=3))
    assert (again.n_built, again.misspelt, notes) == (0, report.misspelt, [message])


@pytest.mark.parametrize(
    ("column", "tags", "n_notes"),
    [("string", "x;y,z", 1), ("array<string>", ["x;y", "z"], 1), ("string", "x,y", 0)],
)
def test_a_build_reports_tags_that_seem_to_be_several(spark, tmp_path, column, tags, n_notes):
    columns = f"subscription_id string, expression string, tags {column}"
    rows = spark.createDataFrame([("a", "x = 1", tags), ("b", "x = 2", None)], columns)
    _, notes = warned(lambda: ts.build(rows, tmp_path / "i"))
    assert len(notes) == n_notes
    for note in notes:
        assert note.startswith('a tag seems to be several in one: "x;y"')


def test_builds_and_updates_count_what_looks_switched_off(spark, tmp_path):
    columns = "subscription_id string, expression string, status string, deleted boolean"
    rows = [("a", "x = 1", "disabled", False), ("b", "x = 1", "live", None)]
    _, (note,) = warned(lambda: ts.build(spark.createDataFrame(rows, columns), tmp_path / "i"))
    assert note == (
        'a column is stored with the subscriptions and not used: status is "disabled" in 1 '
        "subscription and does not switch it off: leave out its row"
    )
    gone = spark.createDataFrame([("b", "x = 1", "live", True)], columns)
    _, (note,) = warned(lambda: ts.update(spark, tmp_path / "i", gone))
    assert "deleted is true in 1 subscription and does not switch it off" in note


def test_a_declared_schema_is_not_guessed_about(spark, tmp_path):
    rows = subscription_frame(spark, [*RULES, ("twin", "agee > 3")])
    schema = SCHEMA + ", agee INT, other INT"
    report, notes = warned(lambda: ts.build(rows, tmp_path / "i", schema=schema))
    assert (report.misspelt, report.unused, notes) == ((), ("other",), [])
    merged, notes = warned(lambda: ts.compact(spark, tmp_path / "i"))
    assert (merged.unused, notes) == ((), [])


def test_an_update_reports_what_is_misspelt_and_whom_it_cannot_remove(spark, tmp_path):
    store = tmp_path / "i"
    ts.build(subscription_frame(spark, RULES), store, parts=2)
    ts.update(spark, store, removed=["r01"])
    change = subscription_frame(spark, [("typo", "Age > 3"), ("r02", "age > 7")])
    removed = ["r03", "R04", "r01", "R04"]
    report, notes = warned(lambda: ts.update(spark, store, change, removed=removed))
    assert report.unknown == ("R04", "r01")
    assert [one.attribute for one in report.misspelt] == ["Age"]
    assert notes[0] == (
        '2 ids to remove belong to no subscription: "R04", "r01"; nothing was removed for them'
    )
    assert 'Age (subscription "typo") looks like age' in notes[1]
    assert report.n_subscriptions == 19
    # A job that runs again finds nothing to remove, and nothing is wrong with that.
    again, notes = warned(lambda: ts.update(spark, store, change, removed=removed))
    assert (again.is_published, again.unknown) == (False, ())
    assert [one for one in notes if "remove" in one] == []


def test_an_update_that_is_merged_reports_too(spark, tmp_path):
    ts.build(subscription_frame(spark, RULES), tmp_path / "i")
    removed = ["r01", "nobody"]
    report, notes = warned(lambda: ts.update(spark, tmp_path / "i", removed=removed, most_deltas=0))
    assert (report.unknown, report.version.name) == (("nobody",), "v00000003")
    assert notes == [
        'an id to remove belongs to no subscription: "nobody"; nothing was removed for it'
    ]


def test_an_update_that_changes_nothing_publishes_nothing(spark, tmp_path):
    ts.build(subscription_frame(spark, RULES), tmp_path / "i")
    report, notes = warned(lambda: ts.update(spark, tmp_path / "i", removed=["nobody", "nobody"]))
    assert (report.is_published, report.n_built, report.unknown) == (False, 0, ("nobody",))
    assert notes == [
        'an id to remove belongs to no subscription: "nobody"; nothing was removed for it'
    ]
    assert not ts.update(spark, tmp_path / "i").is_published
    assert tv.IndexStore(tmp_path / "i").numbers() == [1]


def test_manifests_without_uses_can_be_read(spark, tmp_path):
    ts.build(subscription_frame(spark, RULES), tmp_path / "i")
    version = tv.IndexStore(tmp_path / "i").current()
    assert version.uses == {("age",): Use(20, "r00"), ("user", "name"): Use(20, "r00")}
    older = replace(version, parts=tuple(replace(part, uses=()) for part in version.parts))
    assert read_version(older.to_bytes(), "there").uses == {}
    assert read_version(version.to_bytes(), "there").uses == version.uses


# ── events ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    path = tmp_path_factory.mktemp("stores") / "index"
    ts.build(subscription_frame(spark, RULES), path, schema=SCHEMA, parts=2)
    return path


MISSING = (
    "an attribute that subscriptions use is missing in the columns of the events: {}. Correct the "
    "expressions or the names in the events, unless this is intended"
)
UNFIT = (
    "a column is of another type than the index reads: {}. All values are treated as missing: "
    "cast it, or declare the type in the schema of the index"
)
NAME = 'user.name (20 subscriptions, such as "r00")'
AGE = 'age (20 subscriptions, such as "r00")'


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ("age INT, user STRUCT<name: STRING>", []),
        ("age DOUBLE, user MAP<STRING, STRING>", []),
        ("Age INT, user STRUCT<name: STRING>", [MISSING.format(f"{AGE}, but they have Age")]),
        (
            "age INT, user STRUCT<nmae: STRING>",
            [MISSING.format(f"{NAME}, but they have user.nmae")],
        ),
        ("age INT", [MISSING.format(NAME)]),
        (
            "age STRING, user STRUCT<name: STRING>",
            [UNFIT.format('age is string, not integer (20 subscriptions, such as "r00")')],
        ),
        (
            "age INT, user MAP<STRING, INT>",
            [UNFIT.format('user.name is int, not string (20 subscriptions, such as "r00")')],
        ),
        (
            "age DATE, other INT",
            [
                MISSING.format(NAME),
                UNFIT.format('age is date, not integer (20 subscriptions, such as "r00")'),
            ],
        ),
    ],
)
@pytest.mark.parametrize("is_whole", [False, True], ids=["columns", "struct"])
def test_columns_are_compared_before_anything_runs(spark, store, columns, expected, is_whole):
    events = spark.createDataFrame([], f"id INT, event STRUCT<{as_fields(columns)}>")
    options = {"attributes": "event"}
    if not is_whole:
        events, options = events.select("id", "event.*"), {}
    for call in (ts.match, ts.match_lists, ts.count_by_event):
        assert warned(lambda: call(events, store, event_id="id", **options))[1] == expected  # noqa: B023
    assert warned(lambda: ts.count_by_subscription(events, store, **options))[1] == expected


def as_fields(columns: str) -> str:
    depth, found = 0, ""
    for at, letter in enumerate(columns):
        depth += (letter == "<") - (letter == ">")
        is_gap = letter == " " and not depth and columns[at - 1] != ","
        found += ": " if is_gap else letter
    return found


def test_of_json_nothing_is_known_before(spark, store):
    events = spark.createDataFrame([("{}",)], "event STRING")
    assert warned(lambda: ts.match(events, store, attributes="event"))[1] == []


def test_a_saved_index_reports_who_uses_an_attribute(spark, tmp_path):
    tamis.build(dict(RULES)).save(tmp_path / "i")
    events = spark.createDataFrame([], "age INT")
    assert warned(lambda: ts.match(events, tmp_path / "i"))[1] == [MISSING.format(NAME)]


def test_a_stream_reports_at_its_start(spark, store, tmp_path):
    spark.createDataFrame([(1,)], "age INT").write.parquet(str(tmp_path / "events"))
    events = spark.readStream.schema("age INT").parquet(str(tmp_path / "events"))

    def run():
        query = ts.stream(
            *(events, store, tmp_path / "out"),
            checkpoint=tmp_path / "checkpoint",
            trigger={"availableNow": True},
        )
        query.awaitTermination()

    assert warned(run)[1] == [MISSING.format(NAME)]


def test_a_stream_reports_of_a_new_version_once(spark, tmp_path):
    store = tv.IndexStore(tmp_path / "i")
    ts.build(subscription_frame(spark, RULES[:1]), store)
    batch = spark.createDataFrame([(1,)], "age INT")
    options = {"event_id": None, "attributes": None}
    sink = lambda frame, _: frame.collect()  # noqa: E731
    call = MatchBatch(store, Storage(str(tmp_path / "c")), sink, None, options)
    assert len(warned(lambda: call(batch, 0))[1]) == 1
    assert warned(lambda: call(batch, 1))[1] == []
    ts.update(spark, store, subscription_frame(spark, [("new", "height > 3")]))
    (note,) = warned(lambda: call(batch, 2))[1]
    assert 'height (subscription "new")' in note
    assert warned(lambda: call(batch, 3))[1] == []


def test_columns_that_the_caller_leaves_out_are_not_missing(spark, store):
    events = spark.createDataFrame([], "id INT, age INT, user STRUCT<name: STRING>")
    assert warned(lambda: ts.match(events, store, attributes=["age"]))[1] == []
    notes = warned(lambda: ts.match(events.drop("user"), store, attributes=["age"]))[1]
    assert notes == [MISSING.format(NAME)]
