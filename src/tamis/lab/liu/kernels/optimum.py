"""The minimum expected cost of any schedule, by solving every state of knowledge.

A state has one of three digits for each call, 0 not made, 1 false, 2 true: 3^n states. A result
changes a 0 to a higher digit, so states are solved from the highest number down.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel


@kernel(_nrt=True)
def solve(
    thresholds,  # int32[n_gates]
    child_starts,  # int64[n_gates + 1]
    children,  # int32[:], nodes
    roots,  # int32[n_subscriptions], nodes
    costs,  # float64[n_calls]
    selectivities,  # float64[n_calls]
    values,  # float64[3 ** n_calls], output: minimum expected cost from each state on
):
    """Solve all states; the first is that of an event without any result."""
    n_calls = len(costs)
    powers = 3 ** np.arange(n_calls)
    truths = np.zeros(2 * n_calls + len(thresholds), dtype=np.int8)  # 0 open, 1 false, 2 true
    for state in range(len(values) - 1, -1, -1):
        for call in range(n_calls):
            digit = (state // powers[call]) % 3
            truths[2 * call] = digit
            truths[2 * call + 1] = 3 - digit if digit else 0
        evaluate(thresholds, child_starts, children, truths, 2 * n_calls)
        values[state] = 0.0
        if is_all_decided(roots, truths):
            continue
        best = np.inf
        for call in range(n_calls):
            if truths[2 * call] == 0:
                p = selectivities[call]
                if_false, if_true = values[state + powers[call]], values[state + 2 * powers[call]]
                best = min(best, costs[call] + (1.0 - p) * if_false + p * if_true)
        values[state] = best


@kernel
def evaluate(thresholds, child_starts, children, truths, n_literals):
    """Set the truth of each gate, as far as its children's are known."""
    for gate in range(len(thresholds)):
        n_true, n_false = 0, 0
        for slot in range(child_starts[gate], child_starts[gate + 1]):
            n_true += truths[children[slot]] == 2
            n_false += truths[children[slot]] == 1
        width = child_starts[gate + 1] - child_starts[gate]
        truths[n_literals + gate] = 0
        if n_true >= thresholds[gate]:
            truths[n_literals + gate] = 2
        elif n_false > width - thresholds[gate]:
            truths[n_literals + gate] = 1


@kernel
def is_all_decided(roots, truths):
    """Whether no subscription is at an open node."""
    for node in roots:
        if truths[node] == 0:
            return False
    return True
