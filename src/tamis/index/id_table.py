"""Finds subscriptions by id: sorted hashes take a tenth of the memory and of the time of a dict."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from tamis.index.carriers import text_buffers
from tamis.index.kernels.ids import find_texts, hash_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.kernels.arrays import Int32, Int64, UInt8

    Buffers = tuple[Int64, UInt8]


class IdTable:
    """The ordinals of ids in one part, which are distinct. Threads share it."""

    def __init__(self, ids: pa.StringArray) -> None:
        self._ids = ids

    # Computed on first use: most programs that match never look for an id.
    @cached_property
    def _buffers(self) -> Buffers:
        return _buffers_of(self._ids)

    @cached_property
    def _sorted(self) -> tuple[np.ndarray, Int32]:
        """The hashes, ascending, and the ordinal of each."""
        hashes = _hash(self._buffers)
        ordinals = np.argsort(hashes, kind="stable").astype(np.int32)
        return hashes[ordinals], ordinals

    def find(self, wanted: WantedIds) -> Int32:
        """The ordinal of each id, -1 if the part does not have it."""
        found = np.empty(len(wanted), dtype=np.int32)
        find_texts(*wanted.buffers, wanted.hashes, *self._buffers, *self._sorted, found)
        return found


class WantedIds:
    """Ids to be found in the tables of several parts."""

    def __init__(self, ids: pa.StringArray) -> None:
        self.buffers = _buffers_of(ids)
        self.hashes = _hash(self.buffers)

    @classmethod
    def of(cls, ids: Sequence[str]) -> WantedIds:
        """Ids from Python; those that no subscription can have are not found."""
        try:
            return cls(pa.array(ids, pa.string()))
        except UnicodeEncodeError:  # lone surrogates
            return cls(pa.array([own if is_valid(own) else "" for own in ids], pa.string()))

    def __len__(self) -> int:
        return len(self.hashes)


def is_valid(text: str) -> bool:
    """Whether a text can be an id: it has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _buffers_of(ids: pa.StringArray) -> Buffers:
    return text_buffers(ids.cast(pa.large_string()))


def _hash(buffers: Buffers) -> np.ndarray:
    offsets, data = buffers
    hashes = np.empty(len(offsets) - 1, dtype=np.uint64)
    hash_texts(offsets, data, hashes)
    return hashes
