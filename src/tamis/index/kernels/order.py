"""Loops over links, for ordering nodes."""

from __future__ import annotations

from tamis.kernels.compiled import kernel


@kernel
def find_levels(starts, children, n_leaves, levels):
    """Write each inner node's height above the leaves; children come before parents."""
    for inner in range(len(levels)):
        level = 0
        for at in range(starts[inner], starts[inner + 1]):
            child = children[at] - n_leaves
            if child >= 0:
                level = max(level, levels[child])
        levels[inner] = level + 1


@kernel
def permute_children(starts, children, order, numbers, permuted):
    """Write the children of the nodes in a new order, with their new numbers if there are any."""
    to = 0
    for node in order:
        for at in range(starts[node], starts[node + 1]):
            child = children[at]
            permuted[to] = child if numbers is None else numbers[child]
            to += 1
