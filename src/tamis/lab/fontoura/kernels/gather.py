"""Concatenates runs of one array."""

from __future__ import annotations

from tamis.kernels.compiled import kernel


@kernel
def gather_runs(
    row_starts,  # int64[n_rows + 1]
    members,  # int32[:], the runs of each row
    run_starts,  # [n_runs + 1]
    values,  # the runs
    starts,  # int64[n_rows + 1], output
    gathered,  # output
):
    """Write the runs of each row's members."""
    n = 0
    for row in range(len(row_starts) - 1):
        for slot in range(row_starts[row], row_starts[row + 1]):
            member = members[slot]
            for at in range(run_starts[member], run_starts[member + 1]):
                gathered[n] = values[at]
                n += 1
        starts[row + 1] = n
