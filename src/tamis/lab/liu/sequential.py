"""Sequential: mark an undecided subscription, make its calls; eliminations are shared (Liu §4.1).

No marked subscription can be decided by the calls of another, so any schedule makes at least one
call for each, and this one at most d, the calls of the longest subscription: a d-approximation, and
d · C_max / C_min if costs differ (§4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lab.liu.kernels.walks import SEQUENTIAL
from tamis.lab.liu.walk import Walk, make_walk

if TYPE_CHECKING:
    from tamis.operators.schedule.gates import Floats, Gates


def make_sequential(gates: Gates, costs: Floats, selectivities: Floats) -> Walk:
    """Subscriptions and calls in the given order: the guarantee holds for any order."""
    del costs, selectivities
    return make_walk(SEQUENTIAL, gates, *gates.call_lists)
