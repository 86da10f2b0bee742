"""Functions from DataFrames to DataFrames: none of them runs a job or writes anything.

`index` is the path of a saved index, the path or URI of a store of versions, or an opened version
(`open_version`). `attributes` says where an event's attributes are: None for a column each, a list
of such columns, or the name of one column that holds whole events as a struct, a map or JSON.
`event_id` names the column of ids; by default it is the column event_id, and without that column
the events are numbered as Spark numbers rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Unpack

from pyspark.sql import Window
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tamis.arguments import expect_best
from tamis.errors import InputError
from tamis.language.weights import WEIGHT
from tamis.match.details import expect_columns, report_weightless
from tamis.match.event_columns import read_names
from tamis.spark.asking import EventOptions, EventQuery, Options
from tamis.spark.counting import KEYS, CountRuns, SumRuns, count_schema, run_schema
from tamis.spark.layout import (
    ANONYMOUS,
    KEPT,
    expect_frame,
    expect_some,
    quoted,
    select_events,
    select_key,
    select_values,
)
from tamis.spark.matching import (
    CountByEvent,
    CountTerms,
    MatchLists,
    MatchRows,
    RejectValues,
    WorkerQuestion,
)
from tamis.spark.spread import AUTO
from tamis.spark.tables import ReadRejects, ReadSubscriptions
from tamis.spark.workers import run_on_workers
from tamis.versions.opening import open_version
from tamis.versions.tables import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.types import DataType

    from tamis.spark.asking import Attributes
    from tamis.spark.layout import Layout
    from tamis.versions.part_set import PartSet

OWN_COLUMNS: Final = ("event_id", "subscription_id", "bindings", "tags", "version")
_STRING: Final = StringType()
_STRINGS: Final = ArrayType(StringType())
# Types of columns that every subscription may have; others are strings.
TYPES: Final = {
    "expression": StringType(),
    "tags": ArrayType(StringType()),
    "valid_from": TimestampType(),
    "valid_until": TimestampType(),
    WEIGHT: DoubleType(),
}
RANK: Final = "\x01rank"  # of a match among those of its event


def match(  # noqa: PLR0913 - what to match, and which columns to return
    events: DataFrame,
    index: Any,
    *,
    top: int | None = None,
    tags: bool = False,
    version: bool = False,
    bindings: bool = False,
    columns: Sequence[str] = (),
    event_columns: Sequence[str] = (),
    **options: Unpack[EventOptions],
) -> DataFrame:
    """One row for each match; with `top`, for the matches of highest weight of each event, at most
    so many, equal weights by id.

    Out: event_id (as in the events), subscription_id string, with `top` weight double, and if
    asked for
    bindings string (JSON: the values of variables), tags array<string>, version string, and
    `columns` of subscriptions: expression string, valid_from, valid_until timestamp, weight double,
    or an attribute, as string (JSON where it is no text); then `event_columns`, attributes of the
    event, where "*" is the whole event, as JSON in a column named attributes

    `bindings`, `tags` and `version` ask for these columns. All other keywords (`options`) are
    those of everything that matches or counts: `event_id` names the column of the events' ids,
    `attributes` the columns of attributes or the column of whole events. `at` is the moment at
    which subscriptions have to be valid (a datetime, or text in ISO's format); now, if it is not
    given. `subset` (ids) and `tagged` (tags, of which a subscription has one) say which
    subscriptions to consider. `operators` names modules that workers import, and that register the
    operators of the index. What is learned of them, and their faults, are added to `learned` when
    the rows are made. `spread` says how the work is divided (auto, replicate, split, product),
    `groups` into how many groups of parts.
    """
    asked = EventQuery.of(events, index, **options)
    n_best = None if top is None else expect_best(top, "top")
    if n_best is not None and WEIGHT not in asked.parts.version.columns:
        report_weightless()
    if n_best is not None and bindings:
        raise InputError("top and bindings cannot be combined", hint="ask for one of them")
    is_there = {"bindings": bindings, "tags": tags, "version": version, WEIGHT: n_best is not None}
    taken = [name for name in (*OWN_COLUMNS, WEIGHT) if is_there.get(name, True)]
    columns = expect_columns(columns, (*TYPES, *asked.parts.version.columns), taken)
    columns = columns if n_best is None else [WEIGHT, *columns]
    names = read_names(event_columns, OWN_COLUMNS, columns)
    kept = select_values(events, asked.attributes, names) if names else None

    def schema(layout: Layout) -> StructType:
        fields = [StructField("event_id", layout.id_type)]
        fields += [StructField(KEPT, layout.kept_type)] if layout.kept_type is not None else []
        fields += [StructField("subscription_id", _STRING)]
        fields += [StructField("bindings", _STRING)] if bindings else []
        fields += [StructField("tags", _STRINGS)] if tags else []
        fields += [StructField("version", _STRING)] if version else []
        return StructType(fields + [StructField(own, TYPES.get(own, _STRING)) for own in columns])

    def read(question: WorkerQuestion) -> MatchRows:
        return MatchRows(question, tags, version, bindings, tuple(columns), n_best)

    found = asked.put(read, schema, kept)
    if n_best is not None and asked.is_split:
        found = _keep_best(found, n_best)
    if not names:
        return found
    others = [F.col(quoted(name)) for name in found.columns if name != KEPT]
    fields = found.schema[KEPT].dataType.fieldNames()  # type: ignore[attr-defined]
    return found.select(*others, *(F.col(KEPT).getField(own).alias(own) for own in fields))


def _keep_best(found: DataFrame, n_best: int) -> DataFrame:
    """Of the best matches that each group of parts has, the best."""
    order = Window.partitionBy("event_id").orderBy(F.desc(WEIGHT), "subscription_id")
    ranked = found.withColumn(RANK, F.row_number().over(order))
    return ranked.where(F.col(RANK) <= n_best).drop(RANK)


def match_lists(events: DataFrame, index: Any, **options: Unpack[EventOptions]) -> DataFrame:
    """One row for each event, also for one without matches.

    Out: event_id, subscription_ids array<string>

    Where the index is split, the lists of the groups are put together by event id: then ids must
    be unique. `options` are as for `match`.
    """
    asked = EventQuery.of(events, index, **options)
    found = asked.put(MatchLists, _with_event_id("subscription_ids", _STRINGS))
    if not asked.is_split:
        return found
    lists = F.flatten(F.collect_list("subscription_ids"))
    return found.groupBy("event_id").agg(lists.alias("subscription_ids"))


def count_by_event(events: DataFrame, index: Any, **options: Unpack[EventOptions]) -> DataFrame:
    """One row for each event: how many subscriptions it satisfies. No pair is made.

    Out: event_id, n bigint. Where the index is split, event ids must be unique.

    `options` are as for `match`.
    """
    asked = EventQuery.of(events, index, **options)
    found = asked.put(CountByEvent, _with_event_id("n", LongType()))
    return found.groupBy("event_id").agg(F.sum("n").alias("n")) if asked.is_split else found


def _with_event_id(name: str, type_: DataType) -> Callable[[Layout], StructType]:
    """The schema of one value for each event."""

    def schema(layout: Layout) -> StructType:
        return StructType([StructField("event_id", layout.id_type), StructField(name, type_)])

    return schema


def count_by_subscription(
    events: DataFrame,
    index: Any,
    *,
    by: str | Column | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """One row for each subscription that some event satisfies: by how many. No pair is made.

    `by` counts for each of its values, of which there should be few: a day, a source. `options`
    are as for `match`; events need no ids.

    Out: subscription_id string, n bigint, and with `by` a first column of that name
    """
    if isinstance(by, str) and by in ("subscription_id", "n"):
        raise InputError(
            f'cannot count by "{by}": the result has a column of that name',
            hint=f'rename it: events.withColumnRenamed("{by}", …)',
        )
    asked = EventQuery.of(events, index, event_id=ANONYMOUS, **options)
    column = select_key(events, by) if isinstance(by, str) else by
    name = by if isinstance(by, str) else "by"
    layouts = []

    def schema(layout: Layout) -> StructType:
        layouts.append(layout)
        return run_schema(layout)

    def prepare(selected: DataFrame) -> DataFrame:
        # Runs of equal values: each is counted at once.
        return selected if column is None else selected.sortWithinPartitions(KEPT)

    runs = asked.put(CountRuns, schema, column, prepare)
    keys = [*KEYS] if column is None else ["kept", *KEYS]
    together = runs.repartition(*keys).sortWithinPartitions(*keys)
    summed = SumRuns(asked.parts, has_kept=column is not None)
    counted = run_on_workers(together, summed, count_schema(layouts[0]))
    if column is None:
        return counted
    # Spark decides which values are equal: NaN and NaN, 0.0 and -0.0.
    counted = counted.groupBy("kept", "subscription_id").agg(F.sum("n").alias("n"))
    return counted.withColumnRenamed("kept", name)


def count_terms(
    events: DataFrame,
    index: Any,
    *,
    attributes: Attributes = None,
    spread: str = AUTO,
    groups: int | None = None,
) -> DataFrame:
    """One row for each word or phrase that subscriptions search for: how many events have it.

    Out: attribute string, term string, n bigint

    `attributes`, `spread` and `groups` are as for `match`.
    """
    divided: Options = {"attributes": attributes, "spread": spread, "groups": groups}
    asked = EventQuery.of(events, index, event_id=ANONYMOUS, **divided)

    def add(counted: DataFrame) -> DataFrame:
        return counted.groupBy("attribute", "term").agg(F.sum("n").alias("n"))

    found = asked.put(CountTerms, lambda layout: CountTerms.SCHEMA, finish=add)
    # Groups with the same term have counted the same events.
    return found.groupBy("attribute", "term").agg(F.max("n").alias("n"))


def event_rejects(
    events: DataFrame,
    index: Any,
    *,
    event_id: str | None = None,
    attributes: Attributes = None,
) -> DataFrame:
    """One row for each value that is not of its attribute's type, which counts as missing, and for
    each whole event that is NULL or cannot be read.

    Out: event_id, attribute, expected, value, reason, kind, all string

    `event_id` and `attributes` are as for `match`.
    """
    expect_frame(events, "events")
    parts = open_version(index)
    expect_some(events, parts.version.attributes, attributes)
    paths = parts.version.attributes
    # Only this shows that a struct is NULL: workers get its fields only.
    is_null = F.col(quoted(attributes)).isNull() if isinstance(attributes, str) else None
    selected, layout = select_events(events, paths, event_id, attributes, is_null)
    texts = ("attribute", "expected", "value", "reason", "kind")
    fields = [StructField("event_id", layout.id_type), *(StructField(n, _STRING) for n in texts)]
    return run_on_workers(selected, RejectValues(WorkerQuestion(parts, layout)), StructType(fields))


# ── what is in an index ─────────────────────────────────────────────────────────────────────


def subscriptions(spark: SparkSession, index: Any) -> DataFrame:
    """One row for each subscription that answers.

    Out: subscription_id, expression string, tags array<string>, owner string,
    valid_from, valid_until timestamp
    """
    parts = open_version(index)
    read = ReadSubscriptions(parts)
    return run_on_workers(_by_part(spark, parts), read, read.schema())


def packed_subscriptions(spark: SparkSession, parts: PartSet) -> DataFrame:
    """The same with all attributes, for a build that takes them over."""
    read = ReadSubscriptions(parts, with_attributes=True)
    return run_on_workers(_by_part(spark, parts), read, read.schema()).drop(OWNER)


def rejects(spark: SparkSession, index: Any) -> DataFrame:
    """One row for each rejected subscription.

    Out: subscription_id, expression, code string, line, column int, message, hint string
    """
    parts = open_version(index)
    return run_on_workers(_by_part(spark, parts), ReadRejects(parts), ReadRejects.SCHEMA)


def _by_part(spark: SparkSession, parts: PartSet) -> DataFrame:
    n_parts = len(parts.parts)
    return spark.range(0, n_parts, 1, n_parts)
