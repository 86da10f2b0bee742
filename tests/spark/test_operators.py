"""Operators on executors: the UAV scenario, its bindings, and what is learned of it."""

from __future__ import annotations

import json

import pytest
from pyspark.errors import PythonException

import tamis
import tamis.spark
from tests.operators.uav import EVENTS, SUBSCRIPTIONS

OPERATORS = "tests.operators.uav"


@pytest.fixture(scope="module")
def events(spark):
    rows = [{"event_id": number, **event} for number, (event, _) in enumerate(EVENTS)]
    schema = (
        "event_id bigint, x double, y double, chases array<array<string>>, mobs array<bigint>, "
        "traffic array<string>, pedestrians bigint, police_cars bigint, tour_boats bigint, "
        "coast_guard_boats bigint, unrelated string"
    )
    return spark.createDataFrame(rows, schema).repartition(2)


EXPECTED = {
    (number, name): values
    for number, (_, found) in enumerate(EVENTS)
    for name, values in found.items()
}


def test_the_five_subscriptions_on_spark(spark, events, tmp_path):
    subscriptions = spark.createDataFrame(
        list(SUBSCRIPTIONS.items()), "subscription_id string, expression string"
    )
    store = tmp_path / "store"
    report = tamis.spark.build(subscriptions, store, operators=OPERATORS)
    assert (report.n_subscriptions, report.n_rejects) == (5, 0)
    learned = tamis.spark.LearnedStatistics(spark)
    options = {"event_id": "event_id", "operators": OPERATORS}
    matched = tamis.spark.match(events, store, bindings=True, learned=learned, **options).collect()
    found = {
        (row["event_id"], row["subscription_id"]): json.loads(row["bindings"] or "{}")
        for row in matched
    }
    assert found == EXPECTED
    lists = tamis.spark.match_lists(events, store, **options).collect()
    pairs = {(row["event_id"], name) for row in lists for name in row["subscription_ids"]}
    assert pairs == set(EXPECTED)
    # What executors learned is known here, and is where the next build begins.
    assert learned.value["loc_in('Bronx')"]["calls"] >= 10
    tamis.spark.save_operator_statistics(store, learned)
    again = tamis.spark.build(subscriptions, store, operators=OPERATORS, incremental=False)
    part = tamis.versions.open_version(store).with_operators(OPERATORS).open()
    assert part.operators.statistics["loc_in('Bronx')"] == learned.value["loc_in('Bronx')"]
    assert again.version.number > report.version.number


def test_a_saved_index_and_a_missing_operator(spark, events, tmp_path):
    tamis.build(SUBSCRIPTIONS, operators=OPERATORS).save(tmp_path / "index")
    counted = tamis.spark.count_by_subscription(events, tmp_path / "index", operators=OPERATORS)
    assert {row["subscription_id"]: row["n"] for row in counted.collect()} == dict.fromkeys(
        SUBSCRIPTIONS, 1
    )
    with pytest.raises(PythonException, match="cannot be imported"):
        tamis.spark.match(events, tmp_path / "index", operators="no_such_module").collect()


def test_an_update_calls_what_was_not_called_before(spark, events, tmp_path):
    names = list(SUBSCRIPTIONS)
    rows = spark.createDataFrame(
        list(SUBSCRIPTIONS.items()), "subscription_id string, expression string"
    )
    is_first = rows["subscription_id"] == names[0]
    tamis.spark.build(rows.where(is_first), tmp_path / "store", operators=OPERATORS)
    called = tamis.versions.open_version(tmp_path / "store").version.typed_schema().operators
    tamis.spark.update(spark, tmp_path / "store", rows.where(~is_first))
    options = {"event_id": "event_id", "operators": OPERATORS}
    matched = tamis.spark.match(events, tmp_path / "store", **options).collect()
    assert {(row["event_id"], row["subscription_id"]) for row in matched} == set(EXPECTED)
    version = tamis.versions.open_version(tmp_path / "store").version
    assert {own.name for own in called} < {own.name for own in version.typed_schema().operators}


PLACES = [(0, "40.8448", "-73.8648"), (1, "40.7580", "-73.9855"), (2, "40", "-73"), (3, "x", None)]


def test_places_as_texts_numbers_and_json(spark, tmp_path):
    """Operators are given the same on executors, whatever the events are made of."""
    boroughs = "tests.operators.boroughs"
    texts = {"in": "borough_in('Bronx')", "far": "metres_from('Bronx', ?m) AND ?m > 50000"}
    rows = spark.createDataFrame(
        [*texts.items(), ("typo", "borough_in('Bornx')")],
        "subscription_id string, expression string",
    )
    report = tamis.spark.build(rows, tmp_path / "store", operators=boroughs)
    assert (report.n_subscriptions, report.n_rejects) == (2, 1)
    (reject,) = tamis.spark.rejects(spark, tmp_path / "store").collect()
    assert (reject["subscription_id"], reject["code"]) == ("typo", "bad-argument")
    more = [("near", "borough_within('Bronx', 9000)"), ("nowhere", "borough_within('Bronx', -1)")]
    added = spark.createDataFrame(more, "subscription_id string, expression string")
    updated = tamis.spark.update(spark, tmp_path / "store", added, operators=boroughs)
    assert (updated.n_subscriptions, updated.n_rejects) == (3, 1)
    events = spark.createDataFrame(PLACES, "event_id bigint, lat string, lon string")
    layouts = {
        "numbers": events.selectExpr(
            "event_id", "try_cast(lat AS decimal(9,6)) lat", "cast(lon AS double) lon"
        ),
        "map": events.selectExpr("event_id", "map('lat', lat, 'lon', lon) event"),
        "JSON": events.where("event_id < 3").selectExpr(
            "event_id", """concat('{"lat":', lat, ',"lon":', lon, '}') event"""
        ),
    }
    expected = {(0, "in"), (0, "near"), (1, "near"), (2, "far")}
    for name, frame in layouts.items():
        own = {"attributes": "event"} if "event" in frame.columns else {}
        matched = tamis.spark.match(
            frame, tmp_path / "store", event_id="event_id", operators=boroughs, **own
        )
        found = {(row["event_id"], row["subscription_id"]) for row in matched.collect()}
        assert found == expected, name


def test_an_operator_that_reads_all_is_given_the_attributes_alone(spark, tmp_path):
    rows = spark.createDataFrame(
        [("all", "tests_all(?x)")], "subscription_id string, expression string"
    )
    boroughs = "tests.operators.boroughs"
    tamis.spark.build(rows, tmp_path / "store", operators=boroughs)
    events = spark.createDataFrame([("e", 5, 1.5)], "event_id string, code bigint, x double")
    options = {"event_id": "event_id", "operators": boroughs, "bindings": True}
    (row,) = tamis.spark.match(events, tmp_path / "store", **options).collect()
    assert json.loads(row["bindings"]) == {"x": "code=5 event_id=e x=1.5"}
