"""Event matching (Algorithm 6) that propagates only TRUE (§5.2.1)."""

from __future__ import annotations

from tamis.index.layout import AND
from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import MAX_LEVEL, NONE
from tamis.lab.atree.kernels.links import plain_child

# Indices into `State.counts`.
N_EVALUATED, N_PROPAGATED, N_QUEUED, N_PULLED = range(4)


@kernel
def match_events(tree, state, satisfied, first, design, found_starts, found):
    """Match events from `first` on while there is room; return how many are done."""
    starts, leaves = satisfied
    for event in range(first, len(starts) - 1):
        begin = found_starts[event]
        if len(found) - begin < len(tree.nodes_of):
            return event
        own = found[begin:]
        n_found = match_event(
            tree, state, leaves[starts[event] : starts[event + 1]], event + 1, design, own
        )
        found_starts[event + 1] = begin + n_found
    return len(starts) - 1


@kernel
def match_event(tree, state, leaves, event, design, found):
    """Write the ordinals of the expressions that are true; return how many."""
    n_found = 0
    for leaf in leaves:
        state.true_at[leaf] = event
    for leaf in leaves:
        n_found = report(tree, leaf, found, n_found)
        propagate(tree, state, leaf, event, design)
    for level in range(2, tree.sizes[MAX_LEVEL] + 1):
        node = state.queues[level]
        state.queues[level] = NONE
        while node != NONE:
            if is_true(tree, state, node, event, design):
                state.true_at[node] = event
                n_found = report(tree, node, found, n_found)
                propagate(tree, state, node, event, design)
            node = state.queued_next[node]
    return n_found


@kernel
def is_true(tree, state, node, event, design):
    """Evaluate a node with at least one true child."""
    state.counts[N_EVALUATED] += 1
    if tree.operators[node] != AND:
        return True
    if not design.propagation_on_demand:
        return state.n_true[node] == tree.n_children[node]
    start = tree.child_starts[node]
    for place in range(start, start + tree.n_children[node]):
        state.counts[N_PULLED] += 1
        if state.true_at[plain_child(tree.pool[place])] != event:
            return False
    return True


@kernel
def propagate(tree, state, node, event, design):
    """Propagate a node's TRUE to its parents; queue those that had no true child before."""
    start, n_parents = tree.parent_starts[node], tree.n_pushed[node]
    state.counts[N_PROPAGATED] += n_parents
    for place in range(start, start + n_parents):
        parent = tree.pool[place]
        is_new = state.queued_at[parent] != event
        if is_new:
            enqueue(tree, state, parent, event)
        # With propagation on demand, an AND pulls its other children, and an OR needs no other.
        if not design.propagation_on_demand:
            state.n_true[parent] = 1 if is_new else state.n_true[parent] + 1


@kernel
def enqueue(tree, state, node, event):
    """Add a node to the queue of its level."""
    state.counts[N_QUEUED] += 1
    state.queued_at[node] = event
    state.queued_next[node] = state.queues[tree.levels[node]]
    state.queues[tree.levels[node]] = node


@kernel
def report(tree, node, found, n_found):
    """Append the subscriptions of a node; return the new number."""
    ordinal = tree.subscribed[node]
    while ordinal != NONE:
        found[n_found] = ordinal
        n_found += 1
        ordinal = tree.next_ordinals[ordinal]
    return n_found
