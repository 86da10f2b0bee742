"""The arrays of an index, as kernels read them and as a file stores them.

Nodes are numbered leaves first, then inner nodes, children before parents (see `order`). The codes
of its column make a leaf true for an event (see `columns`); its children make an inner node true.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.kernels.arrays import Int32, Int64, Starts, UInt8

Frozen = TypeVar("Frozen", bound=tuple[Any, ...])

_INT32_MAX: Final = np.iinfo(np.int32).max

# Operators of inner nodes. XOR's children are pairs: a node for an operand being true, and one for
# it being false; its `required` is the parity of true operands that makes it true.
AND: Final = 0
OR: Final = 1
AT_LEAST: Final = 2
XOR: Final = 3


def freeze(arrays: Frozen) -> Frozen:
    """The same arrays, read-only, as when mapped from disk: kernels compiled for one serve the
    other, and nothing can write to an index.
    """
    for array in arrays:
        array.flags.writeable = False
    return arrays


def run_starts(sizes: npt.NDArray[Any]) -> Starts:
    """The starts of runs of these sizes, and the end of the last; in 32 bits if that suffices."""
    starts = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts.astype(np.int32) if starts[-1] <= _INT32_MAX else starts


class LeafArrays(NamedTuple):
    """The leaves that each code makes true."""

    # A column's codes are a contiguous range of the global codes.
    column_codes: Int64  # [n_columns + 1], first global code of each column
    column_leaves: Int32  # [n_columns + 1], first leaf of each column; leaves of no column are last
    posting_starts: Starts  # [n_codes + 1]
    posting_leaves: Int32  # leaves true for events with that code
    # Leaves of the form `code <= threshold`, by column and ascending threshold.
    code_slots: Int32  # [n_codes], the first threshold not below the code; n_thresholds if none
    column_thresholds: Int64  # [n_columns + 1], first threshold of each column
    threshold_leaves: Int32  # [n_thresholds]
    # Leaves that are true if another is not: by column, for events that have it (and, for an array,
    # no NULL element); after those of all columns, for all events. Bases come before complements.
    column_complements: Int64  # [n_columns + 1], first complement of each column
    complement_leaves: Int32
    complement_bases: Int32
    present_leaves: Int32  # [n_columns], the leaf `column IS NOT NULL`, or -1
    absent_leaves: Int32  # [n_columns], the leaf `column IS NULL`, or -1


class NodeArrays(NamedTuple):
    """Inner nodes; node n_leaves + i is the i-th."""

    operators: UInt8  # [n_inner]
    required: Int32  # [n_inner], how many children at_least requires; XOR's parity
    child_starts: Starts  # [n_inner + 1]
    children: Int32  # node ids, below n_leaves + i


class RootArrays(NamedTuple):
    """The subscriptions at each node."""

    nodes: Int32  # [n_roots], ascending
    subscription_starts: Starts  # [n_roots + 1]
    subscriptions: Int32  # ordinals of subscriptions
    always: Int32  # ordinals of subscriptions that every event matches
