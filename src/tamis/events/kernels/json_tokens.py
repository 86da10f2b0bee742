"""Reads the tokens of JSON: blanks, strings, numbers and literals.

Each function returns the position after its token, or NOWHERE for anything that is not certainly
valid: the row is then left to the parser in `json_texts`, which decides and describes the error.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.kernels.words import load_word, trailing_zeros

NOWHERE = -1
QUOTE, BACKSLASH, COMMA, COLON = 34, 92, 44, 58
OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET, CLOSE_BRACKET = 123, 125, 91, 93
SMALL_U = 117
_SPACE, _TAB, _LINE_FEED, _RETURN = 32, 9, 10, 13
_MINUS, _PLUS, _POINT, _ZERO, _NINE, _SMALL_E, _BIG_E = 45, 43, 46, 48, 57, 101, 69
_SMALL_T, _SMALL_F, _SMALL_N = 116, 102, 110
_FIRST_PRINTED = 0x20  # control characters below it must be escaped
_FIRST_BEYOND_ASCII = 0x80
# Python refuses integers of very many digits, and numbers beyond a double are a special case of
# parsers: longer numbers and exponents are left to them.
MOST_NUMBER_BYTES = 40
MOST_EXPONENT_DIGITS = 2

_ONES = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_QUOTES = np.uint64(QUOTE) * _ONES
_BACKSLASHES = np.uint64(BACKSLASH) * _ONES
_SPACES = np.uint64(_FIRST_PRINTED) * _ONES
_ZEROS = np.uint64(_ZERO) * _ONES
_ABOVE_NINE = np.uint64(0x80 - 10) * _ONES  # added to a byte of at most nine, the highest bit is 0

TRUE_BYTES = np.frombuffer(b"true", np.uint8)
FALSE_BYTES = np.frombuffer(b"false", np.uint8)
NULL_BYTES = np.frombuffer(b"null", np.uint8)

# What follows a backslash in a string: the byte that it stands for, or 0.
ESCAPED = np.zeros(256, dtype=np.uint8)
for _letter, _meaning in zip(b'"\\/bfnrt', b'"\\/\b\f\n\r\t', strict=True):
    ESCAPED[_letter] = _meaning
# The value of each hexadecimal digit, or 16.
HEX_VALUES = np.full(256, 16, dtype=np.uint8)
for _digits in (b"0123456789abcdef", b"0123456789ABCDEF"):
    for _value, _letter in enumerate(_digits):
        HEX_VALUES[_letter] = _value


@kernel(inline="always")
def skip_blanks(data, at, end):
    """The first position that is not a blank."""
    while at < end and (
        data[at] == _SPACE or data[at] == _LINE_FEED or data[at] == _RETURN or data[at] == _TAB
    ):
        at += 1
    return at


# ── strings ─────────────────────────────────────────────────────────────────────────────────


@kernel(inline="always")
def special_bytes(word):
    """The highest bit of each byte that is a quote, a backslash, a control character or not ASCII.

    The lowest bit that is set is right; a higher one may be set by a borrow from below.
    """
    quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
    found = ((quotes - _ONES) & ~quotes) | ((backslashes - _ONES) & ~backslashes)
    return (found | ((word - _SPACES) & ~word) | word) & _HIGHS


@kernel(inline="always")
def count_before_backslash(word):
    """How many of the eight bytes come before the first backslash: 8 if there is none."""
    backslashes = word ^ _BACKSLASHES
    return trailing_zeros((backslashes - _ONES) & ~backslashes & _HIGHS) >> 3


@kernel
def scan_string(data, at, end):
    """(position of the closing quote, whether there are escapes) of a string that begins before
    `at`.
    """
    is_escaped = False
    while at < end:
        if at + 8 <= len(data):
            special = special_bytes(load_word(data, at))
            if special == 0:
                at += 8
                continue
            at += trailing_zeros(special) >> 3
            if at >= end:
                break
        byte = data[at]
        if byte == QUOTE:
            return at, is_escaped
        if byte == BACKSLASH:
            is_escaped = True
            at = skip_escape(data, at, end)
        elif byte >= _FIRST_BEYOND_ASCII:
            at = skip_character(data, at, end)
        elif byte < _FIRST_PRINTED:
            break
        else:
            at += 1
        if at == NOWHERE:
            break
    return NOWHERE, is_escaped


@kernel
def read_unit(data, at, end):
    r"""The number of an escape \uXXXX, or NOWHERE."""
    if at + 6 > end or data[at] != BACKSLASH or data[at + 1] != SMALL_U:
        return NOWHERE
    unit = np.int64(0)
    for place in range(at + 2, at + 6):
        value = np.int64(HEX_VALUES[data[place]])
        if value == 16:
            return NOWHERE
        unit = 16 * unit + value
    return unit


@kernel
def skip_escape(data, at, end):
    """The position after an escape; a surrogate must be the first of a pair."""
    if at + 1 >= end:
        return NOWHERE
    if data[at + 1] != SMALL_U:
        return at + 2 if ESCAPED[data[at + 1]] != 0 else NOWHERE
    unit = read_unit(data, at, end)
    if unit == NOWHERE:
        return NOWHERE
    if not 0xD800 <= unit <= 0xDFFF:
        return at + 6
    is_pair = unit <= 0xDBFF and 0xDC00 <= read_unit(data, at + 6, end) <= 0xDFFF
    return at + 12 if is_pair else NOWHERE


@kernel(inline="always")
def is_between(data, at, low, high):
    """Whether the byte is in a range."""
    return low <= data[at] <= high


@kernel
def skip_character(data, at, end):
    """The position after a character of several bytes in valid UTF-8 (Unicode, table 3-7)."""
    lead = data[at]
    low, high = 0x80, 0xBF  # of the second byte: no overlong forms, no surrogates
    if 0xC2 <= lead <= 0xDF:
        length = 2
    elif 0xE0 <= lead <= 0xEF:
        length = 3
        low = 0xA0 if lead == 0xE0 else low
        high = 0x9F if lead == 0xED else high
    elif 0xF0 <= lead <= 0xF4:
        length = 4
        low = 0x90 if lead == 0xF0 else low
        high = 0x8F if lead == 0xF4 else high
    else:
        return NOWHERE
    if at + length > end or not is_between(data, at + 1, low, high):
        return NOWHERE
    for place in range(at + 2, at + length):
        if not is_between(data, place, 0x80, 0xBF):
            return NOWHERE
    return at + length


# ── numbers and literals ────────────────────────────────────────────────────────────────────


@kernel(inline="always")
def other_bytes(word):
    """The highest bit of each byte that is not a digit."""
    values = word ^ _ZEROS  # 0 to 9 for digits
    return (((values & ~_HIGHS) + _ABOVE_NINE) | values) & _HIGHS


@kernel(inline="always")
def skip_digits(data, at, end):
    """The first position that is not a digit."""
    while at + 8 <= len(data):
        others = other_bytes(load_word(data, at))
        if others != 0:
            return min(end, at + (trailing_zeros(others) >> 3))
        at += 8
        if at >= end:
            return end
    while at < end and _ZERO <= data[at] <= _NINE:
        at += 1
    return at


@kernel
def scan_number(data, begin, end):
    """The position after a number."""
    at = begin + (data[begin] == _MINUS)
    after = skip_digits(data, at, end)
    if after == at or (data[at] == _ZERO and after > at + 1):
        return NOWHERE
    at = after
    if at < end and data[at] == _POINT:
        after = skip_digits(data, at + 1, end)
        if after == at + 1:
            return NOWHERE
        at = after
    if at < end and (data[at] == _SMALL_E or data[at] == _BIG_E):
        at += 1
        at += at < end and (data[at] == _MINUS or data[at] == _PLUS)
        after = skip_digits(data, at, end)
        if not 0 < after - at <= MOST_EXPONENT_DIGITS:
            return NOWHERE
        at = after
    return at if at - begin <= MOST_NUMBER_BYTES else NOWHERE


@kernel
def scan_literal(data, at, end):
    """The position after `true`, `false` or `null`."""
    if data[at] == _SMALL_T:
        return skip_word(data, at, end, TRUE_BYTES)
    if data[at] == _SMALL_F:
        return skip_word(data, at, end, FALSE_BYTES)
    return skip_word(data, at, end, NULL_BYTES)


@kernel
def skip_word(data, at, end, word):
    """The position after a word."""
    if at + len(word) > end:
        return NOWHERE
    for place in range(len(word)):
        if data[at + place] != word[place]:
            return NOWHERE
    return at + len(word)
