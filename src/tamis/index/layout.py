"""The arrays of an index: what a kernel reads, what a file holds.

Nodes are numbered leaves first, then inner nodes, children before parents (see `order`). A leaf is
true for an event because of the codes of its column (see `columns`); an inner node because of its
children.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.kernels.arrays import Int32, Int64, Starts, UInt8

Frozen = TypeVar("Frozen", bound=tuple[Any, ...])

_INT32_MAX: Final = np.iinfo(np.int32).max

# Operators of inner nodes. XOR's children come in pairs: where a condition is true, and where it
# is false; its `required` is the parity of true ones that makes it true.
AND: Final = 0
OR: Final = 1
AT_LEAST: Final = 2
XOR: Final = 3


def freeze(arrays: Frozen) -> Frozen:
    """The same arrays, read-only: as they are when mapped from disk, so that kernels compiled for
    the one serve the other, and nothing writes into an index."""
    for array in arrays:
        array.flags.writeable = False
    return arrays


def run_starts(sizes: npt.NDArray[Any]) -> Starts:
    """Where runs of these sizes begin and the last one ends; in 32 bits where that is enough."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts.astype(np.int32) if starts[-1] <= _INT32_MAX else starts


class LeafArrays(NamedTuple):
    """Which leaves become true by which codes."""

    # A column's codes are a run of the global codes.
    column_codes: Int64  # [n_columns + 1], first global code of each column
    column_leaves: Int32  # [n_columns + 1], first leaf of each column; those of none are last
    posting_starts: Starts  # [n_codes + 1]
    posting_leaves: Int32  # leaves true for events with that code
    # Leaves of the form `code <= threshold`, by column and rising threshold.
    code_slots: Int32  # [n_codes], the first threshold not below the code; n_thresholds if none
    column_thresholds: Int64  # [n_columns + 1], first threshold of each column
    threshold_leaves: Int32  # [n_thresholds]
    # Leaves that are true where another is not: by column, on events that have it (and, for an
    # array, no NULL element); after all columns', on all events. Bases come before complements.
    column_complements: Int64  # [n_columns + 1], first complement of each column
    complement_leaves: Int32
    complement_bases: Int32
    present_leaves: Int32  # [n_columns], the leaf `column IS NOT NULL`, or -1
    absent_leaves: Int32  # [n_columns], the leaf `column IS NULL`, or -1


class NodeArrays(NamedTuple):
    """Inner nodes; node n_leaves + i is the i-th."""

    operators: UInt8  # [n_inner]
    required: Int32  # [n_inner], how many children at_least asks for; XOR's parity
    child_starts: Starts  # [n_inner + 1]
    children: Int32  # node ids, below n_leaves + i


class RootArrays(NamedTuple):
    """Which subscriptions stand at which node."""

    nodes: Int32  # [n_roots], rising
    subscription_starts: Starts  # [n_roots + 1]
    subscriptions: Int32  # ordinals of subscriptions
    always: Int32  # ordinals of subscriptions that every event matches
