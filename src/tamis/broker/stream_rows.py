"""The rows of a stream's batch as arrays: distinct events, and whom each of them matched.

The order of the events depends on the rows alone, not on the files that they are in. So a batch
that Spark has written again has the same events at the same places.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.errors import InputError, RowError
from tamis.events.json_texts import parse_event
from tamis.versions.stream_output import EVENT, folder_of, list_files

if TYPE_CHECKING:
    from tamis.kernels.arrays import Int64
    from tamis.versions.storage import Storage
    from tamis.versions.stream_output import BatchRecord

ID, SUBSCRIPTION = "event_id", "subscription_id"
_COLUMNS: Final = (ID, SUBSCRIPTION, EVENT)


class BatchRows(NamedTuple):
    """The matches of a batch; rows with the same id and the same text are one event."""

    texts: list[bytes]  # of each event, JSON; empty if the row had no event
    ids: list[str]  # of subscriptions, each once
    event_of: Int64  # of each match, ascending: its place in `texts`
    id_of: Int64  # of each match: its place in `ids`

    def has_text(self) -> np.ndarray:
        """Whether each event can be delivered."""
        return np.fromiter(map(bool, self.texts), np.bool_, len(self.texts))


def read_rows(storage: Storage, record: BatchRecord) -> BatchRows:
    """The rows of a complete batch; raises an `InputError` if they are not those that its record
    counts, or cannot be read.
    """
    tables = [_read_file(storage, name) for name in list_files(storage, record.batch)]
    n_rows = sum(own.num_rows for own in tables)
    if n_rows != record.n_matches:
        raise InputError(
            f"{storage.where(folder_of(record.batch))} has {n_rows:,} rows; its record counts "
            f"{record.n_matches:,}",
            hint="files are missing: restore them, or run the batch again",
        )
    if not n_rows:
        nothing = np.empty(0, np.int64)
        return BatchRows([], [], nothing, nothing)
    table = pa.concat_tables(tables)
    try:
        columns = [_encode(table[name]) for name in _COLUMNS]
    except pa.ArrowException as error:
        where = storage.where(folder_of(record.batch))
        raise InputError(f"the rows of {where} cannot be used: {error}") from None
    return _group(*columns)


def _read_file(storage: Storage, name: str) -> pa.Table:
    content = storage.read(name)
    if content is None:
        raise InputError(f"{storage.where(name)} is gone", hint="is the batch run again?")
    try:
        known = pq.read_schema(pa.BufferReader(content)).names
        missing = [own for own in _COLUMNS if own not in known]
        if missing:
            raise InputError(
                f'{storage.where(name)} has no column "{missing[0]}"',
                hint="run the stream with whole events: tamis spark stream --with-event '*'",
            )
        # An event is repeated for each of its matches: it is read once.
        file = pq.ParquetFile(pa.BufferReader(content), read_dictionary=[SUBSCRIPTION, EVENT])
        return file.read(columns=list(_COLUMNS))
    except (pa.ArrowException, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"{storage.where(name)} cannot be read: {reason}") from None


class _Encoded(NamedTuple):
    codes: Int64  # of each row: the rank of its value
    values: pa.Array  # the distinct values, in order; NULL comes last


def _encode(column: pa.ChunkedArray) -> _Encoded:
    encoded: Any = column
    if not pa.types.is_dictionary(column.type):
        encoded = pc.dictionary_encode(column)
    encoded = encoded.unify_dictionaries()
    values = encoded.chunk(0).dictionary
    order = pc.sort_indices(values).to_numpy()
    ranks = np.empty(len(values) + 1, np.int64)
    ranks[order] = np.arange(len(values))
    ranks[-1] = len(values)  # of NULL
    codes = [pc.fill_null(own.indices, len(values)).to_numpy() for own in encoded.chunks]
    nothing = pa.nulls(1, values.type)
    in_order = pa.concat_arrays([values.take(pa.array(order)), nothing])
    return _Encoded(ranks[np.concatenate(codes)], in_order)


def _group(events: _Encoded, subscriptions: _Encoded, texts: _Encoded) -> BatchRows:
    n_texts, n_ids = len(texts.values), len(subscriptions.values)
    places, event_of = np.unique(events.codes * n_texts + texts.codes, return_inverse=True)
    pairs = np.unique(event_of * n_ids + subscriptions.codes)
    own = texts.values.take(pa.array(places % n_texts))
    ids = [str(name) for name in subscriptions.values.to_pylist()]
    return BatchRows([_read_text(text) for text in own], ids, pairs // n_ids, pairs % n_ids)


def _read_text(value: Any) -> bytes:
    """The text of an event; empty if it is none, since others would have to read it."""
    text = value.as_py()
    if not text:
        return b""
    spelled: bytes = text.encode() if isinstance(text, str) else bytes(text)
    try:
        parse_event(spelled)
    except (RowError, InputError):
        return b""
    return spelled
