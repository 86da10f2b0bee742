"""The fast reader: converts the bytes of many expressions to postfix instructions.

It reads the plain part of the language: attribute names (in backticks too), comparisons, IN,
BETWEEN, IS NULL and patterns with plain integers, short decimals and strings, combined by AND, OR,
NOT, XOR, XNOR, parentheses, xor(…), xnor(…) and at_least(…). It leaves every other expression to
the parser in `language`, and never reports an error itself: so it must be correct only about what
it accepts.

Functions called from one place are inlined: passing all these arrays would cost more than reading.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tamis.index.kernels.lexer import (
    CONSTANT_INTEGER,
    CONSTANT_TEXT,
    ILIKE,
    IN_LIST,
    IS_AT_LEAST,
    IS_AT_MOST,
    IS_NOT_NULL,
    IS_NULL,
    LIKE,
    NOT_IN_LIST,
    RLIKE,
    comparison_at,
    find_name,
    is_name_start,
    is_word_start,
    pack_word,
    packed_word,
    read_constant,
    skip_spaces,
    text_function,
    word_end,
)
from tamis.kernels.compiled import kernel
from tamis.language.tokens import KEYWORDS, REFUSED_WORDS

# Steps of a program. The operand of a leaf is a test; of the others, the number of operands.
STEP_LEAF: Final = 0
STEP_NOT: Final = 1
STEP_AND: Final = 2
STEP_OR: Final = 3
STEP_XOR: Final = 4
STEP_XNOR: Final = 5
STEP_AT_LEAST: Final = 6
_OPEN: Final = 7  # on the stack of operators only
_CALL: Final = 8  # likewise; its operator is stored next to it


class Scanned(NamedTuple):
    """The instructions, tests and constants that were read, with room for more."""

    operators: np.ndarray  # uint8[:], instructions
    operands: np.ndarray  # int32[:]
    required: np.ndarray  # int32[:], at_least's k
    test_names: np.ndarray  # int32[:], the name tested
    test_kinds: np.ndarray  # uint8[:]
    test_starts: np.ndarray  # int32[:], first constant; one more than tests
    constant_kinds: np.ndarray  # uint8[:]
    constant_values: np.ndarray  # int64[:], see `lexer.read_constant`
    constant_sizes: np.ndarray  # int32[:]
    program_starts: np.ndarray  # int64[n_texts + 1], first instruction
    program_tests: np.ndarray  # int64[n_texts + 1], first test
    is_left: np.ndarray  # uint8[n_texts], 1 where the expression was left to the parser


class ScanLimits(NamedTuple):
    """An expression beyond these limits is left to the parser, which reports the error."""

    text_length: int
    depth: int
    predicates: int
    in_list: int
    xor_operands: int


_W_AND: Final = pack_word("AND")
_W_OR: Final = pack_word("OR")
_W_NOT: Final = pack_word("NOT")
_W_XOR: Final = pack_word("XOR")
_W_XNOR: Final = pack_word("XNOR")
_W_IN: Final = pack_word("IN")
_W_IS: Final = pack_word("IS")
_W_NULL: Final = pack_word("NULL")
_W_BETWEEN: Final = pack_word("BETWEEN")
_W_LIKE: Final = pack_word("LIKE")
_W_ILIKE: Final = pack_word("ILIKE")
_W_RLIKE: Final = pack_word("RLIKE")
_W_AT_LEAST: Final = pack_word("AT_LEAST")
_BACKTICK: Final = 96
_MOST_STEPS: Final = 16  # of a path; the parser reads longer ones
# Words that are not attribute names, or begin something that the parser must read.
_RESERVED: Final = np.array(
    [pack_word(word) for word in sorted(KEYWORDS | REFUSED_WORDS.keys())], dtype=np.uint64
)


@kernel(inline="always")
def emit(out, counts, operator, operand, required):
    """Append one instruction."""
    out.operators[counts[0]] = operator
    out.operands[counts[0]] = operand
    out.required[counts[0]] = required
    counts[0] += 1


@kernel(inline="always")
def add_constant(out, counts, kind, value, size):
    """Append a constant of the next test."""
    out.constant_kinds[counts[2]] = kind
    out.constant_values[counts[2]] = value
    out.constant_sizes[counts[2]] = size
    counts[2] += 1


@kernel(inline="always")
def add_test(out, counts, name, kind):
    """Append a test whose constants were just read, and the instruction that names it."""
    emit(out, counts, STEP_LEAF, counts[1], 0)
    out.test_names[counts[1]] = name
    out.test_kinds[counts[1]] = kind
    counts[1] += 1
    out.test_starts[counts[1]] = counts[2]


@kernel
def is_reserved(word):
    """Whether a packed word is not an attribute name, or begins what the parser must read."""
    for other in _RESERVED:
        if word == other:
            return True
    return False


@kernel
def name_end(data, at, end):
    """Where the attribute name that starts at `at` ends, the names of its fields included.

    -1 for what the parser must read: keywords, backticks inside a name, very long paths.
    """
    for _ in range(_MOST_STEPS):
        start = at
        if data[at] == _BACKTICK:
            at += 1
            while at < end and data[at] != _BACKTICK and data[at] >= 32 and data[at] != 127:
                at += 1
            if at >= end or data[at] != _BACKTICK or at == start + 1:
                return -1
            at += 1
            if at < end and data[at] == _BACKTICK:
                return -1
        else:
            at = word_end(data, at, end)
            if is_reserved(packed_word(data, start, at)):
                return -1
        if at + 1 >= end or data[at] != 46 or not is_name_start(data[at + 1]):
            return at
        at += 1
    return -1


@kernel
def test_at(data, at, end):
    """(test, whether negated, the place after) of the operator of a predicate.

    IN_LIST is followed by a list, IS_AT_LEAST written as a word by two bounds (`has_bounds`).
    """
    test, size = comparison_at(data, at, end)
    if test >= 0:
        return test, False, False, at + size
    after = word_end(data, at, end)
    word = packed_word(data, at, after)
    is_null_test = word == _W_IS
    is_negated = False
    if is_null_test or word == _W_NOT:
        is_negated = not is_null_test
        at = skip_spaces(data, after, end)
        after = word_end(data, at, end)
        word = packed_word(data, at, after)
        if is_null_test and word == _W_NOT:
            is_negated = True
            at = skip_spaces(data, after, end)
            after = word_end(data, at, end)
            word = packed_word(data, at, after)
    if is_null_test:
        test = (IS_NOT_NULL if is_negated else IS_NULL) if word == _W_NULL else -1
        return test, False, False, after
    if word == _W_IN:
        return (NOT_IN_LIST if is_negated else IN_LIST), False, False, after
    if word == _W_BETWEEN:
        return IS_AT_LEAST, is_negated, True, after
    if word == _W_LIKE:
        return LIKE, is_negated, False, after
    if word == _W_ILIKE:
        return ILIKE, is_negated, False, after
    return (RLIKE if word == _W_RLIKE else -1), is_negated, False, after


@kernel(inline="always")
def read_predicate(data, start, end, out, counts, names, in_list):
    """Read one predicate from its attribute's name on; return the place after it, or -1.

    `counts` holds the numbers of instructions, tests and constants so far.
    """
    at = name_end(data, start, end)
    if at < 0:
        return -1
    name = find_name(data, start, at, names)
    at = skip_spaces(data, at, end)
    if at >= end or name < 0:
        return -1
    test, is_negated, has_bounds, at = test_at(data, at, end)
    if test < 0:
        return -1
    if test != IS_NULL and test != IS_NOT_NULL:
        is_list = test == IN_LIST or test == NOT_IN_LIST
        at = skip_spaces(data, at, end)
        if is_list:
            if at >= end or data[at] != 40:
                return -1
            at += 1
        n_members = 0
        while True:
            kind, value, size, at = read_constant(data, skip_spaces(data, at, end), end)
            if at < 0 or (test >= LIKE and kind < CONSTANT_TEXT):
                return -1
            add_constant(out, counts, kind, value, size)
            n_members += 1
            if not is_list and not has_bounds:
                break
            at = skip_spaces(data, at, end)
            if has_bounds:
                if n_members == 2:
                    break
                add_test(out, counts, name, IS_AT_LEAST)
                test = IS_AT_MOST
                after = word_end(data, at, end)
                if packed_word(data, at, after) != _W_AND:
                    return -1
                at = after
            else:
                if at >= end or n_members > in_list:
                    return -1
                at += 1
                if data[at - 1] == 41:
                    break
                if data[at - 1] != 44:
                    return -1
    add_test(out, counts, name, test)
    if has_bounds:
        emit(out, counts, STEP_AND, 2, 0)
    if is_negated:
        emit(out, counts, STEP_NOT, 1, 0)
    return at


@kernel(inline="always")
def read_function(data, at, end, out, counts, names, test):
    """Read startswith(name, 'text') and similar calls; return the place after it, or -1."""
    start = skip_spaces(data, at, end)
    if start >= end or not is_name_start(data[start]):
        return -1
    at = name_end(data, start, end)
    if at < 0:
        return -1
    name = find_name(data, start, at, names)
    at = skip_spaces(data, at, end)
    if name < 0 or at >= end or data[at] != 44:
        return -1
    kind, value, size, at = read_constant(data, skip_spaces(data, at + 1, end), end)
    if at < 0 or kind < CONSTANT_TEXT:
        return -1
    at = skip_spaces(data, at, end)
    if at >= end or data[at] != 41:
        return -1
    add_constant(out, counts, kind, value, size)
    add_test(out, counts, name, test)
    return at + 1


@kernel(inline="always")
def tightness(operator):
    """How tightly an operator on the stack binds; 0 for an opening."""
    if operator == STEP_NOT:
        return 4
    if operator == STEP_AND:
        return 3
    if operator == STEP_XOR or operator == STEP_XNOR:
        return 2
    return 1 if operator == STEP_OR else 0


@kernel(inline="always")
def pop_operators(out, counts, stack, height, least, xor_operands):
    """Emit operators that bind at least as tightly as `least`; return the new height, or -1."""
    while height > 0 and tightness(stack[height - 1, 0]) >= least and stack[height - 1, 0] < _OPEN:
        operator, n_operands = stack[height - 1, 0], stack[height - 1, 1]
        if operator == STEP_XNOR and n_operands > 2:
            return -1
        if (operator == STEP_XOR or operator == STEP_XNOR) and n_operands > xor_operands:
            return -1
        emit(out, counts, operator, n_operands, 0)
        height -= 1
    return height


@kernel
def open_call(data, word, at, end):
    """(operator, k, the place after k) of a call whose opening parenthesis is before `at`."""
    if word == _W_XOR or word == _W_XNOR:
        return (STEP_XOR if word == _W_XOR else STEP_XNOR), np.int64(0), at
    if word != _W_AT_LEAST:
        return STEP_AT_LEAST, np.int64(0), -1
    kind, k, _, at = read_constant(data, skip_spaces(data, at, end), end)
    if at < 0 or kind != CONSTANT_INTEGER:
        return STEP_AT_LEAST, k, -1
    at = skip_spaces(data, at, end)
    return STEP_AT_LEAST, k, (at + 1 if at < end and data[at] == 44 else -1)


@kernel(inline="always")
def read_operand(data, at, end, out, counts, names, limits, stack, state):
    """Read an opening, a NOT or a predicate; return the place after it, or -1."""
    height = state[0]
    if data[at] == 40:  # (
        stack[height, 0] = _OPEN
        at += 1
    elif data[at] == _BACKTICK:
        state[2] += 1
        state[3] = 0
        if state[2] > limits.predicates:
            return -1
        return read_predicate(data, at, end, out, counts, names, limits.in_list)
    elif not is_word_start(data[at]):
        return -1
    else:
        after = word_end(data, at, end)
        word = packed_word(data, at, after)
        following = skip_spaces(data, after, end)
        is_call = following < end and data[following] == 40
        test = text_function(data, at, after) if is_call else -1
        if word == _W_NOT:
            stack[height, 0] = STEP_NOT
            stack[height, 1] = 1
            at = after
        elif is_call and test < 0:
            operator, k, at = open_call(data, word, following + 1, end)
            if at < 0:
                return -1
            stack[height, 0], stack[height, 1] = _CALL, 1
            stack[height, 2], stack[height, 3] = operator, k
        else:
            state[2] += 1
            state[3] = 0
            if state[2] > limits.predicates:
                return -1
            if is_call:
                return read_function(data, following + 1, end, out, counts, names, test)
            return read_predicate(data, at, end, out, counts, names, limits.in_list)
    state[0] = height + 1
    state[1] += 1
    return at if state[1] <= limits.depth and height + 2 < len(stack) else -1


@kernel(inline="always")
def read_closing(byte, out, counts, limits, stack, state):
    """Close a parenthesis or an operand of a call; return whether there is one to close."""
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
        if operator == STEP_AT_LEAST:
            if not 1 <= k <= n_operands:
                return False
        elif n_operands < 2 or n_operands > limits.xor_operands:
            return False
        emit(out, counts, operator, n_operands, k)
    return True


@kernel(inline="always")
def read_connective(word, out, counts, limits, stack, state):
    """Read AND, OR, XOR or XNOR; return whether it is one of them and allowed here."""
    if word == _W_AND:
        operator = STEP_AND
    elif word == _W_OR:
        operator = STEP_OR
    elif word == _W_XOR:
        operator = STEP_XOR
    elif word == _W_XNOR:
        operator = STEP_XNOR
    else:
        return False
    own = tightness(operator)
    height = pop_operators(out, counts, stack, state[0], own + 1, limits.xor_operands)
    if height < 0:
        return False
    if height > 0 and stack[height - 1, 0] == operator:
        stack[height - 1, 1] += 1
    elif height > 0 and tightness(stack[height - 1, 0]) == own:
        return False  # XOR next to XNOR
    else:
        stack[height, 0] = operator
        stack[height, 1] = 2
        height += 1
    # Popped operators no longer count as levels.
    depth = 0
    for i in range(height):
        depth += stack[i, 0] >= _OPEN or stack[i, 0] == STEP_NOT
    state[0], state[1], state[3] = height, depth, 1
    return height < len(stack)


@kernel(inline="always")
def read_text(data, at, end, out, counts, names, limits, stack, state):
    """Read one expression; return whether all of it was read.

    A row of `stack` is an operator, its number of operands and, for a call, its operator and k.
    `state` is the height of the stack, the depth, the number of predicates, and whether an operand
    is next.
    """
    state[0] = state[1] = state[2] = 0
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


@kernel
def scan_texts(
    data,  # uint8[:], the bytes of all texts
    offsets,  # int32[n_texts + 1]
    out,  # Scanned
    names,  # NameTable
    limits,  # ScanLimits
    stack,  # int64[deepest, 4], scratch
    state,  # int64[4], scratch
    counts,  # int64[3], output: the numbers of instructions, tests and constants
):
    """Read all texts; those not read have no instructions."""
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
        out.program_tests[text + 1] = counts[1]
