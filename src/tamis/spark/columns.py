"""Finds columns of the events that are missing or of another type, before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    CalendarIntervalType,
    DateType,
    DayTimeIntervalType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    NullType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
    TimeType,
    VariantType,
)

from tamis.errors import warn
from tamis.events.arrow_values import can_hold
from tamis.language.lookalikes import describe_use
from tamis.language.names import print_path
from tamis.match.unseen import describe_missing, find_likely

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import DataFrame
    from pyspark.sql.types import DataType

    from tamis.language.schema import Path
    from tamis.language.types import Type
    from tamis.versions.part_set import PartSet

SHOWN: Final = 3
# The Arrow types in which workers get values. Zones, digits and element types do not matter here.
_AS_ARROW: Final = (
    (BooleanType, pa.bool_()),
    (ByteType, pa.int8()),
    (ShortType, pa.int16()),
    (IntegerType, pa.int32()),
    (LongType, pa.int64()),
    (FloatType, pa.float32()),
    (DoubleType, pa.float64()),
    (DecimalType, pa.decimal128(1)),
    (StringType, pa.string()),
    (BinaryType, pa.binary()),
    (DateType, pa.date32()),
    (TimestampType, pa.timestamp("us", "UTC")),
    (TimestampNTZType, pa.timestamp("us")),
    (TimeType, pa.time64("ns")),
    (DayTimeIntervalType, pa.duration("us")),
    (CalendarIntervalType, pa.month_day_nano_interval()),
    (VariantType, pa.struct([])),
    (ArrayType, pa.list_(pa.null())),
    (StructType, pa.struct([])),
    (MapType, pa.map_(pa.string(), pa.string())),
)


def report_columns(
    events: DataFrame, parts: PartSet, attributes: str | Sequence[str] | None
) -> None:
    """Warn about attributes that the events cannot have by their schema, and about columns whose
    values are all of another type. JSON in a column is unknown until it is read.
    """
    columns = None if parts.is_compared else _known_columns(events, attributes)
    if columns is None:
        return
    schema = parts.version.typed_schema()
    is_listed = not (attributes is None or isinstance(attributes, str))
    left_out = set(events.columns).difference(attributes or ()) if is_listed else set()
    missing, unfit = [], []
    for path in parts.version.attributes:
        type_ = schema.get(path) if path else None
        # A whole event, attributes that only operators read, or those that the caller excluded.
        if type_ is None or path[0] in left_out:
            continue
        found = _find(columns, path)
        if found is None:
            missing.append(path)
        elif not _fits(found, type_):
            unfit.append((path, found, type_))
    uses = parts.version.uses
    if missing:
        names = [name for name in _leaves(columns, ()) if name not in parts.version.attributes]
        alike = find_likely(missing, names)
        warn(describe_missing(missing, alike, uses, "in the columns of the events"))
    if unfit:
        warn(_describe_unfit(unfit, uses))


def _known_columns(events: DataFrame, attributes: str | Sequence[str] | None) -> DataType | None:
    """The type whose fields are the attributes; None if it is not in the schema."""
    if not isinstance(attributes, str):
        wanted = events.columns if attributes is None else attributes
        return StructType([field for field in events.schema.fields if field.name in wanted])
    type_ = events.schema[attributes].dataType
    return type_ if isinstance(type_, StructType) else None


def _find(type_: DataType, path: Path) -> DataType | None:
    """The type of the value at a path; None if there is none."""
    for name in path:
        if isinstance(type_, MapType):
            type_ = type_.valueType
        elif isinstance(type_, StructType) and name in type_.names:
            type_ = type_[name].dataType
        else:
            return None
    return None if isinstance(type_, NullType) else type_


def _fits(found: DataType, type_: Type) -> bool:
    if isinstance(found, ArrayType) and type_.element is not None:
        return _fits(found.elementType, type_.element)
    # An unknown type is not reported here: the worker reports its values.
    arrow_type = next((own for known, own in _AS_ARROW if isinstance(found, known)), None)
    return arrow_type is None or can_hold(arrow_type, type_)


def _leaves(type_: DataType, prefix: Path) -> Iterator[Path]:
    for field in type_.fields if isinstance(type_, StructType) else ():
        path = (*prefix, field.name)
        if isinstance(field.dataType, StructType):
            yield from _leaves(field.dataType, path)
        else:
            yield path


def _describe_unfit(unfit: list[tuple[Path, DataType, Type]], uses: Any) -> str:
    n = len(unfit)
    what = "a column is" if n == 1 else f"{n:,} columns are"
    shown = "; ".join(
        f"{print_path(path)} is {found.simpleString()}, not {type_}"
        + (f" ({describe_use(uses[path])})" if path in uses else "")
        for path, found, type_ in unfit[:SHOWN]
    )
    it = "it" if n == 1 else "them"
    return (
        f"{what} of another type than the index reads: {shown}{'; …' * (n > SHOWN)}. All values "
        f"are treated as missing: cast {it}, or declare the type in the schema of the index"
    )
