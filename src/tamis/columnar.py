"""Columns of Arrow and Parquet, in memory and in files, in pieces of bounded rows and bytes.

A small file can hold large values: a dictionary has each of them once, however many rows name it.
So bytes are counted as the values take them once they are spelled out, row by row, and texts that
would swell stay in their dictionaries until the rows are cut.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.batches import MOST_BYTES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow.parquet as pq

_FIXED_WIDTH: Final = 8  # of values whose type has no width of its own
_TEXTS: Final = (pa.string(), pa.binary(), pa.large_string(), pa.large_binary())
_is = pa.types


# ── Arrow ───────────────────────────────────────────────────────────────────────────────────


def cut(data: Any, n_rows: int, n_bytes: int | None = None) -> Iterator[Any]:
    """A table, batch or array in slices of at most so many rows and bytes, but of one row each."""
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
    """How many bytes the values of each row take when they are spelled out."""
    if isinstance(data, pa.Table | pa.RecordBatch):
        sizes = np.zeros(len(data), dtype=np.int64)
        for column in data.columns:
            sizes += row_sizes(column)
        return sizes
    if isinstance(data, pa.ChunkedArray):
        nothing = np.empty(0, dtype=np.int64)
        return np.concatenate([nothing, *map(row_sizes, data.chunks)])
    return _value_sizes(data)


def _value_sizes(array: pa.Array) -> np.ndarray:
    import pyarrow.compute as pc

    type_ = array.type
    if isinstance(array, pa.ExtensionArray):
        return _value_sizes(array.storage)
    if _is.is_dictionary(type_):
        sizes = np.append(_value_sizes(array.dictionary), 0)
        found: np.ndarray = sizes[array.indices.fill_null(len(sizes) - 1).to_numpy()]
        return found
    if _is.is_run_end_encoded(type_):
        lengths = np.diff(array.run_ends.to_numpy(), prepend=0)
        repeated = np.repeat(_value_sizes(array.values), lengths)
        return repeated[array.offset : array.offset + len(array)]
    if _is.is_string_view(type_) or _is.is_binary_view(type_):
        array = array.cast(pa.large_binary())  # of which alone Arrow tells the lengths
    if array.type in _TEXTS:
        return _lengths(pc.binary_length(array))
    if _is.is_struct(type_):
        return sum(map(_value_sizes, array.flatten()), np.zeros(len(array), dtype=np.int64))
    if _is.is_map(type_):
        starts = array.offsets.to_numpy()
        own = slice(int(starts[0]), int(starts[-1]))
        entries = _value_sizes(array.keys[own]) + _value_sizes(array.items[own])
        return _sums(entries, np.diff(starts))
    if _is.is_nested(type_) and not _is.is_union(type_):
        return _sums(_value_sizes(pc.list_flatten(array)), _lengths(pc.list_value_length(array)))
    has_width = not _is.is_union(type_) and not _is.is_null(type_)
    width = max(1, type_.bit_width // 8) if has_width else _FIXED_WIDTH
    return np.full(len(array), width, dtype=np.int64)


def _lengths(array: pa.Array) -> np.ndarray:
    lengths: np.ndarray = array.fill_null(0).to_numpy().astype(np.int64)
    return lengths


def _sums(sizes: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """The sum of each run of so many sizes."""
    sums = np.concatenate(([0], np.cumsum(sizes)))
    ends = np.cumsum(lengths)
    found: np.ndarray = sums[ends] - sums[ends - lengths]
    return found


def read_arrow(
    stream: IO[bytes],
    choose: Callable[[list[str]], Sequence[str] | None],
    n_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Batches of a file in Arrow's file or stream format, as `read_parquet` reads Parquet."""
    # Arrow's files are read from their end: a pipe must be held whole.
    seekable = stream if stream.seekable() else pa.BufferReader(stream.read())
    reader = _open_arrow(seekable)
    names = choose(reader.schema.names)
    for batch in reader:
        yield from cut(batch if names is None else batch.select(list(names)), n_rows)


def _open_arrow(stream: Any) -> pa.RecordBatchReader:
    try:
        file = pa.ipc.open_file(stream)
    except pa.ArrowInvalid:
        stream.seek(0)
        return pa.ipc.open_stream(stream)
    batches = (file.get_batch(number) for number in range(file.num_record_batches))
    return pa.RecordBatchReader.from_batches(file.schema, batches)


# ── Parquet ─────────────────────────────────────────────────────────────────────────────────


def read_parquet(
    stream: IO[bytes],
    choose: Callable[[list[str]], Sequence[str] | None],
    n_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet file, of the columns that are chosen from its names; None for all.

    Raises what Arrow raises on a file that is none.
    """
    import pyarrow.parquet as pq

    # Parquet is read from its end: a pipe must be held whole.
    seekable = stream if stream.seekable() else pa.BufferReader(stream.read())

    def opened(dictionaries: list[str] | None) -> pq.ParquetFile:
        # Spark writes timestamps of 96 bits, which would come as nanoseconds.
        return pq.ParquetFile(
            seekable, read_dictionary=dictionaries, coerce_int96_timestamp_unit="us"
        )

    file = opened(None)
    names = choose(file.schema_arrow.names)
    texts = _text_leaves(file, names)
    if texts:
        compact = opened([file.schema.column(leaf).path for leaf in texts])
        if _swells(file, compact, texts, n_rows):
            file = compact
    for batch in file.iter_batches(batch_size=_fitting_rows(file, n_rows), columns=names):
        yield from cut(batch, n_rows)


def _text_leaves(file: pq.ParquetFile, names: Sequence[str] | None) -> list[int]:
    """The leaves of the columns that hold texts, which may be in dictionaries."""
    leaves = ((leaf, file.schema.column(leaf)) for leaf in range(len(file.schema)))
    return [
        leaf
        for leaf, column in leaves
        if column.physical_type == "BYTE_ARRAY"
        and column.logical_type.type in ("STRING", "NONE")
        and (names is None or column.path.partition(".")[0] in names or column.path in names)
    ]


def _swells(file: pq.ParquetFile, compact: pq.ParquetFile, texts: list[int], n_rows: int) -> bool:
    """Whether so many rows may be too large when their texts are spelled out.

    A text is in the dictionary of its group of rows, of which one row tells the longest, or is
    spelled out in the file already, where groups tell the average.
    """
    columns = [file.schema.column(leaf).path for leaf in texts]
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        if not group.num_rows:
            continue
        spelled = sum(group.column(leaf).total_uncompressed_size for leaf in texts)
        if n_rows * spelled <= MOST_BYTES:
            continue
        first = next(compact.iter_batches(batch_size=1, row_groups=[number], columns=columns))
        n_values = max(group.column(leaf).num_values for leaf in texts)
        longest = sum(map(_longest, first.columns)) * n_values
        if n_rows * (longest + spelled) > MOST_BYTES * group.num_rows:
            return True
    return False


def _longest(array: pa.Array) -> int:
    """The bytes of the longest text in each dictionary, together."""
    if _is.is_dictionary(array.type):
        return int(_value_sizes(array.dictionary).max(initial=0))
    if _is.is_struct(array.type):
        return sum(_longest(array.field(at)) for at in range(array.type.num_fields))
    if _is.is_map(array.type):
        return _longest(array.keys) + _longest(array.items)
    return _longest(array.values) if _is.is_nested(array.type) else 0


def _fitting_rows(file: pq.ParquetFile, n_rows: int) -> int:
    """As many rows, or fewer where rows have long lists on average."""
    fitting = n_rows
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        leaves = range(group.num_columns)
        n_values = sum(group.column(leaf).num_values for leaf in leaves)
        if n_values:
            fitting = min(fitting, MOST_BYTES * group.num_rows // (_FIXED_WIDTH * n_values))
    return max(1, fitting)
