"""The rows of subscriptions that a build reads: Spark checks them, workers unpack them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DateType,
    IntegralType,
    MapType,
    NullType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from tamis.errors import ExpressionError, InputError, RowError
from tamis.index.attributes import parse_attributes
from tamis.index.validity import MOMENT
from tamis.input.rows import Columns
from tamis.input.subscription_rows import read_tags
from tamis.input.tables import batch_rows
from tamis.language.moments import HINT, REVERSED_HINT
from tamis.match.switches import Switches, is_switch
from tamis.spark.layout import expect_column, expect_frame, quoted
from tamis.spark.validity import is_expired
from tamis.versions.tables import PACKED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from pyspark.sql import Column
    from pyspark.sql.types import DataType

# The error that a reader of files found in a row, made by `make_problem`; a reserved column.
FOUND: Final = "\x01problem"
PROBLEM: Final = "struct<code: string, message: string, hint: string>"
MOMENT_TYPES: Final = (DateType, StringType, TimestampNTZType, TimestampType)
PLAIN_TYPES: Final = (*MOMENT_TYPES, NumericType, BooleanType, BinaryType, NullType)

MOST_VALUES: Final = 1_000  # of a switch: a column with more values is not a switch
_MOST_ODD: Final = 1_000  # tags

ROW_NAMES: Final = (
    *("position", "subscription_id", "expression", "tags", "valid_from", "valid_until"),
    "attributes",  # all other columns in a struct, or as JSON if they come from an index
    "problem",  # the error of a row: code, message and hint of its reject
)
EMPTY_ROWS: Final = pa.schema(
    [
        ("position", pa.int64()),
        *((name, pa.string()) for name in ("subscription_id", "expression", "tags")),
        *((name, MOMENT) for name in ("valid_from", "valid_until")),
        ("attributes", pa.string()),
        ("problem", pa.struct([(name, pa.string()) for name in ("code", "message", "hint")])),
    ]
)


def select_rows(
    subscriptions: DataFrame, id_column: str | None = None, expression_column: str = "expression"
) -> DataFrame:
    """The columns that a build reads, under fixed names, with each row's position."""
    expect_frame(subscriptions, "subscriptions")
    names = subscriptions.columns
    id_column = id_column or Columns().find(names)[0] or "subscription_id"
    for name in (id_column, expression_column, *names):
        expect_column(names, name, "subscriptions")
    types = {field.name: field.dataType for field in subscriptions.schema.fields}
    if not isinstance(types[id_column], StringType | IntegralType):
        raise InputError(
            f'column "{id_column}" is {types[id_column].simpleString()}; ids are text or integers'
        )
    if not isinstance(types[expression_column], StringType):
        actual = types[expression_column].simpleString()
        raise InputError(f'column "{expression_column}" is {actual}; expressions are text')
    tags = types.get("tags")
    is_list = isinstance(tags, ArrayType) and isinstance(tags.elementType, StringType)
    if not (tags is None or is_list or isinstance(tags, StringType)):
        raise InputError(
            f'column "tags" is {tags.simpleString()}; array<string> or string is allowed'
        )
    used = {FOUND, id_column, expression_column, "tags", "valid_from", "valid_until"}
    others = {name: types[name] for name in names if name not in used}
    limits = {name: types[name] for name in ("valid_from", "valid_until") if name in types}
    for name, type_ in limits.items():
        if not isinstance(type_, MOMENT_TYPES):
            actual = type_.simpleString()
            raise InputError(f'column "{name}" is {actual}; timestamp, date or text is allowed')
    return subscriptions.select(
        F.monotonically_increasing_id().alias("position"),
        F.col(quoted(id_column)).cast("string").alias("subscription_id"),
        F.col(quoted(expression_column)).alias("expression"),
        _optional("tags", "array<string>" if is_list else "string", names),
        _optional("valid_from", "timestamp", names),
        _optional("valid_until", "timestamp", names),
        _pack(others),
        F.coalesce(_found(names), *map(_unreadable, limits), _never_valid(limits)).alias("problem"),
    )


def _pack(types: Mapping[str, DataType]) -> Column:
    """The other columns, combined in one; NULL if there are none."""
    if PACKED in types:
        return F.col(PACKED).alias("attributes")
    columns = [
        (F.col(quoted(name)) if _is_plain(type_) else F.col(quoted(name)).cast("string")).alias(
            name
        )
        for name, type_ in types.items()
    ]
    packed = F.struct(*columns) if columns else F.lit(None).cast("string")
    return packed.alias("attributes")


def _is_plain(type_: DataType) -> bool:
    """Whether Python has values of the type; it has none for intervals and variants."""
    if isinstance(type_, ArrayType):
        return _is_plain(type_.elementType)
    if isinstance(type_, MapType):
        return _is_plain(type_.keyType) and _is_plain(type_.valueType)
    if isinstance(type_, StructType):
        return all(_is_plain(field.dataType) for field in type_.fields)
    return isinstance(type_, PLAIN_TYPES)


def make_problem(code: str, is_wrong: Column, message: Column, hint: str) -> Column:
    """The error of an invalid row: the reject's code, message and hint; NULL for a valid row."""
    problem = F.struct(
        F.lit(code).alias("code"), message.alias("message"), F.lit(hint).alias("hint")
    )
    return F.when(is_wrong, problem).cast(PROBLEM)


def _found(names: list[str]) -> Column:
    return F.col(FOUND) if FOUND in names else F.lit(None).cast(PROBLEM)


def _unreadable(name: str) -> Column:
    """The error of a moment; NULL if it is valid."""
    column = F.col(name)
    is_wrong = column.isNotNull() & column.try_cast("timestamp").isNull()
    said = F.concat(F.lit(f"{name} is '"), column.cast("string"), F.lit("', not a timestamp"))
    return make_problem("bad-validity", is_wrong, said, HINT)


def _never_valid(limits: Iterable[str]) -> Column:
    """The error of two moments of which the second is not after the first."""
    if len(set(limits)) < 2:
        return F.lit(None).cast(PROBLEM)
    start, end = (F.col(name).try_cast("timestamp") for name in ("valid_from", "valid_until"))
    said = F.concat(
        *(F.lit("valid_until is '"), end.cast("string"), F.lit("', not after valid_from, '")),
        *(start.cast("string"), F.lit("'")),
    )
    return make_problem("bad-validity", start >= end, said, REVERSED_HINT)


def has_expired(now: datetime) -> Column:
    """Whether a row is valid but will never answer again."""
    return is_expired(now) & F.col("problem").isNull()


def count_rows(rows: DataFrame, now: datetime) -> tuple[int, int]:
    """The number of subscriptions to build, and the number that have expired."""
    (counts,) = rows.agg(F.count(F.lit(1)), F.count_if(has_expired(now))).collect()
    return counts[0] - counts[1], counts[1]


def find_switches(rows: DataFrame) -> Switches:
    """The columns by which subscriptions seem to be switched off. Runs a job only if there is a
    column that looks like a switch.
    """
    switches = Switches()
    attributes = rows.schema["attributes"].dataType
    for field in attributes.fields if isinstance(attributes, StructType) else ():
        if is_switch(field.name) and isinstance(field.dataType, PLAIN_TYPES):
            value = F.col("attributes").getField(field.name).cast("string")
            for own, n_subscriptions in rows.groupBy(value).count().limit(MOST_VALUES).collect():
                switches.add(field.name, own, n_subscriptions)
    return switches


def find_odd_tags(rows: DataFrame) -> list[str]:
    """Tags that may be several in one."""
    tags = F.col("tags")
    each = tags if isinstance(rows.schema["tags"].dataType, ArrayType) else F.split(tags, ",")
    found = rows.select(F.explode(each).alias("tag")).select(F.trim("tag").alias("tag"))
    odd = found.where(F.col("tag").rlike("[;|]"))
    return [tag for (tag,) in odd.distinct().limit(_MOST_ODD).collect()]


def _optional(name: str, type_: str, names: list[str]) -> Column:
    column = F.col(name) if name in names else F.lit(None)
    return column.try_cast(type_).alias(name)


def split_problems(rows: pa.Table) -> tuple[pa.Table, list[ExpressionError]]:
    """The valid rows, and the others as rejects."""
    import pyarrow.compute as pc

    if rows["problem"].null_count == len(rows):
        return rows, []
    is_wrong = pc.is_valid(rows["problem"])
    rejects = [
        ExpressionError(
            row["problem"]["code"],
            row["problem"]["message"],
            span=(0, 0),
            text=row["expression"],
            hint=row["problem"]["hint"],
            subscription_id=row["subscription_id"],
        )
        for row in rows.filter(is_wrong).to_pylist()
    ]
    return rows.filter(pc.invert(is_wrong)), rejects


class RowDetails(NamedTuple):
    """The rows of a part, in the form of `build_contents`: of equal ids, the first is used."""

    pairs: list[tuple[Any, Any]]
    tags: dict[str, Sequence[str]]
    validity: dict[str, tuple[datetime | None, datetime | None]]
    attributes: dict[str, Mapping[str, Any]]


def read_details(rows: pa.Table) -> tuple[RowDetails, list[ExpressionError]]:
    """The contents of the rows, and rejects for those whose tags cannot be read."""
    found = RowDetails([], {}, {}, {})
    rejects: list[ExpressionError] = []
    seen: set[Any] = set()
    columns = [rows[name].to_pylist() for name in ROW_NAMES[1:6]]
    for one, text, own, start, end, attributes in zip(
        *columns, _to_attributes(rows["attributes"]), strict=True
    ):
        try:
            tags = read_tags(own or ())
        except RowError as error:
            rejects.append(_reject(error, one, text))
            continue
        found.pairs.append((one, text))
        if one in seen:
            continue
        seen.add(one)
        if tags:
            found.tags[one] = tags
        if start is not None or end is not None:
            found.validity[one] = (start, end)
        if attributes:
            found.attributes[one] = attributes
    return found, rejects


def _reject(error: RowError, subscription_id: Any, text: Any) -> ExpressionError:
    return ExpressionError(
        error.code,
        error.message,
        span=(0, 0),
        text=text,
        hint=error.hint,
        subscription_id=subscription_id,
    )


def _to_attributes(column: pa.ChunkedArray) -> Iterator[Mapping[str, Any]]:
    """The attributes of each row, from a struct or from JSON."""
    for chunk in column.chunks:
        if pa.types.is_struct(chunk.type):
            yield from batch_rows(pa.RecordBatch.from_struct_array(chunk))
        else:
            yield from (parse_attributes(text or "") for text in chunk.to_pylist())
