"""Event matching (Algorithm 6) without the zero-suppression filter: FALSE is also propagated."""

from __future__ import annotations

from typing import Final

from tamis.index.layout import AND, OR, XOR
from tamis.kernels.compiled import kernel
from tamis.lab.atree.arrays import MAX_LEVEL, NONE
from tamis.lab.atree.kernels.links import plain_child
from tamis.lab.atree.kernels.match import N_EVALUATED, N_PROPAGATED, N_PULLED, enqueue, report

FALSE: Final = 0
TRUE: Final = 1
UNDEFINED: Final = 2


@kernel
def match_events_fully(tree, state, satisfied, unsatisfied, first, design, found_starts, found):
    """Match events from `first` on while there is room; return how many are done."""
    starts, leaves = satisfied
    false_starts, false_leaves = unsatisfied
    for event in range(first, len(starts) - 1):
        begin = found_starts[event]
        if len(found) - begin < len(tree.nodes_of):
            return event
        n_found = match_event_fully(
            tree,
            state,
            leaves[starts[event] : starts[event + 1]],
            false_leaves[false_starts[event] : false_starts[event + 1]],
            event + 1,
            design,
            found[begin:],
        )
        found_starts[event + 1] = begin + n_found
    return len(starts) - 1


@kernel
def match_event_fully(tree, state, true_leaves, false_leaves, event, design, found):
    """Write the ordinals of the expressions that are true; return how many."""
    n_found = 0
    for leaf in true_leaves:
        state.true_at[leaf] = event
    for leaf in false_leaves:
        state.false_at[leaf] = event
    for leaf in true_leaves:
        n_found = report(tree, leaf, found, n_found)
        propagate_result(tree, state, leaf, event, TRUE)
    for leaf in false_leaves:
        propagate_result(tree, state, leaf, event, FALSE)
    for level in range(2, tree.sizes[MAX_LEVEL] + 1):
        node = state.queues[level]
        state.queues[level] = NONE
        while node != NONE:
            result = evaluate(tree, state, node, event, design)
            if result == TRUE:
                state.true_at[node] = event
                n_found = report(tree, node, found, n_found)
            elif result == FALSE:
                state.false_at[node] = event
            if result != UNDEFINED:
                propagate_result(tree, state, node, event, result)
            node = state.queued_next[node]
    return n_found


@kernel
def evaluate(tree, state, node, event, design):
    """The result of a node with a result of at least one child (Table 2)."""
    state.counts[N_EVALUATED] += 1
    operator = tree.operators[node]
    if operator == XOR:
        return evaluate_parity(tree, state, node, event)
    if operator == AND and design.propagation_on_demand:
        return evaluate_on_demand(tree, state, node, event)
    n_children = tree.n_children[node]
    needed = tree.required[node]
    if operator == AND:
        needed = n_children
    elif operator == OR:
        needed = 1
    if state.n_true[node] >= needed:
        return TRUE
    return FALSE if n_children - state.n_false[node] < needed else UNDEFINED


@kernel
def evaluate_on_demand(tree, state, node, event):
    """The result of an AND, given that of its access child."""
    result = TRUE
    start = tree.child_starts[node]
    for place in range(start, start + tree.n_children[node]):
        child = plain_child(tree.pool[place])
        state.counts[N_PULLED] += 1
        if state.false_at[child] == event:
            return FALSE
        if state.true_at[child] != event:
            result = UNDEFINED
    return result


@kernel
def evaluate_parity(tree, state, node, event):
    """The result of XOR or XNOR, whose children are pairs of an operand and its negation."""
    n_true = 0
    start = tree.child_starts[node]
    for place in range(start, start + tree.n_children[node], 2):
        state.counts[N_PULLED] += 2
        if state.true_at[plain_child(tree.pool[place])] == event:
            n_true += 1
        elif state.true_at[plain_child(tree.pool[place + 1])] != event:
            return UNDEFINED
    return TRUE if (n_true & 1) == tree.required[node] else FALSE


@kernel
def propagate_result(tree, state, node, event, result):
    """Propagate a node's result to its parents; queue those that had none before."""
    start, n_parents = tree.parent_starts[node], tree.n_pushed[node]
    state.counts[N_PROPAGATED] += n_parents
    for place in range(start, start + n_parents):
        parent = tree.pool[place]
        if state.queued_at[parent] != event:
            enqueue(tree, state, parent, event)
            state.n_true[parent] = 0
            state.n_false[parent] = 0
        if result == TRUE:
            state.n_true[parent] += 1
        else:
            state.n_false[parent] += 1
