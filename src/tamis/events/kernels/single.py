"""Converts the values of one event to the codes of one part of an index, patterns included.

Values come as words (`WordTag`), with texts and doubles next to them. Each word names an attribute;
the type of the attribute decides what follows. Nothing is allocated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.events.kernels.ranks import rank_number, rank_record, rank_text, rank_wide
from tamis.index.carriers import KIND_DOUBLE, KIND_WHOLE
from tamis.index.patterns.kernels.folding import fold_text
from tamis.index.patterns.kernels.matching import (
    N_CANDIDATES,
    N_COUNTS,
    N_LEAVES,
    N_PAIRS,
    Span,
    match_text,
)
from tamis.kernels.compiled import kernel
from tamis.kernels.records import recall

if TYPE_CHECKING:
    from tamis.events.ranks import RankArrays
    from tamis.index.patterns.kernels.matching import PatternResults
    from tamis.kernels.arrays import Float64, Int32, Int64, Int64Rows, UInt8

# How a value of an attribute follows its word: as one word (an integer), two words (a decimal), the
# next double, the length of the next text, or not at all. A number is a whole word, or a double.
AS_WORD, AS_WIDE, AS_DOUBLE, AS_TEXT, AS_NOTHING, AS_NUMBER = range(6)

# In the upper half of a word whose lower half is the attribute.
TAG_SHIFT = 32
TAG_DOUBLE = 1  # a number that is a double
TAG_FOLDED = 2  # the lower case of the text is the next text; its length is the second word
TAG_MARK = 3  # an array that is present, which may be empty
TAG_MARK_NULL = 4  # the same, with an element that is NULL
_ATTRIBUTE = (1 << TAG_SHIFT) - 1

# Indices into PartSpace.counts, after those of patterns.
N_ENTRIES, N_MARKS, N_TEXTS, STAMP = range(N_COUNTS, N_COUNTS + 4)
N_SPACE_COUNTS = N_COUNTS + 4
LAST_STAMP = np.iinfo(np.int32).max


class EventSpace(NamedTuple):
    """One event: its values, and its codes for one part after another."""

    words: Int64
    doubles: Float64
    data: UInt8  # the texts, concatenated
    folded: UInt8  # scratch: a text in lower case
    wide: Int64Rows  # [1, 2], scratch
    row_starts: Int64  # [2]; this and the rest as in EventArrays, of one row
    columns: Int32
    codes: Int32
    mark_starts: Int64  # [2]
    mark_rows: Int32
    mark_columns: Int32
    mark_has_null: UInt8


class PartRanks(NamedTuple):
    """What ranks the values of one part: by attribute of all parts, then by its own attributes, of
    which the last stands for all that it does not have.
    """

    forms: UInt8  # [n_attributes], AS_WORD, …
    numbers: Int32  # [n_attributes], the own attribute
    columns: Int32  # [n_own], the column with its constants, or -1
    ranks: RankArrays  # by own attribute
    patterns: Int32  # [n_own], the number of its patterns, or -1
    pattern_columns: Int32  # [n_patterns]
    reads_plain: UInt8  # [n_patterns], whether they read the text
    reads_folded: UInt8  # [n_patterns], … in lower case
    n_codes: Int64  # [1]


class PartSpace(NamedTuple):
    """Scratch of one part: the leaves of patterns, and the regular expressions to test."""

    text_starts: Int64  # [2 * n_patterns + 1]
    spans: Int64Rows  # [n_patterns, 2], where the text of each pattern column is
    found: PatternResults
    counts: Int64  # [N_SPACE_COUNTS]


@kernel(forceinline=True)
def encode_values(
    n_words,
    n_entries,  # codes that are in the event's space already
    n_marks,
    event,  # EventSpace
    part,  # PartRanks
    patterns,  # Records of Search
    first_pattern,  # of the part
    scratches,  # Records of PatternScratch
    space,  # PartSpace
):
    """Write the codes, marks and leaves of one event; pairs of `space.found` are still to be
    tested.
    """
    counts = space.counts
    counts[N_LEAVES] = 0
    counts[N_PAIRS] = 0
    counts[N_TEXTS] = 0
    counts[N_MARKS] = n_marks
    space.text_starts[0] = 0
    at = text_at = double_at = 0
    while at < n_words:
        word = event.words[at]
        at += 1
        attribute, tag = word & _ATTRIBUTE, word >> TAG_SHIFT
        own = part.numbers[attribute]
        column = part.columns[own]
        if tag >= TAG_MARK:
            add_mark(column, tag == TAG_MARK_NULL, counts, event)
            continue
        rank = np.int64(0)
        if part.forms[attribute] == AS_TEXT:
            text, text_end = text_at, text_at + event.words[at]
            lower_end = text_end + (event.words[at + 1] if tag == TAG_FOLDED else 0)
            at += 2 if tag == TAG_FOLDED else 1
            text_at = lower_end
            if column >= 0:
                rank = np.int64(rank_text(event.data, text, text_end, own, part.ranks.texts))
            pattern = part.patterns[own]
            if pattern >= 0:
                match_patterns(
                    pattern,
                    text,
                    text_end,
                    lower_end,
                    event,
                    part,
                    patterns,
                    first_pattern,
                    scratches,
                    space,
                )
                event.columns[n_entries] = part.pattern_columns[pattern]
                event.codes[n_entries] = part.n_codes[0] + counts[N_TEXTS] - 1
                n_entries += 1
        else:
            form = part.forms[attribute]
            rank, at, double_at = rank_value(form, tag, own, at, double_at, event, part.ranks)
        if column >= 0:
            event.columns[n_entries] = column
            event.codes[n_entries] = part.ranks.first_codes[own] + rank
            n_entries += 1
    counts[N_ENTRIES] = n_entries
    event.row_starts[0] = event.mark_starts[0] = 0
    event.row_starts[1], event.mark_starts[1] = n_entries, counts[N_MARKS]


@kernel(inline="always")
def add_mark(column, has_null, counts, event):
    """Append a mark, if the part has the column."""
    if column >= 0:
        event.mark_columns[counts[N_MARKS]] = column
        event.mark_has_null[counts[N_MARKS]] = has_null
        counts[N_MARKS] += 1


@kernel(inline="always")
def rank_value(form, tag, own, at, double_at, event, ranks):
    """(rank of the next value, position after its words, position of the next double) of a value
    that is not a text.
    """
    begin, end = ranks.begins[own], ranks.ends[own]
    rank = np.int64(0)
    if form == AS_WORD:
        rank = np.int64(rank_number(event.words[at], begin, end, ranks.integers))
        at += 1
    elif form == AS_DOUBLE:
        rank = np.int64(rank_number(event.doubles[double_at], begin, end, ranks.floats))
        double_at += 1
    elif form == AS_WIDE:
        event.wide[0, 0], event.wide[0, 1] = event.words[at], event.words[at + 1]
        constants, is_whole = ranks.decimals, ranks.decimal_is_whole
        rank = np.int64(rank_wide(event.wide, 0, begin, end, constants, is_whole))
        at += 2
    elif form == AS_NUMBER and tag == TAG_DOUBLE:
        double = event.doubles[double_at]
        rank = np.int64(rank_record(double, 0, KIND_DOUBLE, begin, end, ranks.entries)[0])
        double_at += 1
    elif form == AS_NUMBER:
        whole = event.words[at]
        double = np.float64(whole)
        rank = np.int64(rank_record(double, whole, KIND_WHOLE, begin, end, ranks.entries)[0])
        at += 1
    return rank, at, double_at


@kernel
def match_patterns(
    pattern,  # the number of the patterns of the attribute
    text,  # where the text begins and ends
    text_end,
    lower_end,  # where its lower case ends, which follows it; the same if it is ASCII
    event,  # EventSpace
    part,  # PartRanks
    patterns,  # Records of Search
    first_pattern,  # of the part
    scratches,  # Records of PatternScratch
    space,  # PartSpace
):
    """Append the leaves of the patterns that the text satisfies."""
    counts = space.counts
    if counts[STAMP] == LAST_STAMP:
        forget_texts(first_pattern, len(part.pattern_columns), scratches)
        counts[STAMP] = 0
    counts[STAMP] += 1
    plain = Span(event.data, text, text_end if part.reads_plain[pattern] else text)
    folded = Span(event.data, text_end, lower_end)
    if lower_end == text_end and part.reads_folded[pattern]:
        fold_text(event.data, text, text_end, event.folded, 0)
        folded = Span(event.folded, 0, text_end - text)
    number = first_pattern + pattern
    own, scratch = recall(patterns, number), recall(scratches, number)
    match_text(
        pattern,
        counts[STAMP],
        plain,
        folded,
        own,
        scratch,
        space.found,
    )
    space.spans[pattern, 0], space.spans[pattern, 1] = text, text_end
    counts[N_TEXTS] += 1
    space.text_starts[counts[N_TEXTS]] = counts[N_LEAVES]


@kernel
def forget_texts(first, n_patterns, scratches):
    """Clear the stamps of all texts."""
    for pattern in range(first, first + n_patterns):
        scratch = recall(scratches, pattern)
        scratch.literal_texts[:] = 0
        scratch.candidate_texts[:] = 0
        scratch.counts[N_CANDIDATES] = 0


@kernel
def encode_event_values(ranks, patterns, scratches, spaces, events, n_words, n_entries, n_marks):
    """`encode_values` on its own."""
    space, event = recall(spaces, 0), recall(events, 0)
    part = recall(ranks, 0)
    encode_values(n_words, n_entries, n_marks, event, part, patterns, 0, scratches, space)
