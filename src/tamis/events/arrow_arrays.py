"""Access to Arrow arrays in memory: validity, and the values of plain types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.errors import InputError
from tamis.events.kernels.gather import copy_texts, find_set_bits, measure_texts, pick_offsets
from tamis.index.carriers import LARGE_STRING, view_buffer

if TYPE_CHECKING:
    from tamis.kernels.arrays import Int64

_is = pa.types
_NUMPY_TYPES: Final[dict[int, np.dtype[Any]]] = {
    pa.int8().id: np.dtype(np.int8),
    pa.int16().id: np.dtype(np.int16),
    pa.int32().id: np.dtype(np.int32),
    pa.int64().id: np.dtype(np.int64),
    pa.uint8().id: np.dtype(np.uint8),
    pa.uint16().id: np.dtype(np.uint16),
    pa.uint32().id: np.dtype(np.uint32),
    pa.uint64().id: np.dtype(np.uint64),
    pa.float16().id: np.dtype(np.float16),
    pa.float32().id: np.dtype(np.float32),
    pa.float64().id: np.dtype(np.float64),
    pa.date32().id: np.dtype(np.int32),
    pa.date64().id: np.dtype(np.int64),
    pa.timestamp("us").id: np.dtype(np.int64),
}
_UNREADABLE: Final = b"tamis.unreadable"  # in a field's metadata: why the column has no values
_STRING_ID: Final = pa.string().id
_PLAIN_TYPES: Final = frozenset((*_NUMPY_TYPES, _STRING_ID, LARGE_STRING.id))


def make_unreadable(name: str, reason: str) -> pa.Field:
    """A field for a column that Arrow cannot represent: its values are NULL and must not be read.

    Code that reads a column of a table calls `expect_readable` first.
    """
    return pa.field(name, pa.null(), metadata={_UNREADABLE: reason})


def expect_readable(field: pa.Field) -> None:
    """Raise an `InputError` for a column that Arrow could not represent."""
    if field.metadata is not None and _UNREADABLE in field.metadata:
        reason = field.metadata[_UNREADABLE].decode()
        raise InputError(
            f'the column "{field.name}" of the {reason}', hint="a column needs values of one type"
        )


def plain_array(array: pa.Array) -> pa.Array:
    """The array without wrappers: dictionaries, runs and extensions are resolved, and so are types
    that Arrow hardly supports (string views, short decimals).
    """
    while True:
        if array.type.id in _PLAIN_TYPES:
            return array
        if _is.is_dictionary(array.type):
            # Polars' categories are string views, on which Arrow has no `take`.
            values = plain_array(array.dictionary)
            array = pa.DictionaryArray.from_arrays(array.indices, values).dictionary_decode()
        elif _is.is_run_end_encoded(array.type):
            import pyarrow.compute as pc

            array = pc.run_end_decode(array)
        elif _is.is_string_view(array.type):
            array = array.cast(LARGE_STRING)
        elif _is.is_decimal32(array.type) or _is.is_decimal64(array.type):
            array = array.cast(pa.decimal128(array.type.precision, array.type.scale))
        elif isinstance(array, pa.ExtensionArray):
            array = array.storage
        else:
            return array


def valid_places(array: pa.Array) -> Int64 | None:
    """Where the array is not NULL; None for everywhere."""
    n_null = array.null_count
    if n_null == len(array):
        return np.empty(0, dtype=np.int64)
    if _is.is_union(array.type):  # unions store NULLs in their children
        return np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    if n_null == 0:
        return None
    first, skipped = divmod(array.offset, 8)
    bits = view_buffer(array.buffers()[0], np.uint8, offset=first)
    places = np.empty(len(array) - n_null, dtype=np.int64)
    find_set_bits(bits, skipped, len(array), places)
    return places


def read_bits(buffer: pa.Buffer, offset: int, length: int) -> np.ndarray:
    """Packed bits as numbers 0 and 1."""
    first, skipped = divmod(offset, 8)
    packed = view_buffer(buffer, np.uint8, (skipped + length + 7) // 8, first)
    return np.unpackbits(packed, count=skipped + length, bitorder="little")[skipped:]


def read_fixed(array: pa.Array, places: Int64 | None) -> np.ndarray:
    """The values of a fixed-width type, at some positions."""
    dtype = _NUMPY_TYPES[array.type.id]
    values = view_buffer(array.buffers()[1], dtype, len(array), dtype.itemsize * array.offset)
    return values if places is None else values[places]


def read_texts(array: pa.Array, places: Int64 | None) -> pa.Array:
    """Strings as large strings, at some positions."""
    if places is None or len(places) == 0:
        return (array if places is None else array.slice(0, 0)).cast(LARGE_STRING)
    _, starts, data = array.buffers()
    dtype = np.int32 if array.type.id == _STRING_ID else np.int64
    offsets = view_buffer(starts, dtype)[array.offset :]
    picked = np.empty(len(places) + 1, dtype=np.int64)
    # A NULL usually has no bytes, so that the others are already contiguous.
    if not pick_offsets(offsets, places, picked):
        measure_texts(offsets, places, picked)
        copied = np.empty(picked[-1], dtype=np.uint8)
        copy_texts(offsets, view_buffer(data, np.uint8), places, picked, copied)
        data = pa.py_buffer(copied)
    buffers = [None, pa.py_buffer(picked), data]
    return pa.Array.from_buffers(LARGE_STRING, len(places), buffers)


def is_text(arrow_type: pa.DataType) -> bool:
    """Whether a plain array of the Arrow type contains strings."""
    return bool(_is.is_string(arrow_type) or _is.is_large_string(arrow_type))


def take(array: pa.Array, places: Int64 | None) -> pa.Array:
    """The values at some positions."""
    return array if places is None else array.take(pa.array(places))
