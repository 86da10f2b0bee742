"""Arrow data in slices of bounded rows and bytes.

A small table can contain large values: a dictionary stores each value once for any number of rows.
So bytes are counted row by row, for the expanded values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.input.batches import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXED_WIDTH: Final = 8  # of values whose type has no fixed width
_TEXTS: Final = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
_is = pa.types


def cut(data: Any, n_rows: int, n_bytes: int | None = None) -> Iterator[Any]:
    """A table, batch or array in slices of at most this many rows and bytes, but at least one
    row.
    """
    most = MOST_BYTES if n_bytes is None else n_bytes
    for first in range(0, len(data), n_rows):
        part = data.slice(first, n_rows)
        ends = np.cumsum(row_sizes(part))
        start = n_before = 0
        while start < len(part):
            end = max(start + 1, int(np.searchsorted(ends, n_before + most, side="right")))
            yield part.slice(start, end - start)
            start, n_before = end, int(ends[end - 1])


def row_sizes(data: Any) -> np.ndarray:
    """The bytes of each row's expanded values."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        sizes = np.zeros(len(data), dtype=np.int64)
        for column in data.columns:
            sizes += row_sizes(column)
        return sizes
    if isinstance(data, pa.ChunkedArray):
        nothing = np.empty(0, dtype=np.int64)
        return np.concatenate([nothing, *map(row_sizes, data.chunks)])
    return value_sizes(data)


def value_sizes(array: pa.Array) -> np.ndarray:
    import pyarrow.compute as pc

    type_ = array.type
    if isinstance(array, pa.ExtensionArray):
        return value_sizes(array.storage)
    if _is.is_dictionary(type_):
        sizes = np.append(value_sizes(array.dictionary), 0)
        found: np.ndarray = sizes[array.indices.fill_null(len(sizes) - 1).to_numpy()]
        return found
    if _is.is_run_end_encoded(type_):
        lengths = np.diff(array.run_ends.to_numpy(), prepend=0)
        repeated = np.repeat(value_sizes(array.values), lengths)
        return repeated[array.offset : array.offset + len(array)]
    if _is.is_string_view(type_) or _is.is_binary_view(type_):
        array = array.cast(pa.large_binary())  # the only types whose lengths Arrow returns
    if array.type in _TEXTS:
        return _lengths(pc.binary_length(array))
    if _is.is_struct(type_):
        return sum(map(value_sizes, array.flatten()), np.zeros(len(array), dtype=np.int64))
    if _is.is_map(type_):
        starts = array.offsets.to_numpy()
        own = slice(int(starts[0]), int(starts[-1]))
        entries = value_sizes(array.keys[own]) + value_sizes(array.items[own])
        return _sums(entries, np.diff(starts))
    if _is.is_nested(type_) and not _is.is_union(type_):
        return _sums(value_sizes(pc.list_flatten(array)), _lengths(pc.list_value_length(array)))
    has_width = not _is.is_union(type_) and not _is.is_null(type_)
    width = max(1, type_.bit_width // 8) if has_width else FIXED_WIDTH
    return np.full(len(array), width, dtype=np.int64)


def _lengths(array: pa.Array) -> np.ndarray:
    lengths: np.ndarray = array.fill_null(0).to_numpy().astype(np.int64)
    return lengths


def _sums(sizes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The sums of consecutive groups of this many sizes."""
    sums = np.concatenate(([0], np.cumsum(sizes)))
    ends = np.cumsum(lengths)
    found: np.ndarray = sums[ends] - sums[ends - lengths]
    return found
