"""The single-event matcher's scratch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tamis.index.contents import Contents


class SingleScratch(NamedTuple):
    """Scratch space of the kernel; made once and reused for each event."""

    stamp: np.ndarray  # uint8[1], the number of the current event
    is_true: np.ndarray  # uint8[n_stored], the last event for which the node was true
    present: np.ndarray  # uint8[n_columns], the last event that had the column
    definite: np.ndarray  # uint8[n_columns], … without a NULL element
    pending: np.ndarray  # uint64[n_inner / 64], pending inner nodes; zero between events
    true_leaves: np.ndarray  # int32[n_leaves], true leaves with subscriptions
    n_true_leaves: np.ndarray  # int64[1]
    is_root: np.ndarray  # uint64[n_stored / 64], nodes with subscriptions; these bits
    # stay in the cache, while `root_of` would have to be fetched for every true node
    root_of: np.ndarray  # int32[n_stored], position of the node in RootArrays, or -1
    n_leaves: np.ndarray  # int64[1]
    first_top: np.ndarray  # int64[1], the root of the first top: every top is one
    found: np.ndarray  # int32[n_subscriptions], positions of the matches in `roots.subscriptions`


class RootTable(NamedTuple):
    """The roots of an index by node."""

    is_root: np.ndarray  # see SingleScratch
    root_of: np.ndarray
    n_leaves: np.ndarray
    first_top: np.ndarray

    @classmethod
    def of(cls, contents: Contents) -> RootTable:
        """Those of an index."""
        nodes = contents.roots.nodes
        first_top = int(np.searchsorted(nodes, contents.n_stored))
        root_of = np.full(contents.n_stored, -1, dtype=np.int32)
        root_of[nodes[:first_top]] = np.arange(first_top, dtype=np.int32)
        return cls(
            pack(root_of >= 0),
            root_of,
            np.array([contents.n_leaves], dtype=np.int64),
            np.array([first_top], dtype=np.int64),
        )


def make_single_scratch(contents: Contents, roots: RootTable | None = None) -> SingleScratch:
    """Scratch for this index; `roots` is its table of roots, if that is known."""
    n_stored, n_columns = contents.n_stored, len(contents.columns)
    return SingleScratch(
        np.zeros(1, dtype=np.uint8),
        np.zeros(n_stored, dtype=np.uint8),
        np.zeros(n_columns, dtype=np.uint8),
        np.zeros(n_columns, dtype=np.uint8),
        np.zeros((len(contents.nodes.operators) + 63) // 64, dtype=np.uint64),
        np.empty(contents.n_leaves, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        *(RootTable.of(contents) if roots is None else roots),
        np.empty(len(contents.ids), dtype=np.int32),
    )


def pack(flags: np.ndarray) -> np.ndarray:
    """The flags as bits of words."""
    packed = np.zeros((len(flags) + 63) // 64 * 8, dtype=np.uint8)
    bits = np.packbits(flags, bitorder="little")
    packed[: len(bits)] = bits
    return packed.view(np.uint64)
