"""Events as plain Python values, read without the encoder: for audits of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.events.rows import EventRows
from tamis.language.arrow_types import arrow_type
from tamis.language.ast import Attribute
from tamis.logic.evaluate import attribute_value
from tamis.spark.layout import only_attributes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.language.schema import Path, Schema
    from tamis.language.types import Type
    from tamis.spark.layout import Layout


def plain_events(batch: pa.RecordBatch, layout: Layout, schema: Schema) -> Iterator[Any]:
    """The events as the reference evaluator takes them, whatever their layout; None where there is
    none."""
    if layout.event is None:
        yield from only_attributes(batch).to_pylist()
        return
    rows = EventRows(batch, layout.event, schema)
    yield from (rows[row] for row in range(batch.num_rows))


# ── typed columns ───────────────────────────────────────────────────────────────────────────


def typed_schema(schema: Schema, paths: list[Path]) -> pa.Schema:
    """The attributes as Arrow columns, those with a path in structs."""
    tree = _tree(schema, paths)
    return pa.schema([pa.field(name, _arrow_type(below)) for name, below in tree.items()])


def typed_rows(events: Iterator[Any], schema: Schema, paths: list[Path]) -> pa.Table:
    """The attributes of the events as the reference evaluator reads them; else NULL."""
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
            inside[attribute.path[-1]] = True if is_bare and value is not None else value
        rows.append(row)
    return pa.Table.from_pylist(rows, typed_schema(schema, paths))


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
    return pa.bool_() if below.name == "any" else arrow_type(below)  # only presence is asked
