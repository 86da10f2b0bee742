"""Naive: subscriptions one by one, each by itself; only results are shared (Liu §5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.operators.schedules.kernels.arena import pack
from tamis.operators.schedules.kernels.choose import NAIVE
from tamis.operators.schedules.run import Schedule

if TYPE_CHECKING:
    from tamis.operators.schedules.gates import Floats, Gates, Ints

NO_MERITS: Floats = np.zeros(0)


def make_naive(gates: Gates, costs: Floats, selectivities: Floats) -> Schedule:
    """Subscriptions and calls as they come; costs and selectivities are not looked at."""
    del costs, selectivities
    return Schedule(NAIVE, gates, pack_walk(gates, *gates.call_lists), NO_MERITS, gates.arena)


def pack_walk(gates: Gates, starts: Ints, calls: Ints, order: Ints | None = None) -> Ints:
    """An arena for a walk; subscriptions as they come unless an order is given."""
    every = np.arange(gates.n_subscriptions) if order is None else order
    return pack([every, starts, calls, gates.is_conjunction])
