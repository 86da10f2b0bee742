"""The fast reader: bytes of many expressions into postfix instructions, for the plain part of the
language.

It reads attribute names, comparisons, IN, BETWEEN and IS NULL with plain integers, short decimals
and strings without escapes, joined by AND, OR, NOT, XOR, XNOR, parentheses, xor(…), xnor(…) and
at_least(…). At anything else it gives up on that expression, without judging it, and the parser in
`language` reads it instead: so it needs to be right only about what it accepts.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numba import njit

from tamis.language.tokens import KEYWORDS, REFUSED_WORDS

# Instructions. LEAF's operand is a test; the others take as many operands as they say.
LEAF: Final = 0
NOT: Final = 1
AND: Final = 2
OR: Final = 3
XOR: Final = 4
XNOR: Final = 5
AT_LEAST: Final = 6
_OPEN: Final = 7  # on the stack of operators only
_CALL: Final = 8  # likewise; its operator is kept beside it

# Tests.
EQUAL: Final = 0
NOT_EQUAL: Final = 1
BELOW: Final = 2
AT_MOST: Final = 3
ABOVE: Final = 4
AT_LEAST_VALUE: Final = 5
ONE_OF: Final = 6
NOT_ONE_OF: Final = 7
IS_NULL: Final = 8
IS_NOT_NULL: Final = 9

# Constants.
INTEGER: Final = 0
DECIMAL: Final = 1
TEXT: Final = 2


class Scanned(NamedTuple):
    """What was read, with room for more; the `n_…` arrays hold one number each."""

    operators: np.ndarray  # uint8[:], instructions
    operands: np.ndarray  # int32[:]
    required: np.ndarray  # int32[:], at_least's k
    test_names: np.ndarray  # int32[:], the name tested
    test_kinds: np.ndarray  # uint8[:]
    test_starts: np.ndarray  # int32[:], first constant; one more than tests
    constant_kinds: np.ndarray  # uint8[:]
    constant_values: np.ndarray  # int64[:], the integer; digits of the decimal; start of the text
    constant_sizes: np.ndarray  # int32[:], decimals after the point; bytes of the text
    program_starts: np.ndarray  # int64[n_texts + 1]
    is_left: np.ndarray  # uint8[n_texts], 1 where the expression was left to the parser


class Names(NamedTuple):
    """Attribute names found, in a hash table by their bytes."""

    table: np.ndarray  # int32[power of two], -1 or a name
    starts: np.ndarray  # int64[:], of the first mention, in `arena`
    sizes: np.ndarray  # int32[:]
    arena: np.ndarray  # uint8[:], bytes of all names
    n_names: np.ndarray  # int64[2]: names, bytes used of the arena


class ScanLimits(NamedTuple):
    """Beyond these an expression is left to the parser, which refuses it properly."""

    text_length: int
    depth: int
    predicates: int
    in_list: int
    xor_operands: int


def _word(text: str) -> int:
    packed = 0
    for character in text.encode():
        packed = packed << 8 | character
    return packed


_W_AND: Final = _word("AND")
_W_OR: Final = _word("OR")
_W_NOT: Final = _word("NOT")
_W_XOR: Final = _word("XOR")
_W_XNOR: Final = _word("XNOR")
_W_IN: Final = _word("IN")
_W_IS: Final = _word("IS")
_W_NULL: Final = _word("NULL")
_W_BETWEEN: Final = _word("BETWEEN")
# Words that are no attribute names, or begin something the parser should read.
_RESERVED: Final = np.array(
    [_word(word) for word in sorted(KEYWORDS | REFUSED_WORDS.keys())], dtype=np.uint64
)
_W_AT_LEAST: Final = _word("AT_LEAST")


@njit(cache=True, nogil=True, inline="always")
def is_word_start(byte):
    """A letter or an underscore."""
    return (97 <= byte <= 122) or (65 <= byte <= 90) or byte == 95


@njit(cache=True, nogil=True, inline="always")
def is_digit(byte):
    """0 to 9."""
    return 48 <= byte <= 57


@njit(cache=True, nogil=True, inline="always")
def skip_spaces(data, at, end):
    """The place of the next byte that is not white space."""
    while at < end and (data[at] == 32 or data[at] == 10 or data[at] == 9 or data[at] == 13):
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
def word_end(data, at, end):
    """Where the word that starts at `at` ends."""
    while at < end and (is_word_start(data[at]) or is_digit(data[at])):
        at += 1
    return at


@njit(cache=True, nogil=True, inline="always")
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


@njit(cache=True, nogil=True)
def find_name(data, start, end, names):
    """The number of an attribute name, new or known."""
    mixed = np.uint64(1469598103934665603)
    for at in range(start, end):
        mixed = (mixed ^ np.uint64(data[at])) * np.uint64(1099511628211)
    mask = len(names.table) - 1
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(1)) & mask
    size = end - start
    while names.table[slot] >= 0:
        name = names.table[slot]
        if names.sizes[name] == size:
            own = names.starts[name]
            is_same = True
            for i in range(size):
                if names.arena[own + i] != data[start + i]:
                    is_same = False
                    break
            if is_same:
                return name
        slot = (slot + 1) & mask
    name = names.n_names[0]
    if name == len(names.sizes) or names.n_names[1] + size > len(names.arena):
        return -1  # no room: left to the parser, which needs none
    names.table[slot] = name
    names.starts[name] = names.n_names[1]
    names.sizes[name] = size
    names.arena[names.n_names[1] : names.n_names[1] + size] = data[start:end]
    names.n_names[0] += 1
    names.n_names[1] += size
    return name


@njit(cache=True, nogil=True)
def read_constant(data, at, end, out, n_constants):
    """Read one constant; the place after it, or -1."""
    if at >= end:
        return -1
    if data[at] == 39:  # '
        start = at + 1
        at = start
        while at < end and data[at] != 39:
            if data[at] == 92 or data[at] < 32 or data[at] == 127:
                return -1
            at += 1
        if at >= end or (at + 1 < end and data[at + 1] == 39):
            return -1
        out.constant_kinds[n_constants] = TEXT
        out.constant_values[n_constants] = start
        out.constant_sizes[n_constants] = at - start
        return at + 1
    is_negative = data[at] == 45
    if is_negative:
        at += 1
    first = at
    value = np.int64(0)
    n_after = 0
    has_point = False
    n_digits = 0
    while at < end and (is_digit(data[at]) or (data[at] == 46 and not has_point)):
        if data[at] == 46:
            has_point = True
        else:
            value = value * 10 + np.int64(data[at] - 48)
            n_digits += 1
            n_after += has_point
            if n_digits > 15:
                return -1  # exact in a double, and far from overflow
        at += 1
    if n_digits == 0 or not is_digit(data[first]) or not is_digit(data[at - 1]):
        return -1
    if at < end and (is_word_start(data[at]) or data[at] == 46):
        return -1
    out.constant_kinds[n_constants] = DECIMAL if has_point else INTEGER
    out.constant_values[n_constants] = -value if is_negative else value
    out.constant_sizes[n_constants] = n_after
    return at


@njit(cache=True, nogil=True, inline="always")
def comparison_at(data, at, end):
    """(test, size) of the comparison operator at `at`; (-1, 0) for none or one not read here."""
    byte = data[at]
    following = data[at + 1] if at + 1 < end else 0
    if byte == 61:  # =
        return EQUAL, (2 if following == 61 else 1)
    if byte == 33 and following == 61:  # !=
        return NOT_EQUAL, 2
    if byte == 60:  # <
        if following == 62:
            return NOT_EQUAL, 2
        if following == 61:
            if at + 2 < end and data[at + 2] == 62:
                return -1, 0  # <=>
            return AT_MOST, 2
        return BELOW, 1
    if byte == 62:  # >
        return (AT_LEAST_VALUE, 2) if following == 61 else (ABOVE, 1)
    return -1, 0


@njit(cache=True, nogil=True)
def read_predicate(data, start, end, out, counts, names, in_list):
    """Read one predicate from its attribute's name on; the place after it, or -1.

    `counts` holds the numbers of instructions, tests and constants so far.
    """
    at = word_end(data, start, end)
    while at + 1 < end and data[at] == 46 and is_word_start(data[at + 1]):
        at = word_end(data, at + 1, end)
    name_end = at
    at = skip_spaces(data, at, end)
    if at >= end:
        return -1
    name = find_name(data, start, name_end, names)
    if name < 0:
        return -1
    test, size = comparison_at(data, at, end)
    if test >= 0:
        at = read_constant(data, skip_spaces(data, at + size, end), end, out, counts[2])
        if at < 0:
            return -1
        counts[2] += 1
        add_test(out, counts, name, test)
        return at
    if not is_word_start(data[at]):
        return -1
    after = word_end(data, at, end)
    word = packed_word(data, at, after)
    at = skip_spaces(data, after, end)
    is_negated = False
    if word == _W_IS:
        after = word_end(data, at, end)
        word = packed_word(data, at, after)
        if word == _W_NOT:
            is_negated = True
            at = skip_spaces(data, after, end)
            after = word_end(data, at, end)
            word = packed_word(data, at, after)
        if word != _W_NULL:
            return -1
        add_test(out, counts, name, IS_NOT_NULL if is_negated else IS_NULL)
        return after
    if word == _W_NOT:
        is_negated = True
        after = word_end(data, at, end)
        word = packed_word(data, at, after)
        at = skip_spaces(data, after, end)
    if word == _W_IN:
        at = read_list(data, at, end, out, counts, in_list)
        if at >= 0:
            add_test(out, counts, name, NOT_ONE_OF if is_negated else ONE_OF)
        return at
    if word == _W_BETWEEN:
        return read_bounds(data, at, end, out, counts, name, is_negated)
    return -1


@njit(cache=True, nogil=True)
def read_list(data, at, end, out, counts, in_list):
    """Read the members of an IN list; the place after it, or -1."""
    if at >= end or data[at] != 40:
        return -1
    at += 1
    n_members = 0
    while True:
        at = read_constant(data, skip_spaces(data, at, end), end, out, counts[2])
        if at < 0:
            return -1
        counts[2] += 1
        n_members += 1
        at = skip_spaces(data, at, end)
        if at >= end or n_members > in_list:
            return -1
        if data[at] == 41:
            return at + 1
        if data[at] != 44:
            return -1
        at += 1


@njit(cache=True, nogil=True)
def read_bounds(data, at, end, out, counts, name, is_negated):
    """Read the bounds of BETWEEN as two tests joined by AND; the place after them, or -1."""
    for test in (AT_LEAST_VALUE, AT_MOST):
        at = read_constant(data, at, end, out, counts[2])
        if at < 0:
            return -1
        counts[2] += 1
        add_test(out, counts, name, test)
        if test == AT_LEAST_VALUE:
            at = skip_spaces(data, at, end)
            after = word_end(data, at, end)
            if packed_word(data, at, after) != _W_AND:
                return -1
            at = skip_spaces(data, after, end)
    emit(out, counts, AND, 2, 0)
    if is_negated:
        emit(out, counts, NOT, 1, 0)
    return at


@njit(cache=True, nogil=True, inline="always")
def emit(out, counts, operator, operand, required):
    """Append one instruction."""
    out.operators[counts[0]] = operator
    out.operands[counts[0]] = operand
    out.required[counts[0]] = required
    counts[0] += 1


@njit(cache=True, nogil=True, inline="always")
def add_test(out, counts, name, kind):
    """Append a test whose constants were just read, and the instruction that names it."""
    emit(out, counts, LEAF, counts[1], 0)
    out.test_names[counts[1]] = name
    out.test_kinds[counts[1]] = kind
    counts[1] += 1
    out.test_starts[counts[1]] = counts[2]


@njit(cache=True, nogil=True, inline="always")
def tightness(operator):
    """How tightly an operator on the stack binds; 0 for an opening."""
    if operator == NOT:
        return 4
    if operator == AND:
        return 3
    if operator == XOR or operator == XNOR:
        return 2
    return 1 if operator == OR else 0


@njit(cache=True, nogil=True)
def pop_operators(out, counts, stack, height, least, xor_operands):
    """Emit operators that bind at least as tightly as `least`; the new height, or -1."""
    while height > 0 and tightness(stack[height - 1, 0]) >= least and stack[height - 1, 0] < _OPEN:
        operator, n_operands = stack[height - 1, 0], stack[height - 1, 1]
        if operator == XNOR and n_operands > 2:
            return -1
        if (operator == XOR or operator == XNOR) and n_operands > xor_operands:
            return -1
        emit(out, counts, operator, n_operands, 0)
        height -= 1
    return height


@njit(cache=True, nogil=True, inline="always")
def is_reserved(word):
    """Whether a packed word is no attribute name, or begins what the parser should read."""
    for other in _RESERVED:
        if word == other:
            return True
    return False


@njit(cache=True, nogil=True)
def open_call(data, word, at, end, out, counts, stack, height):
    """Begin xor(, xnor( or at_least(k, with `at` after the parenthesis; the place after, or -1."""
    stack[height, 0] = _CALL
    stack[height, 1] = 1
    if word == _W_XOR or word == _W_XNOR:
        stack[height, 2] = XOR if word == _W_XOR else XNOR
        stack[height, 3] = 0
        return at
    if word != _W_AT_LEAST:
        return -1
    at = read_constant(data, skip_spaces(data, at, end), end, out, counts[2])
    if at < 0 or out.constant_kinds[counts[2]] != INTEGER:
        return -1
    stack[height, 2] = AT_LEAST
    stack[height, 3] = out.constant_values[counts[2]]
    at = skip_spaces(data, at, end)
    return at + 1 if at < end and data[at] == 44 else -1


@njit(cache=True, nogil=True)
def read_operand(data, at, end, out, counts, names, limits, stack, state):
    """Read an opening, a NOT or a predicate; the place after it, or -1."""
    height = state[0]
    if data[at] == 40:  # (
        stack[height, 0] = _OPEN
        at += 1
    elif not is_word_start(data[at]):
        return -1
    else:
        after = word_end(data, at, end)
        word = packed_word(data, at, after)
        following = skip_spaces(data, after, end)
        if word == _W_NOT:
            stack[height, 0] = NOT
            stack[height, 1] = 1
            at = after
        elif following < end and data[following] == 40:
            at = open_call(data, word, following + 1, end, out, counts, stack, height)
            if at < 0:
                return -1
        else:
            state[2] += 1
            state[3] = 0
            if is_reserved(word) or state[2] > limits.predicates:
                return -1
            return read_predicate(data, at, end, out, counts, names, limits.in_list)
    state[0] = height + 1
    state[1] += 1
    return at if state[1] <= limits.depth and height + 2 < len(stack) else -1


@njit(cache=True, nogil=True)
def read_closing(byte, out, counts, limits, stack, state):
    """Close a parenthesis or an operand of a call; whether there is one to close."""
    height = pop_operators(out, counts, stack, state[0], 1, limits.xor_operands)
    if height <= 0:
        return False
    is_call = stack[height - 1, 0] == _CALL
    if byte == 44:  # ,
        stack[height - 1, 1] += 1
        state[0], state[3] = height, 1
        return is_call
    state[0] = height - 1
    state[1] -= 1
    if is_call:
        operator, n_operands, k = stack[height - 1, 2], stack[height - 1, 1], stack[height - 1, 3]
        if operator == AT_LEAST:
            if not 1 <= k <= n_operands:
                return False
        elif n_operands < 2 or n_operands > limits.xor_operands:
            return False
        emit(out, counts, operator, n_operands, k)
    return True


@njit(cache=True, nogil=True)
def read_connective(word, out, counts, limits, stack, state):
    """Read AND, OR, XOR or XNOR; whether it was one and may stand here."""
    if word == _W_AND:
        operator = AND
    elif word == _W_OR:
        operator = OR
    elif word == _W_XOR:
        operator = XOR
    elif word == _W_XNOR:
        operator = XNOR
    else:
        return False
    own = tightness(operator)
    height = pop_operators(out, counts, stack, state[0], own + 1, limits.xor_operands)
    if height < 0:
        return False
    if height > 0 and stack[height - 1, 0] == operator:
        stack[height - 1, 1] += 1
    elif height > 0 and tightness(stack[height - 1, 0]) == own:
        return False  # XOR beside XNOR
    else:
        stack[height, 0] = operator
        stack[height, 1] = 2
        height += 1
    # What was popped is no level any more.
    depth = 0
    for i in range(height):
        depth += stack[i, 0] >= _OPEN or stack[i, 0] == NOT
    state[0], state[1], state[3] = height, depth, 1
    return height < len(stack)


@njit(cache=True, nogil=True)
def read_text(data, at, end, out, counts, names, limits, stack, state):
    """Read one expression; whether it was all read.

    `stack` holds operators: which, how many operands, and for a call its operator and k. `state` is
    the height of the stack, the depth, the number of predicates, and whether an operand is next.
    """
    state[:3] = 0
    state[3] = 1
    while True:
        at = skip_spaces(data, at, end)
        if at >= end:
            break
        byte = data[at]
        if state[3]:
            at = read_operand(data, at, end, out, counts, names, limits, stack, state)
            if at < 0:
                return False
        elif byte == 41 or byte == 44:  # ) ,
            if not read_closing(byte, out, counts, limits, stack, state):
                return False
            at += 1
        elif is_word_start(byte):
            after = word_end(data, at, end)
            word = packed_word(data, at, after)
            if not read_connective(word, out, counts, limits, stack, state):
                return False
            at = after
        else:
            return False
    if state[3]:
        return False
    return pop_operators(out, counts, stack, state[0], 1, limits.xor_operands) == 0


@njit(cache=True, nogil=True)
def scan_texts(
    data,  # uint8[:], the bytes of all texts
    offsets,  # int32[n_texts + 1]
    out,  # Scanned
    names,  # Names
    limits,  # ScanLimits
    stack,  # int64[deepest, 4], scratch
):
    """Read all texts; those not read have no instructions."""
    counts = np.zeros(3, dtype=np.int64)
    state = np.zeros(4, dtype=np.int64)
    for text in range(len(offsets) - 1):
        begin, end = offsets[text], offsets[text + 1]
        n_instructions, n_tests, n_constants = counts[0], counts[1], counts[2]
        is_read = end - begin <= limits.text_length and read_text(
            data, begin, end, out, counts, names, limits, stack, state
        )
        out.is_left[text] = not is_read
        if not is_read:
            counts[0], counts[1], counts[2] = n_instructions, n_tests, n_constants
        out.program_starts[text + 1] = counts[0]
    return counts
