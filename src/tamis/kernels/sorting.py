"""Sorting short runs of numbers."""

from __future__ import annotations

from typing import Final

import numpy as np

from tamis.kernels.compiled import kernel

FEW: Final = 24  # up to this length insertion sort is faster than a call of sort


@kernel(_nrt=True)
def sort_run(run, begin, n_members):
    """Sort a run of numbers in place."""
    if n_members > FEW:
        run[begin : begin + n_members] = np.sort(run[begin : begin + n_members])
        return
    for i in range(1, n_members):
        member = run[begin + i]
        at = begin + i
        while at > begin and run[at - 1] > member:
            run[at] = run[at - 1]
            at -= 1
        run[at] = member
