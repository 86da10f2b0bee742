"""All schedules over the same events: the calls made, and the cost of choosing them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.lab.experiments.measure import DisagreementError
from tamis.lab.liu import SCHEDULES, make_schedule
from tamis.operators.schedule import Gates
from tamis.operators.schedule.kernels.gates import FALSE, TRUE

if TYPE_CHECKING:
    from tamis.lab.workloads.overlaps import Overlaps
    from tamis.operators.schedule import Schedule


class Played(NamedTuple):
    """The result of a schedule."""

    name: str
    schedule: Schedule
    build_seconds: float
    calls: float  # per event
    matches: float
    microseconds: float  # of CPU time per call


def play_all(workload: Overlaps, n_events: int) -> list[Played]:
    """A result for each schedule; all must find the same matches."""
    gates = Gates.conjunctions(*workload.conjunctions, workload.params.n_calls)
    played: list[Played] = []
    for name in SCHEDULES:
        begun = time.process_time()
        schedule = make_schedule(name, gates, 1.0, workload.selectivities)
        built = time.process_time() - begun
        played.append(Played(name, schedule, built, *play(schedule, workload, n_events)))
        found, wanted = played[-1].matches, played[0].matches
        if found != wanted:
            raise DisagreementError(f"{name} finds {found} matches of an event, and not {wanted}")
    return played


def play(schedule: Schedule, workload: Overlaps, n_events: int) -> tuple[float, float, float]:
    """Calls and matches of an event, and CPU microseconds per call."""
    event = schedule.new_run()
    n_made, n_matched, seconds = 0, 0, 0.0
    for at in range(-1, n_events):  # the first pass warms up
        results = draw_results(workload, max(at, 0))
        begun = time.process_time()
        event.start()
        event.play(results)
        if at >= 0:
            seconds += time.process_time() - begun
            n_made += event.made.size
            n_matched += event.matched.size
    return n_made / n_events, n_matched / n_events, 1e6 * seconds / max(1, n_made)


def draw_results(workload: Overlaps, event: int) -> np.ndarray:
    """The results of an event, in the form that a run takes."""
    return np.where(workload.is_true(event), TRUE, FALSE).astype(np.int32)
