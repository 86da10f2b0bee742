"""Texts into numbered pieces, by the bytes.

A piece is a word of plain ASCII, or a run of other characters up to the next white space, or a
whole text. Each distinct piece has one number. What words a piece stands for is asked of the
analyser, once for each number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

# Classes of bytes: of ASCII characters as `segment` has them, of white space, and of all others.
OTHER, LETTER, DIGIT, LINK, MID_LETTER, MID_NUMBER, MID_BOTH, SPACE, BEYOND = range(9)


# A row of the table holds all that a short word is told by: one place in memory is looked at.
NUMBER, KEY, HEAD, START, N_FIELDS = range(5)
HEAD_BYTES = 8


class Pieces(NamedTuple):
    """The distinct pieces seen so far."""

    # int64[2 ** k, N_FIELDS]: the piece's number or -1; its length and hash; its first eight bytes;
    # where it begins in the arena.
    table: np.ndarray
    starts: np.ndarray  # int64[:], by number, where each piece's bytes begin; one more than pieces
    arena: np.ndarray  # uint8[:], their bytes
    n_pieces: np.ndarray  # int64[1]


@njit(cache=True, nogil=True, inline="always")
def is_letter(kind):
    """Whether a class of ASCII may stand anywhere in a word."""
    return kind == LETTER or kind == DIGIT or kind == LINK


@njit(cache=True, nogil=True)
def rehash_pieces(old, table):
    """Enter the rows of one table into another, which is empty."""
    mask = len(table) - 1
    for at in range(len(old)):
        if old[at, NUMBER] >= 0:
            slot = old[at, KEY] & mask
            while table[slot, NUMBER] >= 0:
                slot = (slot + 1) & mask
            table[slot] = old[at]


@njit(cache=True, nogil=True, inline="always")
def find_piece(pieces, data, begin, end, lowered):
    """The number of the piece data[begin:end], new or known; there must be room for it."""
    length = end - begin
    head = np.uint64(0)
    for i in range(min(length, HEAD_BYTES)):
        head |= np.uint64(lowered[data[begin + i]]) << np.uint64(8 * i)
    value = head * np.uint64(0x9E3779B97F4A7C15)
    for i in range(HEAD_BYTES, length):
        value = (value ^ np.uint64(lowered[data[begin + i]])) * np.uint64(0x100000001B3)
    key = np.int64(value >> np.uint64(32)) | (length << 32)
    own_head = np.int64(head)
    table = pieces.table
    mask = len(table) - 1
    slot = key & mask
    while table[slot, NUMBER] >= 0:
        if table[slot, KEY] == key and table[slot, HEAD] == own_head:
            start = table[slot, START]
            is_equal = True
            for i in range(HEAD_BYTES, length):
                if lowered[data[begin + i]] != pieces.arena[start + i]:
                    is_equal = False
                    break
            if is_equal:
                return table[slot, NUMBER]
        slot = (slot + 1) & mask
    number = pieces.n_pieces[0]
    start = pieces.starts[number]
    pieces.n_pieces[0] = number + 1
    pieces.starts[number + 1] = start + length
    for i in range(length):
        pieces.arena[start + i] = lowered[data[begin + i]]
    table[slot, NUMBER] = number
    table[slot, KEY] = key
    table[slot, HEAD] = own_head
    table[slot, START] = start
    return number


@njit(cache=True, nogil=True)
def read_pieces(
    first_text,
    offsets,  # int64[n_texts + 1]
    data,  # uint8[:], UTF-8
    kinds,  # uint8[256], the class of each byte
    is_whole,  # whether a text is one piece
    lowered,  # uint8[256], the form of each byte of an ASCII word
    as_it_is,  # uint8[256], the same byte
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
            n_then >= len(pieces.starts)
            or 2 * n_then > len(pieces.table)
            or pieces.starts[pieces.n_pieces[0]] + end - begin > len(pieces.arena)
        ):
            return text
        if is_whole:
            if end > begin:
                found[n_found] = find_piece(pieces, data, begin, end, as_it_is)
                n_found += 1
        else:
            n_found = read_text(data, begin, end, kinds, lowered, as_it_is, pieces, found, n_found)
        ends[text] = n_found
    return len(offsets) - 1


@njit(cache=True, nogil=True, inline="always")
def read_text(data, begin, end, kinds, lowered, as_it_is, pieces, found, n_found):
    """Write the pieces of one text; how many there are then."""
    at = begin
    run, n_before = begin, n_found  # where the run without white space began
    while at < end:
        kind = kinds[data[at]]
        if kind == SPACE:
            at += 1
            run, n_before = at, n_found
        elif kind == BEYOND:
            # The whole run is one piece, in the place of the words that were found in it.
            while at < end and kinds[data[at]] != SPACE:
                at += 1
            found[n_before] = find_piece(pieces, data, run, at, as_it_is)
            n_found = n_before + 1
        elif not is_letter(kind):
            at += 1
        else:
            first = at
            has_core = False
            while at < end:
                kind = kinds[data[at]]
                if kind == LETTER or kind == DIGIT:
                    has_core = True
                elif kind != LINK:
                    # Something in the middle of a word, if both sides are alike.
                    if at + 1 >= end or kind == OTHER or kind == SPACE or kind == BEYOND:
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
            if has_core and (at == end or kinds[data[at]] != BEYOND):
                found[n_found] = find_piece(pieces, data, first, at, lowered)
                n_found += 1
    return n_found
