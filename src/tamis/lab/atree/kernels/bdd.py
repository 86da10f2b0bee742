"""Walk a binary decision diagram from its roots."""

from __future__ import annotations

from tamis.kernels.compiled import kernel


@kernel
def walk_roots(
    roots,
    nodes,  # int32[n, 3]: predicate, next if it is false, next if it is true; 0 and 1 are terminals
    is_true,
    holds,  # bool[n_roots], output
    n_nodes,
):
    """Write which roots are true for an event; add the nodes passed to `n_nodes`."""
    for at in range(len(roots)):
        node = roots[at]
        while node > 1:
            n_nodes[0] += 1
            node = nodes[node, 2] if is_true[nodes[node, 0]] else nodes[node, 1]
        holds[at] = node == 1
