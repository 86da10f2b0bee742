"""Converts values to codes, and columns to rows.

Arrays from an Arrow buffer or an index are read-only here, output arrays are not: Numba compiles a
kernel again for the other kind.
"""

from __future__ import annotations

import numpy as np

from tamis.index.carriers import KIND_EXACT, KIND_WHOLE
from tamis.index.numbers import (
    ENTRY_DOUBLE,
    ENTRY_FIRST,
    ENTRY_LAST,
    ENTRY_PIVOT_UNDER,
    ENTRY_UNDER,
    ENTRY_WHOLE,
)
from tamis.kernels.compare import compare_bytes
from tamis.kernels.compiled import kernel

# ── ranks: 2i + 1 for the i-th constant, 2i for what lies before it ─────────────────────────


@kernel
def rank_numbers(
    values,  # int64[n] or float64[n]
    attributes,  # int32[n]
    begins,  # int64[n_attributes], start of the constants of each attribute
    ends,  # int64[n_attributes]
    constants,  # of the values' kind, ascending within each attribute
    first_codes,  # int64[n_attributes], the first code of the attribute's column
    codes,  # int32[n], output
):
    """Write the global code of each value; NaN is above all other values."""
    for at in range(len(values)):
        attribute = attributes[at]
        rank = rank_number(values[at], begins[attribute], ends[attribute], constants)
        codes[at] = first_codes[attribute] + rank


@kernel(inline="always")
def rank_number(value, begin, end, constants):
    """The rank of one value among constants[begin:end]."""
    low, high = begin, end
    if value != value:  # noqa: PLR0124 - NaN
        low = end
    while low < high:
        middle = (low + high) >> 1
        if constants[middle] < value:
            low = middle + 1
        else:
            high = middle
    is_equal = low < end and constants[low] == value
    return 2 * (low - begin) + is_equal


@kernel(inline="always")
def compare_wide(left, i, right, j):
    """-1, 0 or 1 as the first 128-bit integer is less than, equal to or greater than the second;
    each is a row of a low and a high word.
    """
    if left[i, 1] != right[j, 1]:
        return -1 if left[i, 1] < right[j, 1] else 1
    low_left, low_right = np.uint64(left[i, 0]), np.uint64(right[j, 0])
    if low_left == low_right:
        return 0
    return -1 if low_left < low_right else 1


@kernel
def rank_wides(
    values,  # int64[n, 2], 128-bit integers, low word first
    attributes,  # int32[n]
    begins,  # int64[n_attributes], start of the constants of each attribute
    ends,  # int64[n_attributes]
    constants,  # int64[:, 2], ascending within each attribute; rounded down
    is_whole,  # uint8[:], whether the constant was rounded exactly
    first_codes,  # int64[n_attributes]
    codes,  # int32[n], output
):
    """Write the global code of each decimal, given in units of its last digit."""
    for at in range(len(values)):
        attribute = attributes[at]
        rank = rank_wide(values, at, begins[attribute], ends[attribute], constants, is_whole)
        codes[at] = first_codes[attribute] + rank


@kernel(inline="always")
def rank_wide(values, at, begin, end, constants, is_whole):
    """The rank of values[at] among constants[begin:end]."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if compare_wide(constants, middle, values, at) < 0:
            low = middle + 1
        else:
            high = middle
    is_equal = low < end and is_whole[low] != 0 and compare_wide(constants, low, values, at) == 0
    return 2 * (low - begin) + is_equal


# ── numbers of any kind: see `index.numbers` ────────────────────────────────────────────────


@kernel(inline="always")
def first_not_below(keys, low, high, value):
    """The first of ascending keys, from `low` to `high`, that is not below a value."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inline="always")
def first_above(keys, low, high, value):
    """The first of ascending keys, from `low` to `high`, that is above a value."""
    while low < high:
        middle = (low + high) >> 1
        if keys[middle] <= value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel(inline="always")
def compare_whole(value, kind, whole):
    """-1, 0 or 1 for an integer and an entry whose key is its double."""
    if kind == ENTRY_WHOLE:
        return int(value > whole) - int(value < whole)
    if kind == ENTRY_DOUBLE:
        return 0
    if kind == ENTRY_FIRST or kind == ENTRY_UNDER or kind == ENTRY_PIVOT_UNDER:
        return 1
    # Other exact constants are not integers of 64 bits; they were rounded down.
    return -1 if kind == ENTRY_LAST or value <= whole else 1


@kernel
def rank_records(
    doubles,  # float64[n], the numbers rounded to doubles
    wholes,  # int64[n], integers of 64 bits
    kinds,  # uint8[n], see `carriers.NUMBER_RECORD`
    attributes,  # int32[n]
    begins,  # int64[n_attributes], start of the entries of each attribute
    ends,  # int64[n_attributes]
    table,  # NumberTable
    first_codes,  # int64[n_attributes]
    codes,  # int32[n], output
    unknown,  # int64[n], output: exact numbers to compare with entries of their key
):
    """Write the global code of each number, with NaN above all others; return how many are
    unknown.
    """
    n_unknown = 0
    for at in range(len(doubles)):
        attribute = attributes[at]
        begin, end = begins[attribute], ends[attribute]
        rank, is_known = rank_record(doubles[at], wholes[at], kinds[at], begin, end, table)
        codes[at] = first_codes[attribute] + rank
        if not is_known:
            unknown[n_unknown] = at
            n_unknown += 1
    return n_unknown


@kernel(forceinline=True)
def rank_record(value, whole, kind, begin, end, table):
    """(rank, whether it is certain) of one number among the entries from `begin` to `end`."""
    low = end if value != value else first_not_below(table.keys, begin, end, value)  # noqa: PLR0124
    is_equal = 0
    if low < end and table.keys[low] == value:
        if kind == KIND_EXACT:
            return 2 * (low - begin), False
        if kind == KIND_WHOLE:
            high = first_above(table.keys, low, end, value)
            while low < high:
                middle = (low + high) >> 1
                order = compare_whole(whole, table.kinds[middle], table.wholes[middle])
                if order == 0:
                    low = high = middle
                    is_equal = 1
                elif order > 0:
                    low = middle + 1
                else:
                    high = middle
        else:
            pivot = low
            while pivot < end and table.keys[pivot] == value and not table.is_pivot[pivot]:
                pivot += 1
            if pivot < end and table.keys[pivot] == value:
                low = pivot
                is_equal = 1
    return 2 * (low - begin) + is_equal, True


# ── texts: the order of UTF-8 bytes, which is that of code points ───────────────────────────


@kernel(inline="always")
def first_bytes(data, begin, end):
    """The first eight bytes as a number of the same order; padded with zeros."""
    prefix = np.uint64(0)
    for at in range(8):
        byte = np.uint64(data[begin + at]) if begin + at < end else np.uint64(0)
        prefix = (prefix << np.uint64(8)) | byte
    return prefix


@kernel
def write_prefixes(offsets, data, begins, ends, n_shared, prefixes):
    """Write the length of the common prefix of an attribute's constants, and the bytes after it.

    Addresses and names of one kind often share a prefix: only the bytes after it distinguish them.
    """
    for attribute in range(len(begins)):
        begin, end = begins[attribute], ends[attribute]
        n_shared[attribute] = 0
        if begin < end:
            # The first and the last of sorted texts have the shortest common prefix.
            first, last = offsets[begin], offsets[end - 1]
            length = min(offsets[begin + 1] - first, offsets[end] - last)
            n_alike = 0
            while n_alike < length and data[first + n_alike] == data[last + n_alike]:
                n_alike += 1
            n_shared[attribute] = n_alike
        for at in range(begin, end):
            prefixes[at] = first_bytes(data, offsets[at] + n_shared[attribute], offsets[at + 1])


@kernel
def rank_texts(
    offsets,  # int64[n + 1]
    data,  # uint8[:], the bytes of the texts
    attributes,  # int32[n]
    table,  # TextTable
    first_codes,  # int64[n_attributes]
    codes,  # int32[n], output
):
    """Write the global code of each text."""
    for at in range(len(attributes)):
        attribute = attributes[at]
        rank = rank_text(data, offsets[at], offsets[at + 1], attribute, table)
        codes[at] = first_codes[attribute] + rank


@kernel(forceinline=True)
def rank_text(data, text, text_end, attribute, table):
    """The rank of one text among the constants of an attribute; most steps of the search compare
    prefixes only.
    """
    begin, end = table.begins[attribute], table.ends[attribute]
    skipped = table.n_shared[attribute]
    low, high = begin, end
    is_equal = 0
    if skipped > 0:
        common = table.offsets[begin]
        shown = min(text_end, text + skipped)
        order = compare_bytes(table.data, common, common + skipped, data, text, shown)
        if order < 0:
            low = end
        elif order > 0:
            high = begin
    prefix = first_bytes(data, text + skipped, text_end)
    while low < high:
        middle = (low + high) >> 1
        if table.prefixes[middle] != prefix:
            order = -1 if table.prefixes[middle] < prefix else 1
        else:
            order = compare_bytes(
                table.data,
                table.offsets[middle] + skipped,
                table.offsets[middle + 1],
                data,
                text + skipped,
                text_end,
            )
        if order < 0:
            low = middle + 1
        else:
            high = middle
            if order == 0:
                is_equal = 1
    # Constants are distinct, so the search ends at an equal one.
    return 2 * (low - begin) + is_equal


@kernel
def compare_texts(
    offsets,  # int64[n + 1]
    data,  # uint8[:]
    left,  # int64[n_pairs], numbers of texts
    right,  # int64[n_pairs]
    codes,  # int32[n_pairs], output
):
    """Write 0, 1 or 2 as the left text is below, equal to or above the right one."""
    for at in range(len(left)):
        i, j = left[at], right[at]
        codes[at] = 1 + compare_bytes(
            data, offsets[i], offsets[i + 1], data, offsets[j], offsets[j + 1]
        )


@kernel
def compare_wides(left, right, codes):
    """Write 0, 1 or 2 as the left 128-bit integer is below, equal to or above the right one."""
    for at in range(len(left)):
        codes[at] = 1 + compare_wide(left, at, right, at)


# ── order ───────────────────────────────────────────────────────────────────────────────────


@kernel
def sort_by_row(
    rows,  # int32[n], in any order
    columns,  # int32[n]
    codes,  # int32[n]
    row_starts,  # int64[n_rows + 1], zero on entry; output: start of each row's run
    sorted_columns,  # int32[n], output
    sorted_codes,  # int32[n], output
):
    """Sort entries by row with a stable counting sort."""
    n_rows = len(row_starts) - 1
    for row in rows:
        row_starts[row + 1] += 1
    for row in range(n_rows):
        row_starts[row + 1] += row_starts[row]
    for at in range(len(rows)):
        row = rows[at]
        slot = row_starts[row]
        sorted_columns[slot] = columns[at]
        sorted_codes[slot] = codes[at]
        row_starts[row] += 1
    # Each start has moved to that of the next row.
    for row in range(n_rows, 0, -1):
        row_starts[row] = row_starts[row - 1]
    row_starts[0] = 0


@kernel
def keep_last(
    starts,  # int64[n_rows + 1], start of each row's entries
    attributes,  # int32[n], -1 for none
    seen,  # int64[n_attributes], all -1 on entry
    is_kept,  # bool[n], output
):
    """Mark the last entry of each attribute in each row; a later entry replaces earlier ones."""
    for row in range(len(starts) - 1):
        for at in range(starts[row + 1] - 1, starts[row] - 1, -1):
            attribute = attributes[at]
            is_kept[at] = attribute >= 0 and seen[attribute] != row
            if attribute >= 0:
                seen[attribute] = row
