"""The leaves that an event satisfies, found by the product's first phase only."""

from __future__ import annotations

from tamis.kernels.compiled import kernel
from tamis.match.kernels.event import next_stamp, set_leaves


@kernel
def find_leaves(event, leaves, triggers, scratch, found):
    """Write the leaves that the event makes true, ascending; return how many."""
    stamp = next_stamp(scratch)
    set_leaves(0, stamp, event, leaves, triggers, scratch)
    scratch.pending[:] = 0
    n_found = 0
    for leaf in range(len(found)):
        if scratch.is_true[leaf] == stamp:
            found[n_found] = leaf
            n_found += 1
    return n_found


@kernel
def find_false_leaves(event, leaves, triggers, scratch, found):
    """Write the leaves on the event's columns that it does not make true; return how many."""
    stamp = next_stamp(scratch)
    set_leaves(0, stamp, event, leaves, triggers, scratch)
    scratch.pending[:] = 0
    n_found = 0
    for column in range(len(leaves.present_leaves)):
        if scratch.present[column] != stamp:
            continue
        for leaf in range(leaves.column_leaves[column], leaves.column_leaves[column + 1]):
            if scratch.is_true[leaf] != stamp:
                found[n_found] = leaf
                n_found += 1
    return n_found
