"""Chooses the triggers of nodes."""

from __future__ import annotations

import numpy as np

from tamis.index.layout import AND, AT_LEAST, OR
from tamis.kernels.compiled import kernel
from tamis.kernels.sorting import FEW


@kernel(_nrt=True)
def sort_by_rate(children, begin, end, rates):
    """Sort the children of one node by how often they are true."""
    if end - begin > FEW:
        own = children[begin:end].copy()
        children[begin:end] = own[np.argsort(rates[own], kind="mergesort")]
        return
    for i in range(begin + 1, end):
        child = children[i]
        at = i
        while at > begin and rates[children[at - 1]] > rates[child]:
            children[at] = children[at - 1]
            at -= 1
        children[at] = child


@kernel(_nrt=True)
def choose_triggers(
    nodes,  # NodeArrays
    n_leaves,
    rates,  # float32[n_nodes], of leaves; output: of inner nodes, as if children were independent
    is_trigger,  # bool[n_links], output, false at first
):
    """Sort children by rate and mark the links through which a node is reached."""
    for inner in range(len(nodes.operators)):
        begin, end = nodes.child_starts[inner], nodes.child_starts[inner + 1]
        operator = nodes.operators[inner]
        node = n_leaves + inner
        if operator == AND:
            sort_by_rate(nodes.children, begin, end, rates)
            rate = np.float32(1)
            for at in range(begin, end):
                rate *= rates[nodes.children[at]]
            is_trigger[begin] = True
            rates[node] = rate
        elif operator == OR:
            miss = np.float32(1)
            for at in range(begin, end):
                miss *= np.float32(1) - rates[nodes.children[at]]
                is_trigger[at] = True
            rates[node] = np.float32(1) - miss
        elif operator == AT_LEAST:
            sort_by_rate(nodes.children, begin, end, rates)
            last = end - nodes.required[inner]
            for at in range(begin, last + 1):
                is_trigger[at] = True
            rates[node] = rates[nodes.children[last]]
        else:
            access = begin
            lowest = np.float32(3)
            defined = np.float32(1)
            for at in range(begin, end, 2):
                pair_rate = rates[nodes.children[at]] + rates[nodes.children[at + 1]]
                defined *= min(pair_rate, np.float32(1))
                if pair_rate < lowest:
                    access, lowest = at, pair_rate
            is_trigger[access] = True
            is_trigger[access + 1] = True
            rates[node] = defined / np.float32(2)
