"""Events and subscriptions for the Spark tests, with the pairs the reference evaluator says."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

import tamis
from tamis.language import Schema, check, parse
from tamis.logic.evaluate import evaluate

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = (
    "country string, age bigint, score double, tags array<string>, vip boolean, "
    "geo struct<lat: double, city: string>"
)
DDL = (  # the same, as expressions name attributes
    "country STRING, age BIGINT, score DOUBLE, tags ARRAY<STRING>, vip BOOLEAN, "
    "geo.lat DOUBLE, geo.city STRING"
)
_CITIES = ["Oslo", "Bergen", "Paris", "Lyon"]
_COUNTRIES = ["NO", "FR", "DE", "it's"]


def make_event(rng: random.Random) -> dict[str, Any]:
    """An event of which any attribute may be missing or NULL."""
    full = {
        "country": rng.choice(_COUNTRIES),
        "age": rng.randrange(100),
        "score": rng.choice([0.5, 1.25, -3.0, rng.random()]),
        "tags": rng.sample(["a", "b", "c", "d"], rng.randrange(4)),
        "vip": rng.random() < 0.5,
        "geo": rng.choice([None, {"lat": rng.uniform(-5, 5), "city": rng.choice(_CITIES)}]),
    }
    return {name: value for name, value in full.items() if rng.random() < 0.8}


def make_expression(rng: random.Random, depth: int = 2) -> str:
    """An expression over the attributes above."""
    if depth and rng.random() < 0.7:
        parts = [make_expression(rng, depth - 1) for _ in range(rng.randrange(2, 4))]
        kind = rng.randrange(5)
        if kind == 0:
            return f"NOT ({parts[0]})"
        if kind == 1:
            return f"at_least(2, {', '.join(parts)})"
        return "(" + (" AND " if kind < 4 else " OR ").join(parts) + ")"
    return rng.choice(
        [
            lambda: f"country = '{rng.choice(['NO', 'FR', 'DE'])}'",
            lambda: f"country IN ('NO', '{rng.choice(['FR', 'DE'])}')",
            lambda: f"age >= {rng.randrange(100)}",
            lambda: f"age BETWEEN {rng.randrange(50)} AND {rng.randrange(50, 100)}",
            lambda: f"score < {rng.choice([0.5, 1.25, 0.1])}",
            lambda: f"array_contains(tags, '{rng.choice('abcd')}')",
            lambda: "vip",
            lambda: f"geo.lat > {rng.randrange(-4, 5)}",
            lambda: f"geo.city LIKE '{rng.choice('OBPL')}%'",
            lambda: "score IS NULL",
        ]
    )()


def make_workload(seed: int, n_subscriptions: int = 120, n_events: int = 300):
    """Subscriptions, some of them wrong, and events."""
    rng = random.Random(seed)
    subscriptions = [(f"s{n}", make_expression(rng)) for n in range(n_subscriptions)]
    subscriptions += [("always", "TRUE"), ("never", "FALSE"), ("broken", "age >="), ("s1", "vip")]
    events = [make_event(rng) for _ in range(n_events)]
    return subscriptions, events


def expected_pairs(subscriptions, events) -> list[tuple[int, str]]:
    """The pairs (event number, id) that the reference evaluator says, first of equal ids."""
    schema = Schema.of(DDL)
    pairs = []
    for name, text in dict(reversed(subscriptions)).items():
        try:
            condition = check(parse(text), schema)
        except tamis.ExpressionError:
            continue
        pairs += [(at, name) for at, event in enumerate(events) if evaluate(condition, event)]
    return sorted(pairs)


def subscription_frame(spark: SparkSession, subscriptions) -> DataFrame:
    return spark.createDataFrame(subscriptions, "subscription_id string, expression string")


def event_frame(spark: SparkSession, events, layout: str = "columns") -> tuple[DataFrame, Any]:
    """The events in a layout, with their numbers as `id`; and what `attributes` says of it."""
    if layout == "json":
        rows = [(at, json.dumps(event)) for at, event in enumerate(events)]
        return spark.createDataFrame(rows, "id bigint, event string").repartition(3), "event"
    names = ["country", "age", "score", "tags", "vip", "geo"]
    if layout == "map":
        rows = [(at, _flat(event)) for at, event in enumerate(events)]
        return spark.createDataFrame(rows, "id bigint, event map<string,string>"), "event"
    rows = [(at, *(event.get(name) for name in names)) for at, event in enumerate(events)]
    frame = spark.createDataFrame(rows, f"id bigint, {SCHEMA}").repartition(3)
    if layout == "columns":
        return frame.withColumn("unused", frame["id"]), None
    return frame.selectExpr("id", f"struct({', '.join(names)}) AS event"), "event"


def _flat(event: dict[str, Any]) -> dict[str, str | None]:
    flat: dict[str, str | None] = {}
    for name, value in event.items():
        if name == "geo":
            flat |= {f"geo.{inner}": str(own) for inner, own in (value or {}).items()}
        elif name != "tags":  # a map of texts has no arrays
            flat[name] = json.dumps(value) if isinstance(value, bool) else str(value)
    return flat


def pairs_of(frame: DataFrame) -> list[tuple[Any, str]]:
    return sorted((row["event_id"], row["subscription_id"]) for row in frame.collect())
