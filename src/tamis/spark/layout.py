"""Finds the attributes in an events DataFrame, and selects the columns that leave the JVM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    MapType,
    StringType,
    StructType,
    YearMonthIntervalType,
)

from tamis.errors import InputError, suggest
from tamis.language.names import parse_path, print_path
from tamis.match.event_columns import ATTRIBUTES, WHOLE_EVENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pyarrow as pa
    from pyspark.sql import Column

    Path = tuple[str, ...]

EVENT_ID: Final = "event_id"
# Our columns in addition to the attributes; no attribute is likely to have these names.
ID: Final = "\x01id"
EVENT: Final = "\x01event"
KEPT: Final = "\x01kept"
ANONYMOUS: Final = "\x01anonymous"  # instead of an event id: there is none, and none is needed
_DISGUISED: Final = "\x01="  # before a name in hexadecimal digits; see `_disguise`


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns that a worker gets: the id, optionally a column to keep, then attributes."""

    event: str | None  # the column that contains whole events; None: one column for each attribute
    id_type: DataType
    kept_type: DataType | None


def select_events(
    events: DataFrame,
    paths: Iterable[Path],
    event_id: str | None,
    attributes: str | Sequence[str] | None,
    keep: Column | None = None,
) -> tuple[DataFrame, Layout]:
    """The ids of the events and the attributes that `paths` name."""
    identity = _identity(events, event_id)
    columns = [identity.alias(ID)] + ([] if keep is None else [keep.alias(KEPT)])
    event = None
    if isinstance(attributes, str):
        columns.append(_whole_event(events, attributes, paths).alias(EVENT))
        event = EVENT
    else:
        columns += _attribute_columns(events, paths, attributes)
    selected = events.select(*columns)
    _expect_readable(events, selected.schema)
    types = {field.name: field.dataType for field in selected.schema.fields}
    return selected, Layout(event, types[ID], types.get(KEPT))


def _expect_readable(events: DataFrame, selected: StructType) -> None:
    """Raise an error for columns whose values PyArrow has no class for: their batches cannot be
    read.
    """
    if not _has_months(selected):
        return
    names = [field.name for field in events.schema.fields if _has_months(field.dataType)]
    raise InputError(
        f"workers cannot read intervals of years and months, which these columns of the events "
        f"have: {', '.join(names[:10])}",
        hint="cast them to string, or leave them out: attributes=[…]",
    )


def _has_months(type_: DataType) -> bool:
    if isinstance(type_, StructType):
        return any(_has_months(field.dataType) for field in type_.fields)
    if isinstance(type_, MapType):
        return _has_months(type_.keyType) or _has_months(type_.valueType)
    if isinstance(type_, ArrayType):
        return _has_months(type_.elementType)
    return isinstance(type_, YearMonthIntervalType)


def expect_some(
    events: DataFrame, paths: Iterable[Path], attributes: str | Sequence[str] | None
) -> None:
    """Raise an error if no subscription uses any of the columns: that is hardly intended."""
    if isinstance(attributes, str):
        return
    for name in attributes or ():
        _find(events, name)
    wanted = _by_first_name(path for path in paths if path)
    available = set(events.columns if attributes is None else attributes)
    if () not in paths and wanted and not wanted.keys() & available:
        raise InputError(
            "the events have none of the attributes that subscriptions use: "
            f"{', '.join(sorted(wanted)[:10])}; they have: {', '.join(sorted(available)[:10])}",
            hint="if one column contains whole events, name it: attributes='event'",
        )


def choose_id(events: DataFrame, event_id: str | None) -> str | None:
    """The column of ids: the named one, else `event_id`; None if the events have no such column."""
    return EVENT_ID if event_id is None and EVENT_ID in events.columns else event_id


def _identity(events: DataFrame, event_id: str | None) -> Column:
    named = choose_id(events, event_id)
    if named is None:
        return F.monotonically_increasing_id()
    return F.lit(0) if named == ANONYMOUS else _find(events, named)


def select_key(events: DataFrame, name: str) -> Column:
    """The column, or the field of a struct, by whose values to count."""
    if name in events.columns:
        return _find(events, name)
    first, *fields = parse_path(name) if "`" in name else name.split(".")
    column = _find(events, first)
    for field in fields:
        column = column.getField(field)
    return column


def select_values(
    events: DataFrame, attributes: str | Sequence[str] | None, names: Sequence[str]
) -> Column:
    """Attributes of the events in a struct; `WHOLE_EVENT` is all of them, as JSON."""
    columns = []
    for name in names:
        if name == WHOLE_EVENT:
            columns.append(_as_json(events, attributes).alias(ATTRIBUTES))
        elif isinstance(attributes, str):
            columns.append(_inside(events, attributes, parse_path(name)).alias(name))
        else:
            columns.append(select_key(events, name).alias(name))
    return F.struct(*columns)


def _as_json(events: DataFrame, attributes: str | Sequence[str] | None) -> Column:
    if not isinstance(attributes, str):
        names = events.columns if attributes is None else attributes
        return F.to_json(F.struct(*(_find(events, name) for name in names)))
    column = _find(events, attributes)
    type_ = events.schema[attributes].dataType
    return (
        column.cast("string") if isinstance(type_, StringType | BinaryType) else F.to_json(column)
    )


def _inside(events: DataFrame, attributes: str, path: Path) -> Column:
    """An attribute of whole events; for JSON and maps it is a string."""
    column = _find(events, attributes)
    type_ = events.schema[attributes].dataType
    if isinstance(type_, StringType | BinaryType):
        steps = "".join(f"['{step}']" for step in path)
        return F.get_json_object(column.cast("string"), f"${steps}")
    if isinstance(type_, MapType):
        return F.try_element_at(column, F.lit(print_path(path)))
    for step in path:
        expect_column(_field_names(type_), step, "events")
        column, type_ = column.getField(step), type_[step].dataType  # type: ignore[index]
    return column


def _field_names(type_: DataType) -> list[str]:
    return type_.fieldNames() if isinstance(type_, StructType) else []


def quoted(name: str) -> str:
    """The name as a reference to one top-level column."""
    return f"`{name.replace('`', '``')}`"


def _find(events: DataFrame, name: str) -> Column:
    expect_column(events.columns, name, "events")
    return F.col(quoted(name))


def expect_frame(given: Any, what: str) -> None:
    """Raise an error unless the value is a Spark DataFrame."""
    if not isinstance(given, DataFrame):
        library, name = type(given).__module__.partition(".")[0], type(given).__name__
        found = name if library == "builtins" else f"a {library} {name}"
        raise InputError(
            f"{what} must be a Spark DataFrame, not {found}",
            hint="spark.createDataFrame(frame) converts a pandas frame; spark.read reads a file",
        )


def expect_column(names: list[str], name: str, whose: str) -> None:
    """Raise an error for a name that no column has, or several columns have."""
    if names.count(name) == 1:
        return
    shown = ", ".join(names[:20])
    if name in names:
        raise InputError(
            f'the {whose} have two columns "{name}"; they have: {shown}', hint="drop or rename one"
        )
    likely = suggest(name, names)
    raise InputError(
        f'the {whose} have no column "{name}"; they have: {shown}',
        hint=f'did you mean "{likely}"?' if likely else None,
    )


def _attribute_columns(
    events: DataFrame, paths: Iterable[Path], attributes: Sequence[str] | None
) -> list[Column]:
    available = set(events.columns if attributes is None else attributes)
    # An operator may read any attribute: the empty path is the whole event.
    everything: list[Path] = [()]
    wanted = dict.fromkeys(available, everything) if () in paths else _by_first_name(paths)
    found = [field for field in events.schema.fields if field.name in wanted.keys() & available]
    for field in found:
        _find(events, field.name)
    return [
        _prune(F.col(quoted(field.name)), field.dataType, wanted[field.name]).alias(
            _disguise(field.name)
        )
        for field in found
    ]


def _disguise(name: str) -> str:
    """The name under which a column is sent to a worker.

    `mapInArrow` treats the names of columns as references, in which a dot accesses a struct.
    """
    is_plain = "." not in name and "`" not in name and not name.startswith(_DISGUISED)
    return name if is_plain else _DISGUISED + name.encode().hex()


def _whole_event(events: DataFrame, name: str, paths: Iterable[Path]) -> Column:
    column = _find(events, name)
    type_ = events.schema[name].dataType
    if isinstance(type_, StructType):
        return _prune(column, type_, list(paths))
    if isinstance(type_, StringType | BinaryType):
        return column
    if isinstance(type_, MapType) and isinstance(type_.keyType, StringType):
        return column
    raise InputError(
        f'column "{name}" is {type_.simpleString()}: no event can be read from it',
        hint="allowed: a struct, a map with string keys, JSON in a string column",
    )


def _prune(column: Column, type_: DataType, paths: list[Path]) -> Column:
    """The column; for a struct, only the fields that some path names."""
    if not isinstance(type_, StructType) or () in paths:
        return column
    wanted = _by_first_name(paths)
    fields: list[Any] = [
        _prune(column.getField(field.name), field.dataType, wanted[field.name]).alias(field.name)
        for field in type_.fields
        if field.name in wanted
    ]
    # A NULL struct becomes a struct of NULL fields: neither has attributes.
    return F.struct(*fields) if fields else column


def _by_first_name(paths: Iterable[Path]) -> dict[str, list[Path]]:
    """The remaining paths by their first names."""
    found: dict[str, list[Path]] = {}
    for path in paths:
        found.setdefault(path[0], []).append(path[1:])
    return found


def undisguised(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch, or table, with the original names of its columns."""
    names = batch.schema.names
    if not any(name.startswith(_DISGUISED) for name in names):
        return batch
    return batch.rename_columns(list(map(_own_name, names)))


def _own_name(name: str) -> str:
    if not name.startswith(_DISGUISED):
        return name
    return bytes.fromhex(name.removeprefix(_DISGUISED)).decode()


def only_attributes(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without the columns that jobs add."""
    return batch.select([name for name in batch.schema.names if name not in (ID, KEPT)])
