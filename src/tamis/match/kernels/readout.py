"""Reads results from a block: pairs, or counts with or without examples."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel
from tamis.match.kernels.rows import (
    ROW,
    WORDS,
    add_to_counters,
    both,
    count_bits,
    fill,
    has_bit,
    load,
    lowest_bit,
    without,
)


@kernel
def count_by_event(found, masks, roots, planes, counts):
    """Write the number of matches of each event of one group."""
    planes[:] = 0
    for at in range(len(found)):
        root = found[at]
        n_subscriptions = roots.subscription_starts[root + 1] - roots.subscription_starts[root]
        row = load(masks, np.uint64(at))
        plane = 0
        while n_subscriptions > 0:
            if n_subscriptions & 1:
                add_to_counters(planes, plane, row)
            n_subscriptions >>= 1
            plane += 1
    for event in range(ROW):
        count = np.int64(0)
        for plane in range(len(planes)):
            bit = (planes[plane, event >> 6] >> np.uint64(event & 63)) & np.uint64(1)
            count |= np.int64(bit) << plane
        counts[event] = count


@kernel
def write_pairs(found, masks, starts, subscriptions, offsets, pairs):
    """Write each event's subscriptions from its offset on; offsets are advanced to the next
    event's.
    """
    for at in range(np.uint64(len(found))):
        root = np.uint64(np.uint32(found[at]))
        begin, end = np.uint64(starts[root]), np.uint64(starts[root + np.uint64(1)])
        subscription = subscriptions[begin]
        for word in range(np.uint64(WORDS)):
            bits = masks[at, word]
            while bits != 0:
                event = (word << np.uint64(6)) + np.uint64(lowest_bit(bits))
                bits &= bits - np.uint64(1)
                offset = np.uint64(offsets[event])
                pairs[offset] = subscription
                for slot in range(begin + np.uint64(1), end):
                    offset += np.uint64(1)
                    pairs[offset] = subscriptions[slot]
                offsets[event] = offset + np.uint64(1)


@kernel
def write_rows(first_row, starts, rows):
    """Write the row number of its event for each pair."""
    for event in range(len(starts) - 1):
        rows[starts[event] : starts[event + 1]] = first_row + event


@kernel
def append_runs(starts, values, offsets, out):
    """Write each event's run of values from its offset on; offsets are advanced past the values."""
    for event in range(len(offsets)):
        offset = offsets[event]
        for at in range(starts[event], starts[event + 1]):
            out[offset] = values[at]
            offset += 1
        offsets[event] = offset


@kernel
def find_first_events(masks, counts, firsts):
    """Write the number of events of each mask, and the first event; -1 if it has none."""
    for at in range(len(counts)):
        counts[at], firsts[at] = 0, -1
        for word in range(WORDS):
            bits = masks[at, word]
            if bits != 0 and firsts[at] < 0:
                firsts[at] = 64 * word + lowest_bit(bits)
            counts[at] += count_bits(bits)


@kernel
def find_first_roots(found, masks, firsts):
    """Write the first root of each event that has one; other entries stay unchanged."""
    missing = fill(~np.uint64(0))
    for at in range(len(found)):
        new = both(load(masks, np.uint64(at)), missing)
        missing = without(missing, new)
        for word in range(WORDS):
            bits = new[word]
            while bits != 0:
                firsts[64 * word + lowest_bit(bits)] = found[at]
                bits &= bits - np.uint64(1)
        if not has_bit(missing):
            break


@kernel
def add_bits(masks, counts):
    """Add the number of set bits of each of the first rows to its count."""
    for at in range(len(counts)):
        for word in range(WORDS):
            counts[at] += count_bits(masks[at, word])
