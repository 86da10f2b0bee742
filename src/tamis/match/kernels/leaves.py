"""Computes the masks of leaves for one block, column by column, from the codes of its events."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.kernels.prefetch import prefetch_row
from tamis.match.kernels.rows import ROW, either, fill, has_bit, load, store, without

# Entries without a code: the column is present, and its negated tests are undefined, or not. An
# array with a NULL element is the former, an empty array the latter.
_UNSURE = -1
_EMPTY = -2
FEW = 24  # up to this number, insertion sort is faster than a call of sort
AHEAD = np.uint64(16)  # masks prefetched ahead


@kernel(inline="always")
def count_groups(n_rows):
    """The number of groups of 512 rows in a block."""
    return np.uint64((n_rows + ROW - 1) // ROW)


@kernel(_nrt=True)
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
            scratch.unsure[:] = 0
            set_entries(rows, codes, begin, end, n_groups, events, leaves, scratch)
        for group in range(n_groups):
            if begin < end:
                accumulate_thresholds(column, group, n_groups, leaves, scratch)
                set_complements(column, group, n_groups, leaves, scratch)
            set_presence(column, begin < end, group, n_groups, leaves, scratch)
    set_total_complements(n_groups, leaves, scratch)


@kernel
def clear(first, last, n_groups, scratch):
    """Set the masks of some leaves to zero."""
    scratch.masks[np.uint64(first) * n_groups : np.uint64(last) * n_groups] = 0
    scratch.is_live[first:last] = 0


@kernel
def sort_entries(first_row, n_rows, events, entry_starts, rows, codes):
    """Write the block's entries by column; marks come after the codes, which they override."""
    entry_starts[:] = 0
    for entry in range(events.row_starts[first_row], events.row_starts[first_row + n_rows]):
        entry_starts[events.columns[entry] + 2] += 1
    for mark in range(events.mark_starts[first_row], events.mark_starts[first_row + n_rows]):
        entry_starts[events.mark_columns[mark] + 2] += 1
    for column in range(2, len(entry_starts)):
        entry_starts[column] += entry_starts[column - 1]
    # entry_starts[c + 1] is the next position of column c; when all is written, the start of c + 1.
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


@kernel
def set_entries(rows, codes, begin, end, n_groups, events, leaves, scratch):
    """Set the leaves that the codes of one column make true: postings, threshold slots, presence.

    Entries are processed by code, and a code's leaves are set once for all its events.
    """
    masks, is_live, of_code = scratch.masks, scratch.is_live, scratch.of_code
    posting_starts, posting_leaves = leaves.posting_starts, leaves.posting_leaves
    code_slots, threshold_leaves = leaves.code_slots, leaves.threshold_leaves
    text_starts, text_leaves = events.text_starts, events.text_leaves
    present, unsure = scratch.present, scratch.unsure
    n_codes = len(code_slots)
    sort_by_code(rows, codes, begin, end)
    while begin < end:
        code = codes[begin]
        until = begin + 1
        while until < end and codes[until] == code:
            until += 1
        add_presence(rows, begin, until, code == _UNSURE, present, unsure)
        if code >= n_codes:
            text = code - n_codes
            first, last = text_starts[text], text_starts[text + 1]
            add_events(
                rows, begin, until, text_leaves, first, last, masks, is_live, of_code, n_groups
            )
        elif code >= 0:
            first, last = posting_starts[code], posting_starts[code + 1]
            add_events(
                rows, begin, until, posting_leaves, first, last, masks, is_live, of_code, n_groups
            )
            slot = code_slots[code]
            if slot < len(threshold_leaves):
                last = slot + 1
                add_events(
                    rows,
                    begin,
                    until,
                    threshold_leaves,
                    slot,
                    last,
                    masks,
                    is_live,
                    of_code,
                    n_groups,
                )
        begin = until


@kernel(_nrt=True)
def sort_by_code(rows, codes, begin, end):
    """Sort the entries of one column by code; most columns have few."""
    if end - begin > FEW:
        order = begin + np.argsort(codes[begin:end])
        codes[begin:end] = codes[order]
        rows[begin:end] = rows[order]
        return
    for i in range(begin + 1, end):
        code, row = codes[i], rows[i]
        at = i
        while at > begin and codes[at - 1] > code:
            codes[at], rows[at] = codes[at - 1], rows[at - 1]
            at -= 1
        codes[at], rows[at] = code, row


@kernel(inline="always")
def place_of(row):
    """The group, the word and the bit of an event of the block."""
    bit = np.uint64(1) << np.uint64(row & 63)
    return np.uint64(row // ROW), np.uint64((row % ROW) >> 6), bit


@kernel(inline="always")
def add_presence(rows, begin, end, is_unsure, present, unsure):
    """Record that events have the column; an undefined event stays undefined."""
    for entry in range(begin, end):
        group, word, bit = place_of(rows[entry])
        present[group, word] |= bit
        if is_unsure:
            unsure[group, word] |= bit


@kernel(inline="always")
def add_events(rows, begin, end, found, first, last, masks, is_live, of_code, n_groups):
    """Add the events of one code to the masks of its leaves, found[first:last]."""
    if end - begin == 1 or last - first == 1:
        for entry in range(begin, end):
            group, word, bit = place_of(rows[entry])
            for at in range(first, last):
                leaf = np.uint64(np.uint32(found[at]))
                masks[leaf * n_groups + group, word] |= bit
                is_live[leaf] |= np.uint8(1) << np.uint8(group)
    elif first < last:
        of_code[:] = 0
        groups = np.uint8(0)
        for entry in range(begin, end):
            group, word, bit = place_of(rows[entry])
            of_code[group, word] |= bit
            groups |= np.uint8(1) << np.uint8(group)
        for group in range(n_groups):
            live = groups & (np.uint8(1) << np.uint8(group))
            if live:
                row = load(of_code, group)
                add_row(row, live, found[first:last], group, n_groups, masks, is_live)


@kernel
def add_row(row, live, found, group, n_groups, masks, is_live):
    """Add the events of one code and group to the masks of its leaves."""
    n_found = np.uint64(len(found))
    for at in range(n_found):
        if at + AHEAD < n_found:
            leaf = np.uint64(np.uint32(found[at + AHEAD]))
            prefetch_row(masks, leaf * n_groups + group)
        leaf = np.uint64(np.uint32(found[at]))
        mask = load(masks, leaf * n_groups + group)
        store(masks, leaf * n_groups + group, either(mask, row))
        is_live[leaf] |= live


@kernel
def accumulate_thresholds(column, group, n_groups, leaves, scratch):
    """Each event set one bit in its slot; a running OR gives every threshold its mask."""
    masks, is_live, threshold_leaves = scratch.masks, scratch.is_live, leaves.threshold_leaves
    live = np.uint8(1) << np.uint8(group)
    so_far = fill(np.uint64(0))
    for at in range(leaves.column_thresholds[column], leaves.column_thresholds[column + 1]):
        leaf = np.uint64(np.uint32(threshold_leaves[at]))
        so_far = either(so_far, load(masks, leaf * n_groups + group))
        store(masks, leaf * n_groups + group, so_far)
        if has_bit(so_far):
            is_live[leaf] |= live


@kernel
def set_complements(column, group, n_groups, leaves, scratch):
    """The masks of a column's leaves that are true if their base is not."""
    masks, is_live = scratch.masks, scratch.is_live
    complements, bases = leaves.complement_leaves, leaves.complement_bases
    definite = without(load(scratch.present, group), load(scratch.unsure, group))
    for at in range(leaves.column_complements[column], leaves.column_complements[column + 1]):
        base = np.uint64(np.uint32(bases[at]))
        row = without(definite, load(masks, base * n_groups + group))
        write_leaf(masks, is_live, complements[at], group, n_groups, row)


@kernel
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


@kernel
def set_total_complements(n_groups, leaves, scratch):
    """The masks of leaves that are true for all events for which their base is not."""
    masks, is_live = scratch.masks, scratch.is_live
    for at in range(leaves.column_complements[-1], len(leaves.complement_leaves)):
        base = np.uint64(np.uint32(leaves.complement_bases[at]))
        leaf = leaves.complement_leaves[at]
        for group in range(n_groups):
            all_rows = load(scratch.all_rows, group)
            row = without(all_rows, load(masks, base * n_groups + group))
            write_leaf(masks, is_live, leaf, group, n_groups, row)


@kernel(inline="always")
def write_leaf(masks, is_live, leaf, group, n_groups, row):
    """Store the mask of a leaf."""
    node = np.uint64(np.uint32(leaf))
    store(masks, node * n_groups + group, row)
    if has_bit(row):
        is_live[node] |= np.uint8(1) << np.uint8(group)
