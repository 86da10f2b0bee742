"""Reads files into DataFrames and writes them, for the commands of `tamis spark`."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tamis.cli.spark_formats import (
    choose_output_format,
    find_format,
    is_array_of_json,
    read_head,
    report_unread,
    unread_format,
)
from tamis.cli.spark_places import expect_free
from tamis.errors import InputError, RowError
from tamis.events.json_texts import REPEATED_HINT, parse_event
from tamis.input.formats import DELIMITERS, Format
from tamis.input.sniffing import guess_lines
from tamis.input.subscription_rows import CSV_HINT
from tamis.language.names import parse_path
from tamis.places import is_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from tamis.language.schema import Schema

LOOKED_AT: Final = 1_000  # events
SHOWN_CHARACTERS: Final = 60  # of a row of CSV, in the message of its reject


class Seen(NamedTuple):
    """The attributes of the first events, or all attributes if a header lists them."""

    paths: frozenset[tuple[str, ...]]
    n_events: int | None  # None: all


class Events(NamedTuple):
    """Events, and where their parts are."""

    frame: DataFrame
    event_id: str | None
    attributes: str | None
    seen: Seen | None = None  # None: taken from the schema of the frame


def read_subscriptions(spark: SparkSession, path: str, asked: str | None) -> DataFrame:
    """One row for each subscription, with the columns that the file has."""
    _refuse_index(path, "subscriptions")
    kind = find_format(path, asked, "--subscriptions-format")
    report_unread(path)
    with explained(path):
        if kind in DELIMITERS:
            return _read_csv(spark, path, kind)
        if kind is Format.PARQUET:
            return spark.read.parquet(path)
        if kind is not Format.JSONL:
            raise unread_format(kind, path)
        frame = _read_objects(spark, path)
    if frame.columns == ["_corrupt_record"]:  # Spark's name for the text of a line that is not JSON
        raise InputError(f"{path} contains no JSON objects", hint=guess_lines(read_head(path)))
    return _with_one_id(frame)


def _csv_options(kind: Format, path: str) -> dict[str, Any]:
    # Quotes are doubled, as everywhere in CSV.
    return {"header": True, "escape": '"', "sep": _find_delimiter(kind, path)}


def _find_delimiter(kind: Format, path: str) -> str:
    if kind not in DELIMITERS:
        raise unread_format(kind, path)
    return DELIMITERS[kind]


def _read_csv(spark: SparkSession, path: str, kind: Format) -> DataFrame:
    """Rows of CSV. Spark drops fields beyond the header and fills in missing ones: such rows are
    marked to be rejected.
    """
    from pyspark.sql import functions as F

    from tamis.spark.jobs.rows import FOUND, make_problem

    # An expression may contain line breaks.
    options = _csv_options(kind, path) | {"multiLine": True}
    header = spark.read.options(**options).csv(path).schema
    reader = spark.read.options(**options, columnNameOfCorruptRecord=FOUND)
    n_fields = len(header.fields)
    frame = reader.schema(header.add(FOUND, "string")).csv(path)
    text = F.col(FOUND)
    said = F.concat(
        F.lit(f"the row does not have the {n_fields} fields of the header: "),
        F.substring(text, 1, SHOWN_CHARACTERS),
    )
    return frame.withColumn(FOUND, make_problem("bad-csv", text.isNotNull(), said, CSV_HINT))


def _read_objects(spark: SparkSession, path: str) -> DataFrame:
    """Rows of JSON. Spark rejects files in which an object has a repeated key: then such rows are
    marked to be rejected.
    """
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as F

    from tamis.spark.jobs.rows import FOUND, make_problem
    from tamis.spark.json_files import VALUE_SCHEMA, MarkRepeated
    from tamis.spark.workers import run_on_workers

    is_array = is_array_of_json(path)
    try:
        return spark.read.option("multiLine", is_array).json(path)
    except AnalysisException as error:
        if error.getCondition() != "COLUMN_ALREADY_EXISTS":
            raise
    texts = _read_texts(spark.read, path, is_array=is_array)
    marked = run_on_workers(texts, MarkRepeated(FOUND), VALUE_SCHEMA)
    frame = spark.read.json(marked.rdd.map(itemgetter(0)))
    if FOUND not in frame.columns:  # names of columns that Spark treats as equal
        return frame
    key = F.col(FOUND)
    said = F.concat(F.lit('the row has the key "'), key, F.lit('" twice'))
    problem = make_problem("repeated-key", key.isNotNull(), said, REPEATED_HINT)
    return frame.withColumn(FOUND, problem)


def _with_one_id(frame: DataFrame) -> DataFrame:
    """The rows of JSON; each may name its id `subscription_id` or `id`."""
    from pyspark.sql import functions as F

    if not {"subscription_id", "id"} <= set(frame.columns):
        return frame
    own, other = F.col("subscription_id"), F.col("id")
    return frame.withColumns(
        {
            "subscription_id": F.coalesce(own.cast("string"), other.cast("string")),
            "id": F.when(own.isNotNull(), other),
        }
    )


def _refuse_index(path: str, what: str) -> None:
    if is_index(path):
        raise InputError(f"{path} is an index; {what} are expected here")


def read_events(  # noqa: PLR0913 - where from, and what of it
    spark: SparkSession,
    path: str,
    asked: str | None,
    event_id: str | None,
    attributes: str | None,
    *,
    is_stream: bool = False,
    files_per_trigger: int | None = None,
) -> Events:
    """The events of a path. JSON stays text, which the workers read; CSV becomes maps of texts, so
    that both have the same meaning as in `tamis match`.
    """
    from pyspark.sql import functions as F

    from tamis.spark.layout import quoted

    _refuse_index(path, "events")
    kind = find_format(path, asked, "--events-format")
    report_unread(path)
    with explained(path):
        reader: Any = spark.readStream if is_stream else spark.read
        if is_stream and files_per_trigger:
            reader = reader.option("maxFilesPerTrigger", files_per_trigger)
        if kind is Format.PARQUET:
            schema = spark.read.parquet(path).schema
            return Events(reader.schema(schema).parquet(path), event_id, attributes)
        if kind is Format.JSONL:
            # `value` is the column of Spark's text reader.
            is_array = is_array_of_json(path)
            frame = _read_texts(reader, path, is_array=is_array)
            named = F.get_json_object("value", f"$['{event_id}']") if event_id else F.lit(None)
            seen = _expect_json(_read_texts(spark.read, path, is_array=is_array), path)
            if event_id and not is_stream:
                _expect_named(frame.limit(LOOKED_AT).select(named.alias("id")), path, event_id)
            return Events(
                frame.select(named.alias("id"), F.col("value").alias("event")),
                "id" if event_id else None,
                "event",
                seen,
            )
        options = _csv_options(kind, path)
        static = spark.read.options(**options).csv(path)
        frame = reader.options(**options).schema(static.schema).csv(path)
    names = [name for name in frame.columns if name != event_id]
    pairs = [part for name in names for part in (F.lit(name), F.col(quoted(name)))]
    event = F.create_map(*pairs).alias("event")
    if event_id and event_id not in frame.columns:
        raise InputError(f'{path} has no column "{event_id}"; it has: {", ".join(frame.columns)}')
    ids = [F.col(quoted(event_id)).alias("id")] if event_id else []
    seen = Seen(frozenset(map(parse_path, names)), None)
    return Events(frame.select(*ids, event), "id" if event_id else None, "event", seen)


def _read_texts(reader: Any, path: str, *, is_array: bool) -> DataFrame:
    """One JSON text for each event."""
    from pyspark.sql import functions as F

    from tamis.spark.json_files import VALUE_SCHEMA, split_files
    from tamis.spark.workers import run_on_workers

    frame: DataFrame = reader.text(path, wholetext=is_array)
    if is_array:
        frame = run_on_workers(frame.select("value"), split_files, VALUE_SCHEMA)
    return frame.where(F.trim("value") != "")


def _expect_json(texts: DataFrame, path: str) -> Seen:
    """Raise an error if most of the first lines contain no JSON object; returns the attributes of
    the others.
    """
    rows = texts.limit(LOOKED_AT).collect()
    events, errors = [], []
    for row in rows:
        try:
            events.append(parse_event(row["value"]))
        except RowError as error:
            errors.append(error)
    if len(errors) > len(rows) - len(errors):
        raise InputError(
            f"{path}: {len(errors):,} of the first {len(rows):,} lines contain no event: "
            f"{errors[0].message}",
            hint=guess_lines(read_head(path)) or errors[0].hint,
        )
    return Seen(frozenset(chain.from_iterable(_paths(own, ()) for own in events)), len(events))


def _paths(event: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """The paths of all values that are not NULL."""
    for name, value in event.items():
        if value is not None:
            yield (*above, name)
        if isinstance(value, dict):
            yield from _paths(value, (*above, name))


def _expect_named(ids: DataFrame, path: str, event_id: str) -> None:
    """Raise an error for a name that none of the first events has: all ids would be NULL."""
    found = ids.selectExpr("count(*) AS n_events", "count(id) AS n_named").first()
    if found is not None and found["n_events"] and not found["n_named"]:
        raise InputError(
            f'{path}: none of the first {found["n_events"]:,} events has an attribute "{event_id}"',
            hint="--event-id names the attribute that identifies events",
        )


def read_typed_events(spark: SparkSession, path: str, kind: Format, schema: Schema) -> DataFrame:
    """JSON or CSV as typed columns, for the attributes of the schema."""
    tree: dict[str, Any] = {}
    for names in schema:
        branch = tree
        for name in names[:-1]:
            branch = branch.setdefault(name, {})
        branch[names[-1]] = str(schema[names])
    declared = _fields(tree, " ")
    with explained(path):
        if kind is Format.JSONL:
            reader = spark.read.option("multiLine", is_array_of_json(path))
            return reader.schema(declared).json(path)
        frame = spark.read.options(**_csv_options(kind, path)).csv(path)
        known = [name for name in frame.columns if (name,) in schema]
        return frame.selectExpr(
            *(f"try_cast(`{name}` AS {_type(str(schema[name,]))}) AS `{name}`" for name in known)
        )


def _fields(tree: dict[str, Any], between: str = ": ") -> str:
    return ", ".join(
        f"`{name}`{between}" + (f"struct<{_fields(own)}>" if isinstance(own, dict) else _type(own))
        for name, own in tree.items()
    )


def _type(name: str) -> str:
    """The type in Spark's notation."""
    return name.replace("integer", "bigint").replace("number", "double").replace("any", "string")


def write_frame(
    frame: DataFrame, path: str, asked: str | None, *, overwrite: bool, mark: str | None = None
) -> None:
    """Write a table; a partial table is removed after a failure.

    A table of a pipeline has its mark from the start, so that it is recognised if the run is
    killed.
    """
    from tamis.versions.storage import Storage

    expect_free(path, overwrite=overwrite, mark=mark)
    kind = choose_output_format(path, asked)
    storage = Storage(path)
    before = storage.list()
    writer = frame.write.mode("overwrite")
    if mark is not None:
        for stored in before:
            storage.delete(stored.name)
        storage.write(mark, b"")
        writer = frame.write.mode("append")
    try:
        if kind is Format.PARQUET:
            writer.parquet(path)
        elif kind is Format.JSONL:
            writer.json(path)
        else:
            writer.options(header=True, sep=_find_delimiter(kind, path)).csv(path)
    except BaseException:
        if not before:
            storage.delete("")
        raise


@contextmanager
def explained(path: str) -> Iterator[None]:
    """Spark's error about a path, as one of ours."""
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{path} cannot be read: {reason}") from None
