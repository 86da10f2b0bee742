"""Which call is next: one function per schedule, all over the same state.

Each returns a call that was not made yet, or NONE when it needs no more; asked again before it is
told a result, it returns the same. The walks keep their place in two counters, the adaptive
schedule keeps a queue of buckets.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from tamis.operators.schedules.kernels.arena import section
from tamis.operators.schedules.kernels.gates import (
    BUCKET,
    CURSOR,
    LINK,
    N_ASKED,
    N_BUCKETS,
    N_FORCED,
    NOT_MADE,
    TOP,
    TRUE,
    UNASKED,
    UNDECIDED,
    clear,
    is_needed,
    settle,
    start,
    tell,
    view_gates,
    view_residue,
)

NONE = np.int32(-1)
NAIVE, SEQUENTIAL, SUB_ORDER, ADAPTIVE = 0, 1, 2, 3

STEPS_PER_OCTAVE = 64.0
LEAST_PRIORITY = 1e-300  # of a call that is always true: it decides nothing, and is made last


class Walk(NamedTuple):
    """Subscriptions in the order in which they are taken, each with its calls in order."""

    order: np.ndarray  # int32[n_subscriptions]
    call_starts: np.ndarray  # int32[n_subscriptions + 1]
    calls: np.ndarray  # int32[:]
    is_conjunction: np.ndarray  # int32[n_subscriptions], of its calls


@njit(cache=True, nogil=True)
def view_walk(arena):
    """The walk in an arena."""
    return Walk(section(arena, 0), section(arena, 1), section(arena, 2), section(arena, 3))


@njit(cache=True, nogil=True)
def next_naive(walk, residue):
    """Each subscription by itself, with the results of earlier calls (Liu §5.2).

    A conjunction is left at the first of its calls, in their order, that is not true. Of other
    structures only the verdict says that they are done.
    """
    counters = residue.counters
    while counters[CURSOR] < len(walk.order):
        subscription = walk.order[counters[CURSOR]]
        is_conjunction = walk.is_conjunction[subscription]
        begin, end = walk.call_starts[subscription], walk.call_starts[subscription + 1]
        is_left = residue.verdicts[subscription] == UNASKED
        while not is_left and begin + counters[LINK] < end:
            call = walk.calls[begin + counters[LINK]]
            result = residue.results[call]
            if not is_conjunction and residue.verdicts[subscription] != UNDECIDED:
                is_left = True
            elif result == NOT_MADE:
                return call
            elif is_conjunction and result != TRUE:
                is_left = True
            else:
                counters[LINK] += 1
        counters[CURSOR] += 1
        counters[LINK] = 0
    return NONE


@njit(cache=True, nogil=True)
def next_sequential(walk, residue):
    """All calls of an undecided subscription that any undecided one needs (Liu, Algorithm 1)."""
    counters = residue.counters
    while counters[CURSOR] < len(walk.order):
        subscription = walk.order[counters[CURSOR]]
        # Once marked (LINK is not 0), it is gone through to its end, though it be decided midway.
        if counters[LINK] == 0 and residue.verdicts[subscription] == UNDECIDED:
            counters[LINK] = 1
        if counters[LINK] > 0:
            begin, end = walk.call_starts[subscription] - 1, walk.call_starts[subscription + 1]
            while begin + counters[LINK] < end:
                call = walk.calls[begin + counters[LINK]]
                if is_needed(residue, call):
                    return call
                counters[LINK] += 1
        counters[CURSOR] += 1
        counters[LINK] = 0
    return NONE


@njit(cache=True, nogil=True)
def next_sub_order(walk, residue):
    """The chains one by one, each from its top until it is decided (Liu §4.2.2)."""
    counters = residue.counters
    while counters[CURSOR] < len(walk.order):
        subscription = walk.order[counters[CURSOR]]
        if residue.verdicts[subscription] == UNDECIDED:
            begin, end = walk.call_starts[subscription], walk.call_starts[subscription + 1]
            while begin + counters[LINK] < end:
                call = walk.calls[begin + counters[LINK]]
                if is_needed(residue, call):
                    return call
                counters[LINK] += 1
        counters[CURSOR] += 1
        counters[LINK] = 0
    return NONE


@njit(cache=True, nogil=True)
def start_adaptive(residue, merits):
    """Put the calls that are asked for into buckets, by popularity × merit."""
    n_asked = residue.counters[N_ASKED]
    highest = 0.0
    for call in residue.asked[:n_asked]:
        highest = max(highest, residue.popularity[call] * merits[call])
    residue.buckets[:] = 0
    residue.counters[BUCKET] = N_BUCKETS - 1
    residue.counters[TOP] = step_of(highest)
    for call in residue.asked[:n_asked]:
        bucket = bucket_of(residue.popularity, merits, residue.counters[TOP], call)
        put(residue.buckets, residue.queue, call, bucket)


@njit(cache=True, nogil=True, inline="always")
def step_of(priority):
    """Priorities that differ by about one part in a hundred are on different steps."""
    return np.int32(np.floor(STEPS_PER_OCTAVE * np.log2(max(priority, LEAST_PRIORITY))))


@njit(cache=True, nogil=True, inline="always")
def bucket_of(popularity, merits, top, call):
    """The bucket of a call's present priority; the lowest takes all that is too low for others."""
    return max(0, N_BUCKETS - 1 - (top - step_of(popularity[call] * merits[call])))


@njit(cache=True, nogil=True, inline="always")
def put(buckets, queue, call, bucket):
    """Put a call first into a bucket."""
    queue[call] = buckets[bucket]
    buckets[bucket] = call + 1


@njit(cache=True, nogil=True)
def next_adaptive(residue, merits):
    """A call that must be made in any case, else one of the highest bucket.

    Popularities only fall, so no call is in too low a bucket: it is enough to look again at the
    calls of the highest one, and to put those that have fallen where they belong.
    """
    counters, forced, results = residue.counters, residue.forced, residue.results
    popularity, buckets, queue = residue.popularity, residue.buckets, residue.queue
    while counters[N_FORCED] > 0:
        call = forced[counters[N_FORCED] - 1]
        if popularity[call] > 0 and results[call] == NOT_MADE:
            return call
        counters[N_FORCED] -= 1
    while counters[BUCKET] >= 0:
        call = buckets[counters[BUCKET]] - 1
        if call < 0:
            counters[BUCKET] -= 1
            continue
        buckets[counters[BUCKET]] = queue[call]
        if popularity[call] > 0 and results[call] == NOT_MADE:
            bucket = bucket_of(popularity, merits, counters[TOP], call)
            put(buckets, queue, call, bucket)
            if bucket == counters[BUCKET]:
                return call
    return NONE


@njit(cache=True, nogil=True)
def choose(kind, walk, residue, merits):
    """The next call of a schedule, or NONE."""
    if kind == NAIVE:
        return next_naive(walk, residue)
    if kind == SEQUENTIAL:
        return next_sequential(walk, residue)
    if kind == SUB_ORDER:
        return next_sub_order(walk, residue)
    return next_adaptive(residue, merits)


@njit(cache=True, nogil=True)
def next_call(kind, walk_arena, state_arena, merits):
    """The call to make now, or NONE."""
    return choose(kind, view_walk(walk_arena), view_residue(state_arena), merits)


@njit(cache=True, nogil=True)
def start_event(kind, gates_arena, state_arena, merits, subscriptions):
    """Forget the last event and begin one for which these subscriptions are undecided."""
    residue = view_residue(state_arena)
    clear(residue)
    start(view_gates(gates_arena), residue, subscriptions)
    if kind == ADAPTIVE:
        start_adaptive(residue, merits)


@njit(cache=True, nogil=True)
def advance(kind, gates_arena, walk_arena, state_arena, merits, call, result):
    """Take the result of a call; the call to make now, or NONE."""
    residue = view_residue(state_arena)
    tell(view_gates(gates_arena), residue, call, result)
    return choose(kind, view_walk(walk_arena), residue, merits)


@njit(cache=True, nogil=True)
def settle_gate(gates_arena, state_arena, gate, is_true):
    """Take the caller's word on a joined gate."""
    residue = view_residue(state_arena)
    settle(view_gates(gates_arena), residue, 2 * len(residue.popularity) + gate, is_true)


@njit(cache=True, nogil=True)
def play(kind, gates_arena, walk_arena, state_arena, merits, results):
    """Make all calls of an event whose results, int32[n_calls], are known beforehand."""
    gates, residue, walk = view_gates(gates_arena), view_residue(state_arena), view_walk(walk_arena)
    call = choose(kind, walk, residue, merits)
    while call != NONE:
        tell(gates, residue, call, results[call])
        call = choose(kind, walk, residue, merits)
