"""Naive: subscriptions one by one, independently; only results are shared (Liu §5.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tamis.lab.liu.kernels.walks import NAIVE
from tamis.lab.liu.walk import Walk, make_walk

if TYPE_CHECKING:
    from tamis.operators.schedule.gates import Floats, Gates


def make_naive(gates: Gates, costs: Floats, selectivities: Floats) -> Walk:
    """Subscriptions and calls in the given order; costs and selectivities are not used."""
    del costs, selectivities
    return make_walk(NAIVE, gates, *gates.call_lists)
