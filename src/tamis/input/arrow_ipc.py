"""Rows of Arrow's file and stream formats, by columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.input.columnar import cut
from tamis.input.sniffing import expect_opening
from tamis.input.sources import seekable
from tamis.input.tables import reading_tables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.input.rows import Wanted
    from tamis.input.sources import Stream
    from tamis.input.tables import TableRows

_FILE_OPENING: Final = b"ARROW1"


def read_rows(stream: Stream, wanted: Wanted) -> Iterator[TableRows]:
    """The rows of a stream in batches."""
    expect_opening(stream.file, stream.name, stream.file_format)
    if stream.file.peek(len(_FILE_OPENING)).startswith(_FILE_OPENING):
        # Files are read from their end; streams as they arrive.
        with seekable(stream) as file:
            yield from reading_tables(stream, _read_file(file, wanted))
    else:
        yield from reading_tables(stream, _read_stream(stream.file, wanted))


def _read_file(file: Any, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_file(file)
    names = wanted.choose(reader.schema.names)
    if names:
        # Other columns are neither loaded nor decompressed.
        chosen = [reader.schema.names.index(name) for name in names]
        file.seek(0)
        reader = pa.ipc.open_file(file, options=pa.ipc.IpcReadOptions(included_fields=chosen))
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        yield from cut(batch if names is None else batch.select(names), wanted.n_rows)


def _read_stream(file: Any, wanted: Wanted) -> Iterator[pa.RecordBatch]:
    reader = pa.ipc.open_stream(file)
    names = wanted.choose(reader.schema.names)
    for batch in reader:
        yield from cut(batch if names is None else batch.select(names), wanted.n_rows)
