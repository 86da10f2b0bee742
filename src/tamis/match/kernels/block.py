"""The batch kernel: a block of events at once, one bit per event and node.

A block is 64 * WORDS events; each node has a mask of WORDS words. AND is &, OR is |. A node shared
by many expressions is computed once per block. Nodes whose mask is zero are dead: their mask is not
even written, and whoever needs them looks at one byte (zero suppression, A-Tree §5.2.1).
"""

from __future__ import annotations

import numpy as np
from numba import njit

from tamis.index.layout import AND, OR, XOR

WORDS = 8
BLOCK = 64 * WORDS
MAX_PLANES = 32  # of the bit-sliced counter: up to 2**32 children


@njit(cache=True, nogil=True)
def match_block(
    first_row,  # of the block
    n_rows,  # in the block, 1 to BLOCK
    events,  # EventArrays
    leaves,  # LeafArrays
    nodes,  # NodeArrays
    scratch,  # Scratch
):
    """Compute the masks of all nodes for one block of events."""
    masks, is_live = scratch.masks, scratch.is_live
    is_live[:] = 0
    n_columns = len(leaves.column_codes) - 1
    scratch.present[:n_columns] = 0
    scratch.definite[:n_columns] = 0
    all_rows = scratch.all_rows
    all_rows[:] = 0
    for row in range(n_rows):
        all_rows[row >> 6] |= np.uint64(1) << np.uint64(row & 63)
    set_entries(first_row, n_rows, events, leaves, scratch)
    accumulate_thresholds(leaves, masks, is_live)
    set_presence(leaves, scratch, n_columns)
    set_complements(leaves, scratch)
    evaluate_nodes(nodes, masks, is_live, scratch.planes)


@njit(cache=True, nogil=True, inline="always")
def set_bit(masks, is_live, node, word, bit):
    """Set one event's bit in the mask of a node, which comes alive by it."""
    if is_live[node] == 0:
        is_live[node] = 1
        for w in range(WORDS):
            masks[node, w] = np.uint64(0)
    masks[node, word] |= bit


@njit(cache=True, nogil=True)
def set_entries(first_row, n_rows, events, leaves, scratch):
    """Set what the codes of each event make true: postings, threshold slots, presence."""
    masks, is_live = scratch.masks, scratch.is_live
    n_codes = len(leaves.code_slots)
    n_thresholds = len(leaves.threshold_leaves)
    for row in range(n_rows):
        word = row >> 6
        bit = np.uint64(1) << np.uint64(row & 63)
        at_row = first_row + row
        for entry in range(events.row_starts[at_row], events.row_starts[at_row + 1]):
            column = events.columns[entry]
            code = events.codes[entry]
            scratch.present[column, word] |= bit
            scratch.definite[column, word] |= bit
            if code < n_codes:
                for at in range(leaves.posting_starts[code], leaves.posting_starts[code + 1]):
                    set_bit(masks, is_live, leaves.posting_leaves[at], word, bit)
                slot = leaves.code_slots[code]
                if slot < n_thresholds:
                    set_bit(masks, is_live, leaves.threshold_leaves[slot], word, bit)
            else:
                text = code - n_codes
                for at in range(events.text_starts[text], events.text_starts[text + 1]):
                    set_bit(masks, is_live, events.text_leaves[at], word, bit)
    # An array with a NULL element is present, but its negated tests are undefined. An empty one has
    # no entry at all, and is present.
    for at in range(events.mark_starts[first_row], events.mark_starts[first_row + n_rows]):
        row = events.mark_rows[at] - first_row
        word = row >> 6
        bit = np.uint64(1) << np.uint64(row & 63)
        column = events.mark_columns[at]
        scratch.present[column, word] |= bit
        if events.mark_has_null[at]:
            scratch.definite[column, word] &= ~bit
        else:
            scratch.definite[column, word] |= bit


@njit(cache=True, nogil=True)
def accumulate_thresholds(leaves, masks, is_live):
    """Each event set one bit at its place; a running OR gives every threshold its mask."""
    for column in range(len(leaves.column_thresholds) - 1):
        before = -1
        for at in range(leaves.column_thresholds[column], leaves.column_thresholds[column + 1]):
            leaf = leaves.threshold_leaves[at]
            if before >= 0:
                if is_live[leaf] == 0:
                    is_live[leaf] = 1
                    for w in range(WORDS):
                        masks[leaf, w] = masks[before, w]
                else:
                    for w in range(WORDS):
                        masks[leaf, w] |= masks[before, w]
            if is_live[leaf]:
                before = leaf


@njit(cache=True, nogil=True)
def set_presence(leaves, scratch, n_columns):
    """The masks of IS NOT NULL and IS NULL."""
    for column in range(n_columns):
        leaf = leaves.present_leaves[column]
        if leaf >= 0:
            write_difference(scratch, leaf, scratch.present[column], scratch.no_rows)
        leaf = leaves.absent_leaves[column]
        if leaf >= 0:
            write_difference(scratch, leaf, scratch.all_rows, scratch.present[column])


@njit(cache=True, nogil=True)
def set_complements(leaves, scratch):
    """The masks of leaves that are true where their base is not."""
    n_columns = len(leaves.column_complements) - 1
    for column in range(n_columns):
        for at in range(leaves.column_complements[column], leaves.column_complements[column + 1]):
            write_complement(scratch, leaves, at, scratch.definite[column])
    for at in range(leaves.column_complements[n_columns], len(leaves.complement_leaves)):
        write_complement(scratch, leaves, at, scratch.all_rows)


@njit(cache=True, nogil=True, inline="always")
def write_complement(scratch, leaves, at, domain):
    """The mask of one complement."""
    base = leaves.complement_bases[at]
    taken = scratch.masks[base] if scratch.is_live[base] else scratch.no_rows
    write_difference(scratch, leaves.complement_leaves[at], domain, taken)


@njit(cache=True, nogil=True, inline="always")
def write_difference(scratch, leaf, domain, taken):
    """The mask of `leaf` becomes `domain` without `taken`."""
    any_bit = np.uint64(0)
    for w in range(WORDS):
        word = domain[w] & ~taken[w]
        scratch.masks[leaf, w] = word
        any_bit |= word
    scratch.is_live[leaf] = any_bit != 0


@njit(cache=True, nogil=True)
def evaluate_nodes(nodes, masks, is_live, planes):
    """Inner nodes from their children, in order: children come before parents."""
    n_inner = len(nodes.operators)
    n_leaves = len(is_live) - n_inner
    for inner in range(n_inner):
        begin, end = nodes.child_starts[inner], nodes.child_starts[inner + 1]
        node = n_leaves + inner
        operator = nodes.operators[inner]
        if operator == AND:
            evaluate_and(node, nodes.children, begin, end, masks, is_live)
        elif operator == OR:
            evaluate_or(node, nodes.children, begin, end, masks, is_live)
        elif operator == XOR:
            parity = np.uint64(nodes.required[inner])
            evaluate_xor(node, nodes.children, begin, end, parity, masks, is_live)
        else:
            k = nodes.required[inner]
            evaluate_at_least(node, nodes.children, begin, end, k, masks, is_live, planes)


@njit(cache=True, nogil=True, inline="always")
def evaluate_and(node, children, begin, end, masks, is_live):
    """All children; nothing is read of a node with a dead child."""
    for at in range(begin, end):
        if is_live[children[at]] == 0:
            return
    first, second = children[begin], children[begin + 1]
    any_bit = np.uint64(0)
    for w in range(WORDS):
        word = masks[first, w] & masks[second, w]
        masks[node, w] = word
        any_bit |= word
    at = begin + 2
    while any_bit != 0 and at < end:
        child = children[at]
        any_bit = np.uint64(0)
        for w in range(WORDS):
            word = masks[node, w] & masks[child, w]
            masks[node, w] = word
            any_bit |= word
        at += 1
    is_live[node] = any_bit != 0


@njit(cache=True, nogil=True, inline="always")
def evaluate_or(node, children, begin, end, masks, is_live):
    """Any child."""
    for at in range(begin, end):
        child = children[at]
        if is_live[child]:
            if is_live[node]:
                for w in range(WORDS):
                    masks[node, w] |= masks[child, w]
            else:
                is_live[node] = 1
                for w in range(WORDS):
                    masks[node, w] = masks[child, w]


@njit(cache=True, nogil=True)
def evaluate_xor(node, children, begin, end, parity, masks, is_live):
    """An odd (even) number of true ones among pairs of which one side holds each."""
    any_bit = np.uint64(0)
    for w in range(WORDS):
        is_defined = ~np.uint64(0)
        is_odd = np.uint64(0)
        for at in range(begin, end, 2):
            true_side, false_side = children[at], children[at + 1]
            true_word = masks[true_side, w] if is_live[true_side] else np.uint64(0)
            false_word = masks[false_side, w] if is_live[false_side] else np.uint64(0)
            is_defined &= true_word | false_word
            is_odd ^= true_word
        word = is_defined & (is_odd if parity else ~is_odd)
        masks[node, w] = word
        any_bit |= word
    is_live[node] = any_bit != 0


@njit(cache=True, nogil=True)
def evaluate_at_least(node, children, begin, end, k, masks, is_live, planes):
    """At least k children, counted for 64 events at a time in bit planes."""
    n_planes = 0
    while (np.int64(1) << n_planes) <= end - begin:
        n_planes += 1
    any_bit = np.uint64(0)
    for w in range(WORDS):
        for plane in range(n_planes):
            planes[plane] = np.uint64(0)
        for at in range(begin, end):
            if is_live[children[at]]:
                carry = masks[children[at], w]
                plane = 0
                while carry != 0:
                    overflow = planes[plane] & carry
                    planes[plane] ^= carry
                    carry = overflow
                    plane += 1
        # count >= k, from the highest plane down.
        is_above, is_equal = np.uint64(0), ~np.uint64(0)
        for plane in range(n_planes - 1, -1, -1):
            if (k >> plane) & 1:
                is_equal &= planes[plane]
            else:
                is_above |= is_equal & planes[plane]
                is_equal &= ~planes[plane]
        word = is_above | is_equal
        masks[node, w] = word
        any_bit |= word
    is_live[node] = any_bit != 0


# ── read-out ────────────────────────────────────────────────────────────────────────────────


@njit(cache=True, nogil=True, inline="always")
def count_bits(word):
    """How many bits of a 64-bit word are set."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@njit(cache=True, nogil=True, inline="always")
def lowest_bit(word):
    """The number of the lowest set bit of a word that is not zero."""
    return count_bits((word & (~word + np.uint64(1))) - np.uint64(1))


@njit(cache=True, nogil=True)
def count_by_subscription(roots, masks, is_live, counts):
    """Add the matches of the block to each subscription's count."""
    for root in range(len(roots.nodes)):
        node = roots.nodes[root]
        if is_live[node]:
            n_matches = 0
            for w in range(WORDS):
                n_matches += count_bits(masks[node, w])
            for at in range(roots.subscription_starts[root], roots.subscription_starts[root + 1]):
                counts[roots.subscriptions[at]] += n_matches


@njit(cache=True, nogil=True)
def count_by_event(roots, masks, is_live, counts):
    """Add the matches of the block to each event's count; counts[BLOCK] of the block."""
    for root in range(len(roots.nodes)):
        node = roots.nodes[root]
        if is_live[node]:
            weight = roots.subscription_starts[root + 1] - roots.subscription_starts[root]
            for w in range(WORDS):
                word = masks[node, w]
                while word != 0:
                    counts[64 * w + lowest_bit(word)] += weight
                    word &= word - np.uint64(1)


@njit(cache=True, nogil=True)
def write_pairs(roots, masks, is_live, offsets, subscriptions):
    """Write each event's subscriptions from its offset on; offsets end where the next begin."""
    for root in range(len(roots.nodes)):
        node = roots.nodes[root]
        if is_live[node]:
            begin, end = roots.subscription_starts[root], roots.subscription_starts[root + 1]
            for w in range(WORDS):
                word = masks[node, w]
                while word != 0:
                    event = 64 * w + lowest_bit(word)
                    for at in range(begin, end):
                        subscriptions[offsets[event]] = roots.subscriptions[at]
                        offsets[event] += 1
                    word &= word - np.uint64(1)
