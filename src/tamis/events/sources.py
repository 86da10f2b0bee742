"""Events that do not fit in memory: files, streams and iterators, read a batch at a time."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.batches import batched
from tamis.columnar import cut, read_parquet
from tamis.errors import InputError
from tamis.events.delimited import split_csv
from tamis.events.mappings import read_json
from tamis.events.read import ALLOWED, read_events
from tamis.events.rejects import Rejects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues

BATCH_ROWS: Final = 8192  # sixteen blocks of the batch kernel


class EventFormat(StrEnum):
    """How the events of a file are written."""

    JSONL = "jsonl"  # one JSON object on each line; blank lines do not count
    CSV = "csv"  # a header of attribute names; an empty field is a missing attribute
    PARQUET = "parquet"
    ARROW = "arrow"  # Arrow's own file and stream formats


_SUFFIXES: Final = {
    ".jsonl": EventFormat.JSONL,
    ".ndjson": EventFormat.JSONL,
    ".json": EventFormat.JSONL,
    ".csv": EventFormat.CSV,
    ".parquet": EventFormat.PARQUET,
    ".pq": EventFormat.PARQUET,
    ".arrow": EventFormat.ARROW,
    ".arrows": EventFormat.ARROW,
}


def read_batches(  # noqa: PLR0913 - what to read, and how
    source: Any,
    table: AttributeTable,
    *,
    file_format: str | None = None,
    column: str | None = None,
    n_rows: int = BATCH_ROWS,
    strict: bool = False,
) -> Iterator[EventValues]:
    """The events of `source` in batches of at most `n_rows`, and of bounded size.

    `source` is the path of a file (`str` or `Path`), an open binary stream or its `bytes` (both
    JSON lines unless `file_format` says otherwise), an Arrow table, reader or array, or an
    iterable of mappings or of JSON texts. `column` is as in `read_events`.
    """
    first_row = 0
    for read in _split(source, table, file_format, column, n_rows):
        values = read(Rejects(strict=strict, first_row=first_row))
        first_row += values.n_rows
        yield values


def _split(
    source: Any, table: AttributeTable, file_format: str | None, column: str | None, n_rows: int
) -> Iterator[Callable[[Rejects], EventValues]]:
    """A reader for each batch."""
    if not (isinstance(source, str | Path | bytes) or hasattr(source, "read")):
        for part in _split_events(source, n_rows):
            yield partial(read_events, part, table, column=column)
        return
    name = str(source) if isinstance(source, str | Path) else "the stream"
    chosen = _choose_format(source, file_format)
    with _opened(source, name) as stream:
        if chosen is EventFormat.JSONL:
            for lines in batched(_json_lines(stream), n_rows, len):
                yield partial(read_json, lines, table)
        elif chosen is EventFormat.CSV:
            yield from split_csv(stream, name, table, n_rows)
        else:
            for batch in _read_columnar(stream, name, chosen, table, column, n_rows):
                yield partial(read_events, batch, table, column=column)


def _split_events(source: Any, n_rows: int) -> Iterator[Any]:
    """Arrow data without copying it; anything else as lists."""
    if isinstance(source, pa.RecordBatchReader):
        for batch in source:
            yield from _split_events(batch, n_rows)
    elif isinstance(source, pa.Table | pa.RecordBatch | pa.Array | pa.ChunkedArray):
        yield from cut(source, n_rows)
    elif hasattr(source, "__arrow_c_stream__"):
        yield from _split_events(pa.RecordBatchReader.from_stream(source), n_rows)
    elif isinstance(source, Mapping) or not isinstance(source, Iterable):
        raise InputError(f"no events can be read from {type(source).__name__}", hint=ALLOWED)
    else:
        yield from batched(source, n_rows, _weigh)


def _weigh(event: Any) -> int:
    """The length of a JSON text; what a mapping holds is in memory already."""
    return len(event) if isinstance(event, str | bytes) else 0


# ── files ───────────────────────────────────────────────────────────────────────────────────


def _choose_format(source: Any, file_format: str | None) -> EventFormat:
    if file_format is not None and file_format not in tuple(EventFormat):
        raise InputError(f'unknown format "{file_format}"; allowed: {", ".join(EventFormat)}')
    if file_format is not None:
        return EventFormat(file_format)
    if not isinstance(source, str | Path):
        return EventFormat.JSONL
    suffix = Path(source).suffix.lower()
    if suffix not in _SUFFIXES:
        raise InputError(
            f"cannot tell the format of {source} by its name; known endings: {' '.join(_SUFFIXES)}",
            hint=f"say which it is: {', '.join(EventFormat)}",
        )
    return _SUFFIXES[suffix]


@contextmanager
def _opened(source: Any, name: str) -> Iterator[IO[bytes]]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
    elif not isinstance(source, str | Path):
        yield source
    else:
        try:
            stream = Path(source).open("rb")  # noqa: SIM115 - closed below
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise InputError(f"cannot read {name}: {reason}") from None
        with stream:
            yield stream


def _json_lines(stream: IO[bytes]) -> Iterator[bytes]:
    for number, line in enumerate(stream):
        content = line.removeprefix(b"\xef\xbb\xbf") if number == 0 else line
        if not content.isspace() and content:
            yield content


def _read_columnar(  # noqa: PLR0913 - where from, and which of it
    stream: IO[bytes],
    name: str,
    file_format: EventFormat,
    table: AttributeTable,
    column: str | None,
    n_rows: int,
) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet or Arrow file, without the columns that nobody asks for."""
    wanted = table.tree.slots.keys() if column is None else {column}
    try:
        if file_format is EventFormat.PARQUET:
            yield from read_parquet(
                stream, lambda names: [known for known in names if known in wanted], n_rows
            )
        else:
            # A file of Arrow's is read from its end: a pipe must be held whole.
            seekable = stream if stream.seekable() else pa.BufferReader(stream.read())
            yield from _split_events(_open_arrow(seekable), n_rows)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{name} cannot be read as {file_format}: {reason}") from None


def _open_arrow(stream: Any) -> pa.RecordBatchReader:
    """A file of Arrow's random-access or of its stream format."""
    try:
        file = pa.ipc.open_file(stream)
    except pa.ArrowInvalid:
        stream.seek(0)
        return pa.ipc.open_stream(stream)
    batches = (file.get_batch(number) for number in range(file.num_record_batches))
    return pa.RecordBatchReader.from_batches(file.schema, batches)
