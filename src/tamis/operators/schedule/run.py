"""Runs a schedule for one event: chooses a call, takes its result, until all is decided."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tamis.operators.schedule.kernels.choose import (
    advance,
    next_call,
    play,
    settle_gate,
    start_event,
)
from tamis.operators.schedule.kernels.gates import (
    FALSE,
    MATCHED,
    N_DECIDED,
    N_MADE,
    N_PENDING,
    N_STARTED,
    NO_RESULT,
    SCRATCH,
    TRUE,
    UNDECIDED,
    view_residue,
)

if TYPE_CHECKING:
    from tamis.operators.schedule.gates import Floats, Gates, Ints

RESULTS = {True: int(TRUE), False: int(FALSE), None: int(NO_RESULT)}


@dataclass(frozen=True, eq=False)
class Schedule:
    """An order of calls for any event; `new_run` returns one event's state."""

    gates: Gates
    arena: Ints  # of the gates, with their weights
    merits: Floats  # [n_calls]: priorities are popularity × merit

    def new_run(self) -> EventRun:
        """A state that can be reused for one event after the other."""
        return EventRun(self)

    @cached_property
    def fresh(self) -> Ints:
        """The state of an event for which nothing is decided yet, without its scratch.

        Copying it takes a tenth of the time of opening all gates again.
        """
        run = self.new_run()
        run.start(np.arange(self.gates.n_subscriptions, dtype=np.int32))
        return run.state[: run.state[SCRATCH]]


class EventRun:
    """The state of one event.

    After `start`, `next_call` and `record_result` alternate until no call is left; then every
    subscription that was undecided is decided.
    """

    def __init__(self, schedule: Schedule) -> None:
        self._schedule = schedule
        self._gates = schedule.arena
        self._merits = schedule.merits
        self.state = schedule.gates.new_residue()
        self._residue = view_residue(self.state)

    def start(self, undecided: Ints | None = None) -> None:
        """Start an event; all subscriptions are undecided unless some are given, int32[:]."""
        if undecided is None:
            fresh = self._schedule.fresh
            self.state[: len(fresh)] = fresh
        else:
            start_event(self._gates, self.state, self._merits, undecided)

    def next_call(self) -> int:
        """The call to make now, or -1 if none is left."""
        call: int = next_call(self.state, self._merits)
        return call

    def record_result(self, call: int, result: bool | None) -> int:
        """Record the result of a call, None if it has none, as after a fault; return the call to
        make now.

        A result that no subscription needs, or a second one of the same call, has no effect.
        """
        following: int = advance(self._gates, self.state, self._merits, call, RESULTS[result])
        return following

    def settle(self, gate: int, is_true: bool) -> None:
        """Take the caller's decision on a gate of `pending`."""
        settle_gate(self._gates, self.state, gate, is_true)

    def play(self, results: Ints) -> None:
        """Make all calls at once if every result is known: 1 false, 2 true, 3 none."""
        play(self._gates, self.state, self._merits, results)

    def _list(self, items: Ints, counter: int) -> Ints:
        return items[: self._residue.counters[counter]]

    @property
    def decided(self) -> Ints:
        """Subscriptions in the order in which they were decided."""
        return self._list(self._residue.decided, N_DECIDED)

    @property
    def undecided(self) -> Ints:
        """Subscriptions of this event that are still undecided, as after a limit was reached."""
        started = self._list(self._residue.started, N_STARTED)
        return np.setdiff1d(started, self.decided)

    def only_undecided(self, subscriptions: Ints) -> Ints:
        """The given subscriptions that are part of this event and still undecided."""
        open_ones: Ints = subscriptions[self._residue.verdicts[subscriptions] == UNDECIDED]
        return open_ones

    @property
    def matched(self) -> Ints:
        """Subscriptions that are true, in the order in which they were decided."""
        decided = self.decided
        found: Ints = decided[self._residue.verdicts[decided] == MATCHED]
        return found

    @property
    def made(self) -> Ints:
        """Calls whose results were passed to `record_result`, in that order."""
        return self._list(self._residue.made, N_MADE)

    @property
    def pending(self) -> Ints:
        """Joined gates whose children are true, in the order in which they became so, settled or
        not.
        """
        return self._list(self._residue.pending, N_PENDING)

    @property
    def popularity(self) -> Ints:
        """The weight of the undecided subscriptions of each call; 0 if none depends on it."""
        popularity: Ints = self._residue.popularity
        return popularity
