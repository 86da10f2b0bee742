"""The leaves' masks of one block, column by column, from the codes of its events."""

from __future__ import annotations

import numpy as np
from numba import njit

from tamis.match.kernels.rows import ROW, either, fill, has_bit, load, store, without

# Entries that carry no code: the column is there, and its negated tests are undefined, or not. An
# array with a NULL element is the one, an empty array the other.
_UNSURE = -1
_EMPTY = -2


@njit(cache=True, nogil=True, inline="always")
def count_groups(n_rows):
    """How many groups of 512 the rows of a block make."""
    return np.uint64((n_rows + ROW - 1) // ROW)


@njit(cache=True, nogil=True)
def set_leaves(
    first_row,  # of the block
    n_rows,  # in the block
    events,  # EventArrays
    leaves,  # LeafArrays
    scratch,  # Scratch
):
    """Compute the masks of all leaves."""
    n_groups = count_groups(n_rows)
    scratch.all_rows[:] = 0
    for row in range(n_rows):
        scratch.all_rows[row // ROW, row % ROW >> 6] |= np.uint64(1) << np.uint64(row & 63)
    n_entries = events.row_starts[first_row + n_rows] - events.row_starts[first_row]
    n_marks = events.mark_starts[first_row + n_rows] - events.mark_starts[first_row]
    rows = np.empty(n_entries + n_marks, dtype=np.int32)
    codes = np.empty(n_entries + n_marks, dtype=np.int64)
    sort_entries(first_row, n_rows, events, scratch.entry_starts, rows, codes)
    n_columns = len(leaves.present_leaves)
    clear(leaves.column_leaves[n_columns], scratch.n_leaves[0], n_groups, scratch)
    for column in range(n_columns):
        begin, end = scratch.entry_starts[column], scratch.entry_starts[column + 1]
        clear(leaves.column_leaves[column], leaves.column_leaves[column + 1], n_groups, scratch)
        if begin < end:
            scratch.present[:] = 0
            scratch.definite[:] = 0
            set_entries(rows[begin:end], codes[begin:end], n_groups, events, leaves, scratch)
        for group in range(n_groups):
            if begin < end:
                accumulate_thresholds(column, group, n_groups, leaves, scratch)
                set_complements(column, group, n_groups, leaves, scratch)
            set_presence(column, begin < end, group, n_groups, leaves, scratch)
    set_total_complements(n_groups, leaves, scratch)


@njit(cache=True, nogil=True)
def clear(first, last, n_groups, scratch):
    """Set the masks of some leaves to zero."""
    scratch.masks[np.uint64(first) * n_groups : np.uint64(last) * n_groups] = 0
    scratch.is_live[first:last] = 0


@njit(cache=True, nogil=True)
def sort_entries(first_row, n_rows, events, entry_starts, rows, codes):
    """Write the block's entries by column; marks after the codes, which they overrule."""
    entry_starts[:] = 0
    for entry in range(events.row_starts[first_row], events.row_starts[first_row + n_rows]):
        entry_starts[events.columns[entry] + 2] += 1
    for mark in range(events.mark_starts[first_row], events.mark_starts[first_row + n_rows]):
        entry_starts[events.mark_columns[mark] + 2] += 1
    for column in range(2, len(entry_starts)):
        entry_starts[column] += entry_starts[column - 1]
    # entry_starts[c + 1] is where column c goes on; when all is written, where c + 1 begins.
    for row in range(n_rows):
        at_row = first_row + row
        for entry in range(events.row_starts[at_row], events.row_starts[at_row + 1]):
            column = events.columns[entry]
            to = entry_starts[column + 1]
            entry_starts[column + 1] = to + 1
            rows[to] = row
            codes[to] = events.codes[entry]
    for mark in range(events.mark_starts[first_row], events.mark_starts[first_row + n_rows]):
        column = events.mark_columns[mark]
        to = entry_starts[column + 1]
        entry_starts[column + 1] = to + 1
        rows[to] = events.mark_rows[mark] - first_row
        codes[to] = _UNSURE if events.mark_has_null[mark] else _EMPTY


@njit(cache=True, nogil=True, inline="always")
def set_bit(masks, is_live, leaf, group, n_groups, word, bit):
    """Set one event's bit in the mask of a leaf."""
    node = np.uint64(np.uint32(leaf))
    masks[node * n_groups + group, word] |= bit
    is_live[node] |= np.uint8(1) << np.uint8(group)


@njit(cache=True, nogil=True)
def set_entries(rows, codes, n_groups, events, leaves, scratch):
    """Set what the codes of one column make true: postings, threshold slots, presence."""
    masks, is_live = scratch.masks, scratch.is_live
    n_codes = len(leaves.code_slots)
    n_thresholds = len(leaves.threshold_leaves)
    for entry in range(len(rows)):
        row, code = rows[entry], codes[entry]
        group = np.uint64(row // ROW)
        word = np.uint64((row % ROW) >> 6)
        bit = np.uint64(1) << np.uint64(row & 63)
        scratch.present[group, word] |= bit
        if code == _UNSURE:
            scratch.definite[group, word] &= ~bit
            continue
        scratch.definite[group, word] |= bit
        if code >= n_codes:
            text = code - n_codes
            for at in range(events.text_starts[text], events.text_starts[text + 1]):
                set_bit(masks, is_live, events.text_leaves[at], group, n_groups, word, bit)
        elif code >= 0:
            for at in range(leaves.posting_starts[code], leaves.posting_starts[code + 1]):
                set_bit(masks, is_live, leaves.posting_leaves[at], group, n_groups, word, bit)
            slot = leaves.code_slots[code]
            if slot < n_thresholds:
                leaf = leaves.threshold_leaves[slot]
                set_bit(masks, is_live, leaf, group, n_groups, word, bit)


@njit(cache=True, nogil=True)
def accumulate_thresholds(column, group, n_groups, leaves, scratch):
    """Each event set one bit at its place; a running OR gives every threshold its mask."""
    masks, is_live, threshold_leaves = scratch.masks, scratch.is_live, leaves.threshold_leaves
    live = np.uint8(1) << np.uint8(group)
    so_far = fill(np.uint64(0))
    for at in range(leaves.column_thresholds[column], leaves.column_thresholds[column + 1]):
        leaf = np.uint64(np.uint32(threshold_leaves[at]))
        so_far = either(so_far, load(masks, leaf * n_groups + group))
        store(masks, leaf * n_groups + group, so_far)
        if has_bit(so_far):
            is_live[leaf] |= live


@njit(cache=True, nogil=True)
def set_complements(column, group, n_groups, leaves, scratch):
    """The masks of a column's leaves that are true where their base is not."""
    masks, is_live = scratch.masks, scratch.is_live
    complements, bases = leaves.complement_leaves, leaves.complement_bases
    definite = load(scratch.definite, group)
    for at in range(leaves.column_complements[column], leaves.column_complements[column + 1]):
        base = np.uint64(np.uint32(bases[at]))
        row = without(definite, load(masks, base * n_groups + group))
        write_leaf(masks, is_live, complements[at], group, n_groups, row)


@njit(cache=True, nogil=True)
def set_presence(column, has_entries, group, n_groups, leaves, scratch):
    """The masks of IS NOT NULL and IS NULL."""
    present = load(scratch.present, group) if has_entries else fill(np.uint64(0))
    leaf = leaves.present_leaves[column]
    if leaf >= 0:
        write_leaf(scratch.masks, scratch.is_live, leaf, group, n_groups, present)
    leaf = leaves.absent_leaves[column]
    if leaf >= 0:
        row = without(load(scratch.all_rows, group), present)
        write_leaf(scratch.masks, scratch.is_live, leaf, group, n_groups, row)


@njit(cache=True, nogil=True)
def set_total_complements(n_groups, leaves, scratch):
    """The masks of leaves that are true on all events where their base is not."""
    masks, is_live = scratch.masks, scratch.is_live
    for at in range(leaves.column_complements[-1], len(leaves.complement_leaves)):
        base = np.uint64(np.uint32(leaves.complement_bases[at]))
        leaf = leaves.complement_leaves[at]
        for group in range(n_groups):
            all_rows = load(scratch.all_rows, group)
            row = without(all_rows, load(masks, base * n_groups + group))
            write_leaf(masks, is_live, leaf, group, n_groups, row)


@njit(cache=True, nogil=True, inline="always")
def write_leaf(masks, is_live, leaf, group, n_groups, row):
    """Put the mask of a leaf."""
    node = np.uint64(np.uint32(leaf))
    store(masks, node * n_groups + group, row)
    if has_bit(row):
        is_live[node] |= np.uint8(1) << np.uint8(group)
