"""Arrow streams from strangers: measured before they are unpacked.

A few bytes of a stream can stand for gigabytes: packed buffers, columns without buffers and any
number of rows, and values that many rows share.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.server.bodies import too_large
from tamis.server.problems import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

_SMALLEST_EVENT: Final = 3  # bytes: {} and the end of its line
_RECORD_BATCH, _DICTIONARY_BATCH = 3, 2  # kinds of messages in Arrow's format


def read_arrow(body: bytes, most: int) -> tuple[pa.RecordBatch, int]:
    """The rows of a stream, and the size of the largest one; raises a `Problem` if the stream is
    damaged, or stands for more than `most` bytes.
    """
    try:
        _expect_size(body, most)
        with pa.ipc.open_stream(body) as reader:
            table = reader.read_all()
            table.validate(full=True)
        sizes = [_measure(column) for column in table.columns]
        if sum(total for total, _ in sizes) > most:
            raise too_large(most)
        batches = table.combine_chunks().to_batches()
    except (pa.ArrowException, OSError, ValueError, struct.error, IndexError) as error:
        raise Problem(400, "bad-arrow", f"the body is not an Arrow IPC stream: {error}") from None
    if not batches:
        batches = [pa.RecordBatch.from_pylist([], schema=table.schema)]
    return batches[0], sum(largest for _, largest in sizes)


def _expect_size(body: bytes, most: int) -> None:
    """Raise a `Problem` if there are too many rows or bytes, by what the messages declare."""
    n_rows = n_bytes = 0
    for message in _messages(body):
        kind, batch = _find_batch(message.metadata.to_pybytes())
        if batch is None:
            continue
        n_rows += batch.number(0) if kind == _RECORD_BATCH else 0
        if batch.has(3):  # packed: each buffer begins with its size
            n_bytes += sum(_unpacked_sizes(batch, message.body))
        if n_rows * _SMALLEST_EVENT > most or n_bytes > most:
            raise too_large(most)


def _messages(body: bytes) -> Iterator[Any]:
    reader = pa.ipc.MessageReader.open_stream(body)
    while True:
        try:
            yield reader.read_next_message()
        except StopIteration:
            return


class _Flat:
    """A table of the flat buffer that describes a message."""

    def __init__(self, data: bytes, at: int) -> None:
        self._data = data
        self._at = at
        self._fields = at - self._read("<i", at)

    def _read(self, form: str, at: int) -> int:
        if at < 0:
            raise IndexError("a message is damaged")
        (value,) = struct.unpack_from(form, self._data, at)
        return int(value)

    def _find(self, field: int) -> int:
        """Where a field is; 0 if it is missing."""
        at = 4 + 2 * field
        is_there = at < self._read("<H", self._fields)
        offset = self._read("<H", self._fields + at) if is_there else 0
        return offset and self._at + offset

    def has(self, field: int) -> bool:
        return self._find(field) != 0

    def number(self, field: int, form: str = "<q") -> int:
        at = self._find(field)
        return self._read(form, at) if at else 0

    def table(self, field: int) -> _Flat:
        at = self._find(field)
        return _Flat(self._data, at + self._read("<I", at))

    def pairs(self, field: int) -> Iterator[tuple[int, int]]:
        """A vector of pairs of numbers."""
        at = self._find(field)
        if not at:
            return
        at += self._read("<I", at)
        for turn in range(self._read("<I", at)):
            place = at + 4 + 16 * turn
            yield self._read("<q", place), self._read("<q", place + 8)


def _find_batch(metadata: bytes) -> tuple[int, _Flat | None]:
    message = _Flat(metadata, struct.unpack_from("<I", metadata)[0])
    kind = message.number(1, "<B")
    if kind == _RECORD_BATCH:
        return kind, message.table(2)
    return kind, message.table(2).table(1) if kind == _DICTIONARY_BATCH else None


def _unpacked_sizes(batch: _Flat, body: Any) -> Iterator[int]:
    view = memoryview(body or b"")
    for start, length in batch.pairs(2):
        if length:
            (size,) = struct.unpack_from("<q", view, start)
            yield length if size < 0 else size


def _measure(column: Any) -> tuple[int, int]:
    """The size of a column if no value is shared, and of its largest value."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    sizes = [_measure_array(own) for own in chunks]
    return sum(total for total, _ in sizes), max((largest for _, largest in sizes), default=0)


def _measure_array(array: Any) -> tuple[int, int]:
    kind, n_rows = array.type, len(array)
    if pa.types.is_dictionary(kind):
        lengths = pc.fill_null(_lengths(array.dictionary), 0)
        return _sum_up(lengths.take(array.indices))
    if _is_text(kind):
        return _sum_up(_lengths(array))
    if pa.types.is_struct(kind):
        parts = [_measure_array(array.field(at)) for at in range(kind.num_fields)]
        return sum(total for total, _ in parts), sum(largest for _, largest in parts)
    if _is_list(kind):
        total, _ = _measure_array(_values_of(array))
        return total + 8 * n_rows, total // max(1, n_rows)
    if kind.num_fields or pa.types.is_run_end_encoded(kind):
        raise pa.ArrowInvalid(f"columns of the type {kind} are not supported"[:200])
    return array.nbytes, array.nbytes // max(1, n_rows)


def _is_list(kind: pa.DataType) -> bool:
    known = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, pa.types.is_map)
    return any(is_so(kind) for is_so in known)


def _values_of(array: Any) -> Any:
    if not pa.types.is_map(array.type):
        return array.values
    return pa.StructArray.from_arrays([array.keys, array.items], names=["key", "value"])


def _is_text(kind: pa.DataType) -> bool:
    known = (pa.string(), pa.large_string(), pa.binary(), pa.large_binary())
    return kind in known or _is_view(kind)


def _is_view(kind: pa.DataType) -> bool:
    return kind in (pa.string_view(), pa.binary_view())


def _lengths(values: Any) -> Any:
    if _is_view(values.type):
        # Each view begins with its length; those of missing values may be anything.
        views = np.frombuffer(values.buffers()[1] or b"", dtype=np.int32).reshape(-1, 4)
        lengths = views[values.offset : values.offset + len(values), 0]
        return pa.array(np.where(values.is_valid().to_numpy(zero_copy_only=False), lengths, 0))
    if _is_text(values.type):
        return pc.cast(pc.binary_length(values), pa.int64())
    if values.type.num_fields or pa.types.is_dictionary(values.type):
        raise pa.ArrowInvalid(f"shared values of the type {values.type} are not supported"[:200])
    width = values.nbytes // max(1, len(values)) + 1
    return pa.repeat(pa.scalar(width, pa.int64()), len(values))


def _sum_up(lengths: Any) -> tuple[int, int]:
    return pc.sum(lengths).as_py() or 0, pc.max(lengths).as_py() or 0
