"""Chooses the next call in a walk through the subscriptions: one function per schedule of Liu's.

Each returns a call that has not been made, or NONE if no more are needed; until the call has a
result, it returns the same call. A walk stores its position in two numbers; all other data of an
event is in the state of the product's kernels.
"""

from __future__ import annotations

from tamis.kernels.compiled import kernel
from tamis.operators.schedule.kernels.arena import section
from tamis.operators.schedule.kernels.choose import NONE, is_needed
from tamis.operators.schedule.kernels.gates import (
    NOT_MADE,
    POPULARITY,
    RESULTS,
    TRUE,
    UNASKED,
    UNDECIDED,
    VERDICTS,
    clear,
    record_result,
    start,
)

NAIVE, SEQUENTIAL, SUB_ORDER = 0, 1, 2

# The position of a walk: the current subscription, and its next call.
CURSOR, LINK = 0, 1
N_PLACES = 2

# Sections of a walk: subscriptions in order; the calls of each, as starts and calls; which of them
# are conjunctions of their calls.
ORDER, CALL_STARTS, CALLS, IS_CONJUNCTION = range(4)


@kernel
def next_naive(walk, place, state):
    """Each subscription independently, with the results of earlier calls (Liu §5.2).

    A conjunction ends at the first of its calls, in their order, that is not true. Other structures
    end only with their verdict.
    """
    order, starts, calls = section(walk, ORDER), section(walk, CALL_STARTS), section(walk, CALLS)
    verdicts, results = section(state, VERDICTS), section(state, RESULTS)
    while place[CURSOR] < len(order):
        subscription = order[place[CURSOR]]
        is_conjunction = section(walk, IS_CONJUNCTION)[subscription]
        is_left = verdicts[subscription] == UNASKED
        while not is_left and starts[subscription] + place[LINK] < starts[subscription + 1]:
            call = calls[starts[subscription] + place[LINK]]
            if not is_conjunction and verdicts[subscription] != UNDECIDED:
                is_left = True
            elif results[call] == NOT_MADE:
                return call
            elif is_conjunction and results[call] != TRUE:
                is_left = True
            else:
                place[LINK] += 1
        place[CURSOR] += 1
        place[LINK] = 0
    return NONE


@kernel
def next_sequential(walk, place, state):
    """All calls of an undecided subscription that any undecided one needs (Liu, Algorithm 1)."""
    order, starts, calls = section(walk, ORDER), section(walk, CALL_STARTS), section(walk, CALLS)
    verdicts, results = section(state, VERDICTS), section(state, RESULTS)
    popularity = section(state, POPULARITY)
    while place[CURSOR] < len(order):
        subscription = order[place[CURSOR]]
        # A marked subscription (LINK is not 0) is processed to its end, even if it is decided
        # midway.
        if place[LINK] == 0 and verdicts[subscription] == UNDECIDED:
            place[LINK] = 1
        if place[LINK] > 0:
            while starts[subscription] + place[LINK] - 1 < starts[subscription + 1]:
                call = calls[starts[subscription] + place[LINK] - 1]
                if is_needed(popularity, results, call):
                    return call
                place[LINK] += 1
        place[CURSOR] += 1
        place[LINK] = 0
    return NONE


@kernel
def next_sub_order(walk, place, state):
    """The chains one by one, each from its top until it is decided (Liu §4.2.2)."""
    order, starts, calls = section(walk, ORDER), section(walk, CALL_STARTS), section(walk, CALLS)
    verdicts, results = section(state, VERDICTS), section(state, RESULTS)
    popularity = section(state, POPULARITY)
    while place[CURSOR] < len(order):
        subscription = order[place[CURSOR]]
        if verdicts[subscription] == UNDECIDED:
            while starts[subscription] + place[LINK] < starts[subscription + 1]:
                call = calls[starts[subscription] + place[LINK]]
                if is_needed(popularity, results, call):
                    return call
                place[LINK] += 1
        place[CURSOR] += 1
        place[LINK] = 0
    return NONE


@kernel
def next_call(kind, walk, place, state):
    """The call to make now, or NONE."""
    if kind == NAIVE:
        return next_naive(walk, place, state)
    if kind == SEQUENTIAL:
        return next_sequential(walk, place, state)
    return next_sub_order(walk, place, state)


@kernel
def start_event(gates, state, subscriptions):
    """Reset the state, and start an event for which these subscriptions are undecided."""
    clear(state)
    start(gates, state, subscriptions)


@kernel
def advance(kind, walk, place, gates, state, call, result):
    """Take the result of a call; return the call to make now, or NONE."""
    record_result(gates, state, call, result)
    return next_call(kind, walk, place, state)


@kernel
def play(kind, walk, place, gates, state, results):
    """Make all calls of an event whose results, int32[n_calls], are known in advance."""
    call = next_call(kind, walk, place, state)
    while call != NONE:
        record_result(gates, state, call, results[call])
        call = next_call(kind, walk, place, state)
