"""MATCH (Algorithm 5), expression by expression."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel


@kernel
def match_intervals(
    starts,  # int64[n_events + 1]
    keys,  # uint64[:], expression, begin, end; sorted for each event
    matched,  # int32[M + 1], scratch: the last expression covered up to here
    found_starts,  # int64[n_events + 1], output
    found,  # int32[:], output
):
    """Write the expressions whose whole line is covered without overlap."""
    n_found = 0
    last = len(matched) - 1
    for row in range(len(starts) - 1):
        # The expression's stamp means true: nothing has to be cleared in between.
        matched[:] = 0
        current = np.int32(0)
        for at in range(starts[row], starts[row + 1]):
            key = keys[at]
            stamp = np.int32((key >> np.uint64(32)) + np.uint64(1))
            if stamp != current:
                current = stamp
                matched[0] = stamp
            begin = (key >> np.uint64(16)) & np.uint64(0xFFFF)
            if matched[begin - np.uint64(1)] == stamp:
                end = key & np.uint64(0xFFFF)
                if end == last and matched[last] != stamp:
                    found[n_found] = stamp - 1
                    n_found += 1
                matched[end] = stamp
        found_starts[row + 1] = n_found
