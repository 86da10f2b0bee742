"""Replaces the leaves of one attribute under an AND or OR by fewer ones.

Tests of values are intersected or united. A test of presence is dropped if another leaf implies it,
or decides the node. Each side of an XOR is used only where it is true, so rules that preserve only
"is TRUE" may be used everywhere. `logic.rules` does the same to trees that people read.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tamis.index import layout
from tamis.index.kernels.bases import (
    AT_MOST,
    BELOW,
    COMPLEMENT,
    LEAST_NUMBER,
    MEETS_PATTERN,
    NO_WORDS,
    ONE_OF,
    PAIR_AT_MOST,
    PAIR_BELOW,
    PAIR_EQUAL,
    PRESENT,
    WORD_OF_DECIMAL,
    WORD_OF_INTEGER,
    WORD_OF_NUMBER,
    WORD_OF_TEXT,
    find_base,
    head_column,
    head_form,
)
from tamis.kernels.compiled import kernel
from tamis.kernels.sorting import sort_run

DECIDED: Final = -1  # instead of a number of children: the node is FALSE (AND) or TRUE (OR)
NO_ROOM: Final = -2  # likewise: there is no room for a new base

# How children meet: bits.
VALUES_MEET: Final = 1  # tests of values on one column
PRESENCE: Final = 2  # a test of presence, or of a complement
_GONE: Final = np.iinfo(np.int32).min  # a child that was folded into others
_LAST: Final = np.iinfo(np.int64).max
_MINUS: Final = ord("-")
_POINT: Final = ord(".")


class Met(NamedTuple):
    """Which leaves of a node meet on one column; all nodes share these arrays."""

    columns: np.ndarray  # int64[n_columns, 3], see below
    earlier: np.ndarray  # int32[most children], the previous child on the same column, or -1
    node: np.ndarray  # int64[4], see below


# The columns of `Met.columns`.
WHEN: Final = 0  # the CLOCK when the column was last met
BY: Final = 1  # the child that met it
WORDS: Final = 2  # how values become words; NO_WORDS: tests of values are not folded

# The entries of `Met.node`.
CLOCK: Final = 0  # increases with each node
HOW: Final = 1  # bits, as `leaves_meet` returns them
OPERATOR: Final = 2
N_CHILDREN: Final = 3


class Meeting(NamedTuple):
    """The properties of columns that folding needs."""

    attributes: np.ndarray  # int32[n_columns, 2], numbers of each column's attributes; -1: unused
    is_signed: bool  # whether a negated test holds on a missing attribute
    n_lacking: np.ndarray  # int64[1], 1 + the values of a new base for which there was no room


@kernel(inline="always")
def copy_run(run, start, end, target, begin):
    """Copy a run of numbers to another place."""
    for i in range(end - start):
        target[begin + i] = run[start + i]


@kernel
def drop_repeated(children, begin, n_children):
    """Drop repeated children of a sorted run; return how many are left."""
    n_kept = 0
    for at in range(begin, begin + n_children):
        if n_kept == 0 or children[at] != children[begin + n_kept - 1]:
            children[begin + n_kept] = children[at]
            n_kept += 1
    return n_kept


@kernel(inline="always")
def leaves_meet(children, begin, n_children, operator, heads, met):
    """How the leaves of sorted, distinct children meet; links those of one column in `met`."""
    met.node[CLOCK] += 1
    now = met.node[CLOCK]
    how = 0
    for i in range(n_children - 1, -1, -1):
        leaf = children[begin + i]
        if leaf < 0:
            break
        head = heads[leaf >> 1, 0]
        form, column = head_form(head), head_column(head)
        met.earlier[i] = -1
        if form == PRESENT or form == COMPLEMENT:
            how |= PRESENCE
        elif form <= BELOW and has_order(met.columns[column, WORDS], heads[leaf >> 1, 1]):
            if met.columns[column, WHEN] == now:
                other = met.columns[column, BY]
                met.earlier[i] = other
                # Nearly always two bounds with values between them, which need no folding.
                if met.earlier[other] >= 0 or not are_apart(
                    leaf, children[begin + other], operator, heads, met.columns[column, WORDS]
                ):
                    how |= VALUES_MEET
            met.columns[column, WHEN] = now
            met.columns[column, BY] = i
    return how


@kernel(inline="always")
def has_order(words_as, first):
    """Whether the words of a base compare as its values do; `first` is its least word."""
    return words_as != NO_WORDS and (words_as != WORD_OF_NUMBER or first >= LEAST_NUMBER)


@kernel(inline="always")
def are_apart(leaf, other, operator, heads, words_as):
    """Whether two leaves are bounds with more than one value between (AND) or beyond (OR) them."""
    if (leaf ^ other) & 1 == 0 or words_as == WORD_OF_TEXT or words_as == WORD_OF_DECIMAL:
        return False
    upper, lower = leaf >> 1, other >> 1
    if (leaf & 1 == 1) == (operator == layout.AND):
        upper, lower = lower, upper
    is_bound = head_form(heads[upper, 0]) != ONE_OF and head_form(heads[lower, 0]) != ONE_OF
    # The next word is the next integer: `a > 4 AND a <= 5` is a = 5.
    return is_bound and heads[lower, 1] < heads[upper, 1] - 1


@kernel
def holds_presence(children, begin, n_children, bases):
    """Whether a child tests presence: tests that all values satisfy become such a test."""
    for at in range(begin, begin + n_children):
        if children[at] >= 0 and bases.forms[children[at] >> 1] == PRESENT:
            return True
    return False


@kernel
def holds_opposites(children, begin, n_children, bases):
    """Whether the children include both `a > 5` and `a <= 5`, if these are separate tests."""
    for at in range(begin, begin + n_children):
        leaf, base = children[at], children[at] >> 1
        is_complement = leaf >= 0 and leaf & 1 == 0 and bases.forms[base] == COMPLEMENT
        if is_complement and is_in(children, begin, begin + n_children, 2 * bases.heads[base, 1]):
            return True
    return False


@kernel
def fold_values(children, begin, n_children, operator, bases, texts, met, meeting):
    """Join the tests of values of each column; return how many children are left."""
    for i in range(n_children):
        # Links go from lower to higher children: start with the lowest child of a column.
        if children[begin + i] < 0 or met.earlier[i] < 0:
            continue
        low, high, members = join_values(
            children, begin, i, operator == layout.OR, bases, texts, met, meeting
        )
        if low < 0 and high < 0 and members < 0:
            return members
        at = i
        while at >= 0:
            leaf = _GONE
            if members >= 0:
                leaf, members = members, -1
            elif low >= 0:
                leaf, low = low, -1
            elif high >= 0:
                leaf, high = high, -1
            children[begin + at] = leaf
            after = met.earlier[at]
            met.earlier[at] = -1
            at = after
    sort_run(children, begin, n_children)
    n_gone = 0
    while children[begin + n_gone] == _GONE:
        n_gone += 1
    for at in range(begin, begin + n_children - n_gone):
        children[at] = children[at + n_gone]
    # The new test of presence may be among the children already.
    return drop_repeated(children, begin, n_children - n_gone)


@kernel
def compare_words(one, other, words_as, texts):
    """-1, 0 or 1 as the first word's value is below, equal to or above the other's."""
    if one == other:
        return 0
    if words_as == WORD_OF_TEXT:
        return compare_texts(one, other, texts)
    if words_as == WORD_OF_DECIMAL:
        return compare_decimals(one, other, texts)
    return -1 if one < other else 1


@kernel
def compare_texts(one, other, texts):
    """-1 or 1 as the first of two different texts is below or above the other."""
    start, end = texts.starts[one], texts.starts[one + 1]
    at, last = texts.starts[other], texts.starts[other + 1]
    while start < end and at < last:
        if texts.arena[start] != texts.arena[at]:
            return -1 if texts.arena[start] < texts.arena[at] else 1
        start += 1
        at += 1
    return -1 if start == end else 1


@kernel
def compare_decimals(one, other, texts):
    """The same for two decimals, which are written without superfluous zeros."""
    is_negative = texts.arena[texts.starts[one]] == _MINUS
    if is_negative != (texts.arena[texts.starts[other]] == _MINUS):
        return -1 if is_negative else 1
    order = count_whole(one, texts) - count_whole(other, texts)
    if order == 0:
        # With equally many characters before the point, they compare as texts do.
        order = compare_texts(one, other, texts)
    return -1 if (order < 0) != is_negative else 1


@kernel
def count_whole(text, texts):
    """How many characters a decimal has before its point."""
    at = texts.starts[text]
    while at < texts.starts[text + 1] and texts.arena[at] != _POINT:
        at += 1
    return at - texts.starts[text]


@kernel
def join_values(children, begin, first, is_or, bases, texts, met, meeting):
    """The fewest leaves that are equivalent to those of one column: low, high, one of; -1 for none.

    If there are no leaves, the last is DECIDED or NO_ROOM. Under OR, the opposites are intersected,
    and the result is the opposite of that. The sets are stored in the unused part of the bases'
    values: included values from its beginning on, excluded ones from its end back.
    """
    values = bases.values
    n_values = count_values(children, begin, first, bases.value_starts, met.earlier)
    if not has_base_room(bases, n_values):
        meeting.n_lacking[0] = n_values + 1
        return -1, -1, NO_ROOM
    free = bases.value_starts[bases.n_bases[0]]
    low, high, bounds, n_included, n_excluded = intersect(
        children, begin, first, is_or, free, free + n_values, bases, texts, met
    )
    excluded, free_end = free + n_values - n_excluded, free + n_values
    is_member = n_included >= 0
    if not is_member and n_excluded == 0:
        return low, high, -1
    sort_run(values, excluded, n_excluded)
    column = bases.columns[children[begin + first] >> 1]
    words_as = met.columns[column, WORDS]
    start, end = (free, free + n_included) if is_member else (excluded, free_end)
    n_kept = 0
    for at in range(start, end):
        word = values[at]
        if not is_inside(word, low >= 0, high >= 0, bounds, words_as, texts):
            continue
        if is_member:
            if is_in(values, excluded, free_end, word):
                continue
        elif n_kept > 0 and values[free + n_kept - 1] == word:
            continue
        values[free + n_kept] = word
        n_kept += 1
    if n_kept > 0:
        leaf = 2 * find_base(bases, ONE_OF, column, values[free:], n_kept) + (is_member == is_or)
        return (-1, -1, leaf) if is_member else (low, high, leaf)
    if not is_member:
        return low, high, -1
    if not is_or:
        return -1, -1, DECIDED
    # Every value satisfies one of them.
    return -1, -1, 2 * find_base(bases, PRESENT, column, values[free:], 0)


@kernel
def count_values(children, begin, first, value_starts, earlier):
    """How many values the leaves of one column have together."""
    n_values = 0
    at = first
    while at >= 0:
        base = children[begin + at] >> 1
        n_values += value_starts[base + 1] - value_starts[base]
        at = earlier[at]
    return n_values


@kernel
def intersect(children, begin, first, is_or, free, free_end, bases, texts, met):
    """Intersect the leaves of one column, or under OR their opposites.

    Returns the leaves of the tightest bounds or -1, the `bounds` for `is_inside`, how many values
    are included (-1: all) and how many excluded.
    """
    values = bases.values
    words_as = met.columns[bases.columns[children[begin + first] >> 1], WORDS]
    excluded = free_end
    n_included = -1
    low = high = -1
    low_word = high_word = np.int64(0)
    is_low_closed = is_high_closed = False
    i = first
    while i >= 0:
        leaf = children[begin + i]
        i = met.earlier[i]
        base = leaf >> 1
        is_negated = (leaf & 1 == 1) != is_or
        start, end = bases.value_starts[base], bases.value_starts[base + 1]
        if bases.forms[base] == ONE_OF:
            if is_negated:
                excluded -= end - start
                copy_run(values, start, end, values, excluded)
            elif n_included < 0:
                n_included = end - start
                copy_run(values, start, end, values, free)
            else:
                n_included = keep_common(values, free, n_included, start, end)
            continue
        word, is_closed = values[start], bases.forms[base] == AT_MOST
        if not is_negated:
            order = -1 if high < 0 else compare_words(word, high_word, words_as, texts)
            if order < 0 or (order == 0 and is_high_closed and not is_closed):
                high, high_word, is_high_closed = leaf, word, is_closed
            continue
        is_closed = not is_closed
        if words_as == WORD_OF_INTEGER and not is_closed and word < _LAST:
            word, is_closed = word + 1, True
        order = 1 if low < 0 else compare_words(word, low_word, words_as, texts)
        if order > 0 or (order == 0 and is_low_closed and not is_closed):
            low, low_word, is_low_closed = leaf, word, is_closed
    if n_included < 0 and low >= 0 and high >= 0:
        order = compare_words(low_word, high_word, words_as, texts)
        if order >= 0:
            # The two bounds leave no value, or exactly one.
            values[free] = low_word
            n_included = 1 if order == 0 and is_low_closed and is_high_closed else 0
    bounds = (low_word, is_low_closed, high_word, is_high_closed)
    return low, high, bounds, n_included, free_end - excluded


@kernel
def is_inside(word, has_low, has_high, bounds, words_as, texts):
    """Whether a value is inside the given bounds."""
    low_word, is_low_closed, high_word, is_high_closed = bounds
    if has_low:
        order = compare_words(word, low_word, words_as, texts)
        if order < 0 or (order == 0 and not is_low_closed):
            return False
    if has_high:
        order = compare_words(word, high_word, words_as, texts)
        if order > 0 or (order == 0 and not is_high_closed):
            return False
    return True


@kernel
def is_in(values, begin, end, word):
    """Whether a sorted run holds a word."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < word:
            low = middle + 1
        else:
            high = middle
    return low < end and values[low] == word


@kernel(inline="always")
def has_base_room(bases, n_values):
    """Whether there is room for one more base with this number of values."""
    n_bases = bases.n_bases[0] + 1
    return (
        n_bases < len(bases.forms)
        and 2 * n_bases < len(bases.table)
        and bases.value_starts[n_bases - 1] + n_values <= len(bases.values)
    )


@kernel
def keep_common(values, begin, n_values, start, end):
    """Keep the members of a sorted run that are also in another one; return how many."""
    n_kept = 0
    at = start
    for i in range(begin, begin + n_values):
        while at < end and values[at] < values[i]:
            at += 1
        if at < end and values[at] == values[i]:
            values[begin + n_kept] = values[i]
            n_kept += 1
    return n_kept


@kernel(inline="always")
def needs_presence(leaf, form, is_signed):
    """Whether a leaf is never true on a missing attribute, judged by its form and sign."""
    if form == MEETS_PATTERN:
        return leaf & 1 == 0
    is_value = form == ONE_OF or form == AT_MOST or form == BELOW or form == COMPLEMENT
    is_value |= form == PAIR_EQUAL or form == PAIR_AT_MOST or form == PAIR_BELOW
    return is_value and (leaf & 1 == 0 or not is_signed)


@kernel
def fold_presence(children, begin, n_children, operator, bases, met, meeting):
    """Drop leaves that presence makes superfluous; return how many are left, or DECIDED."""
    is_signed_and = meeting.is_signed and operator == layout.AND
    if is_signed_and and holds_opposites(children, begin, n_children, bases):
        return DECIDED
    met.node[CLOCK] += 1
    now, is_signed, is_and = met.node[CLOCK], meeting.is_signed, operator == layout.AND
    for at in range(begin, begin + n_children):
        leaf = children[at]
        if leaf >= 0:
            form = bases.forms[leaf >> 1]
            is_present = form == PRESENT and leaf & 1 == 0
            if needs_presence(leaf, form, is_signed) if is_and else is_present:
                for attribute in meeting.attributes[bases.columns[leaf >> 1]]:
                    if attribute >= 0:
                        met.columns[attribute, WHEN] = now
    n_kept = 0
    for at in range(begin, begin + n_children):
        leaf = children[at]
        if leaf >= 0:
            form = bases.forms[leaf >> 1]
            is_met = False
            for attribute in meeting.attributes[bases.columns[leaf >> 1]]:
                is_met |= attribute >= 0 and met.columns[attribute, WHEN] == now
            if is_met and form == PRESENT and leaf & 1 == 1:
                return DECIDED
            if is_met and (form == PRESENT if is_and else needs_presence(leaf, form, is_signed)):
                continue
        children[begin + n_kept] = leaf
        n_kept += 1
    return n_kept
