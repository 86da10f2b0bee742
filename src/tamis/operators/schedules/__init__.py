"""In which order are expensive calls made, and which are not made at all?

A schedule is made by name, once, of gates over calls, their costs and their selectivities; each
event is a `Run` that chooses a call, is told its result, and chooses the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.errors import TamisError, suggest
from tamis.operators.schedules.adaptive import make_adaptive
from tamis.operators.schedules.gates import Gates
from tamis.operators.schedules.naive import make_naive
from tamis.operators.schedules.run import Run, Schedule
from tamis.operators.schedules.sequential import make_sequential
from tamis.operators.schedules.sub_order import make_sub_order

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

__all__ = ["SCHEDULES", "Gates", "Run", "Schedule", "make_schedule"]

SCHEDULES: Final = {
    "naive": make_naive,
    "sequential": make_sequential,
    "sub_order": make_sub_order,
    "adaptive": make_adaptive,
}


def make_schedule(
    name: str, gates: Gates, costs: ArrayLike = 1.0, selectivities: ArrayLike = 0.5
) -> Schedule:
    """The schedule of that name; one cost and selectivity for each call, or one for all."""
    if name not in SCHEDULES:
        guess = suggest(name, SCHEDULES)
        hint = f"did you mean {guess!r}?" if guess else None
        raise TamisError(f"unknown schedule {name!r}; allowed: {', '.join(SCHEDULES)}", hint=hint)
    sizes = (gates.n_calls,)
    all_costs = np.ascontiguousarray(np.broadcast_to(costs, sizes), dtype=np.float64)
    chances = np.ascontiguousarray(np.broadcast_to(selectivities, sizes), dtype=np.float64)
    _refuse_outside("cost", all_costs, (all_costs > 0) & np.isfinite(all_costs), "above 0")
    _refuse_outside("selectivity", chances, (chances >= 0) & (chances <= 1), "0 to 1")
    return SCHEDULES[name](gates, all_costs, chances)


def _refuse_outside(what: str, values: np.ndarray, is_allowed: np.ndarray, allowed: str) -> None:
    """Refuse a statistic that is none, by the call it is of."""
    if (wrong := np.flatnonzero(~is_allowed)).size:
        call = int(wrong[0])
        raise TamisError(f"the {what} of call {call} is {values[call]}; allowed: {allowed}")
