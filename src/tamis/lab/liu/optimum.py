"""Evaluates a schedule: its expected cost, and the minimum over all schedules.

Both enumerate every outcome of an event, so they are for small instances: for tests, and to report
the ratio to the optimum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.errors import TamisError
from tamis.lab.liu.kernels.optimum import solve
from tamis.operators.schedule.kernels.gates import FALSE, TRUE

if TYPE_CHECKING:
    from tamis.operators.schedule.gates import Floats, Gates
    from tamis.operators.schedule.run import Schedule

MAX_CALLS: Final = 12


def optimal_cost(gates: Gates, costs: Floats, selectivities: Floats) -> float:
    """The minimum expected cost of an event, over all schedules, adaptive ones included."""
    _refuse_large(gates)
    values = np.empty(3**gates.n_calls)
    solve(
        gates.thresholds,
        gates.child_starts,
        gates.children,
        gates.roots,
        np.asarray(costs, dtype=np.float64),
        np.asarray(selectivities, dtype=np.float64),
        values,
    )
    return float(values[0])


def expected_cost(schedule: Schedule, costs: Floats, selectivities: Floats) -> float:
    """The expected cost of an event if results are independent."""
    n_calls = schedule.gates.n_calls
    _refuse_large(schedule.gates)
    run = schedule.new_run()
    total = 0.0
    for outcome in range(2**n_calls):
        is_true = (outcome >> np.arange(n_calls)) & 1 == 1
        run.start()
        run.play(np.where(is_true, TRUE, FALSE))
        chance = np.where(is_true, selectivities, 1.0 - selectivities).prod()
        total += float(chance * costs[run.made].sum())
    return total


def _refuse_large(gates: Gates) -> None:
    if gates.n_calls > MAX_CALLS:
        raise TamisError(
            f"{gates.n_calls} calls; a search of all states supports at most {MAX_CALLS}"
        )
