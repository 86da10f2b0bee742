"""Lines of a file in large blocks: a kernel finds them."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

import numpy as np

from tamis.events.json_source import count_lines, split_lines
from tamis.input import batches

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.events.json_source import Lines

BLOCK_BYTES: Final = 1 << 20


def read_lines(file: IO[bytes], n_rows: int) -> Iterator[Lines]:
    """The lines of a file in batches of at most this many, and of bounded size."""
    read = getattr(file, "read1", file.read)
    pieces: list[bytes] = []
    n_ends = n_bytes = n_before = 0
    is_open = True
    while is_open:
        piece = read(BLOCK_BYTES)
        is_open = bool(piece)
        pieces.append(piece)
        n_ends += count_lines(piece)
        n_bytes += len(piece)
        is_full = n_ends >= n_rows or n_bytes >= batches.MOST_BYTES
        if is_open and not (is_full and n_ends):
            continue
        block = b"".join(pieces)
        end = block.rfind(b"\n") + 1 if is_open else len(block)
        lines = split_lines(block, end, n_before)
        n_taken = 0
        for n_next in _find_batches(lines, n_rows, end, is_open=is_open):
            yield lines.cut(n_taken, n_next)
            n_taken = n_next
        has_rest = n_taken < len(lines.texts)
        rest = int(lines.texts.starts[n_taken]) if has_rest else end
        n_before = int(lines.numbers[n_taken]) - 1 if has_rest else n_before + n_ends
        pieces, n_bytes = [block[rest:]], len(block) - rest
        n_ends = count_lines(pieces[0])


def _find_batches(lines: Lines, n_rows: int, end: int, *, is_open: bool) -> Iterator[int]:
    """The end of each batch: of `n_rows` lines, or of fewer that are heavy enough.

    While the file is open, lines that do not fill a batch wait for others.
    """
    starts, n_lines = lines.texts.starts, len(lines.texts)
    begin = 0
    while begin < n_lines:
        heavy_from = int(starts[begin]) + batches.MOST_BYTES
        until = min(begin + n_rows, int(np.searchsorted(starts, heavy_from)))
        is_full = until - begin == n_rows or until < n_lines or end >= heavy_from
        if is_open and not is_full:
            return
        yield until
        begin = until
