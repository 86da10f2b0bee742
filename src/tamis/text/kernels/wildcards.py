"""Finds the wildcard patterns that a word fits, by a literal part of each pattern.

`child*` is found by the beginning `child`, `*itis` by the end, `*cyt*` by a part inside. The
literals are sorted, so that a walk along the bytes of a word narrows the run of literals that
begin with them. Suffixes are stored reversed and walked from the end of the word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.text.kernels.find import MANY, NO_WORD

if TYPE_CHECKING:
    from tamis.kernels.arrays import Int32, Int64, UInt8

_ANY_TEXT, _ONE_CHARACTER = ord("*"), ord("?")


class Patterns(NamedTuple):
    """Words with wildcards, in the order of their bytes."""

    offsets: Int64  # [n_patterns + 1]
    data: UInt8  # UTF-8
    is_decided: UInt8  # [n_patterns], whether a word that has its literal fits


class Literals(NamedTuple):
    """Literal parts of patterns, distinct and in the order of their bytes."""

    offsets: Int64  # [n_literals + 1]
    data: UInt8
    pattern_starts: Int64  # [n_literals + 1]
    patterns: Int32  # [:], the patterns that have the literal


@kernel
def find_patterns(
    first_word,
    words,  # WordTable: the folded words
    numbers,  # int32[n], the number of each word, or NO_WORD; output: with patterns, its list
    n_plain,  # the number of words without wildcards, after which patterns are numbered
    patterns,  # Patterns
    prefixes,  # Literals
    suffixes,  # Literals, reversed
    insides,  # Literals
    starts,  # int64[:], output: where each list begins; starts[n_lists] is given
    items,  # int32[:], output: the numbers in the lists
    n_lists,
):
    """Write the list of numbers of each word that fits patterns, from `first_word` on while there
    is room; return the next word and the number of lists.
    """
    for at in range(first_word, len(numbers)):
        begin, end = words.offsets[at], words.offsets[at + 1]
        first = starts[n_lists]
        if first + 1 + len(patterns.is_decided) > len(items):
            return at, n_lists
        n_items = first
        if numbers[at] != NO_WORD:
            items[n_items] = numbers[at]
            n_items += 1
        n_before = n_items
        n_items = walk(
            words.data,
            begin,
            end,
            1,
            begin,
            end,
            n_plain,
            patterns,
            prefixes,
            items,
            n_before,
            n_items,
        )
        n_items = walk(
            words.data,
            end - 1,
            begin - 1,
            -1,
            begin,
            end,
            n_plain,
            patterns,
            suffixes,
            items,
            n_before,
            n_items,
        )
        if len(insides.patterns) > 0:
            for inside in range(begin, end):
                n_items = walk(
                    words.data,
                    inside,
                    end,
                    1,
                    begin,
                    end,
                    n_plain,
                    patterns,
                    insides,
                    items,
                    n_before,
                    n_items,
                )
        if n_items == n_before:
            continue
        if n_items == first + 1:
            numbers[at] = items[first]
            continue
        numbers[at] = MANY - n_lists
        n_lists += 1
        starts[n_lists] = n_items
    return len(numbers), n_lists


@kernel
def walk(
    data,
    at,  # the first byte
    stop,  # the position after the last byte, in the direction of the step
    step,
    begin,
    end,
    n_plain,
    patterns,
    literals,
    items,
    n_before,
    n_items,
):
    """Add the patterns whose literal begins at a byte of the word data[begin:end]; return the
    new number of items.
    """
    low, high = np.int64(0), np.int64(len(literals.offsets) - 1)
    depth = np.int64(0)
    while at != stop and low < high:
        low = find_byte(literals, low, high, depth, np.int64(data[at]))
        high = find_byte(literals, low, high, depth, np.int64(data[at]) + 1)
        depth += 1
        at += step
        if low < high and literals.offsets[low + 1] - literals.offsets[low] == depth:
            for slot in range(literals.pattern_starts[low], literals.pattern_starts[low + 1]):
                pattern = literals.patterns[slot]
                number = np.int32(n_plain + pattern)
                is_known = False
                for item in range(n_before, n_items):
                    is_known = is_known or items[item] == number
                if not is_known and (
                    patterns.is_decided[pattern]
                    or fits_pattern(patterns, pattern, data, begin, end)
                ):
                    items[n_items] = number
                    n_items += 1
    return n_items


@kernel
def find_byte(literals, low, high, depth, byte):
    """The first of literals[low:high], which have equal bytes up to a depth, whose byte there is
    at least the given one; one that ends there comes before all others.
    """
    while low < high:
        middle = (low + high) >> 1
        place = literals.offsets[middle] + depth
        own = np.int64(-1)
        if place < literals.offsets[middle + 1]:
            own = np.int64(literals.data[place])
        if own < byte:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def fits_pattern(patterns, pattern, data, begin, end):
    """Whether all of data[begin:end] matches the pattern, as `tamis.text.wildcards.fits`."""
    at, wanted = begin, patterns.offsets[pattern]
    last = patterns.offsets[pattern + 1]
    # Where to continue if the latest * takes one more byte. A literal follows it, whose first byte
    # begins a character.
    retry_at, retry_wanted = begin, np.int64(-1)
    while at < end:
        if wanted < last and patterns.data[wanted] == _ANY_TEXT:
            wanted += 1
            retry_at, retry_wanted = at, wanted
        elif wanted < last and patterns.data[wanted] == _ONE_CHARACTER:
            wanted += 1
            at += 1
            while at < end and data[at] & 0xC0 == 0x80:
                at += 1
        elif wanted < last and patterns.data[wanted] == data[at]:
            wanted += 1
            at += 1
        elif retry_wanted >= 0:
            retry_at += 1
            at, wanted = retry_at, retry_wanted
        else:
            return False
    while wanted < last and patterns.data[wanted] == _ANY_TEXT:
        wanted += 1
    return wanted == last
