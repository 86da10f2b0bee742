"""Numbers equal texts, so that each distinct one is examined once."""

from __future__ import annotations

import numpy as np

from tamis.events.kernels.json_scan import load_bytes
from tamis.kernels.compiled import kernel
from tamis.kernels.words import load_word

_PRIME = np.uint64(0x9E3779B97F4A7C15)
_OTHER_PRIME = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_WORD = 8  # bytes


@kernel(inline="always")
def mix(mixed, word):
    """A hash with one more word."""
    mixed = (mixed ^ word) * _OTHER_PRIME
    return mixed ^ (mixed >> _HALF)


@kernel
def hash_text(data, begin, end):
    """A hash of all bytes; four words at once, since each hash waits for the one before."""
    one = np.uint64(end - begin) * _PRIME
    two, three, four = one, one, one
    while begin + 4 * _WORD <= end:
        one = mix(one, load_word(data, begin))
        two = mix(two, load_word(data, begin + _WORD))
        three = mix(three, load_word(data, begin + 2 * _WORD))
        four = mix(four, load_word(data, begin + 3 * _WORD))
        begin += 4 * _WORD
    one = mix(mix(mix(one, two), three), four)
    while begin < end:
        length = min(_WORD, end - begin)
        one = mix(one, load_bytes(data, begin, length))
        begin += length
    return one


@kernel
def are_equal(data, begin, other, length):
    """Whether two texts of one length are equal."""
    at = 0
    while at + _WORD <= length:
        if load_word(data, begin + at) != load_word(data, other + at):
            return False
        at += _WORD
    while at < length:
        if data[begin + at] != data[other + at]:
            return False
        at += 1
    return True


@kernel
def number_texts(
    offsets,  # int64[n_texts + 1]
    data,  # uint8[:]
    places,  # int64[n], the texts to be numbered
    slots,  # int64[:], scratch: a power of two above n, all -1
    hashes,  # uint64[n], scratch
    firsts,  # int64[n], output: the first place of each distinct text
    numbers,  # int32[n], output: the number of each text
):
    """Number the texts in the order in which they come; return how many are distinct."""
    n_distinct = 0
    mask = np.uint64(len(slots) - 1)
    for at in range(len(places)):
        begin = offsets[places[at]]
        length = offsets[places[at] + 1] - begin
        mixed = hash_text(data, begin, begin + length)
        slot = (mixed >> _HALF) & mask
        number = slots[slot]
        while number >= 0:
            first = offsets[firsts[number]]
            if (
                hashes[number] == mixed
                and offsets[firsts[number] + 1] - first == length
                and are_equal(data, begin, first, length)
            ):
                break
            slot = (slot + np.uint64(1)) & mask
            number = slots[slot]
        if number < 0:
            number = n_distinct
            slots[slot] = number
            hashes[number] = mixed
            firsts[number] = places[at]
            n_distinct += 1
        numbers[at] = number
    return n_distinct
