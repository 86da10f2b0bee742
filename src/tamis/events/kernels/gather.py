"""The positions of an Arrow array that are not NULL, and the texts at them."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel


@kernel(_nrt=True)
def find_set_bits(
    bits,  # uint8[:], packed, lowest first
    skipped,  # number of bits before the first
    length,  # number of bits to read
    places,  # int64[number of set bits], output
):
    """Write the positions of the bits that are set."""
    n_found = 0
    at = skipped
    end = skipped + length
    while at < end:
        byte = bits[at >> 3]
        # Most attributes are missing from most events.
        if byte == 0 and at & 7 == 0:
            at += 8
        else:
            if (byte >> (at & 7)) & 1:
                places[n_found] = at - skipped
                n_found += 1
            at += 1


@kernel(_nrt=True)
def pick_offsets(
    offsets,  # int32[n + 1] or int64[n + 1]
    places,  # int64[n_picked], ascending
    picked,  # int64[n_picked + 1], output
):
    """Write the starts of the chosen texts and the end of the last; return whether they are
    contiguous.
    """
    is_tight = True
    stop = np.int64(offsets[places[0]])
    for at in range(len(places)):
        picked[at] = offsets[places[at]]
        is_tight &= picked[at] == stop
        stop = np.int64(offsets[places[at] + 1])
    picked[len(places)] = stop
    return is_tight


@kernel(_nrt=True)
def measure_texts(offsets, places, new_offsets):
    """Write the start of each chosen text when they are concatenated."""
    new_offsets[0] = 0
    for at in range(len(places)):
        place = places[at]
        length = np.int64(offsets[place + 1]) - np.int64(offsets[place])
        new_offsets[at + 1] = new_offsets[at] + length


@kernel(_nrt=True)
def copy_texts(offsets, data, places, new_offsets, new_data):
    """Copy the bytes of the chosen texts."""
    for at in range(len(places)):
        begin = np.int64(offsets[places[at]])
        here = new_offsets[at]
        for byte in range(new_offsets[at + 1] - here):
            new_data[here + byte] = data[begin + byte]
