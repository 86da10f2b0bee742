"""Finds queries contained in longer queries."""

from __future__ import annotations

from tamis.kernels.compiled import kernel


@kernel
def find_contained(starts, tids, list_starts, queries, found):
    """Count the queries that are contained in another one, and in one with the same first term."""
    for query in range(len(starts) - 1):
        first = tids[starts[query]]
        in_any = in_same = False
        for at in range(list_starts[first], list_starts[first + 1]):
            other = queries[at]
            begins_alike = tids[starts[other]] == first
            if (begins_alike or not in_any) and is_contained(query, other, starts, tids):
                in_any = True
                in_same = in_same or begins_alike
                if in_same:
                    break
        found[0] += in_any
        found[1] += in_same


@kernel
def is_contained(query, other, starts, tids):
    """Whether `other` is longer and contains all terms of `query`; both are sorted."""
    at, end = starts[query], starts[query + 1]
    place, last = starts[other], starts[other + 1]
    if last - place <= end - at:
        return False
    while at < end and place < last:
        if tids[place] == tids[at]:
            at += 1
        elif tids[place] > tids[at]:
            return False
        place += 1
    return at == end
