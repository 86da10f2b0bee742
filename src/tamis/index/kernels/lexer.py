"""The lexer of the fast reader: words, operators and constants in the bytes of an expression.

Functions take bytes and return numbers, so that calls are cheap. The place -1 means that the fast
reader cannot read the text.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.language.comparators import Comparator

# Constants.
CONSTANT_INTEGER: Final = 0
CONSTANT_DECIMAL: Final = 1
CONSTANT_TEXT: Final = 2
CONSTANT_ESCAPED: Final = 3  # a text that needs decoding: the whole token, with its quotes

# Tests.
IS_EQUAL: Final = Comparator.EQUAL.code
IS_NOT_EQUAL: Final = Comparator.NOT_EQUAL.code
IS_BELOW: Final = Comparator.BELOW.code
IS_AT_MOST: Final = Comparator.AT_MOST.code
IS_ABOVE: Final = Comparator.ABOVE.code
IS_AT_LEAST: Final = Comparator.AT_LEAST.code
_N_COMPARATORS: Final = len(Comparator)
IN_LIST: Final = _N_COMPARATORS
NOT_IN_LIST: Final = _N_COMPARATORS + 1
IS_NULL: Final = _N_COMPARATORS + 2
IS_NOT_NULL: Final = _N_COMPARATORS + 3
LIKE: Final = _N_COMPARATORS + 4  # this and all later ones search for a pattern
ILIKE: Final = _N_COMPARATORS + 5
RLIKE: Final = _N_COMPARATORS + 6
STARTSWITH: Final = _N_COMPARATORS + 7
ENDSWITH: Final = _N_COMPARATORS + 8
CONTAINS: Final = _N_COMPARATORS + 9
N_TEST_CODES: Final = CONTAINS + 1


class NameTable(NamedTuple):
    """Attribute names found, in a hash table by their bytes."""

    table: np.ndarray  # int32[power of two], -1 or a name
    starts: np.ndarray  # int64[:], in `arena`; one more than names
    arena: np.ndarray  # uint8[:], bytes of all names
    n_names: np.ndarray  # int64[1]


def pack_word(text: str) -> int:
    """A word of at most eight letters as a number; see `packed_word`."""
    packed = 0
    for character in text.encode():
        packed = packed << 8 | character
    return packed


_W_ARTSWITH: Final = pack_word("ARTSWITH")
_W_ENDSWITH: Final = pack_word("ENDSWITH")
_W_CONTAINS: Final = pack_word("CONTAINS")
_OTHER: Final = np.uint8(0)
_WORD_START: Final = np.uint8(1)
_DIGIT: Final = np.uint8(2)
_SPACE: Final = np.uint8(4)


def _classify(byte: int) -> np.uint8:
    character = chr(byte)
    if character.isascii() and (character.isalpha() or character == "_"):
        return _WORD_START
    if "0" <= character <= "9":
        return _DIGIT
    return _SPACE if character in " \n\t\r" else _OTHER


_CLASSES: Final = np.array([_classify(byte) for byte in range(256)], dtype=np.uint8)


@kernel(inline="always")
def is_word_start(byte):
    """A letter or an underscore."""
    return _CLASSES[byte] == _WORD_START


@kernel(inline="always")
def is_name_start(byte):
    """A letter, an underscore or a backtick."""
    return _CLASSES[byte] == _WORD_START or byte == 96


@kernel(inline="always")
def is_digit(byte):
    """0 to 9."""
    return 48 <= byte <= 57


@kernel
def skip_spaces(data, at, end):
    """The place of the next byte that is not white space."""
    while at < end and _CLASSES[data[at]] == _SPACE:
        at += 1
    return at


@kernel
def word_end(data, at, end):
    """Where the word that starts at `at` ends."""
    while at < end and _CLASSES[data[at]] & (_WORD_START | _DIGIT):
        at += 1
    return at


@kernel
def packed_word(data, start, end):
    """A word of at most eight bytes in upper case, as a number; 0 for longer ones."""
    if end - start > 8:
        return np.uint64(0)
    packed = np.uint64(0)
    for at in range(start, end):
        byte = data[at]
        if 97 <= byte <= 122:
            byte -= 32
        packed = (packed << np.uint64(8)) | np.uint64(byte)
    return packed


@kernel
def text_function(data, start, end):
    """The test that a function of this name performs; -1 for other names."""
    if end - start == 8:
        word = packed_word(data, start, end)
        if word == _W_ENDSWITH:
            return ENDSWITH
        return CONTAINS if word == _W_CONTAINS else -1
    if end - start == 10 and packed_word(data, start + 2, end) == _W_ARTSWITH:
        is_st = (data[start] | 32) == 115 and (data[start + 1] | 32) == 116
        return STARTSWITH if is_st else -1
    return -1


@kernel
def find_name(data, start, end, names):
    """The number of an attribute name, new or known; -1 if there is no room for a new one."""
    mixed = np.uint64(1469598103934665603)
    for at in range(start, end):
        mixed = (mixed ^ np.uint64(data[at])) * np.uint64(1099511628211)
    mask = len(names.table) - 1
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(1)) & mask
    size = end - start
    while names.table[slot] >= 0:
        name = names.table[slot]
        own = names.starts[name]
        if names.starts[name + 1] - own == size:
            is_same = True
            for i in range(size):
                if names.arena[own + i] != data[start + i]:
                    is_same = False
                    break
            if is_same:
                return np.int64(name)
        slot = (slot + 1) & mask
    name = names.n_names[0]
    own = names.starts[name]
    if name + 1 == len(names.starts) or own + size > len(names.arena):
        return np.int64(-1)
    names.table[slot] = name
    for i in range(size):
        names.arena[own + i] = data[start + i]
    names.starts[name + 1] = own + size
    names.n_names[0] += 1
    return name


@kernel
def read_constant(data, at, end):
    """(kind, value, size, the place after it) of a constant.

    The value is the integer, the digits of the decimal, or the start of the text. The size is the
    number of digits after the point, or of the bytes of the text.
    """
    if at < end and data[at] == 39:  # '
        return read_quoted(data, at, end)
    if at + 1 < end and (data[at] | 32) == 114 and data[at + 1] == 39:  # r'
        return read_raw(data, at, end)
    return read_number(data, at, end)


@kernel
def read_quoted(data, start, end):
    """A text in quotes, for `read_constant`."""
    at = start + 1
    is_plain = True
    while at < end:
        byte = data[at]
        if byte == 39:
            if at + 1 >= end or data[at + 1] != 39:
                if is_plain:
                    return CONSTANT_TEXT, start + 1, at - start - 1, at + 1
                return CONSTANT_ESCAPED, start, at + 1 - start, at + 1
            is_plain = False
            at += 2
        elif byte == 92:
            is_plain = False
            at += 2
        elif byte < 32 or byte == 127:
            break
        else:
            at += 1
    return CONSTANT_TEXT, start, start, -1


@kernel
def read_raw(data, start, end):
    """A raw text, for `read_constant`."""
    at = start + 2
    while at < end and data[at] >= 32 and data[at] != 127:
        if data[at] == 39:
            return CONSTANT_TEXT, start + 2, at - start - 2, at + 1
        at += 1
    return CONSTANT_TEXT, start, start, -1


@kernel
def read_number(data, at, end):
    """A number of at most 15 digits, for `read_constant`."""
    is_negative = at < end and data[at] == 45
    at += is_negative
    first = at
    value = np.int64(0)
    n_digits = 0
    n_after = 0
    has_point = False
    # 15 digits are exact in a double, and far from overflow.
    while at < end and n_digits <= 15:
        byte = data[at]
        if is_digit(byte):
            value = value * 10 + np.int64(byte - 48)
            n_digits += 1
            n_after += has_point
        elif byte == 46 and not has_point:
            has_point = True
        else:
            break
        at += 1
    is_whole = 0 < n_digits <= 15 and is_digit(data[first]) and is_digit(data[at - 1])
    if not is_whole or (at < end and (is_word_start(data[at]) or data[at] == 46)):
        return CONSTANT_INTEGER, first, first, -1
    token = CONSTANT_DECIMAL if has_point else CONSTANT_INTEGER
    return token, (-value if is_negative else value), n_after, at


@kernel
def comparison_at(data, at, end):
    """(test, size) of the comparison operator at `at`; (-1, 0) if there is none, or for `<=>`."""
    byte = data[at]
    following = data[at + 1] if at + 1 < end else 0
    if byte == 61:  # =
        return IS_EQUAL, (2 if following == 61 else 1)
    if byte == 33 and following == 61:  # !=
        return IS_NOT_EQUAL, 2
    if byte == 60:  # <
        if following == 62:
            return IS_NOT_EQUAL, 2
        if following == 61:
            if at + 2 < end and data[at + 2] == 62:
                return -1, 0  # <=>
            return IS_AT_MOST, 2
        return IS_BELOW, 1
    if byte == 62:  # >
        return (IS_AT_LEAST, 2) if following == 61 else (IS_ABOVE, 1)
    return -1, 0
