"""Spark SQL as the oracle: the truth of many conditions for many events in one job."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.language import Schema, check, parse, print_for_spark
from tamis.language.types import Type, read_value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from tamis.logic.truth import Truth

ROW: Final = "row of the event"  # no generated attribute has this name

# Thousands of expressions are met once each: compiling them would cost more than running them.
SETTINGS: Final = {
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.subexpressionElimination.enabled": "false",
}


@contextmanager
def oracle_settings(spark: SparkSession) -> Iterator[SparkSession]:
    """The session, set for many small expressions inside the block only."""
    before = {key: spark.conf.get(key) for key in SETTINGS}
    for key, value in SETTINGS.items():
        spark.conf.set(key, value)
    try:
        yield spark
    finally:
        for key, value in before.items():
            spark.conf.set(key, value)


def ask_spark(
    spark: SparkSession,
    schema: Schema,
    texts: Sequence[str],
    events: Sequence[Mapping[str, Any]],
) -> list[list[Truth]]:
    """For each event, Spark's truth of each text of our language."""
    asked = [in_spark_sql(text, schema) for text in texts]
    return ask_spark_texts(events_frame(spark, schema, events), asked)


def in_spark_sql(text: str, schema: Schema) -> str:
    """What Spark is asked: its constants are those of the text, not what we made of them."""
    return print_for_spark(check(parse(text), schema), text)


def ask_spark_texts(events: DataFrame, texts: Sequence[str]) -> list[list[Truth]]:
    """For each row in order, the truth of each SQL text."""
    answer = events.selectExpr(f"`{ROW}`", f"array({', '.join(texts)}) AS truths").toArrow()
    by_row = dict(zip(answer.column(0).to_pylist(), answer.column(1).to_pylist(), strict=True))
    return [by_row[row] for row in range(len(by_row))]


# ── events into Arrow, without the readers under test ───────────────────────────────────────


def events_frame(
    spark: SparkSession, schema: Schema, events: Sequence[Mapping[str, Any]]
) -> DataFrame:
    """The events as a DataFrame with the schema's columns and their row number."""
    return spark.createDataFrame(events_table(schema, events))


def without_numbers(schema: Schema) -> Schema:
    """The same with doubles for numbers, which no one type of Spark's is."""
    return Schema.of(
        {name: type_.replace("number", "double") for name, type_ in schema.to_json().items()}
    )


def events_table(schema: Schema, events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The events as an Arrow table; paths become struct columns."""
    tree: dict[str, Any] = {}
    for path in schema:
        branch = tree
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
        branch[path[-1]] = schema[path]
    fields = [pa.field(name, _arrow_type(below)) for name, below in tree.items()]
    rows = [{**_plain(event, tree), ROW: row} for row, event in enumerate(events)]
    return pa.Table.from_pylist(rows, pa.schema([*fields, pa.field(ROW, pa.int64())]))


def _arrow_type(below: Type | dict[str, Any]) -> pa.DataType:
    if isinstance(below, Type) and below.name == "struct":
        below = dict(below.fields)
    if isinstance(below, dict):
        return pa.struct([pa.field(name, _arrow_type(type_)) for name, type_ in below.items()])
    if below.element is not None:
        return pa.list_(_arrow_type(below.element))
    if below.name == "decimal":
        return pa.decimal128(below.precision, below.scale)
    return _ARROW_TYPES[below.name]


_ARROW_TYPES: Final = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "ip": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
}


def _plain(value: Any, below: Type | dict[str, Any]) -> Any:
    """The value as the Arrow type's own Python class."""
    if value is None:
        return None
    if isinstance(below, Type) and below.name == "struct":
        below = dict(below.fields)
    if isinstance(below, dict):
        return {name: _plain(value.get(name), type_) for name, type_ in below.items()}
    if below.element is not None:
        return [_plain(item, below.element) for item in value]
    match below.name:
        case "float" | "double":
            return float(value)
        case "decimal":
            return Decimal(value)
        case "ip":
            return read_value(value, below)
        case "date":
            return date.fromisoformat(value) if isinstance(value, str) else value
        case "timestamp":
            moment = datetime.fromisoformat(value) if isinstance(value, str) else value
            return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        case _:
            return value
