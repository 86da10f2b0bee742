"""A list of subscription ids for each event."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from tamis.match.readouts.pairs import joined_pairs
from tamis.match.result import SUBSCRIPTION_ID

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.match.batch import Pairs
    from tamis.match.question import Block, BlockRead


class Lists:
    """The lists of all events; an event without a match has an empty one."""

    def __init__(self, ids: pa.StringArray) -> None:
        self._ids = ids

    def read(self, block: Block) -> list[Pairs]:
        """The block's matches."""
        return block.listed()

    def answer(self, blocks: Iterable[BlockRead[list[Pairs]]]) -> pa.ChunkedArray:
        """The lists, in chunks."""
        chunks = [self._to_lists(pairs) for block in blocks for pairs in joined_pairs(block)]
        return pa.chunked_array(chunks, pa.large_list(SUBSCRIPTION_ID.type))

    def _to_lists(self, pairs: Pairs) -> pa.LargeListArray:
        ids = pa.DictionaryArray.from_arrays(pa.array(pairs.subscriptions), self._ids)
        return pa.LargeListArray.from_arrays(pa.array(pairs.starts), ids)
