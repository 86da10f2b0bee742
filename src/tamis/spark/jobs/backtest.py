"""The backtest job: what subscriptions would have matched."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import Window
from pyspark.sql import functions as F

from tamis.errors import InputError
from tamis.spark.layout import select_key
from tamis.spark.reading import open_version
from tamis.spark.transforms import count_by_subscription, match, subscriptions

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

Z: Final = 1.959963984540054  # of a confidence of 95%


@dataclass(frozen=True, slots=True)
class Backtest:
    """What came of it; all are DataFrames, computed when they are asked for.

    totals: subscription_id, n (in the events that were looked at), expected, low, high (in all
    events: the same as n unless only a sample was looked at)
    by_day: day, subscription_id, n; None without a day
    samples: subscription_id, event_id: a few matches of each
    """

    n_events: int  # in all
    n_looked_at: int
    totals: DataFrame
    by_day: DataFrame | None
    samples: DataFrame


def backtest(  # noqa: PLR0913
    events: DataFrame,
    index: Any,
    *,
    event_id: str | None = None,
    attributes: Any = None,
    day: str | Column | None = None,
    sample: float | None = None,
    n_samples: int = 3,
    seed: int = 0,
) -> Backtest:
    """Count the matches of each subscription, those without any included.

    `sample`, a share of the events, gives expected counts and their 95% interval (Wilson) soon;
    without it all events are looked at. `day` is a column to count by: a date, say.
    """
    if sample is not None and not 0 < sample <= 1:
        raise InputError(f"sample is {sample}; a share above 0 and up to 1 is allowed")
    parts = open_version(index)
    by = select_key(events, day) if isinstance(day, str) else day
    looked_at = events if sample is None else events.sample(sample, seed)
    n_events = events.count()
    n_looked_at = n_events if sample is None else looked_at.count()
    found = count_by_subscription(looked_at, parts, attributes=attributes)
    own = subscriptions(events.sparkSession, parts).select("subscription_id")
    n = F.coalesce("n", F.lit(0))
    totals = own.join(found, "subscription_id", "left").select(
        "subscription_id", n.alias("n"), *_expected(n, n_looked_at, n_events)
    )
    days = None
    if by is not None:
        days = count_by_subscription(looked_at, parts, attributes=attributes, by=by)
        days = days.withColumnRenamed("by", "day")
    pairs = match(looked_at, parts, event_id=event_id, attributes=attributes)
    order = Window.partitionBy("subscription_id").orderBy(F.xxhash64("event_id", F.lit(seed)))
    few = pairs.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= n_samples)
    return Backtest(n_events, n_looked_at, totals, days, few.select("subscription_id", "event_id"))


def _expected(n: Column, n_looked_at: int, n_events: int) -> list[Column]:
    """Matches in all events, with Wilson's interval for a share."""
    if n_looked_at in (0, n_events):
        exact = n.cast("double")
        return [exact.alias(name) for name in ("expected", "low", "high")]
    rate = n / n_looked_at
    scale = 1 + Z * Z / n_looked_at
    centre = (rate + Z * Z / (2 * n_looked_at)) / scale
    spread = rate * (1 - rate) / n_looked_at + Z * Z / (4 * n_looked_at * n_looked_at)
    half = F.sqrt(spread) * (Z / scale)
    # What the sample left out is all that is uncertain.
    width = half * math.sqrt(1 - n_looked_at / n_events)
    low, high = (centre - width) * n_events, (centre + width) * n_events
    return [
        (rate * n_events).alias("expected"),
        F.greatest(n.cast("double"), low).alias("low"),
        F.least(F.lit(float(n_events)), high).alias("high"),
    ]
