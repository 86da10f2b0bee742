"""Removes duplicates from runs of values."""

from __future__ import annotations

from tamis.kernels.compiled import kernel


@kernel
def keep_distinct(
    starts,  # int64[n_rows + 1], changed to the starts of the distinct values
    values,  # int32[:], changed: each row's distinct values, row by row
    stamps,  # int64[:], by value: the last row that had it
    latest,  # the highest stamp so far
):
    """Drop duplicates within each row; return the highest stamp."""
    n_kept = 0
    begin = starts[0]
    for row in range(len(starts) - 1):
        end = starts[row + 1]
        latest += 1
        for at in range(begin, end):
            value = values[at]
            if stamps[value] != latest:
                stamps[value] = latest
                values[n_kept] = value
                n_kept += 1
        starts[row + 1] = n_kept
        begin = end
    return latest
