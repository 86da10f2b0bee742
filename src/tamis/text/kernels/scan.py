"""Cuts texts, as bytes, into numbered pieces.

A piece is a word of plain ASCII, or a run of other characters up to the next white space, or a
whole text. Each distinct piece has one number. The analyser is asked once for the words of each
number.

A text is first cut, then all its pieces are looked up: the table of pieces is far larger than the
cache, and a loop that only reads it overlaps many memory accesses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import kernel

# Classes of bytes: ASCII characters as in `segment`, white space, and all others. The first three
# classes may be anywhere in a word.
LETTER, DIGIT, LINK, OTHER, MID_LETTER, MID_NUMBER, MID_BOTH, SPACE, BEYOND = range(9)


# A row of the table identifies a short word completely: a look-up reads one place in memory.
NUMBER, KEY, HEAD, START, N_FIELDS = range(5)
HEAD_BYTES = 8


class Pieces(NamedTuple):
    """The distinct pieces seen so far."""

    # int64[2 ** k, N_FIELDS]: the piece's number or -1; its length and hash; its first eight bytes;
    # its start in the arena.
    table: np.ndarray
    starts: np.ndarray  # int64[:], start of each piece's bytes by number; one more than pieces
    arena: np.ndarray  # uint8[:], the bytes of all pieces
    n_pieces: np.ndarray  # int64[1]


class Cuts(NamedTuple):
    """The pieces of one text, not yet looked up; room for one piece in two bytes."""

    begins: np.ndarray  # int64[:], positions in the data
    ends: np.ndarray  # int64[:]
    is_plain: np.ndarray  # bool[:], an ASCII word, whose case may be ignored
    keys: np.ndarray  # int64[:], as in the table
    heads: np.ndarray  # int64[:]


@kernel(_nrt=True)
def rehash_pieces(old, table):
    """Insert the rows of one table into another, which is empty."""
    mask = len(table) - 1
    for at in range(len(old)):
        if old[at, NUMBER] >= 0:
            slot = old[at, KEY] & mask
            while table[slot, NUMBER] >= 0:
                slot = (slot + 1) & mask
            table[slot] = old[at]


@kernel(_nrt=True)
def find_piece(pieces, data, begin, end, key, head, form):
    """The number of the piece data[begin:end], which is added if it is new; there must be room."""
    length = end - begin
    table = pieces.table
    mask = len(table) - 1
    slot = key & mask
    while table[slot, NUMBER] >= 0:
        if table[slot, KEY] == key and table[slot, HEAD] == head:
            start = table[slot, START]
            is_equal = True
            for i in range(HEAD_BYTES, length):
                if form[data[begin + i]] != pieces.arena[start + i]:
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
        pieces.arena[start + i] = form[data[begin + i]]
    table[slot, NUMBER] = number
    table[slot, KEY] = key
    table[slot, HEAD] = head
    table[slot, START] = start
    return number


@kernel(_nrt=True)
def read_pieces(
    first_text,
    offsets,  # int64[n_texts + 1]
    data,  # uint8[:], UTF-8
    kinds,  # uint8[256], the class of each byte
    is_whole,  # whether a whole text is one piece
    lowered,  # uint8[256], the form of each byte of an ASCII word
    as_it_is,  # uint8[256], the same byte
    pieces,  # Pieces
    cuts,  # Cuts, scratch
    found,  # int32[:], output: the pieces of all texts, with room for all
    ends,  # int64[n_texts], output: where each text's pieces end
):
    """Write the pieces of texts from `first_text` on while there is room for new ones; return the
    next text.
    """
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
        if not is_whole:
            n_cuts = cut_text(data, begin, end, kinds, cuts)
        else:
            n_cuts = np.int64(begin < end)
            cuts.begins[0], cuts.ends[0], cuts.is_plain[0] = begin, end, False
        hash_pieces(data, n_cuts, lowered, as_it_is, cuts)
        own = found[n_found : n_found + n_cuts]
        find_pieces(pieces, data, cuts, lowered, as_it_is, own)
        n_found += n_cuts
        ends[text] = n_found
    return len(offsets) - 1


@kernel(_nrt=True)
def hash_pieces(data, n_cuts, lowered, as_it_is, cuts):
    """Write the keys and heads of the cut pieces."""
    begins, ends, keys, heads, is_plain = (
        cuts.begins,
        cuts.ends,
        cuts.keys,
        cuts.heads,
        cuts.is_plain,
    )
    for cut in range(n_cuts):
        begin, end = np.uint64(begins[cut]), np.uint64(ends[cut])
        form = lowered if is_plain[cut] else as_it_is
        middle = min(end, begin + np.uint64(HEAD_BYTES))
        head = np.uint64(0)
        at = middle
        while at > begin:
            at -= np.uint64(1)
            head = (head << np.uint64(8)) | np.uint64(form[data[at]])
        value = head * np.uint64(0x9E3779B97F4A7C15)
        at = middle
        while at < end:
            value = (value ^ np.uint64(form[data[at]])) * np.uint64(0x100000001B3)
            at += np.uint64(1)
        keys[cut] = np.int64(value >> np.uint64(32)) | (np.int64(end - begin) << 32)
        heads[cut] = np.int64(head)


@kernel(_nrt=True)
def find_pieces(pieces, data, cuts, lowered, as_it_is, found):
    """Write the numbers of the cut pieces, adding new ones."""
    begins, ends, keys, heads = cuts.begins, cuts.ends, cuts.keys, cuts.heads
    table = pieces.table
    mask = np.uint64(len(table) - 1)
    for cut in range(len(found)):
        found[cut] = table[np.uint64(keys[cut]) & mask, NUMBER]
    for cut in range(len(found)):
        slot = np.uint64(keys[cut]) & mask
        is_found = table[slot, KEY] == keys[cut] and table[slot, HEAD] == heads[cut]
        if not is_found or found[cut] < 0 or ends[cut] - begins[cut] > HEAD_BYTES:
            form = lowered if cuts.is_plain[cut] else as_it_is
            found[cut] = find_piece(
                pieces, data, begins[cut], ends[cut], keys[cut], heads[cut], form
            )


@kernel(_nrt=True)
def cut_text(data, begin, end, kinds, cuts):
    """Write the start and end of each piece of one text; return how many there are."""
    begins, ends, is_plain = cuts.begins, cuts.ends, cuts.is_plain
    at, end = np.uint64(begin), np.uint64(end)
    one = np.uint64(1)
    n_cuts = n_before = np.int64(0)
    run = at  # start of the run without white space
    while at < end:
        kind = kinds[data[at]]
        if kind <= LINK:
            first = at
            has_core = False
            while at < end:
                kind = kinds[data[at]]
                if kind < LINK:
                    has_core = True
                elif kind > LINK and not is_inside(data, at, end, kinds):
                    break
                at += one
            if has_core and (at == end or kind != BEYOND):
                begins[n_cuts], ends[n_cuts], is_plain[n_cuts] = first, at, True
                n_cuts += 1
        elif kind == SPACE:
            at += one
            run, n_before = at, n_cuts
        elif kind == BEYOND:
            # The whole run is one piece; it replaces the words found in it.
            while at < end and kinds[data[at]] != SPACE:
                at += one
            begins[n_before], ends[n_before], is_plain[n_before] = run, at, False
            n_cuts = n_before + 1
        else:
            at += one
    return n_cuts


@kernel(_nrt=True)
def is_inside(data, at, end, kinds):
    """Whether the character belongs to the word around it: both neighbours are of one class."""
    kind = kinds[data[at]]
    if kind < MID_LETTER or kind > MID_BOTH or at + np.uint64(1) >= end:
        return False
    side = kinds[data[at - np.uint64(1)]]
    if side != kinds[data[at + np.uint64(1)]]:
        return False
    return (side == LETTER and kind != MID_NUMBER) or (side == DIGIT and kind != MID_LETTER)
