"""The adaptive schedule: each step makes the call that decides most undecided subscriptions per
cost.

The priority of a call is popularity × (1 - selectivity) / cost over undecided subscriptions. A
subscription has a greater weight the harder it is to decide: 1 / Σ (1 - selectivity) / cost of its
calls. With hard ones first, easy ones are often decided along the way.

A call that some undecided subscription requires is made before all others: every schedule has to
make it, so making it early costs nothing more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.errors import TamisError
from tamis.operators.schedule.run import Schedule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from tamis.operators.schedule.gates import Floats, Gates, Ints

_LEAST = 1e-9  # of a gate that hardly any call decides


def make_schedule(gates: Gates, costs: ArrayLike = 1.0, selectivities: ArrayLike = 0.5) -> Schedule:
    """Calls by popularity × merit, updated after each result.

    `costs` and `selectivities` have one number for each call, or one for all calls.
    """
    return _make(gates, *read_statistics(gates, costs, selectivities))


def read_statistics(
    gates: Gates, costs: ArrayLike, selectivities: ArrayLike
) -> tuple[Floats, Floats]:
    """The cost and the selectivity of each call, checked."""
    sizes = (gates.n_calls,)
    all_costs = np.ascontiguousarray(np.broadcast_to(costs, sizes), dtype=np.float64)
    chances = np.ascontiguousarray(np.broadcast_to(selectivities, sizes), dtype=np.float64)
    _refuse_outside("cost", all_costs, (all_costs > 0) & np.isfinite(all_costs), "above 0")
    _refuse_outside("selectivity", chances, (chances >= 0) & (chances <= 1), "0 to 1")
    return all_costs, chances


def _refuse_outside(what: str, values: np.ndarray, is_allowed: np.ndarray, allowed: str) -> None:
    """Raise an error for an invalid statistic, naming its call."""
    if (wrong := np.flatnonzero(~is_allowed)).size:
        call = int(wrong[0])
        raise TamisError(f"the {what} of call {call} is {values[call]}; allowed: {allowed}")


def _make(gates: Gates, costs: Floats, selectivities: Floats) -> Schedule:
    links = find_links(gates, selectivities)
    hardness = 1.0 / np.maximum(
        np.bincount(links.gates, links.rates / costs[links.calls], gates.n_gates), _LEAST
    )
    weights = gates.scale_weights(gates.n_above * hardness)
    total = np.bincount(links.calls, weights[links.gates], gates.n_calls)
    decided = np.bincount(links.calls, weights[links.gates] * links.rates, gates.n_calls)
    # A call that only roots use is forced: its merit is never read.
    rates = np.divide(decided, total, out=np.ones(gates.n_calls), where=total > 0)
    return Schedule(gates, gates.pack_with(weights), rates / costs)


class Links(NamedTuple):
    """Calls in gates: one for each child that is a literal."""

    gates: Ints
    calls: Ints
    rates: Floats  # probability that the call decides the gate: 1 - selectivity in a conjunction


def find_links(gates: Gates, selectivities: Floats) -> Links:
    """The links, with their rates.

    A false child decides an AND and a true one an OR. For k of n, where neither decides alone, each
    gets its share: (k - 1) / (n - 1) for false, (n - k) / (n - 1) for true.
    """
    widths = np.diff(gates.child_starts)
    by_false = np.where(widths > 1, (gates.thresholds - 1) / np.maximum(1, widths - 1), 1.0)
    by_true = np.where(widths > 1, 1.0 - by_false, 1.0)
    owners = np.repeat(np.arange(gates.n_gates), widths)
    is_literal = gates.children < 2 * gates.n_calls
    owners, literals = owners[is_literal], gates.children[is_literal]
    calls = literals // 2
    truth = np.where(literals % 2 == 0, selectivities[calls], 1.0 - selectivities[calls])
    return Links(owners, calls, by_false[owners] * (1.0 - truth) + by_true[owners] * truth)
