"""Events as Arrow data: typed columns, structs, maps, and JSON in a string column.

Columns that no attribute needs are never read.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.errors import InputError
from tamis.events.arrow_arrays import expect_readable, is_text, plain_array, valid_places
from tamis.events.arrow_values import convert_array, give
from tamis.events.entries import Collector
from tamis.events.event_strings import collect_arrays
from tamis.events.json_events import read_json
from tamis.events.json_source import hold_arrow_texts
from tamis.events.kernels.ranks import keep_last

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tamis.events.attributes import AttributeTable, NameTree
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.kernels.arrays import Int32, Int64

_is = pa.types


def read_table(
    table: pa.Table | pa.RecordBatch, attributes: AttributeTable, rejects: Rejects
) -> EventValues:
    """Events as rows with attributes in typed columns; `a.b` is in a struct column `a`."""
    collector = Collector(attributes, rejects)
    _collect_columns(table, attributes.tree, collector)
    collect_arrays(_all_chunks(table, collector), table.num_rows, collector)
    return collector.finish(table.num_rows)


def read_spelled_table(
    table: pa.Table | pa.RecordBatch, attributes: AttributeTable, rejects: Rejects
) -> EventValues:
    """Like `read_table` for columns of text, each named as an expression spells its attribute."""
    collector = Collector(attributes, rejects)
    for number, attribute in _find_names(table.schema.names, attributes.spellings):
        for first_row, chunk in _chunks(table.column(number)):
            values = _Values(chunk, first_row, None)
            _collect_array(values, attribute, collector, is_spelled=True)
    collect_arrays(_all_chunks(table, collector), table.num_rows, collector)
    return collector.finish(table.num_rows)


def read_event_column(
    column: pa.Array | pa.ChunkedArray, attributes: AttributeTable, rejects: Rejects
) -> EventValues:
    """Events as single values: structs, maps from names to values, or JSON texts."""
    chunks = list(_chunks(column))
    arrow_type = chunks[0][1].type if chunks else column.type
    if is_text(arrow_type) or _is.is_binary(arrow_type) or _is.is_large_binary(arrow_type):
        texts = hold_arrow_texts([chunk for _, chunk in chunks])
        return read_json(texts, attributes, rejects)
    collector = Collector(attributes, rejects)
    for first_row, chunk in chunks:
        if _is.is_struct(arrow_type):
            _collect_struct(_Values(chunk, first_row, None), attributes.tree, collector)
        elif _is.is_map(arrow_type):
            values = _Values(chunk, first_row, None)
            _collect_map(values, attributes.spellings, collector, is_spelled=True)
        elif not _is.is_null(arrow_type):
            raise InputError(
                f"no event can be read from a column of type {arrow_type}",
                hint="allowed: a struct, a map with string keys, JSON in a string column",
            )
    collect_arrays(chunks, len(column), collector)
    return collector.finish(len(column))


# ── columns ─────────────────────────────────────────────────────────────────────────────────


def _all_chunks(
    table: pa.Table | pa.RecordBatch, collector: Collector
) -> Iterator[tuple[int, pa.Array]]:
    """The chunks of all columns; none if strings in any column are not needed."""
    if collector.table.strings is not None:
        for number in range(table.num_columns):
            expect_readable(table.schema.field(number))
            yield from _chunks(table.column(number))


def _find_names(names: Sequence[str], wanted: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """The numbers of the needed columns, and the attributes they are needed for."""
    taken = set()
    for number, name in enumerate(names):
        if name in wanted:
            if name in taken:
                raise InputError(f'two columns "{name}"; column names must be unique')
            taken.add(name)
            yield number, wanted[name]


def _chunks(column: pa.Array | pa.ChunkedArray) -> Iterator[tuple[int, pa.Array]]:
    """The first row of each chunk, and the chunk."""
    if isinstance(column, pa.Array):
        yield 0, plain_array(column)
        return
    first_row = 0
    for chunk in column.chunks:
        yield first_row, plain_array(chunk)
        first_row += len(chunk)


def _collect_columns(
    table: pa.Table | pa.RecordBatch, tree: NameTree, collector: Collector
) -> None:
    for number, slot in _find_names(table.schema.names, tree.slots):
        expect_readable(table.schema.field(number))
        for first_row, chunk in _chunks(table.column(number)):
            _collect_slot(_Values(chunk, first_row, None), tree, slot, collector)


class _Values(NamedTuple):
    """An array and the events its values belong to."""

    array: pa.Array
    first_row: int
    is_there: np.ndarray | None  # bool[n]: enclosing value is not NULL; None: everywhere

    def places(self) -> Int64 | None:
        """The positions of values; None if every position has one."""
        valid = valid_places(self.array)
        if self.is_there is None:
            return valid
        return np.flatnonzero(self.is_there) if valid is None else valid[self.is_there[valid]]

    def mask(self) -> np.ndarray | None:
        """The same as Booleans."""
        places = self.places()
        if places is None:
            return None
        mask = np.zeros(len(self.array), dtype=np.bool_)
        mask[places] = True
        return mask


def _collect_slot(values: _Values, tree: NameTree, slot: int, collector: Collector) -> None:
    """Add the attribute at a slot, and those inside it."""
    if tree.attributes[slot] >= 0:
        _collect_array(values, tree.attributes[slot], collector, is_spelled=False)
    inner = tree.children.get(slot)
    if inner is None:
        return
    if _is.is_struct(values.array.type):
        _collect_struct(values, inner, collector)
    elif _is.is_map(values.array.type):
        named = {name: inner.attributes[at] for name, at in inner.slots.items()}
        _collect_map(values, named, collector, is_spelled=False)


def _collect_struct(values: _Values, tree: NameTree, collector: Collector) -> None:
    is_there = values.mask()
    struct = values.array
    names = [struct.type.field(number).name for number in range(struct.type.num_fields)]
    for number, slot in _find_names(names, tree.slots):
        field = plain_array(struct.field(number))  # a field of a NULL struct may hold any value
        _collect_slot(_Values(field, values.first_row, is_there), tree, slot, collector)


def _collect_array(
    values: _Values, attribute: int, collector: Collector, *, is_spelled: bool
) -> None:
    """Add the values of one attribute."""
    array, places = values.array, values.places()
    if places is not None and len(places) == 0:
        return
    type_ = collector.table.types[attribute]
    rows = np.arange(len(array)) if places is None else places
    if values.first_row:
        rows = rows + values.first_row
    converted = convert_array(array, places, type_, is_spelled=is_spelled)
    give_values = partial(give, array, places, type_, is_spelled=is_spelled)
    collector.add(type_, rows, attribute, converted, give_values)


# ── maps ────────────────────────────────────────────────────────────────────────────────────


def _collect_map(
    values: _Values,
    named: Mapping[str, int],  # the attribute of each key, or -1
    collector: Collector,
    *,
    is_spelled: bool,
) -> None:
    """Add the values of a map's keys; of equal keys in one map the last one counts."""
    table = collector.table
    starts, keys, items = _open_map(values.array)
    attributes = _find_attributes(keys, named)
    is_kept = np.empty(len(attributes), dtype=np.bool_)
    keep_last(starts, attributes, np.full(len(table), -1, dtype=np.int64), is_kept)
    rows = np.repeat(np.arange(len(values.array)), np.diff(starts))
    is_there, is_known = values.mask(), _Values(items, 0, None).mask()
    if is_there is not None:
        is_kept &= is_there[rows]
    if is_known is not None:
        is_kept &= is_known
    kept = np.flatnonzero(is_kept)
    numbers = table.type_numbers[attributes[kept]]
    for number, type_ in enumerate(table.distinct_types):
        places = kept[numbers == number]
        if len(places):
            converted = convert_array(items, places, type_, is_spelled=is_spelled)
            give_values = partial(give, items, places, type_, is_spelled=is_spelled)
            own_rows = values.first_row + rows[places]
            collector.add(type_, own_rows, attributes[places], converted, give_values)


def _open_map(array: pa.MapArray) -> tuple[Int64, pa.Array, pa.Array]:
    """The start of each map's entries, and all keys and values."""
    starts = array.offsets.to_numpy().astype(np.int64)
    begin, length = int(starts[0]), int(starts[-1] - starts[0])
    keys, items = (plain_array(own.slice(begin, length)) for own in (array.keys, array.items))
    if not is_text(keys.type):
        raise InputError(f"the keys of {array.type} are not strings; they name attributes")
    return starts - begin, keys, items


def _find_attributes(keys: pa.Array, named: Mapping[str, int]) -> Int32:
    """The attribute of each key, or -1."""
    encoded = keys.cast(pa.large_binary()).dictionary_encode()
    by_bytes = {name.encode(errors="surrogatepass"): number for name, number in named.items()}
    found = [by_bytes.get(key, -1) for key in encoded.dictionary.to_pylist()]
    numbers = encoded.indices.fill_null(len(found)).to_numpy()  # a key should not be NULL
    attributes: Int32 = np.array([*found, -1], dtype=np.int32)[numbers]
    return attributes
