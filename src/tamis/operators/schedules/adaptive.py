"""Adaptive: at each step the call that decides most per cost, of what is undecided then.

The priority of a call is popularity × (1 - selectivity) / cost over undecided subscriptions. A call
that some undecided subscription cannot be decided without goes before all others: every schedule
has to make it, so to know its result early costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.operators.schedules.kernels.choose import ADAPTIVE
from tamis.operators.schedules.run import Schedule

if TYPE_CHECKING:
    from tamis.operators.schedules.gates import Floats, Gates, Ints

_NO_WALK: Ints = np.zeros(5, dtype=np.int32)  # of four sections, all empty


def make_adaptive(gates: Gates, costs: Floats, selectivities: Floats) -> Schedule:
    """Calls by popularity × merit, renewed after each result."""
    return Schedule(ADAPTIVE, gates, _NO_WALK, decision_rates(gates, selectivities) / costs)


def decision_rates(gates: Gates, selectivities: Floats) -> Floats:
    """How probably a call decides a gate that uses it: 1 - selectivity in a conjunction.

    A false child decides an AND and a true one an OR. Of k in n, where neither does alone, each is
    given its share: (k - 1) / (n - 1) to false, (n - k) / (n - 1) to true.
    """
    widths = np.diff(gates.child_starts)
    by_false = np.where(widths > 1, (gates.thresholds - 1) / np.maximum(1, widths - 1), 1.0)
    by_true = np.where(widths > 1, 1.0 - by_false, 1.0)
    owners = np.repeat(np.arange(gates.n_gates), widths)
    is_literal = gates.children < 2 * gates.n_calls
    owners, literals = owners[is_literal], gates.children[is_literal]
    calls = literals // 2
    truth = np.where(literals % 2 == 0, selectivities[calls], 1.0 - selectivities[calls])
    rates = by_false[owners] * (1.0 - truth) + by_true[owners] * truth
    weights = gates.weights[owners].astype(np.float64)
    total = np.bincount(calls, weights=weights, minlength=gates.n_calls)
    summed = np.bincount(calls, weights=weights * rates, minlength=gates.n_calls)
    # A call that only roots use is forced: its rate is never looked at.
    return np.divide(summed, total, out=np.ones(gates.n_calls), where=total > 0)
