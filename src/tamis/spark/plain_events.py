"""Events as plain Python values, read without the encoder, to audit it."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.events.rows import EventRows
from tamis.language.arrow_types import arrow_type
from tamis.language.ast import Attribute
from tamis.language.printer import NUMBER_PARTS
from tamis.language.types import INT64_MAX, INT64_MIN, NUMBER, fits_decimal
from tamis.logic.evaluate import attribute_value
from tamis.spark.layout import only_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.schema import Path, Schema
    from tamis.language.types import Type
    from tamis.spark.layout import Layout


def plain_events(batch: pa.RecordBatch, layout: Layout, schema: Schema) -> Iterator[Any]:
    """The events as the reference evaluator takes them, in any layout; None for an invalid
    event.
    """
    held = only_attributes(batch) if layout.event is None else batch
    rows = EventRows(held, layout.event, schema)
    yield from (rows[row] for row in range(batch.num_rows))


# ── typed columns ───────────────────────────────────────────────────────────────────────────


def typed_schema(schema: Schema, paths: list[Path]) -> pa.Schema:
    """The attributes as Arrow columns, those with a path in structs."""
    tree = _tree(schema, paths)
    return pa.schema([pa.field(name, _arrow_type(below)) for name, below in tree.items()])


def typed_rows(events: Iterator[Any], schema: Schema, paths: list[Path]) -> pa.Table:
    """The attributes of the events as the reference evaluator reads them; otherwise NULL."""
    attributes = [Attribute(path, type=schema[path]) for path in paths]
    rows = []
    for event in events:
        row: dict[str, Any] = {}
        for attribute in attributes:
            inside = row
            for outer in attribute.path[:-1]:
                inside = inside.setdefault(outer, {})
            value = attribute_value(attribute, event)
            is_bare = schema[attribute.path].name == "any"
            inside[attribute.path[-1]] = (
                True if is_bare and value is not None else _split(value, schema[attribute.path])
            )
        rows.append(row)
    return pa.Table.from_pylist(rows, typed_schema(schema, paths))


def fits_spark(event: Any, schema: Schema, paths: list[Path]) -> bool:
    """Whether Spark has a type for each number of the event that an audit compares."""
    for path in paths:
        if (schema[path].element or schema[path]) == NUMBER:
            value = attribute_value(Attribute(path, type=schema[path]), event)
            if not all(map(_has_part, value if isinstance(value, tuple) else (value,))):
                return False
    return True


def _has_part(number: Any) -> bool:
    if isinstance(number, int) and not INT64_MIN <= number <= INT64_MAX:
        number = Decimal(number)
    return not isinstance(number, Decimal) or fits_decimal(number, NUMBER_PARTS["exact"])


def _split(value: Any, type_: Type) -> Any:
    """A number as the parts that the text printed for Spark uses."""
    if type_.element == NUMBER and value is not None:
        return [_split(own, NUMBER) for own in value]
    if type_ != NUMBER or value is None:
        return value
    if isinstance(value, float):
        return {"double": value}
    is_whole = isinstance(value, int) and INT64_MIN <= value <= INT64_MAX
    return {"whole": value} if is_whole else {"exact": Decimal(value)}


def _tree(schema: Schema, paths: list[Path]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path in paths:
        branch = tree
        for name in path[:-1]:
            branch = branch.setdefault(name, {})
        branch[path[-1]] = schema[path]
    return tree


def _arrow_type(below: Type | dict[str, Any]) -> pa.DataType:
    if isinstance(below, dict):
        return pa.struct([pa.field(name, _arrow_type(own)) for name, own in below.items()])
    if below.element == NUMBER:
        return pa.list_(_arrow_type(NUMBER))
    if below == NUMBER:
        return pa.struct([pa.field(name, arrow_type(own)) for name, own in NUMBER_PARTS.items()])
    return pa.bool_() if below.name == "any" else arrow_type(below)  # only presence is tested
