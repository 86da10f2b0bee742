"""Traverse a binary decision diagram from its roots."""

from __future__ import annotations

from tamis.kernels.compiled import kernel


@kernel
def walk_roots(
    first,  # event
    satisfied,  # Rows
    roots,
    nodes,  # int32[n, 3]: predicate, next if false, next if true; 0 and 1 are terminals
    root_of,  # int32[n_expressions]
    is_true,  # bool[n_leaves], all false before and after
    holds,  # bool[n_roots]
    found_starts,
    found,
    n_nodes,
):
    """Write which expressions are true for events from `first` on; return the next event.

    The number of nodes visited is added to `n_nodes`.
    """
    for event in range(first, len(found_starts) - 1):
        n_found = found_starts[event]
        if len(found) - n_found < len(root_of):
            return event
        own = satisfied.values[satisfied.starts[event] : satisfied.starts[event + 1]]
        for leaf in own:
            is_true[leaf] = True
        for at in range(len(roots)):
            node = roots[at]
            while node > 1:
                n_nodes[0] += 1
                node = nodes[node, 2] if is_true[nodes[node, 0]] else nodes[node, 1]
            holds[at] = node == 1
        for leaf in own:
            is_true[leaf] = False
        for expression in range(len(root_of)):
            if holds[root_of[expression]]:
                found[n_found] = expression
                n_found += 1
        found_starts[event + 1] = n_found
    return len(found_starts) - 1
