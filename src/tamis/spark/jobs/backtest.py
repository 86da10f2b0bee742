"""The backtest job: how often subscriptions would have matched past events."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, overload

from pyspark.sql import Window
from pyspark.sql import functions as F

from tamis.errors import InputError
from tamis.language.limits import DEFAULT_LIMITS, Limits
from tamis.spark.layout import expect_frame, select_key
from tamis.spark.printing import format_frame
from tamis.spark.transforms import count_by_subscription, match, match_lists, subscriptions
from tamis.spark.validity import is_valid
from tamis.versions.opening import open_version
from tamis.versions.unsaved_parts import make_unsaved_parts

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from tamis.versions.part_set import PartSet
    from tamis.versions.unsaved_parts import UnsavedParts

Z: Final = 1.959963984540054  # for a confidence of 95%


@dataclass(frozen=True, slots=True)
class Backtest:
    """How often subscriptions match. Printing it shows those that match most.

    version: the name of the version that answers
    n_events: in total; n_looked_at: of these, evaluated; the same unless there is a sample
    totals: subscription_id, n (in the evaluated events), expected, low, high (in all
    events: the same as n unless there is a sample)
    by_day: day, subscription_id, n; None without a day
    samples: subscription_id, event_id: a few matches of each

    The DataFrames are computed when they are used.
    """

    version: str
    n_events: int
    n_looked_at: int
    totals: DataFrame
    by_day: DataFrame | None
    samples: DataFrame

    def __repr__(self) -> str:
        return f"<Backtest of {self.version}, {self.n_events:,} events: print it, or see totals>"

    def __str__(self) -> str:
        rows = self.totals.orderBy(F.desc("n"), "subscription_id")
        is_exact = self.n_events == self.n_looked_at
        shown = format_frame(rows.select("subscription_id", "n") if is_exact else rows)
        return f"{_describe(self)}\n{shown}"

    def to_pandas(self) -> Any:
        """The table of `totals`."""
        return self.totals.toPandas()


@dataclass(frozen=True, slots=True)
class ChangedBacktest:
    """The effect of changed rules. Printing it shows the totals and the samples.

    version: the name of the version that the rules are compared with
    n_events: in total; n_looked_at: of these, evaluated; the same unless there is a sample
    totals: subscription_id, change (rewritten, or added if the version has no such subscription),
    n_before, n_after, n_gained, n_lost: of the evaluated events
    samples: subscription_id, change (gained or lost), event_id: a few events of each

    The DataFrames are computed when they are used.
    """

    version: str
    n_events: int
    n_looked_at: int
    totals: DataFrame
    samples: DataFrame

    def __repr__(self) -> str:
        return (
            f"<ChangedBacktest of {self.version}, {self.n_events:,} events: print it, or see "
            "totals and samples>"
        )

    def __str__(self) -> str:
        totals = format_frame(self.totals.orderBy("subscription_id"))
        samples = format_frame(self.samples.orderBy(*self.samples.columns))
        return f"{_describe(self)}\n{totals}\n\n{samples}"

    def to_pandas(self) -> Any:
        """The table of `totals`."""
        return self.totals.toPandas()


def _describe(result: Backtest | ChangedBacktest) -> str:
    shown = f"{result.version}, {result.n_events:,} events"
    is_all = result.n_events == result.n_looked_at
    return shown if is_all else f"{shown}, of which {result.n_looked_at:,} were evaluated"


@overload
def backtest(
    events: DataFrame,
    index: Any,
    *,
    event_id: str | None = ...,
    attributes: Any = ...,
    at: Any = ...,
    day: str | Column | None = ...,
    sample: float | None = ...,
    n_samples: int = ...,
    seed: int = ...,
    changed: None = ...,
    limits: Limits = ...,
) -> Backtest: ...


@overload
def backtest(
    events: DataFrame,
    index: Any,
    *,
    event_id: str | None = ...,
    attributes: Any = ...,
    at: Any = ...,
    day: None = ...,
    sample: float | None = ...,
    n_samples: int = ...,
    seed: int = ...,
    changed: Mapping[str, str],
    limits: Limits = ...,
) -> ChangedBacktest: ...


def backtest(  # noqa: PLR0913
    events: DataFrame,
    index: Any,
    *,
    event_id: str | None = None,
    attributes: Any = None,
    at: Any = None,
    day: str | Column | None = None,
    sample: float | None = None,
    n_samples: int = 3,
    seed: int = 0,
    changed: Mapping[str, str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Backtest | ChangedBacktest:
    """Count the matches of each subscription, including those without matches.

    `sample`, a share of the events, gives expected counts and their 95% interval (Wilson) quickly;
    without it all events are evaluated. `day` is a column to count by, for example a date.
    `n_samples` is the number of matches listed for each subscription; `seed` determines which
    events are drawn. `event_id`, `attributes` and `at` are as for `match`.

    `changed`, new expressions by id, counts only these and compares them with the current ones of
    the version; nothing is published. `limits` are those of the new expressions.
    """
    expect_frame(events, "events")
    if sample is not None and not 0 < sample <= 1:
        raise InputError(f"sample is {sample}; a share above 0 and up to 1 is allowed")
    if changed is not None and day is not None:
        raise InputError("day cannot be combined with changed: changes are counted in all")
    parts = open_version(index, at=at)
    by = select_key(events, day) if isinstance(day, str) else day
    looked_at = events if sample is None else events.sample(sample, seed)
    n_events = events.count()
    n_looked_at = n_events if sample is None else looked_at.count()
    if changed is not None:
        rules = _both(events.sparkSession, parts, changed, limits)
        counted = _count_changes(looked_at, rules, event_id, attributes, n_samples, seed)
        return ChangedBacktest(parts.version.name, n_events, n_looked_at, *counted)
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
    few = _few(pairs, ["subscription_id"], n_samples, seed)
    return Backtest(parts.version.name, n_events, n_looked_at, totals, days, few)


def _few(pairs: DataFrame, keys: list[str], n: int, seed: int) -> DataFrame:
    """At most `n` events of each key, drawn at random."""
    order = Window.partitionBy(*keys).orderBy(F.xxhash64("event_id", F.lit(seed)))
    ranked = pairs.withColumn("rank", F.row_number().over(order)).where(F.col("rank") <= n)
    return ranked.select(*keys, "event_id")


# ── changed rules ───────────────────────────────────────────────────────────────────────────

BEFORE: Final = "0"  # before a rule's id: as in the version
AFTER: Final = "1"  # as changed


def _both(
    spark: SparkSession, parts: PartSet, changed: Mapping[str, str], limits: Limits
) -> UnsavedParts:
    """The changed rules before and after, in one index: one pass over the events evaluates both, so
    a pair is gained or lost by the event's row, whatever its id.
    """
    if not isinstance(changed, Mapping) or not changed:
        raise InputError(
            "changed is empty or not a mapping",
            hint='new expressions by id: {"adult": "age >= 21"}',
        )
    for name, text in changed.items():
        if not isinstance(name, str) or not isinstance(text, str):
            raise InputError(f"changed has {name!r}: {text!r}; ids and expressions must be strings")
    make_unsaved_parts(parts, changed, limits)  # the error names the rule by its id
    listed = subscriptions(spark, parts)
    awake = listed if parts.at is None else listed.where(is_valid(parts.at))
    rows = awake.where(F.col("subscription_id").isin(*changed)).collect()
    known = {row["subscription_id"]: row["expression"] for row in rows}
    both = {BEFORE + name: text for name, text in known.items()}
    return make_unsaved_parts(
        parts, both | {AFTER + name: text for name, text in changed.items()}, limits
    )


def _count_changes(  # noqa: PLR0913
    events: DataFrame,
    rules: UnsavedParts,
    event_id: str | None,
    attributes: Any,
    n_samples: int,
    seed: int,
) -> tuple[DataFrame, DataFrame]:
    """The totals and the samples of a `ChangedBacktest`."""
    ids = {name for name, _ in rules.rules}
    own = [
        (name[1:], "rewritten" if BEFORE + name[1:] in ids else "added")
        for name in ids
        if name.startswith(AFTER)
    ]
    listed = events.sparkSession.createDataFrame(own, "subscription_id string, change string")
    lists = match_lists(events, rules, event_id=event_id, attributes=attributes)
    before, after = (_of(side) for side in (BEFORE, AFTER))
    kinds = {
        "before": before,
        "after": after,
        "gained": F.array_except(after, before),
        "lost": F.array_except(before, after),
    }
    each = lists.select("event_id", F.explode(F.array(*map(_tagged, kinds, kinds.values()))))
    rows = each.select("event_id", F.col("col.kind"), F.explode("col.ids").alias("subscription_id"))
    counted = rows.groupBy("subscription_id").agg(
        *(F.count_if(F.col("kind") == kind).alias(f"n_{kind}") for kind in kinds)
    )
    n = [F.coalesce(f"n_{kind}", F.lit(0)).alias(f"n_{kind}") for kind in kinds]
    totals = listed.join(counted, "subscription_id", "left").select("subscription_id", "change", *n)
    changes = rows.where(F.col("kind").isin("gained", "lost")).withColumnRenamed("kind", "change")
    return totals, _few(changes, ["subscription_id", "change"], n_samples, seed)


def _of(side: str) -> Column:
    """The ids of an event's rules before or after."""
    own = F.filter("subscription_ids", lambda name: name.startswith(side))
    return F.transform(own, lambda name: F.substring(name, 2, 2**31 - 1))


def _tagged(kind: str, ids: Column) -> Column:
    return F.struct(F.lit(kind).alias("kind"), ids.alias("ids"))


def _expected(n: Column, n_looked_at: int, n_events: int) -> list[Column]:
    """Expected matches in all events, with Wilson's interval for a share."""
    if n_looked_at in (0, n_events):
        exact = n.cast("double")
        return [exact.alias(name) for name in ("expected", "low", "high")]
    rate = n / n_looked_at
    scale = 1 + Z * Z / n_looked_at
    centre = (rate + Z * Z / (2 * n_looked_at)) / scale
    spread = rate * (1 - rate) / n_looked_at + Z * Z / (4 * n_looked_at * n_looked_at)
    half = F.sqrt(spread) * (Z / scale)
    # Only the events outside the sample are uncertain.
    width = half * math.sqrt(1 - n_looked_at / n_events)
    low, high = (centre - width) * n_events, (centre + width) * n_events
    return [
        (rate * n_events).alias("expected"),
        F.greatest(n.cast("double"), low).alias("low"),
        F.least(F.lit(float(n_events)), high).alias("high"),
    ]
