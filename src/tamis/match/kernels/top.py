"""The best matches of each event: a bounded heap for each, filled while matches are read out.

A match is its subscription's rank, of which the lowest is best. A heap has its worst rank on top
and is exactly as large as the event has matches, or as are wanted; so in the end each is full, and
all heaps together are the result.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.match.kernels.rows import WORDS, lowest_bit

NEVER = 2**31 - 1  # above every rank
REFRESHED = 256  # roots after which the worst rank that can still enter is found again


@kernel
def push_roots(found, masks, subscription_starts, subscriptions, ranks, starts, sizes, heaps):
    """Push the subscriptions of each root onto the heaps of its events."""
    worst = NEVER
    for at in range(len(found)):
        if at % REFRESHED == 0:
            worst = find_worst(starts, sizes, heaps)
        for slot in range(subscription_starts[found[at]], subscription_starts[found[at] + 1]):
            rank = ranks[subscriptions[slot]]
            if rank >= worst:
                continue
            for word in range(WORDS):
                bits = masks[at, word]
                while bits != 0:
                    push(rank, 64 * word + lowest_bit(bits), starts, sizes, heaps)
                    bits &= bits - np.uint64(1)


@kernel
def push_runs(run_starts, values, starts, sizes, heaps):
    """Push the ranks of each event's run."""
    for event in range(len(sizes)):
        for at in range(run_starts[event], run_starts[event + 1]):
            push(values[at], event, starts, sizes, heaps)


@kernel
def push_everywhere(values, starts, sizes, heaps):
    """Push the same ranks for every event."""
    for event in range(len(sizes)):
        for at in range(len(values)):
            push(values[at], event, starts, sizes, heaps)


@kernel
def find_worst(starts, sizes, heaps):
    """The rank from which on nothing enters any heap."""
    worst = 0
    for event in range(len(sizes)):
        if sizes[event] < starts[event + 1] - starts[event]:
            return NEVER
        if sizes[event] > 0:
            worst = max(worst, heaps[starts[event]])
    return worst


@kernel
def push(rank, event, starts, sizes, heaps):
    """Put a rank on an event's heap, in the place of the worst one if the heap is full."""
    begin, size = starts[event], sizes[event]
    if size == starts[event + 1] - begin:
        if size > 0 and rank < heaps[begin]:
            sink(rank, begin, size, heaps)
        return
    # Up from the end, past those that are better.
    at = size
    while at > 0 and heaps[begin + (at - 1) // 2] < rank:
        heaps[begin + at] = heaps[begin + (at - 1) // 2]
        at = (at - 1) // 2
    heaps[begin + at] = rank
    sizes[event] = size + 1


@kernel
def sink(rank, begin, size, heaps):
    """Put a rank on top of a heap in the place of what is there, and down past those that are
    worse."""
    at = 0
    while 2 * at + 1 < size:
        child = 2 * at + 1
        if child + 1 < size and heaps[begin + child + 1] > heaps[begin + child]:
            child += 1
        if heaps[begin + child] <= rank:
            break
        heaps[begin + at] = heaps[begin + child]
        at = child
    heaps[begin + at] = rank


@kernel
def sort_heaps(starts, heaps):
    """Make a run of ascending ranks of each heap."""
    for event in range(len(starts) - 1):
        begin = starts[event]
        for size in range(starts[event + 1] - begin - 1, 0, -1):
            last = heaps[begin + size]
            heaps[begin + size] = heaps[begin]
            sink(last, begin, size, heaps)
