"""The best matches of each event, in a bounded heap per event.

A match is represented by the rank of its subscription; the lowest rank is the best. The worst rank
is on top of a heap. The size of a heap is the number of the event's matches, or the number that is
requested if that is less. So all heaps are full at the end, and together they are the result.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.match.kernels.rows import WORDS, lowest_bit

NO_RANK = 2**31 - 1  # above every rank
REFRESHED = 256  # after so many roots, the worst rank that can still enter is computed again


@kernel
def push_roots(found, masks, subscription_starts, subscriptions, ranks, starts, sizes, heaps):
    """Push the subscriptions of each root onto the heaps of its events."""
    worst = NO_RANK
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
    """The least rank that no heap accepts."""
    worst = 0
    for event in range(len(sizes)):
        if sizes[event] < starts[event + 1] - starts[event]:
            return NO_RANK
        if sizes[event] > 0:
            worst = max(worst, heaps[starts[event]])
    return worst


@kernel
def push(rank, event, starts, sizes, heaps):
    """Push a rank onto an event's heap; if the heap is full, it replaces the worst rank."""
    begin, size = starts[event], sizes[event]
    if size == starts[event + 1] - begin:
        if size > 0 and rank < heaps[begin]:
            sink(rank, begin, size, heaps)
        return
    # Sift up from the end, past better ranks.
    at = size
    while at > 0 and heaps[begin + (at - 1) // 2] < rank:
        heaps[begin + at] = heaps[begin + (at - 1) // 2]
        at = (at - 1) // 2
    heaps[begin + at] = rank
    sizes[event] = size + 1


@kernel
def sink(rank, begin, size, heaps):
    """Replace the top of a heap by a rank and sift it down, past worse ranks."""
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
    """Sort each heap: its ranks are ascending afterwards."""
    for event in range(len(starts) - 1):
        begin = starts[event]
        for size in range(starts[event + 1] - begin - 1, 0, -1):
            last = heaps[begin + size]
            heaps[begin + size] = heaps[begin]
            sink(last, begin, size, heaps)
