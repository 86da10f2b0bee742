"""Reads one JSON event: the values that an index needs, as the words of `kernels.single`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.events.kernels.json_scan import (
    TOKEN_BOOLEAN,
    TOKEN_ESCAPED,
    TOKEN_NUMBER,
    TOKEN_TEXT,
    copy_escaped,
    scan_row,
)
from tamis.events.kernels.json_tokens import NOWHERE
from tamis.events.kernels.single import TAG_DOUBLE, TAG_SHIFT
from tamis.kernels.compiled import kernel
from tamis.kernels.records import recall

if TYPE_CHECKING:
    from tamis.events.kernels.json_scan import NameArrays, OpenObjects, Spans
    from tamis.kernels.arrays import Int64, UInt8

# How the values of an attribute are read: values of other tokens, and those of READ_OTHER, are odd.
(
    READ_NOTHING,  # no value is needed
    READ_OTHER,
    READ_TEXT,
    READ_FOLDED,  # a text of which patterns need the lower case: odd unless ASCII
    READ_INTEGER,
    READ_DOUBLE,
    READ_NUMBER,
    READ_BOOLEAN,
) = range(8)

# Indices into JsonSpace.counts.
N_WORDS, N_BYTES, N_DOUBLES, N_ODD = range(4)
N_JSON_COUNTS = 4

_MOST_WHOLE_DIGITS = 18  # that certainly fit 64 bits
_MOST_EXACT_DIGITS = 15  # of a decimal whose double prints as the same decimal
_MINUS, _POINT, _ZERO, _NINE, _SMALL_T = 45, 46, 48, 57, 116
_FIRST_BEYOND_ASCII = 0x80
# Exact as doubles, as are the digits: so the quotient is the nearest double.
POWERS_OF_TEN = np.array([10.0**exponent for exponent in range(_MOST_EXACT_DIGITS + 1)])


class JsonSpace(NamedTuple):
    """Scratch for one event."""

    text: UInt8
    names: NameArrays
    readings: UInt8  # [n_attributes], READ_TEXT, …
    open_objects: OpenObjects
    spans: Spans  # with room for each name
    odd: Int64  # [n_names], spans to parse
    counts: Int64  # [N_JSON_COUNTS]


@kernel
def read_json_event(spaces, events, n_bytes):
    """Write the words of the event in `spaces`, Records of JsonSpace, to `events`, Records of
    EventSpace; return whether that was possible.
    """
    space, event = recall(spaces, 0), recall(events, 0)
    text, spans, counts = space.text, space.spans, space.counts
    counts[:] = 0
    n_spans = scan_row(text, 0, n_bytes, 0, space.names, space.open_objects, spans, 0)
    if n_spans == NOWHERE:
        return False
    for at in range(n_spans):
        reading, kind = space.readings[spans.attributes[at]], spans.kinds[at]
        attribute, start, end = np.int64(spans.attributes[at]), spans.starts[at], spans.ends[at]
        if reading == READ_NOTHING:
            continue
        is_read = False
        if reading == READ_TEXT or reading == READ_FOLDED:
            if kind == TOKEN_TEXT or kind == TOKEN_ESCAPED:
                is_read = add_text(text, start, end, kind, reading, attribute, counts, event)
        elif kind == TOKEN_NUMBER:
            is_read = add_number(text, start, end, reading, attribute, counts, event)
        elif kind == TOKEN_BOOLEAN and reading == READ_BOOLEAN:
            add_word(attribute, counts, event)
            add_word(np.int64(text[start] == _SMALL_T), counts, event)
            is_read = True
        if not is_read:
            space.odd[counts[N_ODD]] = at
            counts[N_ODD] += 1
    return True


@kernel(inline="always")
def add_word(word, counts, event):
    """Append a word."""
    event.words[counts[N_WORDS]] = word
    counts[N_WORDS] += 1


@kernel(inline="always")
def add_double(value, counts, event):
    """Append a double."""
    event.doubles[counts[N_DOUBLES]] = value
    counts[N_DOUBLES] += 1


@kernel
def add_text(text, start, end, kind, reading, attribute, counts, event):
    """Append a text, unless its lower case must be found elsewhere."""
    first = here = counts[N_BYTES]
    if kind == TOKEN_ESCAPED:
        here = copy_escaped(text, start, end, event.data, here)
    else:
        for place in range(end - start):
            event.data[here + place] = text[start + place]
        here += end - start
    if reading == READ_FOLDED:
        for place in range(first, here):
            if event.data[place] >= _FIRST_BEYOND_ASCII:
                return False
    add_word(attribute, counts, event)
    add_word(here - first, counts, event)
    counts[N_BYTES] = here
    return True


@kernel
def add_number(text, start, end, reading, attribute, counts, event):
    """Append an integer or a double that is read exactly; others are odd."""
    is_negative = text[start] == _MINUS
    digits, n_digits, n_after = np.int64(0), 0, -1
    for at in range(start + is_negative, end):
        byte = text[at]
        if byte == _POINT:
            n_after = 0
        elif _ZERO <= byte <= _NINE and n_digits < _MOST_WHOLE_DIGITS:
            digits = 10 * digits + (byte - _ZERO)
            n_digits += 1
            n_after += n_after >= 0
        else:
            return False
    digits = -digits if is_negative else digits
    is_whole = n_after < 0
    if is_whole and (reading == READ_INTEGER or reading == READ_NUMBER):
        add_word(attribute, counts, event)
        add_word(digits, counts, event)
        return True
    if n_digits > _MOST_EXACT_DIGITS or not (reading == READ_DOUBLE or reading == READ_NUMBER):
        return False
    add_word(attribute | (TAG_DOUBLE << TAG_SHIFT), counts, event)
    add_double(digits / POWERS_OF_TEN[max(n_after, 0)], counts, event)
    return True
