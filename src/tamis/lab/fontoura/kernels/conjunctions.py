"""Finds the conjunctions that events satisfy, from posting lists by size.

Traversing lists together keeps them sorted by their current posting, which is cheap for as many
lists as an event has attributes. If leaves are ranges and sets, an event satisfies thousands of
them; then hits are counted instead (§6, the counting algorithm), and no list is skipped.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

MOST_WALKED = 64  # lists
END = np.int32(2**31 - 1)  # the head of an exhausted list
REJECTED = -(1 << 40)  # added to the hits of a conjunction by a ∉


@kernel
def find_conjunctions(
    first_row,
    row_starts,  # int64[:], of events
    leaves,  # int32[:], the leaves each event satisfies, ascending
    postings,  # Postings
    annotation_starts,  # [n_conjunctions + 1]
    most_annotations,
    scratch,  # ConjunctionScratch
    starts,  # int64[:], output
    found,  # int32[:], output
):
    """Write the conjunctions of events from `first_row` on; return how many events were done."""
    n_found = 0
    n_annotations = 0
    n_rows = 0
    for row in range(first_row, len(row_starts) - 1):
        if n_found + len(postings.required) > len(found) or n_annotations > most_annotations:
            break
        own = leaves[row_starts[row] : row_starts[row + 1]]
        n_lists = open_lists(own, postings, scratch)
        if n_lists > MOST_WALKED:
            n_found = count_hits(n_lists, postings, scratch, found, n_found)
        else:
            n_found = walk_by_size(n_lists, postings, scratch, found, n_found)
        for at in range(starts[n_rows], n_found):
            conjunction = found[at]
            n_annotations += annotation_starts[conjunction + 1] - annotation_starts[conjunction]
        n_rows += 1
        starts[n_rows] = n_found
    return n_rows


@kernel
def open_lists(leaves, postings, scratch):
    """Write the lists of an event's leaves, Z first; return how many."""
    scratch.open_lists[0] = len(postings.list_sizes) - 1
    n_lists = 1
    for leaf in leaves:
        for number in range(postings.list_starts[leaf], postings.list_starts[leaf + 1]):
            scratch.open_lists[n_lists] = number
            n_lists += 1
    return n_lists


@kernel
def walk_by_size(n_lists, postings, scratch, found, n_found):
    """Process the partitions, largest size first, each with its lists."""
    largest = 0
    for at in range(n_lists):
        largest = max(largest, postings.list_sizes[scratch.open_lists[at]])
    for size in range(largest, -1, -1):
        n_open = 0
        for at in range(n_lists):
            number = scratch.open_lists[at]
            if postings.list_sizes[number] == size:
                scratch.cursors[n_open] = postings.posting_starts[number]
                scratch.ends[n_open] = postings.posting_starts[number + 1]
                n_open += 1
        # Size zero is found in Z only: in one list, like size one.
        required = max(size, 1)
        if n_open >= required:
            n_found = walk(required, n_open, postings.postings, scratch, found, n_found)
    return n_found


@kernel
def walk(required, n_open, postings, scratch, found, n_found):
    """Find conjunctions that are in `required` lists at once; the lists are sorted by their
    heads.
    """
    heads = scratch.heads
    for at in range(n_open):
        read_head(at, postings, scratch)
    for at in range(n_open - 2, -1, -1):
        sink(at, n_open, scratch)
    while heads[required - 1] != END:
        first, last = heads[0] >> 1, heads[required - 1] >> 1
        n_moved = required
        goal = last
        if first == last:
            goal = first + 1
            if heads[0] & 1:
                found[n_found] = first
                n_found += 1
            else:  # ∉: all lists with the conjunction skip it
                while n_moved < n_open and heads[n_moved] >> 1 == first:
                    n_moved += 1
        for at in range(n_moved):
            skip_to(at, np.int32(goal << 1), postings, scratch)
        for at in range(n_moved - 1, -1, -1):
            sink(at, n_open, scratch)
    return n_found


@kernel
def read_head(at, postings, scratch):
    """Record the head of a list."""
    cursor = scratch.cursors[at]
    scratch.heads[at] = postings[cursor] if cursor < scratch.ends[at] else END
    scratch.n_postings[0] += 1


@kernel
def skip_to(at, goal, postings, scratch):
    """Advance a list to its first posting that is at least `goal`, by galloping search."""
    if scratch.heads[at] >= goal:
        return
    low = scratch.cursors[at]
    end = scratch.ends[at]
    step = 1
    while low + step < end and postings[low + step] < goal:
        low += step
        step *= 2
        scratch.n_postings[0] += 1
    high = min(low + step, end)
    # The posting at `low` is below the goal, the one at `high` is not.
    while low + 1 < high:
        middle = (low + high) >> 1
        scratch.n_postings[0] += 1
        if postings[middle] < goal:
            low = middle
        else:
            high = middle
    scratch.cursors[at] = high
    read_head(at, postings, scratch)


@kernel
def sink(at, n_open, scratch):
    """Move a list to its position among the sorted lists behind it."""
    cursors, ends, heads = scratch.cursors, scratch.ends, scratch.heads
    head, cursor, end = heads[at], cursors[at], ends[at]
    while at + 1 < n_open and heads[at + 1] < head:
        heads[at] = heads[at + 1]
        cursors[at] = cursors[at + 1]
        ends[at] = ends[at + 1]
        at += 1
    heads[at], cursors[at], ends[at] = head, cursor, end


@kernel
def count_hits(n_lists, postings, scratch, found, n_found):
    """Count each conjunction's hits; those with the required number are found."""
    hits, touched = scratch.hits, scratch.touched
    n_touched = 0
    for at in range(1, n_lists):
        number = scratch.open_lists[at]
        begin, end = postings.posting_starts[number], postings.posting_starts[number + 1]
        scratch.n_postings[0] += end - begin
        for slot in range(begin, end):
            posting = postings.postings[slot]
            conjunction = posting >> 1
            if hits[conjunction] == 0:
                touched[n_touched] = conjunction
                n_touched += 1
            hits[conjunction] += 1 if posting & 1 else REJECTED
    z = scratch.open_lists[0]
    for slot in range(postings.posting_starts[z], postings.posting_starts[z + 1]):
        conjunction = postings.postings[slot] >> 1
        if hits[conjunction] == 0:
            found[n_found] = conjunction
            n_found += 1
    for at in range(n_touched):
        conjunction = touched[at]
        if hits[conjunction] == postings.required[conjunction]:
            found[n_found] = conjunction
            n_found += 1
        hits[conjunction] = 0
    return n_found
