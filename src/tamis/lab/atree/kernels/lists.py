"""Lists of links in one pool: they grow by half, and what they leave is used again."""

from __future__ import annotations

from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import CAPACITIES, MOST_LINKS, NONE, POOL_TOP


@kernel
def allocate(tree, size_class):
    """A place in the pool for a list of that class."""
    start = tree.free_lists[size_class]
    if start != NONE:
        tree.free_lists[size_class] = tree.pool[start]
        return start
    top = tree.sizes[POOL_TOP]
    tree.sizes[POOL_TOP] = top + CAPACITIES[size_class]
    return top


@kernel
def free(tree, start, size_class):
    """Give a list's place back."""
    if size_class > 0:
        tree.pool[start] = tree.free_lists[size_class]
        tree.free_lists[size_class] = start


@kernel
def append(tree, starts, sizes, classes, node, link):
    """Put a link at the end of a node's list."""
    size = sizes[node]
    if size == CAPACITIES[classes[node]]:
        reserve(tree, starts, sizes, classes, node, size + 1)
    tree.pool[starts[node] + size] = link
    sizes[node] = size + 1
    tree.sizes[MOST_LINKS] = max(tree.sizes[MOST_LINKS], size + 1)


@kernel
def reserve(tree, starts, sizes, classes, node, n_links):
    """Move a node's list to where it has room for `n_links`."""
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
    """The place of a link in a node's list, from its end; NONE if it is not there."""
    for at in range(sizes[node] - 1, -1, -1):
        if tree.pool[starts[node] + at] == link:
            return at
    return NONE
