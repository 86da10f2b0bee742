"""The single-event matcher's scratch and its estimate of how often leaves are true."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from tamis.index.layout import NodeArrays, RootArrays


class SingleScratch(NamedTuple):
    """What the kernel writes; made once and used for event after event."""

    stamp: np.ndarray  # int32[1], the number of the event looked at
    is_true: np.ndarray  # int32[n_nodes], the last event for which the node was true
    present: np.ndarray  # int32[n_columns], the last event that had the column
    definite: np.ndarray  # int32[n_columns], … without a NULL element
    pending: np.ndarray  # uint64[n_inner / 64], inner nodes to look at; zero between events
    true_leaves: np.ndarray  # int32[n_leaves], true leaves at which subscriptions stand
    n_true_leaves: np.ndarray  # int64[1]
    root_of: np.ndarray  # int32[n_nodes], where the node stands in RootArrays, or -1


def make_single_scratch(
    n_leaves: int, n_columns: int, nodes: NodeArrays, roots: RootArrays
) -> SingleScratch:
    """Scratch for an index of this size."""
    n_inner = len(nodes.operators)
    root_of = np.full(n_leaves + n_inner, -1, dtype=np.int32)
    root_of[roots.nodes] = np.arange(len(roots.nodes), dtype=np.int32)
    return SingleScratch(
        np.zeros(1, dtype=np.int32),
        np.zeros(n_leaves + n_inner, dtype=np.int32),
        np.zeros(n_columns, dtype=np.int32),
        np.zeros(n_columns, dtype=np.int32),
        np.zeros((n_inner + 63) // 64, dtype=np.uint64),
        np.empty(n_leaves, dtype=np.int32),
        np.zeros(1, dtype=np.int64),
        root_of,
    )
