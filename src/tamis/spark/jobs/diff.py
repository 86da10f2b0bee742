"""The diff job: compares the answers of two versions over the same events."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as F

from tamis.spark.layout import expect_frame
from tamis.spark.printing import format_frame
from tamis.spark.transforms import count_by_subscription, match, subscriptions
from tamis.versions.opening import open_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Diff:
    """Two versions over the same events. Printing it shows the first rows of `counts`.

    before, after: the names of the versions
    counts: one row for each subscription that is not the same in both: subscription_id string,
    n_before, n_after bigint, change string (added, removed, rewritten, or counted for one whose
    text is the same but whose count is not); computed when it is used
    """

    before: str
    after: str
    counts: DataFrame
    _arguments: tuple[Any, ...]

    def __repr__(self) -> str:
        return f"<Diff of {self.before} and {self.after}: print it, or see counts and pairs()>"

    def __str__(self) -> str:
        rows = format_frame(self.counts.orderBy("subscription_id"))
        return f"{self.before} → {self.after}: subscriptions that differ\n{rows}"

    def to_pandas(self) -> Any:
        """The table of `counts`."""
        return self.counts.toPandas()

    def pairs(self) -> DataFrame:
        """The gained and the lost pairs of the subscriptions in `counts`.

        Out: change string (gained or lost), event_id, subscription_id string
        """
        events, before, after, event_id, attributes = self._arguments
        own = self.counts.select("subscription_id")
        old, new = (
            match(events, index, event_id=event_id, attributes=attributes).join(
                own, "subscription_id", "left_semi"
            )
            for index in (before, after)
        )
        columns = ["change", "event_id", "subscription_id"]
        gained = new.exceptAll(old.select(new.columns)).withColumn("change", F.lit("gained"))
        lost = old.exceptAll(new.select(old.columns)).withColumn("change", F.lit("lost"))
        return gained.select(*columns).unionByName(lost.select(*columns))


def diff(  # noqa: PLR0913
    events: DataFrame,
    before: Any,
    after: Any,
    *,
    event_id: str | None = None,
    attributes: Any = None,
    at: Any = None,
) -> Diff:
    """Compare two versions by counts, which makes no pairs; `pairs` of the result makes them.

    `before` and `after` are named as an index is; `event_id`, `attributes` and `at`
    are as for `match`.
    """
    expect_frame(events, "events")
    old, new = open_version(before, at=at), open_version(after, at=at)
    spark = events.sparkSession
    texts = [
        subscriptions(spark, parts).select("subscription_id", F.col("expression").alias(name))
        for parts, name in ((old, "before"), (new, "after"))
    ]
    counts = [
        count_by_subscription(events, parts, attributes=attributes).withColumnRenamed("n", name)
        for parts, name in ((old, "n_before"), (new, "n_after"))
    ]
    both = texts[0].join(texts[1], "subscription_id", "full")
    for counted in counts:
        both = both.join(counted, "subscription_id", "left")
    n_before, n_after = (F.coalesce(n, F.lit(0)) for n in ("n_before", "n_after"))
    change = (
        F.when(F.col("before").isNull(), "added")
        .when(F.col("after").isNull(), "removed")
        .when(F.col("before") != F.col("after"), "rewritten")
        .when(n_before != n_after, "counted")
    )
    changed = both.select(
        "subscription_id",
        n_before.alias("n_before"),
        n_after.alias("n_after"),
        change.alias("change"),
    ).where("change IS NOT NULL")
    names = (old.version.name, new.version.name)
    return Diff(*names, changed, (events, old, new, event_id, attributes))
