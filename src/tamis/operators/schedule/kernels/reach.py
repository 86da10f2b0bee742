"""The subscriptions above a gate, and the calls below a subscription."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel


@kernel(_nrt=True)
def count_above(n_calls, child_starts, children, roots):
    """For each gate the number of subscriptions above it, counted once per path, as a float64."""
    n_gates = len(child_starts) - 1
    above = np.zeros(n_gates)
    for node in roots:
        if node >= 2 * n_calls:
            above[node - 2 * n_calls] += 1
    for gate in range(n_gates - 1, -1, -1):
        for slot in range(child_starts[gate], child_starts[gate + 1]):
            if children[slot] >= 2 * n_calls:
                above[children[slot] - 2 * n_calls] += above[gate]
    return above


@kernel
def mark_above(
    n_literals,
    child_starts,  # int64[n_gates + 1]
    children,  # int32[:], nodes
    marks,  # bool[n_nodes]
):
    """Mark each gate above a marked node."""
    for gate in range(len(child_starts) - 1):
        for slot in range(child_starts[gate], child_starts[gate + 1]):
            marks[n_literals + gate] |= marks[children[slot]]


@kernel(_nrt=True)
def collect_calls(n_calls, child_starts, children, roots):
    """The distinct calls below each subscription, in the order of its gates' children."""
    starts = np.zeros(len(roots) + 1, dtype=np.int64)
    calls = np.empty(max(16, len(children)), dtype=np.int32)
    # The last subscription that visited, + 1, so that nothing is cleared in between.
    visitors = np.zeros(2 * n_calls + len(child_starts), dtype=np.int32)
    stack = np.empty(len(children) + 1, dtype=np.int32)
    n = 0
    for subscription in range(len(roots)):
        stack[0] = roots[subscription]
        n_left = 1
        while n_left:
            n_left -= 1
            node = stack[n_left]
            mark = node - node % 2 if node < 2 * n_calls else node  # a call counts once
            if visitors[mark] == subscription + 1:
                continue
            visitors[mark] = subscription + 1
            if node < 2 * n_calls:
                if n == len(calls):
                    calls = np.concatenate((calls, np.empty(n, dtype=np.int32)))
                calls[n] = node // 2
                n += 1
                continue
            gate = node - 2 * n_calls
            for slot in range(child_starts[gate + 1] - 1, child_starts[gate] - 1, -1):
                stack[n_left] = children[slot]
                n_left += 1
        starts[subscription + 1] = n
    return starts, calls[:n].copy()
