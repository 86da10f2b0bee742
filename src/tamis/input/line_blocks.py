"""Lines of a file in large blocks: a kernel finds them."""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

from tamis.events.json_source import count_lines, split_lines
from tamis.input.batches import MOST_BYTES

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
        is_full = n_ends >= n_rows or n_bytes >= MOST_BYTES
        if is_open and not (is_full and n_ends):
            continue
        block = b"".join(pieces)
        end = block.rfind(b"\n") + 1 if is_open else len(block)
        lines = split_lines(block, end, n_before)
        # A batch that is not full waits for more lines, unless it is heavy.
        n_left = len(lines.texts) % n_rows if is_open and n_bytes < MOST_BYTES else 0
        n_taken = len(lines.texts) - n_left
        for begin in range(0, n_taken, n_rows):
            yield lines.cut(begin, min(begin + n_rows, n_taken))
        rest = int(lines.texts.starts[n_taken]) if n_left else end
        n_before = int(lines.numbers[n_taken]) - 1 if n_left else n_before + n_ends
        pieces, n_bytes = [block[rest:]], len(block) - rest
        n_ends = count_lines(pieces[0])
