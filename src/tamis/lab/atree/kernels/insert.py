"""Insertion (Algorithm 4; with the optimisations switched off, Algorithm 1)."""

from __future__ import annotations

import numpy as np

from tamis.index.layout import AND, OR
from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import FREE_NODE, N_INNER, N_NODES, NONE, STACK_TOP
from tamis.lab.atree.encoding import LEAF
from tamis.lab.atree.kernels.links import choose_access, link_child, set_level
from tamis.lab.atree.kernels.lists import reserve
from tamis.lab.atree.kernels.nodes import find_node, has_room, put_node
from tamis.lab.atree.kernels.reorganise import reorganise, self_adjust


@kernel
def insert_all(tree, program, starts, ordinals, done, design):
    """Insert expressions from number `done` on while there is room; return how many are
    inserted.
    """
    for number in range(done, len(ordinals)):
        if not has_room(tree, starts[number + 1] - starts[number]):
            return number
        node = insert(tree, program, np.int64(starts[number]), design)
        subscribe(tree, node, ordinals[number])
    return len(ordinals)


@kernel
def insert(tree, program, at, design):
    """The node of an expression, created if necessary; increments its use count."""
    if program.kinds[at] == LEAF:
        leaf = program.values[at]
        tree.use_counts[leaf] += 1
        return leaf
    if design.sharing:
        node = find_node(tree, program.ids[at])
        if node != NONE:
            tree.use_counts[node] += 1
            return node
    bottom = tree.sizes[STACK_TOP]
    if design.sharing and design.reorganisation:
        reorganise(tree, program, at)
    is_set = program.kinds[at] == AND or program.kinds[at] == OR
    part = at + 1
    while part < program.ends[at]:
        if not program.is_covered[part]:
            child = insert(tree, program, np.int64(part), design)
            push_child(tree, child, bottom, is_set)
        part = program.ends[part]
    node = create_node(tree, program, at, bottom, design)
    tree.sizes[STACK_TOP] = bottom
    if design.sharing and design.self_adjustment and is_set:
        self_adjust(tree, node, design)
    return node


@kernel
def push_child(tree, child, bottom, is_set):
    """Push a child on the stack; a set contains each child once."""
    top = tree.sizes[STACK_TOP]
    if is_set:
        for at in range(bottom, top):
            if tree.stack[at] == child:
                tree.use_counts[child] -= 1
                return
    tree.stack[top] = child
    tree.sizes[STACK_TOP] = top + 1


@kernel
def create_node(tree, program, at, bottom, design):
    """A node whose children are on the stack, with a use count of one."""
    node = tree.sizes[FREE_NODE]
    if node == NONE:
        node = tree.sizes[N_NODES]
        tree.sizes[N_NODES] = node + 1
    else:
        tree.sizes[FREE_NODE] = tree.chained[node]
    tree.sizes[N_INNER] += 1
    tree.operators[node] = program.kinds[at]
    tree.required[node] = program.required[at]
    tree.use_counts[node] = 1
    tree.levels[node] = 0
    tree.subscribed[node] = NONE
    put_node(tree, node, program.ids[at])
    n_children = tree.sizes[STACK_TOP] - bottom
    reserve(tree, tree.child_starts, tree.n_children, tree.child_classes, node, n_children)
    for place in range(bottom, bottom + n_children):
        link_child(tree, node, tree.stack[place], design.propagation_on_demand)
    if design.propagation_on_demand and tree.operators[node] == AND:
        choose_access(tree, node)
    set_level(tree, np.int64(node))
    return node


@kernel
def subscribe(tree, node, ordinal):
    """Attach a subscription to a node."""
    first = tree.subscribed[node]
    tree.nodes_of[ordinal] = node
    tree.next_ordinals[ordinal] = first
    tree.previous_ordinals[ordinal] = NONE
    if first != NONE:
        tree.previous_ordinals[first] = ordinal
    tree.subscribed[node] = ordinal
