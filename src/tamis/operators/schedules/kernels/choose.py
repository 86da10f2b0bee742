"""Which call is next: one function per schedule, all over the same state.

Each returns a call that was not made yet, or NONE when it needs no more; asked again before it is
told a result, it returns the same. The walks keep their place in two counters, the adaptive
schedule keeps a queue of buckets.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.operators.schedules.kernels.arena import section
from tamis.operators.schedules.kernels.gates import (
    ASKED,
    BUCKET,
    BUCKETS,
    COUNTERS,
    CURSOR,
    FORCED,
    LINK,
    N_ASKED,
    N_BUCKETS,
    N_FORCED,
    NOT_MADE,
    POPULARITY,
    QUEUE,
    RESULTS,
    TOP,
    TRUE,
    UNASKED,
    UNDECIDED,
    VERDICTS,
    clear,
    settle,
    start,
    tell,
)

NONE = np.int32(-1)
NAIVE, SEQUENTIAL, SUB_ORDER, ADAPTIVE = 0, 1, 2, 3

STEPS_PER_OCTAVE = 64.0
LEAST_PRIORITY = 1e-300  # of a call that is always true: it decides nothing, and is made last


# Sections of a walk: subscriptions in the order in which they are taken; the calls of each, as
# starts and calls; which of them are conjunctions of their calls.
ORDER, CALL_STARTS, CALLS, IS_CONJUNCTION = range(4)


@kernel
def next_naive(walk, state):
    """Each subscription by itself, with the results of earlier calls (Liu §5.2).

    A conjunction is left at the first of its calls, in their order, that is not true. Of other
    structures only the verdict says that they are done.
    """
    order, starts, calls = section(walk, ORDER), section(walk, CALL_STARTS), section(walk, CALLS)
    counters, verdicts, results = (
        section(state, COUNTERS),
        section(state, VERDICTS),
        section(state, RESULTS),
    )
    while counters[CURSOR] < len(order):
        subscription = order[counters[CURSOR]]
        is_conjunction = section(walk, IS_CONJUNCTION)[subscription]
        is_left = verdicts[subscription] == UNASKED
        while not is_left and starts[subscription] + counters[LINK] < starts[subscription + 1]:
            call = calls[starts[subscription] + counters[LINK]]
            if not is_conjunction and verdicts[subscription] != UNDECIDED:
                is_left = True
            elif results[call] == NOT_MADE:
                return call
            elif is_conjunction and results[call] != TRUE:
                is_left = True
            else:
                counters[LINK] += 1
        counters[CURSOR] += 1
        counters[LINK] = 0
    return NONE


@kernel
def next_sequential(walk, state):
    """All calls of an undecided subscription that any undecided one needs (Liu, Algorithm 1)."""
    order, starts, calls = section(walk, ORDER), section(walk, CALL_STARTS), section(walk, CALLS)
    counters, verdicts = section(state, COUNTERS), section(state, VERDICTS)
    popularity, results = section(state, POPULARITY), section(state, RESULTS)
    while counters[CURSOR] < len(order):
        subscription = order[counters[CURSOR]]
        # Once marked (LINK is not 0), it is gone through to its end, though it be decided midway.
        if counters[LINK] == 0 and verdicts[subscription] == UNDECIDED:
            counters[LINK] = 1
        if counters[LINK] > 0:
            while starts[subscription] + counters[LINK] - 1 < starts[subscription + 1]:
                call = calls[starts[subscription] + counters[LINK] - 1]
                if is_needed(popularity, results, call):
                    return call
                counters[LINK] += 1
        counters[CURSOR] += 1
        counters[LINK] = 0
    return NONE


@kernel
def next_sub_order(walk, state):
    """The chains one by one, each from its top until it is decided (Liu §4.2.2)."""
    order, starts, calls = section(walk, ORDER), section(walk, CALL_STARTS), section(walk, CALLS)
    counters, verdicts = section(state, COUNTERS), section(state, VERDICTS)
    popularity, results = section(state, POPULARITY), section(state, RESULTS)
    while counters[CURSOR] < len(order):
        subscription = order[counters[CURSOR]]
        if verdicts[subscription] == UNDECIDED:
            while starts[subscription] + counters[LINK] < starts[subscription + 1]:
                call = calls[starts[subscription] + counters[LINK]]
                if is_needed(popularity, results, call):
                    return call
                counters[LINK] += 1
        counters[CURSOR] += 1
        counters[LINK] = 0
    return NONE


@kernel(inline="always")
def is_needed(popularity, results, call):
    """Whether the call was not made, and an undecided subscription depends on it."""
    return popularity[call] > 0 and results[call] == NOT_MADE


@kernel
def start_adaptive(state, merits):
    """Put the calls that are asked for into buckets, by popularity × merit."""
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
    """Priorities that differ by about one part in a hundred are on different steps."""
    return np.int32(np.floor(STEPS_PER_OCTAVE * np.log2(max(priority, LEAST_PRIORITY))))


@kernel(inline="always")
def bucket_of(popularity, merits, top, call):
    """The bucket of a call's present priority; the lowest takes all that is too low for others."""
    return max(0, N_BUCKETS - 1 - (top - step_of(popularity[call] * merits[call])))


@kernel(inline="always")
def put(buckets, queue, call, bucket):
    """Put a call first into a bucket."""
    queue[call] = buckets[bucket]
    buckets[bucket] = call + 1


@kernel
def next_adaptive(state, merits):
    """A call that must be made in any case, else one of the highest bucket.

    Popularities only fall, so no call is in too low a bucket: it is enough to look again at the
    calls of the highest one, and to put those that have fallen where they belong.
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
def next_call(kind, walk, state, merits):
    """The call to make now, or NONE."""
    if kind == NAIVE:
        return next_naive(walk, state)
    if kind == SEQUENTIAL:
        return next_sequential(walk, state)
    if kind == SUB_ORDER:
        return next_sub_order(walk, state)
    return next_adaptive(state, merits)


@kernel
def start_event(kind, gates, state, merits, subscriptions):
    """Forget the last event and begin one for which these subscriptions are undecided."""
    clear(state)
    start(gates, state, subscriptions)
    if kind == ADAPTIVE:
        start_adaptive(state, merits)


@kernel
def advance(kind, gates, walk, state, merits, call, result):
    """Take the result of a call; the call to make now, or NONE."""
    tell(gates, state, call, result)
    return next_call(kind, walk, state, merits)


@kernel
def settle_gate(gates, state, gate, is_true):
    """Take the caller's word on a joined gate."""
    settle(gates, state, 2 * len(section(state, RESULTS)) + gate, is_true)


@kernel
def play(kind, gates, walk, state, merits, results):
    """Make all calls of an event whose results, int32[n_calls], are known beforehand."""
    call = next_call(kind, walk, state, merits)
    while call != NONE:
        tell(gates, state, call, results[call])
        call = next_call(kind, walk, state, merits)
