"""One row for each match, in record batches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import InputError
from tamis.match.readouts.pairs import joined_pairs
from tamis.match.result import FoundMatches

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa

    from tamis.match.batch import Pairs
    from tamis.match.question import Block, BlockRead
    from tamis.match.result import Result

MOST_EVENTS: Final = 2**31 - 1  # that `event_row` can count


class ResultRows:
    """The columns of a `Result`, a group of events at a time."""

    def __init__(self, result: Result) -> None:
        self._result = result

    def read(self, block: Block) -> list[Pairs]:
        """The block's matches."""
        return block.listed()

    def answer(self, blocks: Iterable[BlockRead[list[Pairs]]]) -> Iterator[pa.RecordBatch]:
        """The record batches."""
        return self._result.batches(self._find(blocks))

    def pairs(self, block: BlockRead[list[Pairs]]) -> Iterator[Pairs]:
        """The matches of all parts."""
        return joined_pairs(block)

    def _find(self, blocks: Iterable[BlockRead[list[Pairs]]]) -> Iterator[FoundMatches]:
        columns: list[pa.Array] = []
        for block in blocks:
            if block.first_row == 0:
                expect_countable(block)
                columns = [reader.read(block.batch) for reader in self._result.readers]
            for pairs in self.pairs(block):
                yield FoundMatches(pairs, block.batch_row, columns)


def expect_countable(block: BlockRead[list[Pairs]]) -> None:
    """Raise an `InputError` if the numbers of rows do not fit their column."""
    if block.batch_row + block.batch.n_rows > MOST_EVENTS:
        raise InputError(
            f"more than {MOST_EVENTS:,} events at once; event_row has 32 bits",
            hint="match them in several calls",
        )
