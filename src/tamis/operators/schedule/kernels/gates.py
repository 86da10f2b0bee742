"""The state of one event: gates over calls, decided bottom-up and released top-down.

A node is a literal or a gate. Literal 2c means that call c is true, literal 2c + 1 that it is
false; a call without a result makes both false. A gate is true if `threshold` of its children are,
and false if too few can become true: AND requires all, OR one. Gates come after their children.

A gate is *used* by each open gate above it and by each undecided subscription at it. A gate that is
decided, or no longer used, is closed and no longer uses its children: so a call is needed exactly
while some undecided subscription depends on it.

Functions get two arenas, that of the gates and that of the event's state, and extract the arrays
they need, so that Python passes little at every step.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.kernels.prefetch import prefetch_row
from tamis.operators.schedule.kernels.arena import pack, section

# Results of calls.
NOT_MADE, FALSE, TRUE, NO_RESULT = np.int32(0), np.int32(1), np.int32(2), np.int32(3)
# Verdicts on subscriptions.
UNASKED, UNDECIDED, REFUSED, MATCHED = np.int32(0), np.int32(1), np.int32(2), np.int32(3)

# The constant fields of a node, adjacent: a cache line holds all that a result touches.
THRESHOLD, WEIGHT, CHILDREN, CHILDREN_END, PARENTS, PARENTS_END, ROOTED, ROOTED_END = range(8)
RECORD = 8
# The open state of a gate, likewise; TO_TRUE and TO_FALSE count the children needed to decide it.
USES, TO_TRUE, TO_FALSE = range(3)
OPEN = 4

# Indices into the section of counters.
N_STARTED, N_DECIDED, N_PENDING, N_MADE, N_TOUCHED, N_ASKED = 0, 1, 2, 3, 4, 5
N_FORCED, BUCKET, TOP = 6, 7, 8
N_COUNTERS = 9
N_BUCKETS = 4096  # of the schedule's queue
AHEAD = 8  # gates lie anywhere: prefetches the memory of a parent this far ahead

# Sections of the arenas, in the order of the tuples below.
RECORDS, ALL_CHILDREN, ALL_PARENTS, ALL_ROOTED, ROOTS, IS_JOINED = range(6)
COUNTERS, RESULTS, POPULARITY, OPEN_GATES, VERDICTS, STARTED, TOUCHED, ASKED = range(8)
FORCED, BUCKETS, QUEUE, DECIDED, PENDING, MADE, SETTLING, RELEASING = range(8, 16)


class GateArrays(NamedTuple):
    """The structure, which is the same for all events."""

    records: np.ndarray  # int32[RECORD · n_nodes]
    children: np.ndarray  # int32[:], nodes
    parents: np.ndarray  # int32[:], gates
    rooted: np.ndarray  # int32[:], subscriptions
    roots: np.ndarray  # int32[n_subscriptions], nodes
    is_joined: np.ndarray  # int32[n_gates], 1 if the caller decides that the gate is TRUE


class Residue(NamedTuple):
    """The open state of one event; all zero before and after it, except scratch."""

    counters: np.ndarray  # int32[N_COUNTERS]
    results: np.ndarray  # int32[n_calls]
    popularity: np.ndarray  # int32[n_calls], weights of the open gates above the call
    open_gates: np.ndarray  # int32[OPEN · n_gates]
    verdicts: np.ndarray  # int32[n_subscriptions]
    started: np.ndarray  # int32[n_subscriptions], list
    touched: np.ndarray  # int32[n_gates], list: gates to clear
    asked: np.ndarray  # int32[n_calls], list: calls that are needed at the start
    forced: np.ndarray  # int32[n_calls], stack: calls that some subscription requires
    buckets: np.ndarray  # int32[N_BUCKETS], the first call of each, + 1
    queue: np.ndarray  # int32[n_calls], the call after each in its bucket, + 1
    # From here on scratch, and lists that are empty at first.
    decided: np.ndarray  # int32[n_subscriptions], list
    pending: np.ndarray  # int32[n_gates], list: joined gates whose children are true
    made: np.ndarray  # int32[n_calls], list: calls with a result
    settling: np.ndarray  # int32[n_gates + 1], stack: 2 · node + is_true
    releasing: np.ndarray  # int32[n_gates + 1], stack


SCRATCH = DECIDED


def pack_residue(n_calls: int, n_gates: int, n_subscriptions: int) -> np.ndarray:
    """An arena for the state of one event."""
    sizes = {
        "counters": N_COUNTERS,
        "results": n_calls,
        "popularity": n_calls,
        "open_gates": OPEN * n_gates,
        "verdicts": n_subscriptions,
        "started": n_subscriptions,
        "touched": n_gates,
        "asked": n_calls,
        "forced": n_calls,
        "buckets": N_BUCKETS,
        "queue": n_calls,
        "decided": n_subscriptions,
        "pending": n_gates,
        "made": n_calls,
        "settling": n_gates + 1,
        "releasing": n_gates + 1,
    }
    return pack([sizes[name] for name in Residue._fields])


def view_residue(arena: np.ndarray) -> Residue:
    """An event's state, as read by Python."""
    # By plain slices: an array that a kernel derives from another does not keep that one alive.
    ends = arena[: len(Residue._fields) + 1].tolist()
    return Residue(*(arena[begin:end] for begin, end in pairwise(ends)))


@kernel(inline="always")
def push(stack, counters, size, item):
    """Append to a list whose length is a counter."""
    stack[counters[size]] = item
    counters[size] += 1


# ── the start of an event ─────────────────────────────────────────────────────────────────────


@kernel
def start(gates, state, subscriptions):
    """Start an event for which these subscriptions are undecided."""
    roots, counters, open_gates = (
        section(gates, ROOTS),
        section(state, COUNTERS),
        section(state, OPEN_GATES),
    )
    verdicts, started = section(state, VERDICTS), section(state, STARTED)
    popularity, asked = section(state, POPULARITY), section(state, ASKED)
    n_literals = 2 * len(popularity)
    for subscription in subscriptions:
        if verdicts[subscription] != UNASKED:
            continue
        verdicts[subscription] = UNDECIDED
        push(started, counters, N_STARTED, subscription)
        node = roots[subscription]
        if node < n_literals:
            ask(popularity, asked, counters, node >> 1, 1)
            push_forced(section(state, FORCED), counters, node >> 1)
            continue
        gate = node - n_literals
        open_below(gates, state, gate)
        if open_gates[OPEN * gate + TO_TRUE] == 1 and open_gates[OPEN * gate + TO_FALSE] == 1:
            find_forced(gates, state, gate)


@kernel(inline="always")
def ask(popularity, asked, counters, call, weight):
    """Count a use of a call."""
    if popularity[call] == 0:
        push(asked, counters, N_ASKED, call)
    popularity[call] += weight


@kernel
def open_below(gates, state, first):
    """Count a use of the gate, and on its first use those of all below."""
    records, children = section(gates, RECORDS), section(gates, ALL_CHILDREN)
    popularity, asked, counters = (
        section(state, POPULARITY),
        section(state, ASKED),
        section(state, COUNTERS),
    )
    open_gates, releasing, touched = (
        section(state, OPEN_GATES),
        section(state, RELEASING),
        section(state, TOUCHED),
    )
    n_literals = 2 * len(popularity)
    releasing[0] = first
    n_left = add_use(records, open_gates, touched, counters, n_literals, first)
    while n_left:
        n_left -= 1
        record = RECORD * (n_literals + releasing[n_left])
        weight = records[record + WEIGHT]
        for slot in range(records[record + CHILDREN], records[record + CHILDREN_END]):
            child = children[slot]
            if child < n_literals:
                ask(popularity, asked, counters, child >> 1, weight)
                continue
            gate = child - n_literals
            if add_use(records, open_gates, touched, counters, n_literals, gate):
                releasing[n_left] = gate
                n_left += 1


@kernel(inline="always")
def add_use(records, open_gates, touched, counters, n_literals, gate):
    """Count one use of one gate; return 1 if it is the first."""
    here = OPEN * gate
    open_gates[here + USES] += 1
    if open_gates[here + USES] > 1:
        return 0
    record = RECORD * (n_literals + gate)
    width = records[record + CHILDREN_END] - records[record + CHILDREN]
    open_gates[here + TO_TRUE] = records[record + THRESHOLD]
    open_gates[here + TO_FALSE] = width - records[record + THRESHOLD] + 1
    push(touched, counters, N_TOUCHED, gate)
    return 1


@kernel
def find_forced(gates, state, gate):
    """Record the last open child of an undecided subscription, if that is a call."""
    records, children, rooted = (
        section(gates, RECORDS),
        section(gates, ALL_CHILDREN),
        section(gates, ALL_ROOTED),
    )
    results, verdicts = section(state, RESULTS), section(state, VERDICTS)
    n_literals = 2 * len(results)
    record = RECORD * (n_literals + gate)
    is_wanted = False
    for slot in range(records[record + ROOTED], records[record + ROOTED_END]):
        is_wanted |= verdicts[rooted[slot]] == UNDECIDED
    if not is_wanted:
        return
    for slot in range(records[record + CHILDREN], records[record + CHILDREN_END]):
        child = children[slot]
        if child < n_literals and results[child >> 1] == NOT_MADE:
            push_forced(section(state, FORCED), section(state, COUNTERS), child >> 1)


@kernel
def push_forced(forced, counters, call):
    """Push a call on the stack, unless that is full: the call is also in the queue."""
    if counters[N_FORCED] < len(forced):
        push(forced, counters, N_FORCED, call)


# ── a result, and what follows from it ────────────────────────────────────────────────────────


@kernel
def record_result(gates, state, call, result):
    """Take the result of a call, TRUE, FALSE or NO_RESULT, and propagate it."""
    results = section(state, RESULTS)
    if results[call] != NOT_MADE:
        return
    results[call] = result
    push(section(state, MADE), section(state, COUNTERS), N_MADE, call)
    records = section(gates, RECORDS)
    for node in range(2 * call, 2 * call + 2):
        record = RECORD * node
        # Few calls are under NOT: the false literals of the others have no parents.
        is_used = records[record + PARENTS] < records[record + PARENTS_END]
        if is_used or records[record + ROOTED] < records[record + ROOTED_END]:
            settle(gates, state, node, result == (FALSE if node & 1 else TRUE))


@kernel
def settle(gates, state, first, first_is_true):
    """Set the truth of a node, and of each node and subscription that it decides."""
    records, children = section(gates, RECORDS), section(gates, ALL_CHILDREN)
    parents, rooted = section(gates, ALL_PARENTS), section(gates, ALL_ROOTED)
    open_gates, popularity = section(state, OPEN_GATES), section(state, POPULARITY)
    counters, verdicts, decided = (
        section(state, COUNTERS),
        section(state, VERDICTS),
        section(state, DECIDED),
    )
    settling, releasing = section(state, SETTLING), section(state, RELEASING)
    n_literals = 2 * len(popularity)
    settling[0] = 2 * first + first_is_true
    n_left = 1
    while n_left:
        n_left -= 1
        node, is_true = settling[n_left] >> 1, settling[n_left] & 1
        if n_left:  # read by the next iteration
            following = RECORD * (settling[n_left - 1] >> 1)
            prefetch_row(children, records[following + CHILDREN])
            prefetch_row(rooted, records[following + ROOTED])
        if node >= n_literals:
            if open_gates[OPEN * (node - n_literals) + USES] <= 0:
                continue
            close(records, children, open_gates, popularity, releasing, node - n_literals)
        record = RECORD * node
        for slot in range(records[record + ROOTED], records[record + ROOTED_END]):
            subscription = rooted[slot]
            if verdicts[subscription] == UNDECIDED:
                verdicts[subscription] = MATCHED if is_true else REFUSED
                push(decided, counters, N_DECIDED, subscription)
        counted = TO_TRUE if is_true else TO_FALSE
        end = records[record + PARENTS_END]
        for slot in range(records[record + PARENTS], end):
            gate = parents[slot]
            here = OPEN * gate
            if slot + AHEAD < end:
                prefetch_row(open_gates, OPEN * parents[slot + AHEAD])
            if open_gates[here + USES] <= 0:
                continue
            open_gates[here + counted] -= 1
            if open_gates[here + TO_TRUE] == 1 and open_gates[here + TO_FALSE] == 1:
                find_forced(gates, state, gate)
            elif open_gates[here + counted] == 0:
                if is_true and section(gates, IS_JOINED)[gate]:
                    push(section(state, PENDING), counters, N_PENDING, gate)
                else:
                    prefetch_row(records, RECORD * (n_literals + gate))
                    settling[n_left] = 2 * (n_literals + gate) + is_true
                    n_left += 1


@kernel(inline="always")
def close(records, children, open_gates, popularity, releasing, first):
    """Close a gate, remove its uses, and close each gate that is no longer used."""
    n_literals = 2 * len(popularity)
    # Negative if a use is removed later: a gate is closed once.
    open_gates[OPEN * first + USES] = 0
    releasing[0] = first
    n_closing = 1
    while n_closing:
        n_closing -= 1
        record = RECORD * (n_literals + releasing[n_closing])
        weight = records[record + WEIGHT]
        for slot in range(records[record + CHILDREN], records[record + CHILDREN_END]):
            child = children[slot]
            if child < n_literals:
                popularity[child >> 1] -= weight
                continue
            here = OPEN * (child - n_literals) + USES
            open_gates[here] -= 1
            if open_gates[here] == 0:
                releasing[n_closing] = child - n_literals
                n_closing += 1


@kernel
def clear(state):
    """Clear the state of the event: only touched entries, since a full reset costs
    O(subscriptions).
    """
    counters, open_gates = section(state, COUNTERS), section(state, OPEN_GATES)
    popularity, results = section(state, POPULARITY), section(state, RESULTS)
    verdicts = section(state, VERDICTS)
    for gate in section(state, TOUCHED)[: counters[N_TOUCHED]]:
        open_gates[OPEN * gate : OPEN * gate + OPEN] = 0
    for call in section(state, ASKED)[: counters[N_ASKED]]:
        popularity[call] = 0
    for call in section(state, MADE)[: counters[N_MADE]]:
        results[call] = NOT_MADE
    for subscription in section(state, STARTED)[: counters[N_STARTED]]:
        verdicts[subscription] = UNASKED
    counters[:] = 0
