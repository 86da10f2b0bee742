"""The events of one indexed segment, in small compressed blocks.

A page of hits has events from many places. Row groups of the archive are large, so that reading ten
of them takes longer than finding the hits.

    texts: a block after the other
    array: the first event and the place of each block

A block, before compression, has the number of its events, then their numbers, moments, changes and
lengths as int64, then their texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from tamis.archive import ArchivedEvent
from tamis.language.types.moments import from_microseconds

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TEXTS: Final = "events.texts"
BLOCKS: Final = "events.blocks"
_BLOCK_BYTES: Final = 8 << 10
_CODEC: Final = "lz4_raw"
_N_HEADS: Final = 4  # numbers, moments, changes, lengths


class EventWriter:
    """Writes events in order of their numbers."""

    def __init__(self, folder: Path) -> None:
        self._blocks_path = folder / BLOCKS
        self._file = (folder / TEXTS).open("wb")
        self._codec = pa.Codec(_CODEC)
        self._heads: list[tuple[int, int, int, int]] = []
        self._texts: list[bytes] = []
        self._n_bytes = self._at = 0
        self._blocks: list[tuple[int, int, int]] = []  # the first event, the place, the length

    def add(self, number: int, moment: int, change: int, text: bytes) -> None:
        """The next event."""
        self._heads.append((number, moment, change, len(text)))
        self._texts.append(text)
        self._n_bytes += len(text)
        if self._n_bytes >= _BLOCK_BYTES:
            self._flush()

    def close(self) -> None:
        """Write what is left, and where the blocks are."""
        self._flush()
        self._file.close()
        blocks = np.array([*self._blocks, (0, self._at, 0)], np.int64).T
        self._blocks_path.write_bytes(blocks.tobytes())

    def _flush(self) -> None:
        if not self._heads:
            return
        heads = np.array(self._heads, np.int64).T
        count = np.array([len(self._heads)], np.int64)
        plain = b"".join([count.tobytes(), heads.tobytes(), *self._texts])
        packed = self._codec.compress(plain, asbytes=True)
        self._file.write(packed)
        self._blocks.append((self._heads[0][0], self._at, len(plain)))
        self._at += len(packed)
        self._heads, self._texts, self._n_bytes = [], [], 0


class EventFile:
    """Reads events by number; any number of threads."""

    def __init__(self, folder: Path) -> None:
        blocks = np.frombuffer((folder / BLOCKS).read_bytes(), np.int64).reshape(3, -1)
        self._firsts = blocks[0, :-1]
        self._starts, self._lengths = blocks[1].tolist(), blocks[2].tolist()
        path = folder / TEXTS
        is_empty = len(self._firsts) == 0
        self._data = pa.py_buffer(b"") if is_empty else pa.memory_map(str(path)).read_buffer()

    def read(self, numbers: Sequence[int]) -> dict[int, ArchivedEvent]:
        """Those of the events that are there."""
        found: dict[int, ArchivedEvent] = {}
        places = np.searchsorted(self._firsts, numbers, side="right") - 1
        by_block: dict[int, list[int]] = {}
        for number, place in zip(numbers, places.tolist(), strict=True):
            if place >= 0:
                by_block.setdefault(place, []).append(number)
        for place, wanted in by_block.items():
            self._read_block(place, wanted, found)
        return found

    def _read_block(self, place: int, wanted: list[int], found: dict[int, ArchivedEvent]) -> None:
        begin, end = self._starts[place], self._starts[place + 1]
        plain: bytes = pa.Codec(_CODEC).decompress(
            self._data[begin:end], self._lengths[place], asbytes=True
        )
        (count,) = np.frombuffer(plain, np.int64, 1).tolist()
        heads = np.frombuffer(plain, np.int64, _N_HEADS * count, offset=8).reshape(_N_HEADS, count)
        ends = np.cumsum(heads[3]) + 8 * (1 + _N_HEADS * count)
        rows = dict(zip(heads[0].tolist(), range(count), strict=True))
        for number in wanted:
            row = rows.get(number)
            if row is None:
                continue
            moment, change, length = heads[1:, row].tolist()
            stop = int(ends[row])
            text = plain[stop - length : stop]
            found[number] = ArchivedEvent(number, from_microseconds(moment), change, text)
