"""Finds ids by their hashes."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel

# Of the hash function FNV-1a.
OFFSET = np.uint64(0xCBF29CE484222325)
PRIME = np.uint64(0x100000001B3)


@kernel
def hash_texts(offsets, data, hashes):
    """Write the hash of each text."""
    for at in range(len(hashes)):
        found = OFFSET
        for place in range(offsets[at], offsets[at + 1]):
            found = (found ^ np.uint64(data[place])) * PRIME
        hashes[at] = found


@kernel
def find_texts(
    offsets,  # of the texts to find
    data,
    hashes,
    known_offsets,
    known_data,
    known_hashes,  # ascending
    known_numbers,  # of the text that has each hash
    found,  # output: the number of each text, -1 if it is not known
):
    """Find texts among known ones, which are distinct."""
    for at in range(len(hashes)):
        found[at] = -1
        place = np.searchsorted(known_hashes, hashes[at])
        while place < len(known_hashes) and known_hashes[place] == hashes[at]:
            number = known_numbers[place]
            begin, end = known_offsets[number], known_offsets[number + 1]
            if is_equal(data[offsets[at] : offsets[at + 1]], known_data[begin:end]):
                found[at] = number
                break
            place += 1


@kernel(inline="always")
def is_equal(one, other):
    """Whether two texts are equal."""
    if len(one) != len(other):
        return False
    for at in range(len(one)):
        if one[at] != other[at]:
            return False
    return True
