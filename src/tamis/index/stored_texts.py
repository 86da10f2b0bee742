"""Expressions and attributes in blocks that are compressed on disk and read one at a time.

Only explaining, rebuilding and some results read them; matching alone does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from tamis.errors import IndexFormatError

if TYPE_CHECKING:
    from collections.abc import Iterator

BLOCK: Final = 4096  # texts; reading one decompresses its block
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
        return self._read(block)[at]

    def blocks(self) -> Iterator[pa.StringArray]:
        """All texts, a block at a time."""
        for block in range((self._length + BLOCK - 1) // BLOCK):
            yield self._read(block)

    def _read(self, block: int) -> pa.StringArray:
        """One block, checked, since it was not checked when the index was opened."""
        n_texts = min(BLOCK, self._length - block * BLOCK)
        try:
            texts = pa.ipc.open_file(self._source).get_batch(block).column(0)
            texts.validate(full=True)
        except (pa.ArrowException, IndexError, MemoryError, OSError, ValueError) as error:
            raise IndexFormatError(f"the index has damaged texts: {error}") from None
        if texts.type != pa.string() or len(texts) != n_texts or texts.null_count:
            raise IndexFormatError("the index has damaged texts: some are missing")
        return texts

    def to_arrow(self) -> pa.ChunkedArray:
        """All texts at once."""
        return pa.chunked_array(list(self.blocks()), pa.string())


def all_texts(texts: pa.ChunkedArray | StoredTexts) -> pa.ChunkedArray:
    """The texts of an index that was built or opened, all at once."""
    return texts.to_arrow() if isinstance(texts, StoredTexts) else texts


def pack_texts(texts: pa.ChunkedArray | StoredTexts) -> pa.Buffer:
    """The texts as an Arrow file of compressed batches of one size."""
    texts = all_texts(texts)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", 1))
    with pa.ipc.new_file(sink, _SCHEMA, options=options) as writer:
        for start in range(0, len(texts), BLOCK):
            block = texts.slice(start, BLOCK).combine_chunks()
            writer.write_batch(pa.record_batch([block], schema=_SCHEMA))
    return sink.getvalue()
