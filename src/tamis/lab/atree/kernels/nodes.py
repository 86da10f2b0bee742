"""The expression-to-node hash table (§4.2.1), and checks for room."""

from __future__ import annotations

from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import MOST_LINKS, N_INNER, N_NODES, NONE, POOL_TOP
from tamis.lab.atree.encoding import LEAF


@kernel
def find_node(tree, identity):
    """The node of an id, or NONE."""
    node = tree.buckets[identity & (len(tree.buckets) - 1)]
    while node != NONE and tree.ids[node] != identity:
        node = tree.chained[node]
    return node


@kernel
def put_node(tree, node, identity):
    """Insert a node under its id."""
    bucket = identity & (len(tree.buckets) - 1)
    tree.ids[node] = identity
    tree.chained[node] = tree.buckets[bucket]
    tree.buckets[bucket] = node


@kernel
def forget_node(tree, node):
    """Remove a node from the table."""
    bucket = tree.ids[node] & (len(tree.buckets) - 1)
    if tree.buckets[bucket] == node:
        tree.buckets[bucket] = tree.chained[node]
        return
    before = tree.buckets[bucket]
    while tree.chained[before] != node:
        before = tree.chained[before]
    tree.chained[before] = tree.chained[node]


@kernel
def rehash(tree, n_leaves):
    """Insert all inner nodes into empty buckets."""
    for node in range(n_leaves, tree.sizes[N_NODES]):
        if tree.operators[node] != LEAF:
            put_node(tree, node, tree.ids[node])


@kernel
def links_needed(tree, n_parts):
    """The most room in the pool that the insertion of an expression may need.

    This counts a part's children, a longer list of parents for each of them, and the parents that
    self-adjustment adds: no more than the longest list has.
    """
    return n_parts * (5 * tree.sizes[MOST_LINKS] + 16)


@kernel
def has_room(tree, n_parts):
    """Whether an expression of that many parts can be inserted without growing any array."""
    if tree.sizes[N_NODES] + n_parts > len(tree.ids):
        return False
    if tree.sizes[N_INNER] + n_parts > len(tree.buckets):
        return False
    return tree.sizes[POOL_TOP] + links_needed(tree, n_parts) <= len(tree.pool)
