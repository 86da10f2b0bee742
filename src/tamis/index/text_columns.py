"""Subscriptions in Arrow columns; Python strings are made only of those that are asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, overload

import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Iterator


class Columns(NamedTuple):
    """Subscriptions with valid and distinct ids. A million take a tenth of the memory that strings
    in Python take.
    """

    ids: pa.ChunkedArray
    texts: pa.ChunkedArray


class TextColumn:
    """A column without NULL as a sequence of strings."""

    def __init__(self, column: pa.ChunkedArray) -> None:
        self.column = column

    def __len__(self) -> int:
        return len(self.column)

    def __iter__(self) -> Iterator[str]:
        for chunk in self.column.chunks:
            yield from chunk.to_pylist()

    @overload
    def __getitem__(self, at: int) -> str: ...

    @overload
    def __getitem__(self, at: slice) -> pa.StringArray: ...

    def __getitem__(self, at: int | slice) -> str | pa.StringArray:
        """One string, or some neighbours as an array."""
        if isinstance(at, slice):
            start, end, _ = at.indices(len(self))
            chunks = self.column.slice(start, end - start).chunks
            return chunks[0] if len(chunks) == 1 else pa.concat_arrays(chunks)
        text: str = self.column[at].as_py()
        return text
