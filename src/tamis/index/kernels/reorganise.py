"""Finds existing nodes whose children are a subset of another node's."""

from __future__ import annotations

from typing import Final

import numpy as np

from tamis.index import layout
from tamis.kernels.compiled import kernel

MOST_LOOKS: Final = 256  # nodes examined for one node; ABE-Gen's defaults need five


@kernel(_nrt=True)
def reuse_subsets(
    operators,  # uint8[n_inner]
    child_starts,  # int[n_inner + 1]
    children,  # int32[:], node ids
    n_leaves,
    listed_starts,  # int64[n_leaves + n_inner + 1]
    listed,  # int64[:], inner nodes under the rarest of their children
    new_starts,  # int64[n_inner + 1], output
    new_children,  # int32[len(children)], output
):
    """Write the children of all nodes; common subsets of children are replaced by their node."""
    stamps = np.zeros(n_leaves + len(operators), dtype=np.int64)
    subsets = np.empty(MOST_LOOKS, dtype=np.int64)
    n_written = 0
    for node in range(len(operators)):
        begin, end = child_starts[node], child_starts[node + 1]
        is_joined = operators[node] == layout.AND or operators[node] == layout.OR
        for at in range(begin, end):
            stamps[children[at]] = node + 1
        n_subsets = 0
        if is_joined and end - begin > 2:
            n_subsets = find_subsets(
                node, operators, child_starts, children, listed_starts, listed, stamps, subsets
            )
        for i in range(n_subsets):
            first, last = child_starts[subsets[i]], child_starts[subsets[i] + 1]
            # A subset that was chosen before may contain some of these.
            if are_stamped(children, first, last, stamps, node + 1):
                for at in range(first, last):
                    stamps[children[at]] = 0
                new_children[n_written] = n_leaves + subsets[i]
                n_written += 1
        for at in range(begin, end):
            # XOR and at_least may have a child twice.
            if not is_joined or stamps[children[at]] == node + 1:
                new_children[n_written] = children[at]
                n_written += 1
        new_starts[node + 1] = n_written


@kernel
def find_subsets(node, operators, child_starts, children, listed_starts, listed, stamps, subsets):
    """Write the nodes all of whose children are stamped, largest first; return how many."""
    size = child_starts[node + 1] - child_starts[node]
    n_subsets = 0
    n_looks = 0
    for at in range(child_starts[node], child_starts[node + 1]):
        for slot in range(listed_starts[children[at]], listed_starts[children[at] + 1]):
            if n_looks == MOST_LOOKS:
                return n_subsets
            n_looks += 1
            other = listed[slot]
            first, last = child_starts[other], child_starts[other + 1]
            if operators[other] != operators[node] or last - first >= size:
                continue
            if are_stamped(children, first, last, stamps, node + 1):
                place = n_subsets
                while place > 0 and sizes_rise(child_starts, subsets[place - 1], other):
                    subsets[place] = subsets[place - 1]
                    place -= 1
                subsets[place] = other
                n_subsets += 1
    return n_subsets


@kernel(inline="always")
def sizes_rise(child_starts, one, other):
    """Whether the second node has more children than the first."""
    own = child_starts[one + 1] - child_starts[one]
    return child_starts[other + 1] - child_starts[other] > own


@kernel(inline="always")
def are_stamped(children, begin, end, stamps, stamp):
    """Whether all of a run of children have the stamp."""
    for at in range(begin, end):
        if stamps[children[at]] != stamp:
            return False
    return True
