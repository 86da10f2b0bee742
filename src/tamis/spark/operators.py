"""Statistics and faults of operators on executors, collected on the driver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pyspark.accumulators import Accumulator, AccumulatorParam
from pyspark.sql.utils import is_remote

from tamis.errors import InputError
from tamis.operators.faults import Fault, FaultReport
from tamis.operators.statistics import Statistics
from tamis.versions.store import IndexStore

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from tamis.match.index import Index
    from tamis.versions.manifest import Version

Counts = dict[str, dict[str, float]]


class _Merging(AccumulatorParam[Counts]):
    def zero(self, value: Counts) -> Counts:
        return {}

    def addInPlace(self, value1: Counts, value2: Counts) -> Counts:  # noqa: N802 - Spark's name
        merged = Statistics(value1)
        merged.merge(value2)
        return merged.to_json()


class _Joining(AccumulatorParam[list[Fault]]):
    def zero(self, value: list[Fault]) -> list[Fault]:
        return []

    def addInPlace(self, value1: list[Fault], value2: list[Fault]) -> list[Fault]:  # noqa: N802
        report = FaultReport()
        for fault in (*value1, *value2):
            report.merge(fault)
        return report.faults


@dataclass(frozen=True, slots=True)
class News:
    """The accumulator to which tasks report on operators."""

    counts: Accumulator[Counts]
    faults: Accumulator[list[Fault]]

    def report(self, index: Index) -> None:
        """Report the changes since the last task of this worker."""
        self.counts.add(index.operators.take_news())
        self.faults.add(index.operators.take_faults())


class LearnedStatistics:
    """The reports of match jobs on operators, available when their rows have been produced."""

    def __init__(self, spark: SparkSession) -> None:
        if is_remote():
            raise InputError(
                (
                    "statistics of operators can be collected in a classic session, not by Spark "
                    "Connect"
                ),
                hint="omit `learned`, or run the job through spark-submit",
            )
        context = spark.sparkContext
        self.news = News(context.accumulator({}, _Merging()), context.accumulator([], _Joining()))

    @property
    def value(self) -> Counts:
        """{call: counts}, as in `Index.operators.statistics`."""
        found: Counts = self.news.counts.value
        return found

    @property
    def faults(self) -> list[Fault]:
        """Calls that failed, as in `Index.operators.faults`."""
        found: list[Fault] = self.news.faults.value
        return found


def save_operator_statistics(
    store: str | os.PathLike[str] | IndexStore, learned: LearnedStatistics | Mapping[str, Any]
) -> Version:
    """Publish the statistics of operators with the index: the next build starts from them.

    `learned` was filled by matching, or is its `value`.
    """
    target = store if isinstance(store, IndexStore) else IndexStore(store)
    news = learned.value if isinstance(learned, LearnedStatistics) else learned

    def add(newest: Version | None) -> Version:
        version = newest or target.current()
        known = Statistics(version.statistics.get("operators"))
        known.merge(news)
        return replace(version, statistics=version.statistics | {"operators": known.to_json()})

    return target.publish(add)
