"""Events that do not fit in memory: files, streams and iterators, read in batches."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.errors import InputError
from tamis.events.read import ALLOWED
from tamis.events.rejects import Rejects
from tamis.input.batches import batched, peek
from tamis.input.columnar import cut
from tamis.input.formats import expect_format, read_rows
from tamis.input.rows import BATCH_ROWS, ObjectRows, Wanted
from tamis.input.sources import open_stream
from tamis.input.tables import TableRows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.events.attributes import AttributeTable
    from tamis.events.encoder import EncodedEvents, EventEncoder
    from tamis.input.rows import Rows


def split_events(
    source: Any, wanted: Wanted, *, file_format: str | None = None, column: str | None = None
) -> Iterator[Rows]:
    """The events of `source` in batches.

    `source` is the path of a file (`str` or `Path`), an open binary stream or its `bytes` (both
    JSON unless `file_format` says otherwise), an Arrow table, reader or array, or an iterable of
    mappings, of JSON texts or of record batches. `column` is as in `events.read_events`.
    """
    chosen = None if file_format is None else expect_format(file_format)
    if not (isinstance(source, str | Path | bytes) or hasattr(source, "read")):
        for events in _split(source, wanted.n_rows):
            yield ObjectRows(events) if isinstance(events, list) else TableRows(events, column)
        return
    with open_stream(source, chosen) as stream:
        for rows in read_rows(stream, wanted._replace(in_blocks=True)):
            if isinstance(rows, TableRows):
                rows.column = column
            yield rows


def encode_batches(  # noqa: PLR0913 - what to read, and how
    encoder: EventEncoder,
    source: Any,
    *,
    strict: bool = False,
    keep: bool = False,
    column: str | None = None,
    file_format: str | None = None,
    n_rows: int = BATCH_ROWS,
) -> Iterator[EncodedEvents]:
    """The encoded events of `source` in batches; see `split_events`.

    With `keep` each batch has its events as its source, with all their columns.
    """
    first_row = 0
    wanted = Wanted(None if keep else wanted_columns(encoder.table, column), n_rows)
    for rows in split_events(source, wanted, file_format=file_format, column=column):
        rejects = Rejects(strict=strict, first_row=first_row)
        encoded = encoder.encode_read(rows.read(encoder.table, rejects))
        first_row += encoded.n_rows
        if keep:
            encoded = encoded._replace(source=rows.hold(encoder.table.by_path), column=column)
        yield encoded


def wanted_columns(table: AttributeTable, column: str | None = None) -> frozenset[str] | None:
    """The columns that contain the attributes of an index; None for all."""
    if column is not None:
        return frozenset((column,))
    return None if table.strings is not None else frozenset(table.tree.slots)


def _split(source: Any, n_rows: int) -> Iterator[Any]:
    """Arrow data without copying it; other sources as lists."""
    if isinstance(source, pa.RecordBatchReader):
        for batch in source:
            yield from _split(batch, n_rows)
    elif isinstance(source, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray):
        yield from cut(source, n_rows)
    elif hasattr(source, "__arrow_c_stream__"):
        yield from _split(pa.RecordBatchReader.from_stream(source), n_rows)
    elif isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(f"no events can be read from {type(source).__name__}", hint=ALLOWED)
    else:
        first, events = peek(source)
        if isinstance(first, pa.RecordBatch | pa.Table):
            for batch in events:
                yield from _split(batch, n_rows)
        else:
            yield from batched(events, n_rows, _weigh)


def _weigh(event: Any) -> int:
    """The length of a JSON text; a mapping is in memory already."""
    return len(event) if isinstance(event, str | bytes) else 0
