"""Finds the needed values of JSON events: each byte is read once, other values are passed over.

The scanner accepts only rows that are certainly valid and in which no key is repeated. All others
are odd: the parser in `json_texts` decides about them. So the scanner is never wrong.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.events.json_source import NO_EVENT
from tamis.events.kernels.json_tokens import (
    BACKSLASH,
    CLOSE_BRACE,
    CLOSE_BRACKET,
    COLON,
    COMMA,
    ESCAPED,
    NOWHERE,
    OPEN_BRACE,
    OPEN_BRACKET,
    QUOTE,
    SMALL_U,
    count_before_backslash,
    read_unit,
    scan_literal,
    scan_number,
    scan_string,
    skip_blanks,
)
from tamis.kernels.compiled import kernel
from tamis.kernels.words import load_word, store_word

if TYPE_CHECKING:
    from tamis.kernels.arrays import Int32, Int64, UInt8

# Kinds of values; NULL is as good as no value.
TOKEN_TEXT, TOKEN_ESCAPED, TOKEN_NUMBER, TOKEN_BOOLEAN, TOKEN_LIST, TOKEN_OBJECT = range(6)
N_TOKENS = 6
TOKEN_NULL = 6

MOST_DEPTH = 256
MOST_KEYS = 2048  # of all objects that are open at a time
_N_SLOTS = 4 * MOST_KEYS  # a power of two
_LIST, _SKIPPED = -2, -1  # instead of a node: a list, an object of which nothing is needed
_SMALL_N, _ZERO, _NINE, _MINUS = 110, 48, 57, 45
_PRIME = np.uint64(0x9E3779B97F4A7C15)
_OTHER_PRIME = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)


class NameArrays(NamedTuple):
    """The needed names by object (node 0 is the event), found by a hash of their bytes."""

    slots: Int32  # a power of two of them: a name, or -1
    hashes: np.ndarray  # uint64[n_names]
    nodes: Int32  # [n_names], the object that has the name
    offsets: Int64  # [n_names + 1]
    data: UInt8
    attributes: Int32  # [n_names], or -1
    children: Int32  # [n_names], the node of the object at the name, or -1


class Spans(NamedTuple):
    """The needed values of a batch, row by row: where they are, and what they are."""

    rows: Int32
    attributes: Int32
    kinds: UInt8
    starts: Int64  # without the quotes of a string
    ends: Int64


class OpenObjects(NamedTuple):
    """Scratch: the objects and lists around the current position, and the keys of the objects."""

    nodes: Int32  # [MOST_DEPTH], or _LIST, or _SKIPPED
    spans: Int64  # [MOST_DEPTH], the span that ends with it, or -1
    first_keys: Int64  # [MOST_DEPTH], the number of keys outside it
    keys: Int32  # [MOST_KEYS], the slots of all keys, in the order in which they came
    slots: np.ndarray  # uint64[_N_SLOTS], the hashes of keys, 0 for none


def make_scratch() -> OpenObjects:
    """Scratch for one call."""
    return OpenObjects(
        np.empty(MOST_DEPTH, np.int32),
        np.empty(MOST_DEPTH, np.int64),
        np.empty(MOST_DEPTH, np.int64),
        np.empty(MOST_KEYS, np.int32),
        np.zeros(_N_SLOTS, np.uint64),
    )


# ── names ───────────────────────────────────────────────────────────────────────────────────


@kernel(inline="always")
def load_bytes(data, begin, length):
    """The next bytes, at most eight, as a word that is padded with zeros."""
    if length == 8:
        return load_word(data, begin)
    if begin + 8 <= len(data):
        return load_word(data, begin) & ((np.uint64(1) << np.uint64(8 * length)) - np.uint64(1))
    word = np.uint64(0)
    for place in range(length):
        word |= np.uint64(data[begin + place]) << np.uint64(8 * place)
    return word


@kernel
def hash_bytes(data, begin, end):
    """A hash of all bytes."""
    mixed = np.uint64(end - begin) * _PRIME
    while begin < end:
        length = min(8, end - begin)
        mixed = (mixed ^ load_bytes(data, begin, length)) * _OTHER_PRIME
        mixed ^= mixed >> _HALF
        begin += length
    return mixed


@kernel(inline="always")
def first_slot(mixed, number, n_slots):
    """Where the search for a hash begins; `number` distinguishes equal hashes."""
    return np.int64((mixed + np.uint64(number) * _PRIME) >> np.uint64(20)) & (n_slots - 1)


@kernel
def fill_names(names):
    """Fill the hashes and slots of `names`; the other arrays are given."""
    names.slots[:] = -1
    for name in range(len(names.nodes)):
        mixed = hash_bytes(names.data, names.offsets[name], names.offsets[name + 1])
        names.hashes[name] = mixed
        slot = first_slot(mixed, names.nodes[name], len(names.slots))
        while names.slots[slot] >= 0:
            slot = (slot + 1) & (len(names.slots) - 1)
        names.slots[slot] = name


@kernel
def find_name(data, begin, end, mixed, node, names):
    """The needed name at these bytes, or -1."""
    slot = first_slot(mixed, node, len(names.slots))
    while names.slots[slot] >= 0:
        name = names.slots[slot]
        if names.hashes[name] == mixed and names.nodes[name] == node:
            start = names.offsets[name]
            length = names.offsets[name + 1] - start
            is_equal = length == end - begin
            place = 0
            while is_equal and place < length:
                is_equal = data[begin + place] == names.data[start + place]
                place += 1
            if is_equal:
                return np.int64(name)
        slot = (slot + 1) & (len(names.slots) - 1)
    return np.int64(-1)


@kernel
def add_key(mixed, depth, n_keys, scratch):
    """Remember a key of the object at `depth`; return whether it is new and there was room."""
    if n_keys == MOST_KEYS:
        return False
    key = (mixed + np.uint64(depth) * _PRIME) | np.uint64(1)
    slot = first_slot(mixed, depth, _N_SLOTS)
    while scratch.slots[slot] != 0:
        if scratch.slots[slot] == key:
            return False
        slot = (slot + 1) & (_N_SLOTS - 1)
    scratch.slots[slot] = key
    scratch.keys[n_keys] = slot
    return True


@kernel
def forget_keys(first, n_keys, scratch):
    """Remove the keys from `first` on: the last that were added, so that no search is broken."""
    for key in range(first, n_keys):
        scratch.slots[scratch.keys[key]] = 0


# ── rows ────────────────────────────────────────────────────────────────────────────────────


@kernel(inline="always")
def enter(scratch, depth, node, span, n_keys):
    """Begin an object or a list; `span` is where its end is written, or -1."""
    scratch.nodes[depth] = node
    scratch.spans[depth] = span
    scratch.first_keys[depth] = n_keys


@kernel(inline="always")
def leave(scratch, depth, at, n_keys, spans):
    """End an object or a list; return the number of keys outside it."""
    if scratch.spans[depth] >= 0:
        spans.ends[scratch.spans[depth]] = at
    forget_keys(scratch.first_keys[depth], n_keys, scratch)
    return scratch.first_keys[depth]


@kernel(inline="always")
def add_span(spans, at, row, attribute, kind, start, end):
    """Write one span."""
    spans.rows[at] = row
    spans.attributes[at] = attribute
    spans.kinds[at] = kind
    spans.starts[at] = start
    spans.ends[at] = end


@kernel(inline="always")
def scan_key(data, at, end, depth, n_keys, names, scratch):
    """(position of the value, needed name or -1) of a member of the object at `depth`."""
    if data[at] != QUOTE:
        return NOWHERE, np.int64(-1)
    begin = at + 1
    stop, is_escaped = scan_string(data, begin, end)
    if stop == NOWHERE or is_escaped:
        return NOWHERE, np.int64(-1)
    mixed = hash_bytes(data, begin, stop)
    at = skip_blanks(data, stop + 1, end)
    if at >= end or data[at] != COLON or not add_key(mixed, depth, n_keys, scratch):
        return NOWHERE, np.int64(-1)
    node = scratch.nodes[depth]
    name = find_name(data, begin, stop, mixed, node, names) if node >= 0 else np.int64(-1)
    at = skip_blanks(data, at + 1, end)
    return (at if at < end else NOWHERE), name


@kernel(inline="always")
def scan_scalar(data, at, end):
    """(kind, start, end, position after the value) of a string, a number or a literal."""
    byte = data[at]
    if byte == QUOTE:
        stop, is_escaped = scan_string(data, at + 1, end)
        after = NOWHERE if stop == NOWHERE else stop + 1
        return (TOKEN_ESCAPED if is_escaped else TOKEN_TEXT), at + 1, stop, after
    if _ZERO <= byte <= _NINE or byte == _MINUS:
        stop = scan_number(data, at, end)
        return TOKEN_NUMBER, at, stop, stop
    stop = scan_literal(data, at, end)
    return (TOKEN_NULL if byte == _SMALL_N else TOKEN_BOOLEAN), at, stop, stop


@kernel
def scan_row(data, begin, end, row, names, scratch, spans, n_found):
    """Write the needed values of one row; return the number of all found, or NOWHERE if the row is
    odd.
    """
    at = skip_blanks(data, begin, end)
    if at == end or data[at] != OPEN_BRACE:
        return NOWHERE
    at += 1
    enter(scratch, 0, 0, -1, 0)
    depth, n_keys, is_first = 0, np.int64(0), True
    while depth >= 0:
        at = skip_blanks(data, at, end)
        if at >= end:
            break
        is_list = scratch.nodes[depth] == _LIST
        if data[at] == (CLOSE_BRACKET if is_list else CLOSE_BRACE):
            at += 1
            n_keys = leave(scratch, depth, at, n_keys, spans)
            depth -= 1
            is_first = False
            continue
        if not is_first:
            if data[at] != COMMA:
                break
            at = skip_blanks(data, at + 1, end)
            if at >= end:
                break
        name = np.int64(-1)
        if not is_list:
            at, name = scan_key(data, at, end, depth, n_keys, names, scratch)
            if at == NOWHERE:
                break
            n_keys += 1
        attribute = names.attributes[name] if name >= 0 else -1
        is_first = data[at] == OPEN_BRACE or data[at] == OPEN_BRACKET
        if is_first:
            depth += 1
            if depth == MOST_DEPTH:
                break
            kind = TOKEN_LIST if data[at] == OPEN_BRACKET else TOKEN_OBJECT
            child = names.children[name] if name >= 0 else _SKIPPED
            node = _LIST if kind == TOKEN_LIST else child
            enter(scratch, depth, node, n_found if attribute >= 0 else -1, n_keys)
            start = at
            at = stop = start + 1  # the span is ended when the list or object is
        else:
            kind, start, stop, at = scan_scalar(data, at, end)
            if at == NOWHERE:
                break
        if attribute >= 0 and kind != TOKEN_NULL:
            add_span(spans, n_found, row, attribute, kind, start, stop)
            n_found += 1
    forget_keys(0, n_keys, scratch)
    return n_found if depth < 0 and skip_blanks(data, at, end) == end else NOWHERE


@kernel
def scan_rows(
    data,  # uint8[:]
    starts,  # int64[n_rows], or NO_EVENT
    ends,  # int64[n_rows]
    names,  # NameArrays
    scratch,  # OpenObjects
    spans,  # Spans, output, with room for a span per four bytes
    is_odd,  # bool[n_rows], output
):
    """Write the needed values of all rows that are not odd; return how many there are."""
    n_found = np.int64(0)
    for row in range(len(starts)):
        is_odd[row] = False
        if starts[row] != NO_EVENT:
            n_more = scan_row(data, starts[row], ends[row], row, names, scratch, spans, n_found)
            if n_more == NOWHERE:
                is_odd[row] = True
            else:
                n_found = n_more
    return n_found


# ── texts ───────────────────────────────────────────────────────────────────────────────────


@kernel
def copy_spans(
    data,  # uint8[:]
    spans,  # Spans
    places,  # int64[n], of the chosen spans
    offsets,  # int64[n + 1], output
    copied,  # uint8[:], output, with room for all bytes
):
    """Copy strings and numbers, with escapes replaced by what they stand for; return their size."""
    here = np.int64(0)
    offsets[0] = 0
    for at in range(len(places)):
        start, end = spans.starts[places[at]], spans.ends[places[at]]
        if spans.kinds[places[at]] == TOKEN_ESCAPED:
            here = copy_escaped(data, start, end, copied, here)
        else:
            for byte in range(end - start):
                copied[here + byte] = data[start + byte]
            here += end - start
        offsets[at + 1] = here
    return here


@kernel
def copy_escaped(data, at, end, copied, here):
    """Copy one string that `scan_string` accepted; return the end of the copy.

    Bytes after the copy may be overwritten.
    """
    while at < end:
        # Eight bytes at once: those from a backslash on are copied over.
        if at + 8 <= len(data) and here + 8 <= len(copied):
            word = load_word(data, at)
            n_plain = min(count_before_backslash(word), end - at)
            store_word(copied, here, word)
            at += n_plain
            here += n_plain
            if n_plain == 8 or at == end:
                continue
        if data[at] != BACKSLASH:
            copied[here] = data[at]
            here += 1
            at += 1
        elif data[at + 1] != SMALL_U:
            copied[here] = ESCAPED[data[at + 1]]
            here += 1
            at += 2
        else:
            point = read_unit(data, at, end)
            at += 6
            if 0xD800 <= point <= 0xDFFF:
                point = 0x10000 + ((point - 0xD800) << 10) + read_unit(data, at, end) - 0xDC00
                at += 6
            here = write_character(point, copied, here)
    return here


@kernel
def write_character(point, copied, here):
    """Write a code point as UTF-8; return the position after it."""
    if point < 0x80:
        copied[here] = point
        return here + 1
    if point < 0x800:
        copied[here] = 0xC0 | (point >> 6)
        copied[here + 1] = 0x80 | (point & 0x3F)
        return here + 2
    if point < 0x10000:
        copied[here] = 0xE0 | (point >> 12)
        copied[here + 1] = 0x80 | ((point >> 6) & 0x3F)
        copied[here + 2] = 0x80 | (point & 0x3F)
        return here + 3
    copied[here] = 0xF0 | (point >> 18)
    copied[here + 1] = 0x80 | ((point >> 12) & 0x3F)
    copied[here + 2] = 0x80 | ((point >> 6) & 0x3F)
    copied[here + 3] = 0x80 | (point & 0x3F)
    return here + 4
