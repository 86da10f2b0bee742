"""Events that do not fit in memory: files, streams and iterators, read a batch at a time."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa

from tamis.batches import batched, peek
from tamis.columnar import cut, read_arrow, read_parquet
from tamis.errors import InputError
from tamis.events.delimited import split_csv
from tamis.events.mappings import read_json
from tamis.events.read import ALLOWED, read_events
from tamis.records import DELIMITERS, Format, RowError, detect_format, json_texts, opened

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterator

    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects

BATCH_ROWS: Final = 8192  # sixteen blocks of the batch kernel


class Part(NamedTuple):
    """Some events of a source."""

    read: Callable[[Rejects], EventValues]  # their attributes, typed
    hold: Callable[[], Any]  # the events themselves, as `read_events` takes them


def split_source(  # noqa: PLR0913 - what to read, and how
    source: Any,
    table: AttributeTable,
    *,
    file_format: str | None = None,
    column: str | None = None,
    n_rows: int = BATCH_ROWS,
    all_columns: bool = False,
) -> Iterator[Part]:
    """The events of `source` in parts of at most `n_rows`, and of bounded size.

    `source` is the path of a file (`str` or `Path`), an open binary stream or its `bytes` (both
    JSON unless `file_format` says otherwise), an Arrow table, reader or array, or an iterable of
    mappings, of JSON texts or of record batches. `column` is as in `read_events`. Columns of
    Parquet and Arrow files that no attribute needs are read with `all_columns` only.
    """
    if not (isinstance(source, str | Path | bytes) or hasattr(source, "read")):
        for events in _split_events(source, n_rows):
            yield _whole(events, table, column)
        return
    name = str(source) if isinstance(source, str | Path) else "the stream"
    chosen = _choose_format(source, file_format)
    with opened(io.BytesIO(source) if isinstance(source, bytes) else source) as stream:
        if chosen is Format.JSONL:
            for texts in batched(_json_texts(stream, name), n_rows, _weigh):
                yield Part(partial(read_json, texts, table), partial(_itself, texts))
        elif chosen in DELIMITERS:
            for rows in split_csv(stream, name, table, n_rows, DELIMITERS[chosen]):
                yield Part(rows.read, rows.hold)
        else:
            wanted = table.tree.slots.keys() if column is None else {column}
            chosen_columns = None if all_columns else wanted
            for batch in _read_columnar(stream, name, chosen, chosen_columns, n_rows):
                yield _whole(batch, table, column)


def _whole(events: Any, table: AttributeTable, column: str | None) -> Part:
    return Part(
        lambda rejects: read_events(events, table, rejects, column=column), partial(_itself, events)
    )


def _itself(events: Any) -> Any:
    return events


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
        first, events = peek(source)
        if isinstance(first, pa.RecordBatch | pa.Table):
            for batch in events:
                yield from _split_events(batch, n_rows)
        else:
            yield from batched(events, n_rows, _weigh)


def _weigh(event: Any) -> int:
    """The length of a JSON text; what a mapping holds is in memory already."""
    return len(event) if isinstance(event, str | bytes) else 0


# ── files ───────────────────────────────────────────────────────────────────────────────────


def _choose_format(source: Any, file_format: str | None) -> Format:
    if file_format is not None and file_format not in tuple(Format):
        raise InputError(f'unknown format "{file_format}"; allowed: {", ".join(Format)}')
    if file_format is not None:
        return Format(file_format)
    return detect_format(str(source)) if isinstance(source, str | Path) else Format.JSONL


def _json_texts(stream: IO[bytes], name: str) -> Iterator[bytes | RowError]:
    return (text for _, text in json_texts(stream, name))


def _read_columnar(
    stream: IO[bytes], name: str, file_format: Format, wanted: Container[str] | None, n_rows: int
) -> Iterator[pa.RecordBatch]:
    """Batches of a Parquet or Arrow file, without the columns that nobody asks for."""

    def choose(names: list[str]) -> list[str] | None:
        return None if wanted is None else [known for known in names if known in wanted]

    read = read_parquet if file_format is Format.PARQUET else read_arrow
    try:
        yield from read(stream, choose, n_rows)
    except (pa.ArrowException, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise InputError(f"{name} cannot be read as {file_format}: {reason}") from None
