"""What executors learn of operators, gathered on the driver, and kept for the next build."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import AccumulatorParam

from tamis.operators.statistics import Statistics
from tamis.spark.store import IndexStore

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from tamis.spark.manifest import Version

Counts = dict[str, dict[str, float]]


class _Merging(AccumulatorParam[Counts]):
    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        merged = Statistics(value1)
        merged.merge(value2)
        return merged.to_json()


class LearnedStatistics:
    """Counts of calls from all tasks of a match job, known when its rows have been made."""

    def __init__(self, spark: SparkSession) -> None:
        self.accumulator = spark.sparkContext.accumulator({}, _Merging())

    @property
    def value(self) -> Counts:
        """{call: counts}, as `Index.operators.statistics` has them."""
        found: Counts = self.accumulator.value
        return found


def save_operator_statistics(
    store: str | os.PathLike[str] | IndexStore, learned: LearnedStatistics | Mapping[str, Any]
) -> Version:
    """Publish what was learned of operators with the index: the next build starts from it."""
    target = store if isinstance(store, IndexStore) else IndexStore(store)
    news = learned.value if isinstance(learned, LearnedStatistics) else learned

    def add(newest: Version | None) -> Version:
        version = newest or target.current()
        known = Statistics(version.statistics.get("operators"))
        known.merge(news)
        return replace(version, statistics=version.statistics | {"operators": known.to_json()})

    return target.publish(add)
