"""Lists of links in one pool: they grow by half, and the space they leave is reused."""

from __future__ import annotations

from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import CAPACITIES, MOST_LINKS, NONE, POOL_TOP


@kernel
def allocate(tree, size_class):
    """Allocate a list of that class in the pool."""
    start = tree.free_lists[size_class]
    if start != NONE:
        tree.free_lists[size_class] = tree.pool[start]
        return start
    top = tree.sizes[POOL_TOP]
    tree.sizes[POOL_TOP] = top + CAPACITIES[size_class]
    return top


@kernel
def free(tree, start, size_class):
    """Free a list."""
    if size_class > 0:
        tree.pool[start] = tree.free_lists[size_class]
        tree.free_lists[size_class] = start


@kernel
def append(tree, starts, sizes, classes, node, link):
    """Append a link to a node's list."""
    size = sizes[node]
    if size == CAPACITIES[classes[node]]:
        reserve(tree, starts, sizes, classes, node, size + 1)
    tree.pool[starts[node] + size] = link
    sizes[node] = size + 1
    tree.sizes[MOST_LINKS] = max(tree.sizes[MOST_LINKS], size + 1)


@kernel
def reserve(tree, starts, sizes, classes, node, n_links):
    """Move a node's list to a place with room for `n_links`."""
    size_class = classes[node]
    while CAPACITIES[size_class] < n_links:
        size_class += 1
    start = allocate(tree, size_class)
    for at in range(sizes[node]):
        tree.pool[start + at] = tree.pool[starts[node] + at]
    free(tree, starts[node], classes[node])
    starts[node] = start
    classes[node] = size_class


@kernel
def find_link(tree, starts, sizes, node, link):
    """The position of a link in a node's list, searched from the end; NONE if absent."""
    for at in range(sizes[node] - 1, -1, -1):
        if tree.pool[starts[node] + at] == link:
            return at
    return NONE
