"""Lower case of ASCII characters, eight at a time."""

from __future__ import annotations

from typing import Final

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.kernels.words import load_word, store_word

_BIG_A: Final = 65
_BIG_Z: Final = 90
_TO_LOWER: Final = 32
_FIRST_BEYOND_ASCII: Final = 0x80
_WORD: Final = 8  # bytes
_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
# Added to a byte below 0x80, they set the highest bit of those from A on, and of those above Z.
_FROM_A = np.uint64(0x80 - _BIG_A) * _ONES
_ABOVE_Z = np.uint64(0x7F - _BIG_Z) * _ONES
_TO_THE_CASE_BIT = np.uint64(2)  # from the highest bit to that of 32


@kernel(inline="always")
def fold_word(word):
    """Eight bytes with the ASCII characters among them in lower case."""
    low = word & ~_HIGHS
    is_big = ((low + _FROM_A) ^ (low + _ABOVE_Z)) & ~word & _HIGHS
    return word | (is_big >> _TO_THE_CASE_BIT)


@kernel
def fold_text(text, begin, end, folded, here):
    """Write one text, ASCII characters in lower case; return whether it is all ASCII."""
    bits, rest = np.uint64(0), np.uint8(0)
    length = end - begin
    at = np.int64(0)
    while at + _WORD <= length:
        word = load_word(text, begin + at)
        bits |= word
        store_word(folded, here + at, fold_word(word))
        at += _WORD
    while at < length:
        byte = text[begin + at]
        rest |= byte
        folded[here + at] = byte + np.uint8(_BIG_A <= byte <= _BIG_Z) * np.uint8(_TO_LOWER)
        at += 1
    return bits & _HIGHS == 0 and rest < _FIRST_BEYOND_ASCII


@kernel
def fold_texts(
    text,  # uint8[:]
    begins,  # int64[n_texts]
    ends,  # int64[n_texts]
    folded,  # uint8[:], output: the texts one after another
    starts,  # int64[n_texts + 1], output: where they are
):
    """The same for many texts."""
    is_ascii = True
    here = np.int64(0)
    starts[0] = 0
    for own in range(len(begins)):
        is_ascii &= fold_text(text, begins[own], ends[own], folded, here)
        here += ends[own] - begins[own]
        starts[own + 1] = here
    return is_ascii
