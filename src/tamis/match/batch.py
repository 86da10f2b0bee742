"""The batch matcher: blocks of events through the kernel, and what is read out of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.match.kernels.block import N_TOPS, count_block, match_block
from tamis.match.kernels.readout import count_by_event, write_pairs
from tamis.match.kernels.rows import ROW, WORDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.events.event_arrays import EventArrays
    from tamis.index.contents import Contents
    from tamis.index.layout import RootArrays
    from tamis.kernels.arrays import Int32, Int64

N_PLANES: Final = 40  # bits of the counters: children of a node, matches of an event
_ALIGNMENT: Final = 64  # bytes; a row is one cache line
# A wider block reads the links of a node once for more events, and memory gives several lines in a
# row almost for the price of one; beyond four groups nothing more is gained.
MOST_GROUPS: Final = 4
MOST_MASK_BYTES: Final = 256 << 20


class Scratch(NamedTuple):
    """What the kernel writes; made once and used for block after block."""

    masks: np.ndarray  # uint64[n_stored * n_groups, WORDS]
    is_live: np.ndarray  # uint8[n_stored], bit g: some event of group g satisfies the node
    top_masks: np.ndarray  # uint64[N_TOPS * n_groups, WORDS]
    top_is_live: np.ndarray  # uint8[N_TOPS]
    entry_starts: np.ndarray  # int64[n_columns + 2], the block's entries by column
    present: np.ndarray  # uint64[n_groups, WORDS], events that have the column at hand
    unsure: np.ndarray  # uint64[n_groups, WORDS], … with a NULL element in it
    of_code: np.ndarray  # uint64[n_groups, WORDS], … with the code at hand
    all_rows: np.ndarray  # uint64[n_groups, WORDS], the rows of the block
    planes: np.ndarray  # uint64[N_PLANES, WORDS]
    n_leaves: np.ndarray  # int64[1]
    found: np.ndarray  # int32[n_groups, n_roots], roots that some event satisfies
    found_masks: np.ndarray  # uint64[n_groups * n_roots, WORDS], by which
    n_found: np.ndarray  # int64[n_groups]

    @property
    def n_rows(self) -> int:
        """How many events a block holds."""
        return ROW * len(self.all_rows)


def choose_groups(n_stored: int) -> int:
    """How many groups of 512 events a block of an index of this size holds."""
    n_groups = MOST_GROUPS
    while n_groups > 1 and n_stored * n_groups * 8 * WORDS > MOST_MASK_BYTES:
        n_groups //= 2
    return n_groups


def make_scratch(contents: Contents, n_groups: int) -> Scratch:
    """Scratch for blocks of this index."""
    n_stored, n_columns = contents.n_stored, len(contents.columns)
    n_found = len(contents.roots.nodes)
    return Scratch(
        _aligned(n_stored * n_groups, WORDS),
        np.zeros(n_stored, dtype=np.uint8),
        _aligned(N_TOPS * n_groups, WORDS),
        np.zeros(N_TOPS, dtype=np.uint8),
        np.zeros(n_columns + 2, dtype=np.int64),
        _aligned(n_groups, WORDS),
        _aligned(n_groups, WORDS),
        _aligned(n_groups, WORDS),
        _aligned(n_groups, WORDS),
        _aligned(N_PLANES, WORDS),
        np.array([contents.n_leaves], dtype=np.int64),
        np.empty((n_groups, n_found), dtype=np.int32),
        _aligned(n_groups * n_found, WORDS),
        np.zeros(n_groups, dtype=np.int64),
    )


def _aligned(*shape: int) -> np.ndarray:
    size = 8 * int(np.prod(shape))
    raw = np.empty(size + _ALIGNMENT, dtype=np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size].view(np.uint64).reshape(shape)


class Pairs(NamedTuple):
    """The subscriptions of consecutive events: event i has starts[i] to starts[i + 1]."""

    first_row: int
    starts: Int64
    subscriptions: Int32
    bindings: list[dict[str, Any] | None] | None = None  # of variables, where they are asked for

    def without(self, rows: Int64) -> Pairs:
        """The matches of other events than these."""
        sizes = np.diff(self.starts)
        left_out = rows[(rows >= self.first_row) & (rows < self.first_row + len(sizes))]
        if not len(left_out):
            return self
        is_kept = np.ones(len(sizes), dtype=np.bool_)
        is_kept[left_out - self.first_row] = False
        starts = np.zeros_like(self.starts)
        np.cumsum(np.where(is_kept, sizes, 0), out=starts[1:])
        return Pairs(self.first_row, starts, self.subscriptions[np.repeat(is_kept, sizes)])


def match_block_pairs(
    first_row: int, events: EventArrays, contents: Contents, roots: RootArrays, scratch: Scratch
) -> Iterator[Pairs]:
    """The matches of one block of events, a group at a time, each event's in order of the roots."""
    for group in match_groups(first_row, events, contents, roots, scratch):
        counts = np.empty(ROW, dtype=np.int64)
        count_by_event(group.found, group.masks, roots, scratch.planes, counts)
        n_always = len(roots.always)
        starts = np.zeros(group.n_rows + 1, dtype=np.int64)
        np.cumsum(counts[: group.n_rows] + n_always, out=starts[1:])
        found = allocate(int(starts[-1]), np.int32)
        if n_always:
            places = starts[:-1, None] + np.arange(n_always)
            found[places.ravel()] = np.tile(roots.always, group.n_rows)
        write_pairs(
            group.found,
            group.masks,
            roots.subscription_starts,
            roots.subscriptions,
            starts[:-1] + n_always,
            found,
        )
        yield Pairs(group.first_row, starts, found)


def count_block_by_subscription(
    first_row: int, events: EventArrays, contents: Contents, scratch: Scratch, counts: Int64
) -> None:
    """Add the matches of one block to each subscription's count, constants left out."""
    n_rows = min(scratch.n_rows, len(events.row_starts) - 1 - first_row)
    leaves, nodes, roots = contents.leaves, contents.nodes, contents.roots
    count_block(first_row, n_rows, events, leaves, nodes, roots, scratch, counts)


def count_block_by_event(
    first_row: int, events: EventArrays, contents: Contents, roots: RootArrays, scratch: Scratch
) -> Int64:
    """The matches of each event of one block, constants left out."""
    counts = np.empty(scratch.n_rows, dtype=np.int64)
    n_rows = 0
    for group in match_groups(first_row, events, contents, roots, scratch):
        own = counts[n_rows : n_rows + ROW]
        count_by_event(group.found, group.masks, roots, scratch.planes, own)
        n_rows += group.n_rows
    return counts[:n_rows]


class Group(NamedTuple):
    """512 events or fewer, and the roots that some of them satisfy; valid until the next block."""

    first_row: int
    n_rows: int
    found: Int32
    masks: np.ndarray  # uint64[n_found, WORDS], the events of each


def match_groups(
    first_row: int, events: EventArrays, contents: Contents, roots: RootArrays, scratch: Scratch
) -> Iterator[Group]:
    """The groups of a block, with the roots found for each."""
    n_rows = min(scratch.n_rows, len(events.row_starts) - 1 - first_row)
    match_block(first_row, n_rows, events, contents.leaves, contents.nodes, roots, scratch)
    for group, start in enumerate(range(0, n_rows, ROW)):
        n_found = scratch.n_found[group]
        first_found = group * scratch.found.shape[1]
        yield Group(
            first_row + start,
            min(ROW, n_rows - start),
            scratch.found[group, :n_found],
            scratch.found_masks[first_found : first_found + n_found],
        )


def allocate(n: int, dtype: Any) -> np.ndarray:
    """An array in Arrow's memory: results are large, and its allocator reuses what was freed."""
    size = n * np.dtype(dtype).itemsize
    return np.frombuffer(pa.allocate_buffer(size), dtype=dtype) if n else np.empty(0, dtype)
