"""Expressions in blocks that are compressed on disk and read one at a time.

Only explaining and rebuilding read them, so an index that only matches never does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK: Final = 4096  # texts; a block is decompressed to read one of them
_SCHEMA: Final = pa.schema([("text", pa.string())])


class StoredTexts:
    """Texts by number, in an Arrow file of compressed batches."""

    def __init__(self, source: pa.Buffer, length: int) -> None:
        self._source = source
        self._length = length

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, number: int) -> pa.StringScalar:
        if not 0 <= number < self._length:
            raise IndexError(number)
        block, at = divmod(number, BLOCK)
        return pa.ipc.open_file(self._source).get_batch(block).column(0)[at]

    def blocks(self) -> Iterator[pa.StringArray]:
        """All texts, a block at a time."""
        reader = pa.ipc.open_file(self._source)
        for block in range(reader.num_record_batches):
            yield reader.get_batch(block).column(0)

    def to_arrow(self) -> pa.ChunkedArray:
        """All texts at once."""
        return pa.chunked_array(list(self.blocks()), pa.string())


def pack_texts(texts: pa.ChunkedArray | StoredTexts) -> pa.Buffer:
    """The texts as an Arrow file of compressed batches of one size."""
    if isinstance(texts, StoredTexts):
        texts = texts.to_arrow()
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1))
    with pa.ipc.new_file(sink, _SCHEMA, options=options) as writer:
        for start in range(0, len(texts), BLOCK):
            block = texts.slice(start, BLOCK).combine_chunks()
            writer.write_batch(pa.record_batch([block], schema=_SCHEMA))
    return sink.getvalue()
