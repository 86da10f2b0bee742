"""Liu's schedules as in the paper, and the product's schedule for comparison.

| name | section | what it does |
|---|---|---|
| `naive` | 5.2 | subscriptions one by one, independently; only results are shared |
| `sequential` | 4.1 | the calls of an undecided subscription; their decisions are shared |
| `sub_order` | 4.2, 4.3 | linked chains, in an order found by exact cost differences of pairs |
| `adaptive` | – | the product's schedule |
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.errors import TamisError, suggest
from tamis.lab.liu.naive import make_naive
from tamis.lab.liu.sequential import make_sequential
from tamis.lab.liu.sub_order import make_sub_order
from tamis.operators.schedule import make_schedule as make_adaptive
from tamis.operators.schedule.adaptive import read_statistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from tamis.operators.schedule import Gates, Schedule
    from tamis.operators.schedule.gates import Floats

__all__ = ["SCHEDULES", "make_schedule"]

SCHEDULES: Final[dict[str, Callable[[Gates, Floats, Floats], Schedule]]] = {
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
    return SCHEDULES[name](gates, *read_statistics(gates, costs, selectivities))
