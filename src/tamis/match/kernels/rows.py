"""Rows of eight words: 512 events, one bit each, held in registers.

Written out word by word on purpose: a loop over the words of two rows of one array would check for
overlap at every step, and would go through memory.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

WORDS = 8
ROW = 64 * WORDS  # events


@kernel(inline="always")
def load(rows, at):
    """The row at `at`, which is unsigned: for a signed index Numba would check for negative
    values.
    """
    return (
        rows[at, 0],
        rows[at, 1],
        rows[at, 2],
        rows[at, 3],
        rows[at, 4],
        rows[at, 5],
        rows[at, 6],
        rows[at, 7],
    )


@kernel(inline="always")
def store(rows, at, row):
    """Store a row at `at`."""
    rows[at, 0] = row[0]
    rows[at, 1] = row[1]
    rows[at, 2] = row[2]
    rows[at, 3] = row[3]
    rows[at, 4] = row[4]
    rows[at, 5] = row[5]
    rows[at, 6] = row[6]
    rows[at, 7] = row[7]


@kernel(inline="always")
def fill(word):
    """The row whose words are all `word`."""
    return (word, word, word, word, word, word, word, word)


@kernel(inline="always")
def both(a, b):
    """a & b."""
    return (
        a[0] & b[0],
        a[1] & b[1],
        a[2] & b[2],
        a[3] & b[3],
        a[4] & b[4],
        a[5] & b[5],
        a[6] & b[6],
        a[7] & b[7],
    )


@kernel(inline="always")
def either(a, b):
    """a | b."""
    return (
        a[0] | b[0],
        a[1] | b[1],
        a[2] | b[2],
        a[3] | b[3],
        a[4] | b[4],
        a[5] | b[5],
        a[6] | b[6],
        a[7] | b[7],
    )


@kernel(inline="always")
def one_of(a, b):
    """a ^ b."""
    return (
        a[0] ^ b[0],
        a[1] ^ b[1],
        a[2] ^ b[2],
        a[3] ^ b[3],
        a[4] ^ b[4],
        a[5] ^ b[5],
        a[6] ^ b[6],
        a[7] ^ b[7],
    )


@kernel(inline="always")
def without(a, b):
    """a & ~b."""
    return (
        a[0] & ~b[0],
        a[1] & ~b[1],
        a[2] & ~b[2],
        a[3] & ~b[3],
        a[4] & ~b[4],
        a[5] & ~b[5],
        a[6] & ~b[6],
        a[7] & ~b[7],
    )


@kernel(inline="always")
def has_bit(row):
    """Whether any bit is set."""
    return (((row[0] | row[1]) | (row[2] | row[3])) | ((row[4] | row[5]) | (row[6] | row[7]))) != 0


@kernel(inline="always")
def count_bits(word):
    """The number of set bits of a 64-bit word."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    word = (word & np.uint64(0x3333333333333333)) + (
        (word >> np.uint64(2)) & np.uint64(0x3333333333333333)
    )
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))


@kernel(inline="always")
def lowest_bit(word):
    """The number of the lowest set bit of a word that is not zero."""
    return count_bits((word & (~word + np.uint64(1))) - np.uint64(1))


@kernel
def add_to_counters(planes, first_plane, row):
    """Add 2**first_plane to the counter of each event whose bit is set.

    The counters are bit-sliced: planes[p] holds bit p of all of them. Carries are short, so an
    addition touches two planes on average.
    """
    plane = first_plane
    carry = row
    while has_bit(carry):
        before = load(planes, plane)
        store(planes, plane, one_of(before, carry))
        carry = both(before, carry)
        plane += 1


@kernel
def at_least_count(planes, n_planes, least):
    """The row of events whose counter is at least `least`."""
    is_above = fill(np.uint64(0))
    is_equal = fill(~np.uint64(0))
    for plane in range(n_planes - 1, -1, -1):
        own = load(planes, plane)
        if (least >> plane) & 1:
            is_equal = both(is_equal, own)
        else:
            is_above = either(is_above, both(is_equal, own))
            is_equal = without(is_equal, own)
    return either(is_above, is_equal)
