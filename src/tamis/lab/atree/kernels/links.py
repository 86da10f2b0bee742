"""Links between nodes, and the access children and levels derived from them."""

from __future__ import annotations

import numpy as np

from tamis.index.layout import AND
from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import MAX_LEVEL
from tamis.lab.atree.kernels.lists import append, find_link


@kernel(inline="always")
def plain_child(link):
    """The node of a child's link."""
    return np.int64(link if link >= 0 else ~link)


@kernel
def link_child(tree, node, link, is_on_demand):
    """Make a node the parent of another; for an AND with propagation on demand, the access child is
    chosen later.
    """
    append(tree, tree.child_starts, tree.n_children, tree.child_classes, node, link)
    child = plain_child(link)
    append(tree, tree.parent_starts, tree.n_parents, tree.parent_classes, child, node)
    if not is_on_demand or tree.operators[node] != AND:
        push_last(tree, child, tree.n_parents[child] - 1)


@kernel
def push_last(tree, child, place):
    """Move a parent to the end of the parents to which results are propagated."""
    start, n_pushed = tree.parent_starts[child], tree.n_pushed[child]
    parent = tree.pool[start + place]
    tree.pool[start + place] = tree.pool[start + n_pushed]
    tree.pool[start + n_pushed] = parent
    tree.n_pushed[child] = n_pushed + 1


@kernel
def forget_parent(tree, child, parent):
    """Remove a parent from a node's list; return whether results were propagated to it."""
    start = tree.parent_starts[child]
    place = find_link(tree, tree.parent_starts, tree.n_parents, child, parent)
    last = tree.n_parents[child] - 1
    was_pushed = place < tree.n_pushed[child]
    if was_pushed:
        tree.n_pushed[child] -= 1
        tree.pool[start + place] = tree.pool[start + tree.n_pushed[child]]
        place = tree.n_pushed[child]
    tree.pool[start + place] = tree.pool[start + last]
    tree.n_parents[child] = last
    return was_pushed


@kernel
def choose_access(tree, node):
    """Choose a random child, the only one that propagates its result to this AND (§5.2.2)."""
    chosen = tree.ids[node] % tree.n_children[node]
    child = plain_child(tree.pool[tree.child_starts[node] + chosen])
    place = find_link(tree, tree.parent_starts, tree.n_parents, child, node)
    push_last(tree, child, place)


@kernel
def set_level(tree, node):
    """Set a node's level to one above its highest child, and update the levels above."""
    # A recursive call must pass an int64: otherwise the cached kernel crashes.
    level = 0
    for at in range(tree.child_starts[node], tree.child_starts[node] + tree.n_children[node]):
        level = max(level, tree.levels[plain_child(tree.pool[at])])
    if tree.levels[node] == level + 1:
        return
    tree.levels[node] = level + 1
    tree.sizes[MAX_LEVEL] = max(tree.sizes[MAX_LEVEL], level + 1)
    for place in range(tree.n_parents[node]):
        set_level(tree, np.int64(tree.pool[tree.parent_starts[node] + place]))
