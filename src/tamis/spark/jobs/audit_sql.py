"""The audit by Spark SQL's evaluator, which shares no code with ours."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import ArrayType, StringType, StructField, StructType

from tamis.errors import InputError, TamisError, TamisWarning
from tamis.language.ast import attributes as mentioned
from tamis.language.check import check
from tamis.language.parser import parse
from tamis.language.printer import print_for_spark
from tamis.language.types import print_string
from tamis.logic.evaluate import Missing
from tamis.spark.failures import raising_worker_errors
from tamis.spark.layout import ID
from tamis.spark.matching import Matcher, WorkerQuestion, cut, plain_lists
from tamis.spark.plain_events import fits_spark, plain_events, typed_rows, typed_schema
from tamis.spark.transforms import match, subscriptions
from tamis.spark.validity import is_valid
from tamis.spark.workers import run_on_workers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame, SparkSession

    from tamis.language.schema import Path, Schema
    from tamis.spark.layout import Layout
    from tamis.versions.part_set import PartSet

ENGINE: Final = "\x01engine"
IS_LEFT_OUT: Final = "n_compared = 0"
TRUE, NOT_TRUE = "'true'", "'not true'"
CHUNK: Final = 100  # expressions in one array
SETTINGS: Final = {
    # Settings on which the meaning of expressions depends.
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.caseSensitive": "true",
    # Hundreds of expressions run once each: compiling them costs more than running them.
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
}


@dataclass(frozen=True, slots=True)
class Rendered:
    """Subscriptions with their Spark SQL texts."""

    ids: tuple[str, ...]
    texts: tuple[str, ...]
    paths: list[Path]  # used in them
    without: tuple[str, ...] = ()  # ids of those without a Spark SQL form


def audit_by_spark(  # noqa: PLR0913
    selected: DataFrame,
    layout: Layout,
    parts: PartSet,
    where: dict[str, Any],
    sampled: DataFrame,
    n_subscriptions: int,
    seed: int,
) -> DataFrame:
    """The rows of `audit`, by Spark SQL; computed when this is called.

    Half of the subscriptions are drawn from those that match a sampled event, half from all.
    """
    if Missing(parts.version.missing) is not Missing.UNDEFINED:
        raise InputError(
            f'an index with missing="{parts.version.missing}" has no Spark SQL form',
            hint="audit it by the reference evaluator: by='reference'",
        )
    spark = selected.sparkSession
    with raising_worker_errors(), contract(spark):
        drawn = draw(spark, parts, match(sampled, parts, **where), n_subscriptions, seed)
        if not drawn.ids:
            raise InputError(
                "none of the subscriptions that were drawn has a Spark SQL form",
                hint="keywords have none; audit by the reference evaluator: by='reference'",
            )
        schema = parts.version.typed_schema()
        paths = tuple(drawn.paths)
        task = AnswerTyped(
            WorkerQuestion(parts, layout), schema=schema, paths=paths, drawn=drawn.ids
        )
        typed = run_on_workers(selected, task, task.fields())
        rows = _compare(typed, drawn).localCheckpoint()
        _report_left_out(rows, drawn)
        return rows


def _report_left_out(rows: DataFrame, drawn: Rendered) -> None:
    """Warn about drawn subscriptions and events that could not be compared."""
    if drawn.without:
        n_drawn = len(drawn.ids) + len(drawn.without)
        warnings.warn(
            f"{len(drawn.without):,} of {n_drawn:,} subscriptions have no Spark SQL form "
            f"(keywords, operators) and were not compared, such as '{drawn.without[0]}'; audit "
            "them by the reference evaluator: by='reference'",
            TamisWarning,
            stacklevel=4,
        )
    counted = rows.where(IS_LEFT_OUT).agg(F.count("*"), F.first("event_id")).collect()
    ((n_events, example),) = counted
    if n_events:
        warnings.warn(
            f"{n_events:,} events have a number that no type of Spark holds (more than 38 digits) "
            f"and were not compared, such as event {example!r}; audit them by the reference "
            "evaluator: by='reference'",
            TamisWarning,
            stacklevel=4,
        )


@contextmanager
def contract(spark: SparkSession) -> Iterator[None]:
    """The session, configured for many small expressions, inside the block only."""
    before = {key: spark.conf.get(key, None) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield
    finally:
        for key, known in before.items():
            spark.conf.unset(key) if known is None else spark.conf.set(key, known)


# ── which subscriptions ─────────────────────────────────────────────────────────────────────


def draw(
    spark: SparkSession, parts: PartSet, matches: DataFrame, n_subscriptions: int, seed: int
) -> Rendered:
    """Subscriptions with a Spark SQL form. At most `n_subscriptions` are sent to the driver."""
    listed = subscriptions(spark, parts)
    awake = listed if parts.at is None else listed.where(is_valid(parts.at))
    everybody = awake.select("subscription_id", "expression")
    by_lot = F.xxhash64("subscription_id", F.lit(seed))
    found = matches.select("subscription_id").distinct()
    hit = everybody.join(found, "subscription_id", "left_semi").orderBy(by_lot)
    rows = hit.limit(n_subscriptions // 2).collect()
    known = {row["subscription_id"]: row["expression"] for row in rows}
    for row in everybody.orderBy(by_lot).limit(n_subscriptions).collect():
        if len(known) < n_subscriptions:
            known.setdefault(row["subscription_id"], row["expression"])
    return render(known, parts.version.typed_schema())


def render(expressions: dict[str, str], schema: Schema) -> Rendered:
    """The expressions that have a Spark SQL form."""
    ids, texts, without = [], [], []
    paths: set[Path] = set()
    for name, text in expressions.items():
        condition = check(parse(text), schema, text=text)
        try:
            texts.append(print_for_spark(condition, text, splits_numbers=True))
        except TamisError:  # keywords, operators
            without.append(name)
            continue
        ids.append(name)
        paths.update(attribute.path for attribute in mentioned(condition))
    return Rendered(tuple(ids), tuple(texts), sorted(paths), tuple(without))


# ── both answers ────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerTyped(Matcher):
    """For each event its typed attributes, and the drawn subscriptions that it satisfies.

    An event with a number that no type of Spark holds cannot be compared: its list is NULL.
    """

    schema: Schema
    paths: tuple[Path, ...]
    drawn: tuple[str, ...]

    def fields(self) -> StructType:
        """The schema of the result."""
        own = [
            StructField(ID, self.layout.id_type),
            StructField(ENGINE, ArrayType(StringType())),
        ]
        typed = from_arrow_schema(typed_schema(self.schema, list(self.paths)))
        return StructType([*own, *typed.fields])

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        index = self.parts.open()
        drawn = pa.array(self.drawn, pa.string())
        for batch in cut(batches):
            lists = index.match_lists(self.encode(index, batch), at=self.parts.at)
            found = plain_lists(lists)
            events = list(plain_events(batch, self.layout, self.schema))
            paths = list(self.paths)
            rows = [row for row, event in enumerate(events) if event is not None]
            fits = [fits_spark(events[row], self.schema, paths) for row in rows]
            read = (events[row] if fit else {} for row, fit in zip(rows, fits, strict=True))
            typed = typed_rows(read, self.schema, paths).combine_chunks()
            good = pa.array(rows, pa.int64())
            engine = only(found.take(good), drawn)
            columns = {ID: batch.column(ID).take(good)}
            columns[ENGINE] = pc.if_else(pa.array(fits, pa.bool_()), engine, None)
            columns |= {name: typed[name].combine_chunks() for name in typed.schema.names}
            yield pa.RecordBatch.from_pydict(columns)


def only(lists: pa.ListArray, wanted: pa.Array) -> pa.ListArray:
    """The lists without unwanted ids."""
    values = lists.flatten()
    is_wanted = pc.is_in(values, wanted).to_numpy(zero_copy_only=False)
    ends = np.concatenate(([0], np.cumsum(is_wanted)))[lists.offsets.to_numpy()]
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values.filter(pa.array(is_wanted)))


def _compare(typed: DataFrame, drawn: Rendered) -> DataFrame:
    """One row for each disagreement, and for each event the number of answers compared: 0 and its
    id if they could not be compared.
    """
    arrays = []
    for start in range(0, len(drawn.ids), CHUNK):
        pairs = zip(drawn.ids[start : start + CHUNK], drawn.texts[start:], strict=False)
        flags = ", ".join(f"IF({text}, {print_string(name)}, NULL)" for name, text in pairs)
        arrays.append(f"array_compact(array({flags}))")
    answers = typed.selectExpr(
        f"`{ID}` AS event_id", f"`{ENGINE}` AS ours", f"concat({', '.join(arrays)}) AS theirs"
    )
    row = "named_struct('name', {}, 'ours', {}, 'theirs', {})".format
    wrongly = f"transform(array_except(ours, theirs), x -> {row('x', TRUE, NOT_TRUE)})"
    lost = f"transform(array_except(theirs, ours), x -> {row('x', NOT_TRUE, TRUE)})"
    count = f"array({row(*['CAST(NULL AS STRING)'] * 3)})"
    all_rows = f"IF(ours IS NULL, {count}, concat({wrongly}, {lost}, {count}))"
    compared = F.explode(F.expr(all_rows)).alias("compared")
    is_count = F.col("compared.name").isNull()
    n_compared = F.when(F.col("ours").isNull(), 0).otherwise(len(drawn.ids)).cast("bigint")
    return answers.select("event_id", "ours", compared).select(
        F.when(~is_count | F.col("ours").isNull(), F.col("event_id")).alias("event_id"),
        F.col("compared.name").alias("subscription_id"),
        F.col("compared.ours").alias("engine"),
        F.col("compared.theirs").alias("reference"),
        F.when(is_count, n_compared).alias("n_compared"),
    )
