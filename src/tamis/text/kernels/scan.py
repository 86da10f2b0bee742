"""Texts into numbered pieces, by the bytes.

A piece is a word of plain ASCII, or a run of other characters up to the next white space, or a
whole text. Each distinct piece has one number. What words a piece stands for is asked of the
analyser, once for each number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

# Classes of ASCII characters, as `segment` has them.
OTHER, LETTER, DIGIT, LINK, MID_LETTER, MID_NUMBER, MID_BOTH = range(7)
WHOLE, AS_IS, LOWERED = range(3)  # how pieces are taken: see `read_pieces`


class Pieces(NamedTuple):
    """The distinct pieces seen so far."""

    table: np.ndarray  # int32[2 ** k], numbers of pieces by hash, -1 where empty
    hashes: np.ndarray  # uint32[:], by number
    starts: np.ndarray  # int64[:], where each piece's bytes begin; one more than there are
    arena: np.ndarray  # uint8[:], their bytes
    n_pieces: np.ndarray  # int64[1]


@njit(cache=True, nogil=True, inline="always")
def is_letter(kind):
    """Whether a class of ASCII may stand anywhere in a word."""
    return kind == LETTER or kind == DIGIT or kind == LINK


@njit(cache=True, nogil=True)
def rehash_pieces(pieces):
    """Enter all pieces into an empty table."""
    mask = len(pieces.table) - 1
    for number in range(pieces.n_pieces[0]):
        slot = np.int64(pieces.hashes[number]) & mask
        while pieces.table[slot] >= 0:
            slot = (slot + 1) & mask
        pieces.table[slot] = number


@njit(cache=True, nogil=True)
def find_piece(pieces, data, begin, end, is_lowered):
    """The number of the piece data[begin:end], new or known; there must be room for it."""
    value = np.uint64(2166136261)
    for at in range(begin, end):
        byte = data[at]
        if is_lowered and np.uint8(65) <= byte <= np.uint8(90):
            byte |= np.uint8(32)
        value = ((value ^ np.uint64(byte)) * np.uint64(16777619)) & np.uint64(0xFFFFFFFF)
    value ^= value >> np.uint64(15)
    mask = len(pieces.table) - 1
    slot = np.int64(value) & mask
    length = end - begin
    while pieces.table[slot] >= 0:
        number = pieces.table[slot]
        start = pieces.starts[number]
        if pieces.hashes[number] == value and pieces.starts[number + 1] - start == length:
            is_equal = True
            for i in range(length):
                byte = data[begin + i]
                if is_lowered and np.uint8(65) <= byte <= np.uint8(90):
                    byte |= np.uint8(32)
                if byte != pieces.arena[start + i]:
                    is_equal = False
                    break
            if is_equal:
                return number
        slot = (slot + 1) & mask
    number = pieces.n_pieces[0]
    pieces.n_pieces[0] = number + 1
    pieces.table[slot] = number
    pieces.hashes[number] = value
    start = pieces.starts[number]
    for i in range(length):
        byte = data[begin + i]
        if is_lowered and np.uint8(65) <= byte <= np.uint8(90):
            byte |= np.uint8(32)
        pieces.arena[start + i] = byte
    pieces.starts[number + 1] = start + length
    return np.int32(number)


@njit(cache=True, nogil=True)
def read_pieces(
    first_text,
    offsets,  # int64[n_texts + 1]
    data,  # uint8[:], UTF-8
    kinds,  # uint8[128], the class of each ASCII character
    mode,  # WHOLE: a text is one piece; LOWERED: ASCII words in lower case; AS_IS: as they are
    pieces,  # Pieces
    found,  # int32[:], output: the pieces of all texts; room for all of them
    ends,  # int64[n_texts], output: where each text's pieces end
):
    """Write the pieces of texts from `first_text` on while there is room for new ones; the next
    text."""
    n_found = ends[first_text - 1] if first_text > 0 else np.int64(0)
    for text in range(first_text, len(offsets) - 1):
        begin, end = offsets[text], offsets[text + 1]
        n_then = pieces.n_pieces[0] + (end - begin) // 2 + 1
        if (
            n_then > len(pieces.hashes)
            or 2 * n_then > len(pieces.table)
            or pieces.starts[pieces.n_pieces[0]] + end - begin > len(pieces.arena)
        ):
            return text
        if mode == WHOLE:
            if end > begin:
                found[n_found] = find_piece(pieces, data, begin, end, False)
                n_found += 1
        else:
            n_found = read_text(data, begin, end, kinds, mode == LOWERED, pieces, found, n_found)
        ends[text] = n_found
    return len(offsets) - 1


@njit(cache=True, nogil=True)
def read_text(data, begin, end, kinds, is_lowered, pieces, found, n_found):
    """Write the pieces of one text; how many there are then."""
    at = begin
    while at < end:
        if data[at] <= 32:
            at += 1
            continue
        stop = at
        bits = np.uint8(0)
        while stop < end and data[stop] > 32:
            bits |= data[stop]
            stop += 1
        if bits >= 128:
            found[n_found] = find_piece(pieces, data, at, stop, False)
            n_found += 1
        else:
            n_found = read_ascii(data, at, stop, kinds, is_lowered, pieces, found, n_found)
        at = stop
    return n_found


@njit(cache=True, nogil=True)
def read_ascii(data, at, stop, kinds, is_lowered, pieces, found, n_found):
    """Write the words of a run of ASCII without white space; how many pieces there are then."""
    while at < stop:
        if not is_letter(kinds[data[at]]):
            at += 1
            continue
        begin = at
        has_core = False
        while at < stop:
            kind = kinds[data[at]]
            if kind == LETTER or kind == DIGIT:
                has_core = True
            elif kind != LINK:
                # Something in the middle of a word, if both sides are alike.
                if at + 1 >= stop or kind == OTHER:
                    break
                side = kinds[data[at - 1]]
                if side != kinds[data[at + 1]]:
                    break
                is_inside = (side == LETTER and kind != MID_NUMBER) or (
                    side == DIGIT and kind != MID_LETTER
                )
                if not is_inside:
                    break
            at += 1
        if has_core:
            found[n_found] = find_piece(pieces, data, begin, at, is_lowered)
            n_found += 1
    return n_found
