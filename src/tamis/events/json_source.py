"""JSON events as spans of one buffer, from lists, Arrow columns and lines of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, overload

import numpy as np
import pyarrow as pa

from tamis.events.kernels.lines import count_line_feeds, find_lines
from tamis.index.carriers import frozen, view_buffer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.kernels.arrays import Int64, UInt8


BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
NO_EVENT: Final = -1  # as the start of a text: an event without attributes


class JsonSpans(Sequence[Any]):
    """Texts in one buffer; as a sequence, each as `bytes`."""

    def __init__(self, data: UInt8, starts: Int64, ends: Int64) -> None:
        """A text that starts at NO_EVENT is an event without attributes."""
        self.data = frozen(data)
        self.starts = frozen(starts)
        self.ends = frozen(ends)

    def __len__(self) -> int:
        return len(self.starts)

    @overload
    def __getitem__(self, at: int) -> Any: ...

    @overload
    def __getitem__(self, at: slice) -> JsonSpans: ...

    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return JsonSpans(self.data, self.starts[at], self.ends[at])
        return self.data[self.starts[at] : self.ends[at]].tobytes()


class JsonObjects(JsonSpans):
    """Texts that are Python objects: `str` or `bytes`; others are empty texts in the buffer."""

    def __init__(self, objects: Sequence[Any]) -> None:
        self._objects = objects
        texts = objects if set(map(type, objects)) <= {bytes} else list(map(_encode, objects))
        ends = np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)))
        starts = np.concatenate((np.zeros(1, np.int64), ends))[:-1]
        super().__init__(view_buffer(pa.py_buffer(b"".join(texts)), np.uint8), starts, ends)

    def __getitem__(self, at: Any) -> Any:
        return self._objects[at]


def _encode(text: Any) -> bytes:
    if isinstance(text, str):
        return text.encode(errors="surrogatepass")
    return text if isinstance(text, bytes) else b""


def hold_texts(texts: Iterable[Any]) -> JsonSpans:
    """The texts of any source of JSON."""
    if isinstance(texts, JsonSpans):
        return texts
    return JsonObjects(texts if isinstance(texts, list | tuple) else list(texts))


def join_texts(held: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The texts of several batches."""
    if len(held) == 1:
        return held[0]
    return [text for texts in held for text in texts]


def hold_arrow_texts(chunks: Sequence[pa.Array]) -> JsonSpans:
    """The texts of an Arrow column; NULL is an event without attributes, as in Spark."""
    whole = [chunk.cast(pa.large_binary()) for chunk in chunks]
    if not whole:
        return JsonObjects([])
    array = whole[0] if len(whole) == 1 else pa.concat_arrays(whole)
    _, offsets, data = array.buffers()
    bounds = view_buffer(offsets, np.int64, len(array) + 1, 8 * array.offset)
    starts, ends = bounds[:-1], bounds[1:]
    if array.null_count:
        starts = np.where(array.is_null().to_numpy(zero_copy_only=False), NO_EVENT, starts)
    return JsonSpans(view_buffer(data, np.uint8), starts, ends)


def count_lines(block: bytes) -> int:
    """The number of line feeds in a block."""
    return int(count_line_feeds(frozen(np.frombuffer(block, dtype=np.uint8))))


class Lines(NamedTuple):
    """Lines that are not blank, without surrounding blanks."""

    texts: JsonSpans
    numbers: Int64  # in the file, from 1

    def cut(self, begin: int, end: int) -> Lines:
        """Some of them."""
        return Lines(self.texts[begin:end], self.numbers[begin:end])


def split_lines(block: bytes, end: int, n_before: int = 0) -> Lines:
    """The lines of a block up to `end`; the first one follows `n_before` others in its file."""
    data = frozen(np.frombuffer(block, dtype=np.uint8))
    has_mark = n_before == 0 and block.startswith(BYTE_ORDER_MARK)
    n_most = count_line_feeds(data[:end]) + 1
    starts, ends, numbers = (np.empty(n_most, dtype=np.int64) for _ in range(3))
    begin = len(BYTE_ORDER_MARK) if has_mark else 0
    n_found = find_lines(data, begin, end, starts, ends, numbers)
    texts = JsonSpans(data, starts[:n_found], ends[:n_found])
    return Lines(texts, n_before + 1 + numbers[:n_found])
