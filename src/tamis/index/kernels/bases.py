"""Converts tests to leaves. Equal base tests are stored once, in a hash table by their content.

A leaf is a base test and a sign: leaf 2b is base b, leaf 2b + 1 its negation. Base 0 is the test
that never holds, so leaf 0 is FALSE and leaf 1 is TRUE.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tamis.errors import TamisError
from tamis.index.kernels import lexer, scan
from tamis.kernels.compiled import kernel
from tamis.kernels.prefetch import prefetch_row
from tamis.language.comparators import Comparator, IndexTest

# Forms of base tests.
NEVER: Final = 0
ONE_OF: Final = 1  # the value is one of the base's values
AT_MOST: Final = 2  # the value is at most the base's one value
BELOW: Final = 3  # the value is below it
PRESENT: Final = 4
MEETS_PATTERN: Final = 5  # the value is the number of one of the column's patterns
PAIR_EQUAL: Final = 6
PAIR_AT_MOST: Final = 7
PAIR_BELOW: Final = 8
COMPLEMENT: Final = 9  # the value is a base that does not hold, on events that have the column
UNREAD: Final = 10  # of tests that only the parser reads; no base has it

# How a column's values become 64-bit words that compare as the values do.
NO_WORDS: Final = 0  # left to the parser
WORD_OF_INTEGER: Final = 1
WORD_OF_DOUBLE: Final = 2
WORD_OF_TEXT: Final = 3  # the number of a text; ranked when all texts are known
WORD_OF_NUMBER: Final = 4  # a double if that is exact; else below LEAST_NUMBER, by text
WORD_OF_DECIMAL: Final = 5  # the number of a text, which is a decimal
# The word of the least double: words below it do not compare as values do (see `index.numbers`).
LEAST_NUMBER: Final = -(2**63) + 2**52 - 1

LEFT: Final = -1  # instead of a head: the parser must read the expression
ELSEWHERE: Final = -2  # likewise: the leaf is found in another way

# How many tests ahead an entry of the table, and the base in it, are prefetched.
_FAR: Final = 24
_NEAR: Final = 12
_POWERS: Final = 10.0 ** np.arange(16)  # a decimal constant has no more digits


class BaseForm(NamedTuple):
    """The base of a kind of test, and whether the test is its negation."""

    form: int
    is_negated: bool


def find_form(kind: int) -> BaseForm:
    """The form of the tests that the scanner gives this code; an unknown code is an error."""
    match kind:
        case lexer.IN_LIST | lexer.NOT_IN_LIST:
            return BaseForm(ONE_OF, kind == lexer.NOT_IN_LIST)
        case lexer.IS_NULL | lexer.IS_NOT_NULL:
            return BaseForm(PRESENT, kind == lexer.IS_NULL)
        case Comparator.SAME.code:
            return BaseForm(UNREAD, False)
    if lexer.LIKE <= kind < lexer.N_TEST_CODES:
        return BaseForm(MEETS_PATTERN, False)
    comparators = [own for own in Comparator if own.code == kind]
    if not comparators:
        raise TamisError(f"a test has the code {kind}; 0 to {lexer.N_TEST_CODES - 1} are known")
    test, is_negated = comparators[0].signed_test
    return BaseForm(_FORM_BY_QUESTION[test], is_negated)


_FORM_BY_QUESTION: Final = {
    IndexTest.EQUAL: ONE_OF,
    # a < 5 and a >= 5 ask whether a is below 5; a <= 5 and a > 5 whether it is at most 5.
    IndexTest.BELOW: BELOW,
    IndexTest.AT_MOST: AT_MOST,
}
_BASE_FORMS: Final = [find_form(kind) for kind in range(lexer.N_TEST_CODES)]
_FORMS: Final = np.array([own.form for own in _BASE_FORMS], dtype=np.int64)
_IS_NEGATED: Final = np.array([own.is_negated for own in _BASE_FORMS], dtype=np.bool_)


class Bases(NamedTuple):
    """Base tests by content, with room for more.

    A lookup in a large table waits for memory. So the table holds part of the hash, and one row of
    `heads` describes a base with one value completely.
    """

    table: np.ndarray  # int64[power of two], -1 or part of the hash above a base in 32 bits
    heads: np.ndarray  # int64[:, 2], see `base_head`; the first value, or 0
    forms: np.ndarray  # uint8[:]
    columns: np.ndarray  # int32[:]
    value_starts: np.ndarray  # int64[:], one more than bases
    values: np.ndarray  # int64[:], words; sorted
    n_bases: np.ndarray  # int64[1]


class TextConstants(NamedTuple):
    """Text constants by content, with room for more."""

    table: np.ndarray  # int32[power of two], -1 or a text
    starts: np.ndarray  # int64[:], one more than texts
    arena: np.ndarray  # uint8[:]
    n_texts: np.ndarray  # int64[1]


@kernel(inline="always")
def base_head(form, column, n_values):
    """Form, column and number of values in one integer."""
    return (np.int64(form) << 56) | (np.int64(column + 1) << 24) | np.int64(n_values)


@kernel(inline="always")
def head_form(head):
    """The form of a base, from its head."""
    return head >> 56


@kernel(inline="always")
def head_column(head):
    """The column of a base, from its head; -1 for none."""
    return (head >> 24 & 0xFFFFFFFF) - 1


@kernel(inline="always")
def head_size(head):
    """The number of values of a base, from its head."""
    return head & 0xFFFFFF


@kernel(inline="always")
def hash_base(head, values, start, end):
    """A hash of a base's content, not negative."""
    mixed = np.uint64(head) * np.uint64(0x9E3779B97F4A7C15)
    for i in range(start, end):
        mixed = (mixed ^ np.uint64(values[i])) * np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(31)
    return np.int64((mixed ^ (mixed >> np.uint64(33))) >> np.uint64(1))


@kernel
def find_base(bases, form, column, values, n_values):
    """The number of the base with this content, new or known."""
    head = base_head(form, column, n_values)
    return find_hashed(bases, head, hash_base(head, values, 0, n_values), values, 0, n_values)


@kernel
def find_hashed(bases, head, hashed, values, begin, n_values):
    """The number of the base with this head and these values, new or known."""
    first = values[begin] if n_values else np.int64(0)
    mask = len(bases.table) - 1
    slot = hashed & mask
    while bases.table[slot] >= 0:
        if bases.table[slot] >> 32 == hashed >> 32:
            base = bases.table[slot] & 0xFFFFFFFF
            if bases.heads[base, 0] == head and bases.heads[base, 1] == first:
                start = bases.value_starts[base] if n_values > 1 else 0
                is_same = True
                for i in range(1, n_values):
                    if bases.values[start + i] != values[begin + i]:
                        is_same = False
                        break
                if is_same:
                    return base
        slot = (slot + 1) & mask
    base = bases.n_bases[0]
    bases.table[slot] = (hashed >> 32 << 32) | base
    bases.heads[base, 0] = head
    bases.heads[base, 1] = first
    bases.forms[base] = head_form(head)
    bases.columns[base] = head_column(head)
    start = bases.value_starts[base]
    for i in range(n_values):
        bases.values[start + i] = values[begin + i]
    bases.value_starts[base + 1] = start + n_values
    bases.n_bases[0] = base + 1
    return base


@kernel
def rehash_bases(bases):
    """Insert all bases into an empty, larger table."""
    mask = len(bases.table) - 1
    for base in range(bases.n_bases[0]):
        start, end = bases.value_starts[base], bases.value_starts[base + 1]
        hashed = hash_base(bases.heads[base, 0], bases.values, start, end)
        slot = hashed & mask
        while bases.table[slot] >= 0:
            slot = (slot + 1) & mask
        bases.table[slot] = (hashed >> 32 << 32) | base


@kernel
def find_text(texts, data, start, size):
    """The number of a text constant, new or known."""
    mixed = np.uint64(1469598103934665603)
    for at in range(start, start + size):
        mixed = (mixed ^ np.uint64(data[at])) * np.uint64(1099511628211)
    mask = len(texts.table) - 1
    slot = np.int64((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(1)) & mask
    while texts.table[slot] >= 0:
        text = texts.table[slot]
        own = texts.starts[text]
        if texts.starts[text + 1] - own == size:
            is_same = True
            for i in range(size):
                if texts.arena[own + i] != data[start + i]:
                    is_same = False
                    break
            if is_same:
                return text
        slot = (slot + 1) & mask
    text = texts.n_texts[0]
    texts.table[slot] = text
    own = texts.starts[text]
    for i in range(size):
        texts.arena[own + i] = data[start + i]
    texts.starts[text + 1] = own + size
    texts.n_texts[0] = text + 1
    return text


@kernel
def rehash_texts(texts):
    """Insert all texts into an empty, larger table."""
    mask = len(texts.table) - 1
    for text in range(texts.n_texts[0]):
        mixed = np.uint64(1469598103934665603)
        for at in range(texts.starts[text], texts.starts[text + 1]):
            mixed = (mixed ^ np.uint64(texts.arena[at])) * np.uint64(1099511628211)
        slot = np.int64((mixed ^ (mixed >> np.uint64(29))) >> np.uint64(1)) & mask
        while texts.table[slot] >= 0:
            slot = (slot + 1) & mask
        texts.table[slot] = text


@kernel(inline="always")
def ordered_bits(bits):
    """The bits of a double as an integer that compares as the double does; is its own inverse."""
    return bits if bits >= 0 else bits ^ np.int64(0x7FFFFFFFFFFFFFFF)


@kernel
def read_words(test, scanned, data, words_as, texts, words, double):
    """Write the constants of a test as words, sorted and distinct; return how many, or -1.

    -1 means that the parser must read the expression. `double` is a float64[1], for its bits.
    """
    begin = scanned.test_starts[test]
    n_words = 0
    for at in range(scanned.test_starts[test], scanned.test_starts[test + 1]):
        kind = scanned.constant_kinds[at]
        value = scanned.constant_values[at]
        if words_as == WORD_OF_TEXT:
            if kind != lexer.CONSTANT_TEXT:
                return -1
            word = np.int64(find_text(texts, data, value, scanned.constant_sizes[at]))
        elif words_as == WORD_OF_INTEGER:
            if kind != lexer.CONSTANT_INTEGER:
                return -1
            word = value
        elif (
            words_as == WORD_OF_DOUBLE or words_as == WORD_OF_NUMBER
        ) and kind != lexer.CONSTANT_TEXT:
            # Both are exact (at most 15 digits), so the quotient is the nearest double.
            double[0] = np.float64(value) / _POWERS[scanned.constant_sizes[at]] + 0.0
            word = ordered_bits(double.view(np.int64)[0])
        else:
            return -1
        place = begin + n_words
        while place > begin and words[place - 1] > word:
            words[place] = words[place - 1]
            place -= 1
        if place > begin and words[place - 1] == word:
            for i in range(place, begin + n_words):
                words[i] = words[i + 1]
            continue
        words[place] = word
        n_words += 1
    return n_words


@kernel
def read_tests(
    scanned,  # Scanned
    n_tests,
    data,  # uint8[:], the texts
    name_columns,  # int32[n_names], the scalar column of each name
    name_words,  # uint8[n_names], how its values become words
    texts,  # TextConstants
    words,  # int64[n_constants], output: by test, see `scanned.test_starts`
    heads,  # int64[n_tests], output: of the bases, or LEFT or ELSEWHERE
    hashes,  # int64[n_tests], output
    double,  # float64[1], scratch
):
    """Read the base of each test."""
    for test in range(n_tests):
        name = scanned.test_names[test]
        kind = scanned.test_kinds[test]
        column = name_columns[name]
        words_as = name_words[name]
        begin = scanned.test_starts[test]
        n_words = -1
        form = _FORMS[kind]
        if form == PRESENT:
            n_words = 0 if column >= 0 else -1
        elif form != MEETS_PATTERN and form != UNREAD and words_as != NO_WORDS:
            n_words = read_words(test, scanned, data, words_as, texts, words, double)
            if form == BELOW and words_as == WORD_OF_INTEGER:
                form = AT_MOST
                words[begin] -= 1
        heads[test] = ELSEWHERE if form == MEETS_PATTERN else LEFT
        hashes[test] = 0
        if n_words >= 0:
            heads[test] = base_head(form, column, n_words)
            hashes[test] = hash_base(heads[test], words, begin, begin + n_words)


@kernel
def place_tests(
    scanned,  # Scanned
    n_tests,
    is_signed,  # whether a negated test holds on a missing attribute
    bases,  # Bases
    words,  # int64[n_constants]
    heads,  # int64[n_tests]
    hashes,  # int64[n_tests]
    known,  # int64[1], scratch
    leaves,  # int32[n_tests], output: leaves, or -1 if the parser must read the expression
):
    """Find or make the leaf of each test that was read."""
    mask = len(bases.table) - 1
    for test in range(n_tests):
        if test + _FAR < n_tests:
            prefetch_row(bases.table, hashes[test + _FAR] & mask)
            found = bases.table[hashes[test + _NEAR] & mask]
            if found >= 0:
                prefetch_row(bases.heads, found & 0xFFFFFFFF)
        head = heads[test]
        if head < 0:
            if head == LEFT:
                leaves[test] = -1
            continue
        begin, kind = scanned.test_starts[test], scanned.test_kinds[test]
        base = find_hashed(bases, head, hashes[test], words, begin, head_size(head))
        is_negated = _IS_NEGATED[kind]
        is_bound = _FORMS[kind] == BELOW or _FORMS[kind] == AT_MOST
        if is_negated and is_bound and is_signed:
            # A positive test, which must not hold on a missing attribute.
            known[0] = base
            leaves[test] = 2 * find_base(bases, COMPLEMENT, head_column(head), known, 1)
            continue
        leaves[test] = 2 * base + is_negated


@kernel
def number_patterns(
    scanned,  # Scanned
    tests,  # int64[:], tests of patterns
    data,  # uint8[:], the texts
    texts,  # TextConstants
    keys,  # int64[:], output: name, test and number of the pattern's text in one integer
):
    """Write a key for each test of a pattern, so that equal tests are stored once."""
    for i in range(len(tests)):
        at = scanned.test_starts[tests[i]]
        number = -1
        if scanned.constant_kinds[at] == lexer.CONSTANT_TEXT:
            number = find_text(texts, data, scanned.constant_values[at], scanned.constant_sizes[at])
        name = np.int64(scanned.test_names[tests[i]])
        keys[i] = (name * lexer.N_TEST_CODES + scanned.test_kinds[tests[i]]) << 32 | np.int64(
            number
        )
        if number < 0:
            keys[i] = -1


@kernel
def put_leaves(scanned, leaves):
    """Replace tests by their leaves; an expression with a test without a leaf is left."""
    for program in range(len(scanned.program_starts) - 1):
        for at in range(scanned.program_starts[program], scanned.program_starts[program + 1]):
            if scanned.operators[at] == scan.STEP_LEAF:
                leaf = leaves[scanned.operands[at]]
                if leaf < 0:
                    scanned.is_left[program] = 1
                    break
                scanned.operands[at] = leaf


@kernel
def is_only_text(
    data,  # uint8[:]
    start,
    size,
):
    """`infer.is_only_text` for a text in UTF-8."""
    has_start = size > 0 and ord("0") <= data[start] <= ord("9")
    for at in range(start, start + size):
        byte = data[at]
        if byte == ord(":"):
            has_start = True
            continue
        is_known = ord("0") <= byte <= ord("9")
        is_known |= ord("a") <= byte <= ord("f") or ord("A") <= byte <= ord("F")
        is_known |= byte == ord(".") or byte == ord("+") or byte == ord("-")
        is_known |= byte == ord("/") or byte == ord("T") or byte == ord("Z") or byte == ord(" ")
        if not is_known:
            return True
    return not has_start


@kernel
def count_uses(
    data,  # uint8[:], the bytes of the texts
    scanned,  # Scanned
    votes,  # int64[n_names, 5], output: by kind of constant, of presence, of strings only
):
    """Count how names are used in the expressions that are not left."""
    for program in range(len(scanned.is_left)):
        if scanned.is_left[program]:
            continue
        for test in range(scanned.program_tests[program], scanned.program_tests[program + 1]):
            name = scanned.test_names[test]
            first, last = scanned.test_starts[test], scanned.test_starts[test + 1]
            for at in range(first, last):
                kind = scanned.constant_kinds[at]
                votes[name, kind] += 1
                if kind == lexer.CONSTANT_TEXT:
                    start, size = scanned.constant_values[at], scanned.constant_sizes[at]
                    is_pattern = scanned.test_kinds[test] >= lexer.LIKE
                    votes[name, 4] += is_pattern or is_only_text(data, start, size)
            if first == last:
                votes[name, 3] += 1
