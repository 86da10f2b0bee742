"""The batch matcher: runs blocks of events through the kernel and reads the results."""

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
# A wider block reads the links of a node once for more events, and memory delivers several adjacent
# lines almost at the price of one; beyond four groups there is no further gain.
MOST_GROUPS: Final = 4
MOST_MASK_BYTES: Final = 256 << 20
_NO_ROWS: Final = np.empty(0, dtype=np.int64)


class Scratch(NamedTuple):
    """Scratch space of the kernel; made once and reused for each block."""

    masks: np.ndarray  # uint64[n_stored * n_groups, WORDS]
    is_live: np.ndarray  # uint8[n_stored], bit g: some event of group g satisfies the node
    top_masks: np.ndarray  # uint64[N_TOPS * n_groups, WORDS]
    top_is_live: np.ndarray  # uint8[N_TOPS]
    entry_starts: np.ndarray  # int64[n_columns + 2], the block's entries by column
    present: np.ndarray  # uint64[n_groups, WORDS], events that have the current column
    unsure: np.ndarray  # uint64[n_groups, WORDS], … with a NULL element in it
    of_code: np.ndarray  # uint64[n_groups, WORDS], … with the current code
    all_rows: np.ndarray  # uint64[n_groups, WORDS], the rows of the block
    planes: np.ndarray  # uint64[N_PLANES, WORDS]
    n_leaves: np.ndarray  # int64[1]
    found: np.ndarray  # int32[n_groups, n_roots], roots that some event satisfies
    found_masks: np.ndarray  # uint64[n_groups * n_roots, WORDS], the events that satisfy them
    n_found: np.ndarray  # int64[n_groups]

    @property
    def n_rows(self) -> int:
        """The number of events in a block."""
        return ROW * len(self.all_rows)


def choose_groups(n_stored: int) -> int:
    """The number of groups of 512 events in a block, for an index of this size."""
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
    subscriptions: np.ndarray  # int32: ordinals; int64: numbers
    bindings: list[dict[str, Any] | None] | None = None  # of variables, if requested


def match_block_pairs(  # noqa: PLR0913
    rows: range,
    events: EventArrays,
    contents: Contents,
    roots: RootArrays,
    scratch: Scratch,
    bad_rows: Int64 = _NO_ROWS,
) -> Iterator[Pairs]:
    """The matches of one block of events, group by group, each event's in the order of roots."""
    for group in match_groups(rows, events, contents, roots, scratch, bad_rows):
        sizes = count_events(group, roots, scratch)
        starts = np.zeros(group.n_rows + 1, dtype=np.int64)
        np.cumsum(sizes, out=starts[1:])
        found = allocate(int(starts[-1]), np.int32)
        n_always = len(roots.always)
        if n_always:
            good = group.without_bad(starts[:-1])
            places = good[:, None] + np.arange(n_always)
            found[places.ravel()] = np.tile(roots.always, len(good))
        write_pairs(
            group.found,
            group.masks,
            roots.subscription_starts,
            roots.subscriptions,
            starts[:-1] + n_always,
            found,
        )
        yield Pairs(group.first_row, starts, found)


def count_events(group: Group, roots: RootArrays, scratch: Scratch) -> Int64:
    """How many subscriptions each event of the group satisfies."""
    counts = np.empty(ROW, dtype=np.int64)
    count_by_event(group.found, group.masks, roots, scratch.planes, counts)
    own = counts[: group.n_rows]
    # Most batches have neither, and a NumPy call on nothing takes a microsecond.
    if len(roots.always):
        own += len(roots.always)
    if len(group.bad):
        own[group.bad] = 0
    return own


def count_block_by_subscription(  # noqa: PLR0913
    rows: range,
    events: EventArrays,
    contents: Contents,
    roots: RootArrays,
    scratch: Scratch,
    counts: Int64,
) -> None:
    """Add the matches of one block to each subscription's count, without always-true ones."""
    leaves, nodes = contents.leaves, contents.nodes
    count_block(rows.start, len(rows), events, leaves, nodes, roots, scratch, counts)


class Group(NamedTuple):
    """Up to 512 events, and the roots that some of them satisfy; valid until the next block."""

    first_row: int
    n_rows: int
    found: Int32
    masks: np.ndarray  # uint64[n_found, WORDS], the events of each; those of no event may be left
    bad: Int64  # rows of the group without a valid event: nothing matches them

    def without_bad(self, values: np.ndarray) -> np.ndarray:
        """The values of rows with valid events."""
        return np.delete(values, self.bad) if len(self.bad) else values


def match_groups(  # noqa: PLR0913
    rows: range,  # at most scratch.n_rows
    events: EventArrays,
    contents: Contents,
    roots: RootArrays,
    scratch: Scratch,
    bad_rows: Int64 = _NO_ROWS,
) -> Iterator[Group]:
    """The groups of a block, with the roots found for each."""
    leaves, nodes = contents.leaves, contents.nodes
    match_block(rows.start, len(rows), events, leaves, nodes, roots, scratch)
    for group, begin in enumerate(rows[::ROW]):
        n_found = scratch.n_found[group]
        first_found = group * scratch.found.shape[1]
        masks = scratch.found_masks[first_found : first_found + n_found]
        end = min(begin + ROW, rows.stop)
        bad = _rows_between(bad_rows, begin, end) - begin if len(bad_rows) else _NO_ROWS
        for row in bad.tolist():
            masks[:, row >> 6] &= ~(np.uint64(1) << np.uint64(row & 63))
        yield Group(begin, end - begin, scratch.found[group, :n_found], masks, bad)


def _rows_between(rows: Int64, begin: int, end: int) -> Int64:
    return rows[(rows >= begin) & (rows < end)]


def allocate(n: int, dtype: Any) -> np.ndarray:
    """An array in Arrow's memory: results are large, and Arrow's allocator reuses freed memory."""
    size = n * np.dtype(dtype).itemsize
    return np.frombuffer(pa.allocate_buffer(size), dtype=dtype) if n else np.empty(0, dtype)
