"""Comparison of byte strings, which for UTF-8 is the order of code points."""

from __future__ import annotations

from tamis.kernels.compiled import kernel


@kernel
def compare_bytes(left, left_begin, left_end, right, right_begin, right_end):
    """-1, 0 or 1 as the first run of bytes is less than, equal to or greater than the second."""
    n_common = min(left_end - left_begin, right_end - right_begin)
    for at in range(n_common):
        one, other = left[left_begin + at], right[right_begin + at]
        if one != other:
            return -1 if one < other else 1
    if left_end - left_begin == right_end - right_begin:
        return 0
    return -1 if left_end - left_begin < right_end - right_begin else 1
