"""Evaluate trees one after the other."""

from __future__ import annotations

from tamis.index.kernels.compiled import kernel
from tamis.index.layout import AND, OR, XOR


@kernel
def scan_trees(is_true, roots, operators, required, starts, children, found, n_nodes):
    """Write which trees are true; return how many, and add the nodes looked at to `n_nodes`."""
    n_found = 0
    for at in range(len(roots)):
        if holds(roots[at], is_true, operators, required, starts, children, n_nodes):
            found[n_found] = at
            n_found += 1
    return n_found


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
