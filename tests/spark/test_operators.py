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
    (part,) = tamis.spark.open_version(store).with_operators(OPERATORS).open()
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
    called = tamis.spark.open_version(tmp_path / "store").version.typed_schema().operators
    tamis.spark.update(spark, tmp_path / "store", rows.where(~is_first))
    options = {"event_id": "event_id", "operators": OPERATORS}
    matched = tamis.spark.match(events, tmp_path / "store", **options).collect()
    assert {(row["event_id"], row["subscription_id"]) for row in matched} == set(EXPECTED)
    version = tamis.spark.open_version(tmp_path / "store").version
    assert {own.name for own in called} < {own.name for own in version.typed_schema().operators}
