"""Chooses the next call: the adaptive schedule's queue of buckets, over the state of one event."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.operators.schedule.kernels.arena import section
from tamis.operators.schedule.kernels.gates import (
    ASKED,
    BUCKET,
    BUCKETS,
    COUNTERS,
    FORCED,
    N_ASKED,
    N_BUCKETS,
    N_FORCED,
    NOT_MADE,
    POPULARITY,
    QUEUE,
    RESULTS,
    TOP,
    clear,
    record_result,
    settle,
    start,
)

NONE = np.int32(-1)

STEPS_PER_OCTAVE = 64.0
LEAST_PRIORITY = 1e-300  # of a call that is always true: it decides nothing, and is made last


@kernel(inline="always")
def is_needed(popularity, results, call):
    """Whether the call has not been made and an undecided subscription depends on it."""
    return popularity[call] > 0 and results[call] == NOT_MADE


@kernel
def fill_queue(state, merits):
    """Put the needed calls into buckets, by popularity × merit."""
    counters, popularity = section(state, COUNTERS), section(state, POPULARITY)
    asked, buckets, queue = section(state, ASKED), section(state, BUCKETS), section(state, QUEUE)
    highest = 0.0
    for call in asked[: counters[N_ASKED]]:
        highest = max(highest, popularity[call] * merits[call])
    buckets[:] = 0
    counters[BUCKET] = N_BUCKETS - 1
    counters[TOP] = step_of(highest)
    for call in asked[: counters[N_ASKED]]:
        put(buckets, queue, call, bucket_of(popularity, merits, counters[TOP], call))


@kernel(inline="always")
def step_of(priority):
    """The step of a priority; priorities that differ by about one per cent have different steps."""
    return np.int32(np.floor(STEPS_PER_OCTAVE * np.log2(max(priority, LEAST_PRIORITY))))


@kernel(inline="always")
def bucket_of(popularity, merits, top, call):
    """The bucket of a call's current priority; the lowest bucket takes all lower priorities."""
    return max(0, N_BUCKETS - 1 - (top - step_of(popularity[call] * merits[call])))


@kernel(inline="always")
def put(buckets, queue, call, bucket):
    """Insert a call at the front of a bucket."""
    queue[call] = buckets[bucket]
    buckets[bucket] = call + 1


@kernel
def next_call(state, merits):
    """A call that must be made in any case, else one of the highest bucket, or NONE.

    Until the call has a result, this returns the same call.

    Popularities only decrease, so no call is in too low a bucket: it is enough to check the calls
    of the highest bucket and to move those whose priority has decreased.
    """
    counters, results, popularity = (
        section(state, COUNTERS),
        section(state, RESULTS),
        section(state, POPULARITY),
    )
    forced, buckets, queue = section(state, FORCED), section(state, BUCKETS), section(state, QUEUE)
    while counters[N_FORCED] > 0:
        call = forced[counters[N_FORCED] - 1]
        if is_needed(popularity, results, call):
            return call
        counters[N_FORCED] -= 1
    while counters[BUCKET] >= 0:
        call = buckets[counters[BUCKET]] - 1
        if call < 0:
            counters[BUCKET] -= 1
            continue
        buckets[counters[BUCKET]] = queue[call]
        if is_needed(popularity, results, call):
            bucket = bucket_of(popularity, merits, counters[TOP], call)
            put(buckets, queue, call, bucket)
            if bucket == counters[BUCKET]:
                return call
    return NONE


@kernel
def start_event(gates, state, merits, subscriptions):
    """Reset the state, and start an event for which these subscriptions are undecided."""
    clear(state)
    start(gates, state, subscriptions)
    fill_queue(state, merits)


@kernel
def advance(gates, state, merits, call, result):
    """Take the result of a call; return the call to make now, or NONE."""
    record_result(gates, state, call, result)
    return next_call(state, merits)


@kernel
def settle_gate(gates, state, gate, is_true):
    """Take the caller's decision on a joined gate."""
    settle(gates, state, 2 * len(section(state, RESULTS)) + gate, is_true)


@kernel
def play(gates, state, merits, results):
    """Make all calls of an event whose results, int32[n_calls], are known in advance."""
    call = next_call(state, merits)
    while call != NONE:
        record_result(gates, state, call, results[call])
        call = next_call(state, merits)
