"""Deletion (Algorithm 5)."""

from __future__ import annotations

import numpy as np

from tamis.index.layout import AND
from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import FREE_NODE, MOST_LINKS, N_INNER, NONE, POOL_TOP, STACK_TOP
from tamis.lab.atree.encoding import LEAF
from tamis.lab.atree.kernels.links import (
    choose_access,
    forget_parent,
    link_child,
    plain_child,
    set_level,
)
from tamis.lab.atree.kernels.lists import find_link, free
from tamis.lab.atree.kernels.nodes import forget_node


@kernel
def unsubscribe(tree, ordinal):
    """Remove a subscription from its node; push the node on the stack if it is unused."""
    node = tree.nodes_of[ordinal]
    after, before = tree.next_ordinals[ordinal], tree.previous_ordinals[ordinal]
    if before == NONE:
        tree.subscribed[node] = after
    else:
        tree.next_ordinals[before] = after
    if after != NONE:
        tree.previous_ordinals[after] = before
    tree.nodes_of[ordinal] = NONE
    release(tree, node)


@kernel
def release(tree, node):
    """Decrement the use count of a node."""
    tree.use_counts[node] -= 1
    if tree.use_counts[node] == 0 and tree.operators[node] != LEAF:
        tree.stack[tree.sizes[STACK_TOP]] = node
        tree.sizes[STACK_TOP] += 1


@kernel
def remove_unused(tree, design):
    """Remove the nodes on the stack while there is room; return the room that the next one
    needs.
    """
    while tree.sizes[STACK_TOP] > 0:
        node = tree.stack[tree.sizes[STACK_TOP] - 1]
        needed = splice_needed(tree, node)
        if tree.sizes[POOL_TOP] + needed > len(tree.pool):
            return needed
        tree.sizes[STACK_TOP] -= 1
        remove(tree, node, design)
    return 0


@kernel
def splice_needed(tree, node):
    """The most room in the pool needed to give a node's children to its parents."""
    n_parents, n_children = tree.n_parents[node], tree.n_children[node]
    if n_parents == 0:
        return 0
    longest = tree.sizes[MOST_LINKS] + n_parents + n_children
    return 3 * (n_children + n_parents) * longest


@kernel
def remove(tree, node, design):
    """Remove a node; parents that still have it as a child get its children instead."""
    for place in range(tree.n_parents[node]):
        splice(tree, tree.pool[tree.parent_starts[node] + place], node, place, design)
    forget_node(tree, node)
    for place in range(tree.n_children[node]):
        link = tree.pool[tree.child_starts[node] + place]
        forget_parent(tree, plain_child(link), node)
        if link >= 0:
            release(tree, link)
    free(tree, tree.child_starts[node], tree.child_classes[node])
    free(tree, tree.parent_starts[node], tree.parent_classes[node])
    tree.n_children[node] = tree.n_parents[node] = tree.n_pushed[node] = 0
    tree.child_classes[node] = tree.parent_classes[node] = 0
    tree.operators[node] = LEAF  # so that no table treats it as a node in use
    tree.chained[node] = tree.sizes[FREE_NODE]
    tree.sizes[FREE_NODE] = node
    tree.sizes[N_INNER] -= 1


@kernel
def splice(tree, parent, node, place, design):
    """Replace a node by its children in one parent."""
    starts, sizes = tree.child_starts, tree.n_children
    was_access = place < tree.n_pushed[node]
    at = find_link(tree, starts, sizes, parent, ~node)
    sizes[parent] -= 1
    tree.pool[starts[parent] + at] = tree.pool[starts[parent] + sizes[parent]]
    for child_place in range(sizes[node]):
        link = tree.pool[starts[node] + child_place]
        if (
            find_link(tree, starts, sizes, parent, link) == NONE
            and find_link(tree, starts, sizes, parent, ~link) == NONE
        ):
            link_child(tree, parent, link, design.propagation_on_demand)
            if link >= 0:
                tree.use_counts[link] += 1
    if was_access and design.propagation_on_demand and tree.operators[parent] == AND:
        choose_access(tree, parent)
    set_level(tree, np.int64(parent))
