"""Reorganisation of a new expression (Algorithm 2) and self-adjustment (Algorithm 3)."""

from __future__ import annotations

import numpy as np

from tamis.index.layout import AND, OR
from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import LAST_MARK, NONE, STACK_TOP
from tamis.lab.atree.encoding import LEAF
from tamis.lab.atree.kernels.links import (
    choose_access,
    forget_parent,
    link_child,
    plain_child,
    set_level,
)
from tamis.lab.atree.kernels.nodes import find_node


@kernel
def reorganise(tree, program, at):
    """Push nodes on the stack that can replace some of the expression's children, greedily.

    The children that they cover are marked in `program.is_covered`.
    """
    operator = program.kinds[at]
    if (operator != AND and operator != OR) or program.values[at] < 3:
        return
    tree.sizes[LAST_MARK] += 2
    mark = tree.sizes[LAST_MARK]
    bottom = tree.sizes[STACK_TOP]
    find_candidates(tree, program, at, mark)
    top = tree.sizes[STACK_TOP]
    while True:
        best, most = NONE, 0
        for place in range(bottom, top):
            n_new = count_uncovered(tree, np.int64(tree.stack[place]), mark)
            if n_new > most:
                best, most = place, n_new
        if best == NONE:
            break
        node = np.int64(tree.stack[best])
        tree.stack[best] = tree.stack[bottom]
        tree.stack[bottom] = node
        bottom += 1
        tree.use_counts[node] += 1
        cover(tree, node, mark)
    tree.sizes[STACK_TOP] = bottom
    mark_covered(tree, program, at, mark + 1)


@kernel
def node_of(tree, program, part):
    """The node of a part, or NONE."""
    if program.kinds[part] == LEAF:
        return program.values[part]
    return find_node(tree, program.ids[part])


@kernel
def find_candidates(tree, program, at, mark):
    """Push all nodes whose children are all children of the expression.

    Such a node may have another such node as a child, which stands for several children.
    """
    bottom = tree.sizes[STACK_TOP]
    most, busiest = -1, NONE
    part = at + 1
    while part < program.ends[at]:
        node = node_of(tree, program, part)
        if node != NONE:
            tree.marks[node] = mark
            if tree.n_parents[node] > most:
                most, busiest = tree.n_parents[node], node
        part = program.ends[part]
    part = at + 1
    while part < program.ends[at]:
        node = node_of(tree, program, part)
        # A node with two of the children is a parent of one that is not the busiest.
        if node != NONE and node != busiest:
            collect_parents(tree, node, program.kinds[at], program.values[at], mark)
        part = program.ends[part]
    while bottom < tree.sizes[STACK_TOP]:
        node = tree.stack[bottom]
        collect_parents(tree, node, program.kinds[at], program.values[at], mark)
        bottom += 1


@kernel
def collect_parents(tree, child, operator, n_operands, mark):
    """Push those parents whose children are all marked or candidates."""
    start = tree.parent_starts[child]
    for place in range(start, start + tree.n_parents[child]):
        parent = tree.pool[place]
        if tree.n_children[parent] >= n_operands or tree.operators[parent] != operator:
            continue
        if tree.seen[parent] != mark and is_within(tree, parent, mark):
            tree.seen[parent] = mark
            tree.stack[tree.sizes[STACK_TOP]] = parent
            tree.sizes[STACK_TOP] += 1


@kernel
def is_within(tree, node, mark):
    """Whether all children are marked or candidates."""
    start = tree.child_starts[node]
    for place in range(start, start + tree.n_children[node]):
        child = plain_child(tree.pool[place])
        if tree.marks[child] != mark and tree.seen[child] != mark:
            return False
    return True


@kernel
def count_uncovered(tree, node, mark):
    """How many children of the expression a candidate would newly cover."""
    n_uncovered = 0
    start = tree.child_starts[node]
    for place in range(start, start + tree.n_children[node]):
        child = plain_child(tree.pool[place])
        if tree.marks[child] == mark:
            n_uncovered += 1
        elif tree.seen[child] == mark:
            n_uncovered += count_uncovered(tree, child, mark)
    return n_uncovered


@kernel
def cover(tree, node, mark):
    """Mark the children that a chosen candidate covers."""
    start = tree.child_starts[node]
    for place in range(start, start + tree.n_children[node]):
        child = plain_child(tree.pool[place])
        if tree.marks[child] == mark:
            tree.marks[child] = mark + 1
        elif tree.seen[child] == mark:
            cover(tree, child, mark)


@kernel
def count_marked(tree, node, mark):
    """How many of a node's children have that mark."""
    n_marked = 0
    for place in range(tree.child_starts[node], tree.child_starts[node] + tree.n_children[node]):
        n_marked += tree.marks[plain_child(tree.pool[place])] == mark
    return n_marked


@kernel
def mark_covered(tree, program, at, mark):
    """Note which parts need not be inserted because a reused node contains them."""
    part = at + 1
    while part < program.ends[at]:
        node = node_of(tree, program, part)
        program.is_covered[part] = node != NONE and tree.marks[node] == mark
        part = program.ends[part]


@kernel
def self_adjust(tree, node, design):
    """Replace the children of a new node by that node in all nodes that have all of them."""
    tree.sizes[LAST_MARK] += 2
    mark = tree.sizes[LAST_MARK]
    rarest = NONE
    for place in range(tree.child_starts[node], tree.child_starts[node] + tree.n_children[node]):
        child = tree.pool[place]
        tree.marks[child] = mark
        if rarest == NONE or tree.n_parents[child] < tree.n_parents[rarest]:
            rarest = child
    # A node with all of the children is a parent of the one with the fewest parents. The loop runs
    # from the end, so that a removal moves only visited entries.
    for place in range(tree.n_parents[rarest] - 1, -1, -1):
        parent = tree.pool[tree.parent_starts[rarest] + place]
        is_larger = tree.n_children[parent] > tree.n_children[node]
        if (
            is_larger
            and tree.operators[parent] == tree.operators[node]
            and count_marked(tree, parent, mark) == tree.n_children[node]
        ):
            adopt(tree, parent, node, mark, design)


@kernel
def adopt(tree, parent, node, mark, design):
    """Replace the marked children of a parent by the node.

    This use of the node is not counted: if the node is deleted, the parent continues without it.
    """
    has_lost_access = False
    start = tree.child_starts[parent]
    n_left = 0
    for place in range(start, start + tree.n_children[parent]):
        link = tree.pool[place]
        child = plain_child(link)
        if tree.marks[child] != mark:
            tree.pool[start + n_left] = link
            n_left += 1
            continue
        has_lost_access |= forget_parent(tree, child, parent)
        if link >= 0:
            tree.use_counts[child] -= 1
    tree.n_children[parent] = n_left
    link_child(tree, parent, ~node, design.propagation_on_demand)
    if has_lost_access and design.propagation_on_demand and tree.operators[parent] == AND:
        choose_access(tree, parent)
    set_level(tree, np.int64(parent))
