"""The single-event kernel: true nodes trigger others, which are then evaluated.

True nodes are stamped with the event's number; the nodes they trigger are marked pending in a
bitmap. Pending nodes are processed in ascending order, and children come before parents, so a
node's children are known when it is evaluated. Only marked bits are cleared between events.
"""

from __future__ import annotations

import numpy as np

from tamis.index.layout import AND, OR, XOR
from tamis.kernels.compiled import kernel
from tamis.kernels.sorting import sort_run
from tamis.match.kernels.rows import lowest_bit

LAST_STAMP = 255  # stamps are bytes: those of a hundred thousand nodes fit the cache


@kernel(forceinline=True)
def match_event(
    row,  # of the batch
    events,  # EventArrays
    leaves,  # LeafArrays
    nodes,  # NodeArrays
    roots,  # RootArrays
    triggers,  # TriggerArrays
    scratch,  # SingleScratch; `found` is the output
):
    """Write the positions of the event's matches in `roots.subscriptions`; return how many."""
    stamp = next_stamp(scratch)
    set_leaves(row, stamp, events, leaves, triggers, scratch)
    # Stamped in the order of the event's columns; found in the order of nodes, as in a batch.
    sort_run(scratch.true_leaves, 0, scratch.n_true_leaves[0])
    n_found = 0
    for at in range(scratch.n_true_leaves[0]):
        root = scratch.root_of[scratch.true_leaves[at]]
        n_found = emit(root, roots.subscription_starts, scratch.found, n_found)
    return push(stamp, nodes, triggers, roots.subscription_starts, scratch, n_found)


@kernel(forceinline=True)
def next_stamp(scratch):
    """The number of the next event; after the last one all stamps are cleared."""
    if scratch.stamp[0] == LAST_STAMP:
        scratch.is_true[:] = 0
        scratch.present[:] = 0
        scratch.definite[:] = 0
        scratch.stamp[0] = 0
    scratch.stamp[0] += 1
    return scratch.stamp[0]


@kernel(forceinline=True)
def push(
    stamp,
    nodes,  # NodeArrays
    triggers,  # TriggerArrays
    subscription_starts,  # of RootArrays
    scratch,  # SingleScratch; nothing is pending on return
    n_found,
):
    """Evaluate the pending nodes in ascending order; return how many subscriptions were found."""
    is_true, pending, found = scratch.is_true, scratch.pending, scratch.found
    first_inner, first_top = np.uint64(scratch.n_leaves[0]), scratch.first_top[0]
    n_stored = np.uint64(len(is_true))
    for word in range(np.uint64(len(pending))):
        while pending[word] != 0:
            bits = pending[word]
            pending[word] = bits & (bits - np.uint64(1))
            inner = (word << np.uint64(6)) + np.uint64(lowest_bit(bits))
            # An OR was triggered by a true child.
            if nodes.operators[inner] != OR and not is_satisfied(inner, stamp, nodes, is_true):
                continue
            node = first_inner + inner
            if node >= n_stored:
                root = np.int64(node - n_stored) + first_top
                n_found = emit(root, subscription_starts, found, n_found)
                continue
            is_true[node] = stamp
            trigger(node, triggers, pending)
            if has_bit(scratch.is_root, node):
                n_found = emit(scratch.root_of[node], subscription_starts, found, n_found)
    return n_found


@kernel(inline="always")
def has_bit(bits, at):
    """Whether the bit is set."""
    return (bits[at >> np.uint64(6)] >> (at & np.uint64(63))) & np.uint64(1) != 0


@kernel(inline="always")
def trigger(node, triggers, pending):
    """Mark the parents as pending, since `node` is true."""
    starts = triggers.starts
    for at in range(np.uint64(starts[node]), np.uint64(starts[node + np.uint64(1)])):
        parent = np.uint64(np.uint32(triggers.parents[at]))
        pending[parent >> np.uint64(6)] |= np.uint64(1) << (parent & np.uint64(63))


@kernel(inline="always")
def emit(root, starts, found, n_found):
    """Append the positions of the subscriptions of a root; return the new number."""
    for at in range(starts[root], starts[root + 1]):
        found[n_found] = at
        n_found += 1
    return n_found


@kernel(inline="always")
def is_satisfied(inner, stamp, nodes, is_true):
    """Whether a node other than OR is true, given its children."""
    operator, starts, children = nodes.operators[inner], nodes.child_starts, nodes.children
    begin, end = np.uint64(starts[inner]), np.uint64(starts[inner + np.uint64(1)])
    if operator == AND:
        for at in range(begin, end):
            if is_true[np.uint32(children[at])] != stamp:
                return False
        return True
    n_true = 0
    if operator == XOR:
        for at in range(begin, end, np.uint64(2)):
            if is_true[np.uint32(children[at])] == stamp:
                n_true += 1
            elif is_true[np.uint32(children[at + np.uint64(1)])] != stamp:
                return False
        return n_true & 1 == nodes.required[inner]
    for at in range(begin, end):
        n_true += is_true[np.uint32(children[at])] == stamp
    return n_true >= nodes.required[inner]


@kernel(inline="always")
def set_true(leaf, stamp, triggers, scratch):
    """Stamp a leaf once, list it, and mark the nodes it triggers."""
    node = np.uint64(np.uint32(leaf))
    if scratch.is_true[node] != stamp:
        scratch.is_true[node] = stamp
        if has_bit(scratch.is_root, node):
            scratch.true_leaves[scratch.n_true_leaves[0]] = leaf
            scratch.n_true_leaves[0] += 1
        trigger(node, triggers, scratch.pending)


@kernel(forceinline=True)
def set_leaves(row, stamp, events, leaves, triggers, scratch):
    """Stamp every leaf that the event makes true."""
    scratch.n_true_leaves[0] = 0
    n_codes = len(leaves.code_slots)
    for entry in range(events.row_starts[row], events.row_starts[row + 1]):
        column, code = events.columns[entry], events.codes[entry]
        scratch.present[column] = stamp
        scratch.definite[column] = stamp
        if code < n_codes:
            for at in range(leaves.posting_starts[code], leaves.posting_starts[code + 1]):
                set_true(leaves.posting_leaves[at], stamp, triggers, scratch)
            for at in range(leaves.code_slots[code], leaves.column_thresholds[column + 1]):
                set_true(leaves.threshold_leaves[at], stamp, triggers, scratch)
        else:
            text = code - n_codes
            for at in range(events.text_starts[text], events.text_starts[text + 1]):
                set_true(events.text_leaves[at], stamp, triggers, scratch)
    for at in range(events.mark_starts[row], events.mark_starts[row + 1]):
        column = events.mark_columns[at]
        scratch.present[column] = stamp
        scratch.definite[column] = 0 if events.mark_has_null[at] else stamp
    for column in range(len(leaves.present_leaves)):
        is_present = scratch.present[column] == stamp
        leaf = leaves.present_leaves[column] if is_present else leaves.absent_leaves[column]
        if leaf >= 0:
            set_true(leaf, stamp, triggers, scratch)
    for entry in range(events.row_starts[row], events.row_starts[row + 1]):
        set_column_complements(events.columns[entry], stamp, leaves, triggers, scratch)
    for at in range(events.mark_starts[row], events.mark_starts[row + 1]):
        set_column_complements(events.mark_columns[at], stamp, leaves, triggers, scratch)
    first_total = leaves.column_complements[len(leaves.column_complements) - 1]
    for at in range(first_total, len(leaves.complement_leaves)):
        if scratch.is_true[leaves.complement_bases[at]] != stamp:
            set_true(leaves.complement_leaves[at], stamp, triggers, scratch)


@kernel(inline="always")
def set_column_complements(column, stamp, leaves, triggers, scratch):
    """Stamp the leaves of one column that are true because their base is not."""
    if scratch.definite[column] == stamp:
        for at in range(leaves.column_complements[column], leaves.column_complements[column + 1]):
            if scratch.is_true[leaves.complement_bases[at]] != stamp:
                set_true(leaves.complement_leaves[at], stamp, triggers, scratch)
