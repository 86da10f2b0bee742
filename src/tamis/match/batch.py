"""The batch matcher: blocks of events through the kernel, and what is read out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.match.kernels.block import (
    BLOCK,
    MAX_PLANES,
    WORDS,
    count_by_event,
    count_by_subscription,
    match_block,
    write_pairs,
)

if TYPE_CHECKING:
    from tamis.events.event_arrays import EventArrays
    from tamis.index.contents import Contents
    from tamis.index.layout import Int32, Int64, RootArrays


class Scratch(NamedTuple):
    """What the kernel writes; made once and used for block after block."""

    masks: np.ndarray  # uint64[n_nodes, WORDS], valid where alive
    is_live: np.ndarray  # uint8[n_nodes]
    present: np.ndarray  # uint64[n_columns, WORDS]
    definite: np.ndarray  # uint64[n_columns, WORDS], present without a NULL element
    all_rows: np.ndarray  # uint64[WORDS], the rows of the block
    no_rows: np.ndarray  # uint64[WORDS], zero
    planes: np.ndarray  # uint64[MAX_PLANES]


def make_scratch(n_nodes: int, n_columns: int) -> Scratch:
    """Scratch for an index of this size."""
    return Scratch(
        np.empty((n_nodes, WORDS), dtype=np.uint64),
        np.empty(n_nodes, dtype=np.uint8),
        np.empty((n_columns, WORDS), dtype=np.uint64),
        np.empty((n_columns, WORDS), dtype=np.uint64),
        np.empty(WORDS, dtype=np.uint64),
        np.zeros(WORDS, dtype=np.uint64),
        np.empty(MAX_PLANES, dtype=np.uint64),
    )


class Pairs(NamedTuple):
    """The subscriptions of consecutive events: event i has starts[i] to starts[i + 1]."""

    first_row: int
    starts: Int64
    subscriptions: Int32


def match_block_pairs(
    first_row: int, events: EventArrays, contents: Contents, roots: RootArrays, scratch: Scratch
) -> Pairs:
    """The matches of one block of events, by row, then in the order of the roots."""
    n_rows = _match(first_row, events, contents, scratch)
    n_always = len(roots.always)
    counts = np.zeros(BLOCK, dtype=np.int64)
    count_by_event(roots, scratch.masks, scratch.is_live, counts)
    counts[:n_rows] += n_always
    starts = np.zeros(BLOCK + 1, dtype=np.int64)
    np.cumsum(counts, out=starts[1:])
    found = np.empty(starts[-1], dtype=np.int32)
    if n_always:
        found[(starts[:n_rows, None] + np.arange(n_always)).ravel()] = np.tile(roots.always, n_rows)
    write_pairs(roots, scratch.masks, scratch.is_live, starts[:-1] + n_always, found)
    return Pairs(first_row, starts[: n_rows + 1], found)


def count_block_by_subscription(
    first_row: int, events: EventArrays, contents: Contents, scratch: Scratch, counts: Int64
) -> None:
    """Add the matches of one block to each subscription's count, constants left out."""
    _match(first_row, events, contents, scratch)
    count_by_subscription(contents.roots, scratch.masks, scratch.is_live, counts)


def count_block_by_event(
    first_row: int, events: EventArrays, contents: Contents, scratch: Scratch
) -> Int64:
    """The matches of each event of one block, constants left out."""
    n_rows = _match(first_row, events, contents, scratch)
    counts = np.zeros(BLOCK, dtype=np.int64)
    count_by_event(contents.roots, scratch.masks, scratch.is_live, counts)
    return counts[:n_rows]


def _match(first_row: int, events: EventArrays, contents: Contents, scratch: Scratch) -> int:
    n_rows = min(BLOCK, len(events.row_starts) - 1 - first_row)
    match_block(first_row, n_rows, events, contents.leaves, contents.nodes, scratch)
    return n_rows
