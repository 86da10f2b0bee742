"""Rows of Parquet files, by columns.

Texts that would be large when expanded stay in their dictionaries until rows are sliced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.input.batches import MOST_BYTES
from tamis.input.columnar import FIXED_WIDTH, cut, value_sizes
from tamis.input.sniffing import expect_opening
from tamis.input.sources import seekable
from tamis.input.tables import reading_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow.parquet as pq

    from tamis.input.rows import Wanted
    from tamis.input.sources import Stream
    from tamis.input.tables import TableRows

_is = pa.types


def read_rows(stream: Stream, wanted: Wanted) -> Iterator[TableRows]:
    """The rows of a stream in batches."""
    expect_opening(stream.file, stream.name, stream.file_format)
    # Parquet is read from its end.
    with seekable(stream) as file:
        yield from reading_tables(stream, read_parquet(file, wanted.choose, wanted.n_rows))


def read_parquet(
    file: Any,  # seekable
    choose: Callable[[list[str]], Sequence[str] | None],
    n_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet file, with the columns chosen from its names; None for all.

    Raises Arrow's errors for an invalid file.
    """
    import pyarrow.parquet as pq

    def opened(dictionaries: list[str] | None) -> pq.ParquetFile:
        # Spark writes timestamps of 96 bits, which would be read as nanoseconds.
        return pq.ParquetFile(file, read_dictionary=dictionaries, coerce_int96_timestamp_unit="us")

    parquet = opened(None)
    names = choose(parquet.schema_arrow.names)
    texts = _text_leaves(parquet, names)
    if texts:
        compact = opened([parquet.schema.column(leaf).path for leaf in texts])
        if _swells(parquet, compact, texts, n_rows):
            parquet = compact
    for batch in parquet.iter_batches(batch_size=_fitting_rows(parquet, n_rows), columns=names):
        yield from cut(batch, n_rows)


def _text_leaves(file: pq.ParquetFile, names: Sequence[str] | None) -> list[int]:
    """The leaves of the columns that contain texts, which may be in dictionaries."""
    leaves = ((leaf, file.schema.column(leaf)) for leaf in range(len(file.schema)))
    return [
        leaf
        for leaf, column in leaves
        if column.physical_type == "BYTE_ARRAY"
        and column.logical_type.type in ("STRING", "NONE")
        and (names is None or column.path.partition(".")[0] in names or column.path in names)
    ]


def _swells(file: pq.ParquetFile, compact: pq.ParquetFile, texts: list[int], n_rows: int) -> bool:
    """Whether this many rows may be too large when their texts are expanded.

    A text is in the dictionary of its row group, whose longest text is the bound, or is stored
    expanded in the file, where the average of the row group is used.
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
    """The sum of the longest text's bytes over all dictionaries."""
    if _is.is_dictionary(array.type):
        return int(value_sizes(array.dictionary).max(initial=0))
    if _is.is_struct(array.type):
        return sum(_longest(array.field(at)) for at in range(array.type.num_fields))
    if _is.is_map(array.type):
        return _longest(array.keys) + _longest(array.items)
    return _longest(array.values) if _is.is_nested(array.type) else 0


def _fitting_rows(file: pq.ParquetFile, n_rows: int) -> int:
    """The number of rows, reduced if rows have long lists on average."""
    fitting = n_rows
    for number in range(file.num_row_groups):
        group = file.metadata.row_group(number)
        leaves = range(group.num_columns)
        n_values = sum(group.column(leaf).num_values for leaf in leaves)
        if n_values:
            fitting = min(fitting, MOST_BYTES * group.num_rows // (FIXED_WIDTH * n_values))
    return max(1, fitting)
