"""A walk: a schedule that processes the subscriptions in an order that does not depend on
results.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamis.lab.liu.kernels.walks import N_PLACES, advance, next_call, play, start_event
from tamis.operators.schedule.kernels.arena import pack
from tamis.operators.schedule.run import RESULTS, EventRun, Schedule

if TYPE_CHECKING:
    from tamis.operators.schedule.gates import Floats, Gates, Ints

_NO_MERITS: Floats = np.zeros(0)


@dataclass(frozen=True, eq=False)
class Walk(Schedule):
    """Subscriptions in order, each with its calls in order."""

    kind: int  # NAIVE, SEQUENTIAL or SUB_ORDER
    walk: Ints  # an arena: order, starts of calls, calls, which are conjunctions

    def new_run(self) -> WalkRun:
        """A state that can be reused for one event after the other."""
        return WalkRun(self)


class WalkRun(EventRun):
    """The state of one event, and the position of the walk."""

    def __init__(self, walk: Walk) -> None:
        super().__init__(walk)
        self._place = np.zeros(N_PLACES, dtype=np.int32)
        self._way = (walk.kind, walk.walk, self._place)

    def start(self, undecided: Ints | None = None) -> None:
        """Start an event; all subscriptions are undecided unless some are given, int32[:]."""
        self._place[:] = 0
        if undecided is None:
            super().start()
        else:
            start_event(self._gates, self.state, undecided)

    def next_call(self) -> int:
        """The call to make now, or -1 if none is left."""
        call: int = next_call(*self._way, self.state)
        return call

    def record_result(self, call: int, result: bool | None) -> int:
        """Take the result of a call, None if it has none; return the call to make now."""
        following: int = advance(*self._way, self._gates, self.state, call, RESULTS[result])
        return following

    def play(self, results: Ints) -> None:
        """Make all calls at once if every result is known: 1 false, 2 true, 3 none."""
        play(*self._way, self._gates, self.state, results)


def make_walk(
    kind: int, gates: Gates, starts: Ints, calls: Ints, order: Ints | None = None
) -> Walk:
    """A walk through these lists of calls; subscriptions in the given order unless an order is
    passed.
    """
    every = np.arange(gates.n_subscriptions) if order is None else order
    arena = gates.pack_with(gates.scale_weights(gates.n_above))
    walk = pack([every, starts, calls, find_conjunctions(gates)])
    return Walk(gates, arena, _NO_MERITS, kind, walk)


def find_conjunctions(gates: Gates) -> Ints:
    """1 for each subscription that is a call or an AND of calls."""
    n_literals = 2 * gates.n_calls
    is_plain = gates.thresholds == np.diff(gates.child_starts)
    is_call = (gates.children < n_literals) & (gates.children % 2 == 0)
    if gates.n_gates:
        is_plain &= np.add.reduceat(~is_call, gates.child_starts[:-1]) == 0
    literal = np.tile([True, False], gates.n_calls)
    return np.concatenate((literal, is_plain))[gates.roots].astype(np.int32)
