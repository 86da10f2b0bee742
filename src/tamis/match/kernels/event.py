"""The single-event kernel: push from triggers, look at the rest.

True leaves are stamped with the event's number; the nodes they trigger are marked pending in a
bitmap. Pending nodes are taken in rising order, and children come before parents, so a node's
children are known when it is looked at. Nothing is cleared between events but what was marked.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tamis.index.layout import AND, OR, XOR
from tamis.match.kernels.rows import lowest_bit


@njit(cache=True, nogil=True)
def match_event(
    row,  # of the batch
    events,  # EventArrays
    leaves,  # LeafArrays
    nodes,  # NodeArrays
    roots,  # RootArrays
    triggers,  # TriggerArrays
    scratch,  # SingleScratch
    found,  # int32[n_subscriptions], output
):
    """Write the subscriptions that the event satisfies; return how many."""
    stamp = scratch.stamp[0] + 1
    scratch.stamp[0] = stamp
    set_leaves(row, stamp, events, leaves, triggers, scratch)
    n_found = 0
    n_leaves = len(scratch.is_true) - len(nodes.operators)
    # Stamped in the order of the event's columns; found in the order of nodes, as in a batch.
    scratch.true_leaves[: scratch.n_true_leaves[0]].sort()
    for at in range(scratch.n_true_leaves[0]):
        n_found = emit(scratch.true_leaves[at], roots, scratch.root_of, found, n_found)
    for word in range(len(scratch.pending)):
        while scratch.pending[word] != 0:
            bits = scratch.pending[word]
            scratch.pending[word] = bits & (bits - np.uint64(1))
            inner = 64 * word + lowest_bit(bits)
            if is_satisfied(inner, stamp, nodes, scratch.is_true):
                node = n_leaves + inner
                scratch.is_true[node] = stamp
                trigger(node, triggers, scratch.pending)
                n_found = emit(node, roots, scratch.root_of, found, n_found)
    return n_found


@njit(cache=True, nogil=True, inline="always")
def trigger(node, triggers, pending):
    """Mark the parents to be looked at because `node` is true."""
    for at in range(triggers.starts[node], triggers.starts[node + 1]):
        parent = triggers.parents[at]
        pending[parent >> 6] |= np.uint64(1) << np.uint64(parent & 63)


@njit(cache=True, nogil=True, inline="always")
def emit(node, roots, root_of, found, n_found):
    """Append the subscriptions that stand at a node; return the new number of them."""
    root = root_of[node]
    if root >= 0:
        for at in range(roots.subscription_starts[root], roots.subscription_starts[root + 1]):
            found[n_found] = roots.subscriptions[at]
            n_found += 1
    return n_found


@njit(cache=True, nogil=True, inline="always")
def is_satisfied(inner, stamp, nodes, is_true):
    """Whether an inner node holds, its children being known."""
    operator = nodes.operators[inner]
    if operator == OR:
        return True  # it was triggered by a true child
    begin, end = nodes.child_starts[inner], nodes.child_starts[inner + 1]
    if operator == AND:
        for at in range(begin, end):
            if is_true[nodes.children[at]] != stamp:
                return False
        return True
    n_true = 0
    if operator == XOR:
        for at in range(begin, end, 2):
            if is_true[nodes.children[at]] == stamp:
                n_true += 1
            elif is_true[nodes.children[at + 1]] != stamp:
                return False
        return n_true & 1 == nodes.required[inner]
    for at in range(begin, end):
        n_true += is_true[nodes.children[at]] == stamp
    return n_true >= nodes.required[inner]


@njit(cache=True, nogil=True, inline="always")
def set_true(leaf, stamp, triggers, scratch):
    """Stamp a leaf, once, list it and mark what it triggers."""
    if scratch.is_true[leaf] != stamp:
        scratch.is_true[leaf] = stamp
        if scratch.root_of[leaf] >= 0:
            scratch.true_leaves[scratch.n_true_leaves[0]] = leaf
            scratch.n_true_leaves[0] += 1
        trigger(leaf, triggers, scratch.pending)


@njit(cache=True, nogil=True)
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


@njit(cache=True, nogil=True, inline="always")
def set_column_complements(column, stamp, leaves, triggers, scratch):
    """Stamp the leaves of one column that are true because their base is not."""
    if scratch.definite[column] == stamp:
        for at in range(leaves.column_complements[column], leaves.column_complements[column + 1]):
            if scratch.is_true[leaves.complement_bases[at]] != stamp:
                set_true(leaves.complement_leaves[at], stamp, triggers, scratch)
