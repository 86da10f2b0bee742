"""Evaluates trees one by one."""

from __future__ import annotations

from tamis.index.layout import AND, OR, XOR
from tamis.kernels.compiled import kernel


@kernel
def scan_trees(
    first,  # event
    satisfied,  # Rows
    is_true,  # bool[n_leaves], all false before and after
    trees,  # TreeArrays
    found_starts,
    found,
    n_nodes,
):
    """Write which trees are true for events from `first` on; return the next event when out of
    room.
    """
    roots, operators, required, starts, children = trees
    for event in range(first, len(found_starts) - 1):
        n_found = found_starts[event]
        if len(found) - n_found < len(roots):
            return event
        own = satisfied.values[satisfied.starts[event] : satisfied.starts[event + 1]]
        for leaf in own:
            is_true[leaf] = True
        for at in range(len(roots)):
            if holds(roots[at], is_true, operators, required, starts, children, n_nodes):
                found[n_found] = at
                n_found += 1
        for leaf in own:
            is_true[leaf] = False
        found_starts[event + 1] = n_found
    return len(found_starts) - 1


@kernel
def scan_some(
    first_row,
    row_starts,  # int64[:], of events
    leaves,  # int32[:], those each event satisfies
    is_true,  # bool[n_leaves], all false before and after
    roots,
    operators,
    required,
    starts,
    children,
    tree_starts,  # int64[n_rows + 1], changed to the starts of the true trees
    trees,  # int32[:], the trees to evaluate; changed: those that are true
    n_nodes,
):
    """Keep the true trees among the candidates of each event."""
    n_kept = 0
    begin = tree_starts[0]
    for row in range(len(tree_starts) - 1):
        end = tree_starts[row + 1]
        own = leaves[row_starts[first_row + row] : row_starts[first_row + row + 1]]
        for leaf in own:
            is_true[leaf] = True
        for at in range(begin, end):
            tree = trees[at]
            if holds(roots[tree], is_true, operators, required, starts, children, n_nodes):
                trees[n_kept] = tree
                n_kept += 1
        for leaf in own:
            is_true[leaf] = False
        tree_starts[row + 1] = n_kept
        begin = end


@kernel
def holds(node, is_true, operators, required, starts, children, n_nodes):
    """Whether a node is true."""
    n_nodes[0] += 1
    operator = operators[node]
    if operator < 0:
        return is_true[-1 - operator]
    begin, end = starts[node], starts[node + 1]
    if operator == AND or operator == OR:
        for at in range(begin, end):
            child = holds(children[at], is_true, operators, required, starts, children, n_nodes)
            if child != (operator == AND):
                return child
        return operator == AND
    n_true = 0
    if operator == XOR:
        for at in range(begin, end, 2):
            if holds(children[at], is_true, operators, required, starts, children, n_nodes):
                n_true += 1
            elif not holds(
                children[at + 1], is_true, operators, required, starts, children, n_nodes
            ):
                return False
        return n_true & 1 == required[node]
    for at in range(begin, end):
        n_true += holds(children[at], is_true, operators, required, starts, children, n_nodes)
    return n_true >= required[node]
