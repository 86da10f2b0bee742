"""Sequential: mark an undecided subscription, make its calls; eliminations are shared (Liu §4.1).

No marked subscription can be decided by the calls of another, so any schedule makes at least one
call for each, and this one at most d, the calls of the longest subscription: a d-approximation, and
d · C_max / C_min where costs differ (§4.3).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.operators.schedules.kernels.choose import SEQUENTIAL
from tamis.operators.schedules.naive import NO_MERITS, pack_walk
from tamis.operators.schedules.run import Schedule

if TYPE_CHECKING:
    from tamis.operators.schedules.gates import Floats, Gates


def make_sequential(gates: Gates, costs: Floats, selectivities: Floats) -> Schedule:
    """Subscriptions and calls as they come: the guarantee holds for any order."""
    del costs, selectivities
    return Schedule(SEQUENTIAL, gates, pack_walk(gates, *gates.call_lists), NO_MERITS, gates.arena)
