"""The batch kernel: a block of events at once, one bit per event and node.

A block is one to eight groups of 512 events; each node has a mask of 512 bits per group. AND is &,
OR is |. A node shared by many expressions is computed once per block. Nodes are in runs of one
operator, each evaluated by a specialised loop. Only nodes that are children of others keep their
masks: tops, which have only subscriptions, are evaluated a few at a time and their results are
listed immediately. So the memory that is accessed at random is as small as possible.
"""

from __future__ import annotations

import numpy as np

from tamis.index.layout import AND, OR, XOR
from tamis.kernels.compiled import kernel
from tamis.kernels.prefetch import prefetch_row
from tamis.match.kernels.leaves import count_groups, set_leaves
from tamis.match.kernels.rows import (
    WORDS,
    add_to_counters,
    at_least_count,
    both,
    count_bits,
    either,
    fill,
    has_bit,
    load,
    one_of,
    store,
)

N_TOPS = 512  # evaluated at a time: their masks stay in the cache
PREFETCHED = np.uint64(32)  # children ahead of the current one


@kernel
def match_block(
    first_row,  # of the block
    n_rows,  # in the block, 1 to 512 for each group
    events,  # EventArrays
    leaves,  # LeafArrays
    nodes,  # NodeArrays
    roots,  # RootArrays
    scratch,  # Scratch
):
    """Find, for each group of the block, the roots that some event satisfies, and the events."""
    n_groups = set_masks(first_row, n_rows, events, leaves, nodes, scratch)
    n_leaves, n_stored = scratch.n_leaves[0], len(scratch.is_live)
    masks, is_live = scratch.masks, scratch.is_live
    scratch.n_found[:] = 0
    root = collect(0, n_stored, 0, masks, is_live, roots, scratch, n_groups)
    masks, is_live = scratch.top_masks, scratch.top_is_live
    for begin in range(n_stored - n_leaves, len(nodes.operators), N_TOPS):
        end = min(begin + N_TOPS, len(nodes.operators))
        evaluate(begin, end, nodes, scratch, masks, is_live, 0, n_groups)
        first, last = n_leaves + begin, n_leaves + end
        root = collect(root, last, first, masks, is_live, roots, scratch, n_groups)


@kernel
def count_block(first_row, n_rows, events, leaves, nodes, roots, scratch, counts):
    """Add the matches of the block to each subscription's count; nothing is listed."""
    n_groups = set_masks(first_row, n_rows, events, leaves, nodes, scratch)
    n_leaves, n_stored = scratch.n_leaves[0], len(scratch.is_live)
    masks, is_live = scratch.masks, scratch.is_live
    root = count_matches(0, n_stored, 0, masks, is_live, roots, counts, n_groups)
    masks, is_live = scratch.top_masks, scratch.top_is_live
    for begin in range(n_stored - n_leaves, len(nodes.operators), N_TOPS):
        end = min(begin + N_TOPS, len(nodes.operators))
        evaluate(begin, end, nodes, scratch, masks, is_live, 0, n_groups)
        first, last = n_leaves + begin, n_leaves + end
        root = count_matches(root, last, first, masks, is_live, roots, counts, n_groups)


@kernel
def set_masks(first_row, n_rows, events, leaves, nodes, scratch):
    """Compute the masks of all nodes that keep one; return the number of groups."""
    set_leaves(first_row, n_rows, events, leaves, scratch)
    n_groups = count_groups(n_rows)
    n_leaves, n_stored = scratch.n_leaves[0], len(scratch.is_live)
    masks, is_live = scratch.masks, scratch.is_live
    evaluate(0, n_stored - n_leaves, nodes, scratch, masks, is_live, n_leaves, n_groups)
    return n_groups


@kernel
def count_matches(root, end_node, first_node, masks, is_live, roots, counts, n_groups):
    """Count the matches of the roots from `root` on, below `end_node`; return the next root."""
    root_nodes = roots.nodes
    starts, subscriptions = roots.subscription_starts, roots.subscriptions
    while root < len(root_nodes) and root_nodes[root] < end_node:
        own = np.uint64(root_nodes[root] - first_node)
        if is_live[own]:
            n_matches = 0
            for row in range(own * n_groups, (own + np.uint64(1)) * n_groups):
                for word in range(WORDS):
                    n_matches += count_bits(masks[row, word])
            for slot in range(starts[root], starts[root + 1]):
                counts[subscriptions[slot]] += n_matches
        root += 1
    return root


@kernel
def evaluate(begin, end, nodes, scratch, out, is_live_out, first_out, n_groups):
    """Write the masks of the inner nodes begin to end, of which children come before parents."""
    operators, children, starts = nodes.operators, nodes.children, nodes.child_starts
    masks, is_live = scratch.masks, scratch.is_live
    while begin < end:
        operator = operators[begin]
        until = begin + 1
        while until < end and operators[until] == operator:
            until += 1
        own = starts[begin : until + 1]
        out_rows = out[np.uint64(first_out) * n_groups :]
        out_live = is_live_out[first_out:]
        if operator == AND:
            evaluate_ands(own, children, masks, is_live, out_rows, out_live, n_groups)
        elif operator == OR:
            evaluate_ors(own, children, masks, out_rows, out_live, n_groups)
        elif operator == XOR:
            parities = nodes.required[begin:until]
            evaluate_xors(own, children, parities, masks, out_rows, out_live, n_groups)
        else:
            least = nodes.required[begin:until]
            evaluate_at_leasts(
                own, children, least, masks, scratch.planes, out_rows, out_live, n_groups
            )
        first_out += until - begin
        begin = until


@kernel(inline="always")
def prefetch(ahead, until, children, masks, n_groups):
    """Prefetch the masks of the children up to `until`; return where to continue."""
    while ahead < until:
        first_row = np.uint64(np.uint32(children[ahead])) * n_groups
        for group in range(n_groups):
            prefetch_row(masks, first_row + group)
        ahead += np.uint64(1)
    return ahead


@kernel
def evaluate_ors(starts, children, masks, out, out_live, n_groups):
    """OR of the children."""
    ahead, last = np.uint64(starts[0]), np.uint64(starts[-1])
    for node in range(np.uint64(len(starts) - 1)):
        begin, end = np.uint64(starts[node]), np.uint64(starts[node + np.uint64(1)])
        ahead = prefetch(ahead, min(end + PREFETCHED, last), children, masks, n_groups)
        live = np.uint8(0)
        for group in range(n_groups):
            row = load(masks, np.uint64(np.uint32(children[begin])) * n_groups + group)
            for at in range(begin + np.uint64(1), end):
                child = np.uint64(np.uint32(children[at]))
                row = either(row, load(masks, child * n_groups + group))
            store(out, node * n_groups + group, row)
            live |= np.uint8(has_bit(row)) << np.uint8(group)
        out_live[node] = live


@kernel
def evaluate_ands(starts, children, masks, is_live, out, out_live, n_groups):
    """AND of the children. Most ANDs are false for all events, and the bytes of their children show
    it without a mask.
    """
    all_groups = np.uint8((np.uint64(1) << n_groups) - np.uint64(1))
    for node in range(np.uint64(len(starts) - 1)):
        begin, end = np.uint64(starts[node]), np.uint64(starts[node + np.uint64(1)])
        hopeful = all_groups
        for at in range(begin, end):
            hopeful &= is_live[np.uint32(children[at])]
            if hopeful == 0:
                break
        live = np.uint8(0)
        for group in range(n_groups):
            if hopeful >> np.uint8(group) & np.uint8(1):
                row = load(masks, np.uint64(np.uint32(children[begin])) * n_groups + group)
                for at in range(begin + np.uint64(1), end):
                    child = np.uint64(np.uint32(children[at]))
                    row = both(row, load(masks, child * n_groups + group))
                    if not has_bit(row):
                        break
                store(out, node * n_groups + group, row)
                live |= np.uint8(has_bit(row)) << np.uint8(group)
            else:
                store(out, node * n_groups + group, fill(np.uint64(0)))
        out_live[node] = live


@kernel
def evaluate_xors(starts, children, parities, masks, out, out_live, n_groups):
    """Whether the number of true operands is odd (even), from pairs in which one side is true."""
    ahead, last = np.uint64(starts[0]), np.uint64(starts[-1])
    for node in range(np.uint64(len(starts) - 1)):
        begin, end = np.uint64(starts[node]), np.uint64(starts[node + np.uint64(1)])
        ahead = prefetch(ahead, min(end + PREFETCHED, last), children, masks, n_groups)
        even = np.uint64(0) if parities[node] else ~np.uint64(0)
        live = np.uint8(0)
        for group in range(n_groups):
            is_defined = fill(~np.uint64(0))
            is_odd = fill(even)
            for at in range(begin, end, np.uint64(2)):
                true_side = np.uint64(np.uint32(children[at]))
                false_side = np.uint64(np.uint32(children[at + np.uint64(1)]))
                row = load(masks, true_side * n_groups + group)
                other = load(masks, false_side * n_groups + group)
                is_defined = both(is_defined, either(row, other))
                is_odd = one_of(is_odd, row)
                if not has_bit(is_defined):
                    break
            row = both(is_defined, is_odd)
            store(out, node * n_groups + group, row)
            live |= np.uint8(has_bit(row)) << np.uint8(group)
        out_live[node] = live


@kernel
def evaluate_at_leasts(starts, children, least, masks, planes, out, out_live, n_groups):
    """Whether at least so many children are true, counted for all events of a row at once."""
    for node in range(np.uint64(len(starts) - 1)):
        begin, end = np.uint64(starts[node]), np.uint64(starts[node + np.uint64(1)])
        n_planes = 0
        while (np.uint64(1) << np.uint64(n_planes)) <= end - begin:
            n_planes += 1
        live = np.uint8(0)
        for group in range(n_groups):
            planes[:n_planes] = 0
            for at in range(begin, end):
                child = np.uint64(np.uint32(children[at]))
                add_to_counters(planes, 0, load(masks, child * n_groups + group))
            row = at_least_count(planes, n_planes, least[node])
            store(out, node * n_groups + group, row)
            live |= np.uint8(has_bit(row)) << np.uint8(group)
        out_live[node] = live


@kernel
def collect(root, end_node, first_node, masks, is_live, roots, scratch, n_groups):
    """List the roots from `root` on, below `end_node`, that have a bit; return the next root.

    masks and is_live begin with `first_node`.
    """
    found, found_masks, n_found = scratch.found, scratch.found_masks, scratch.n_found
    most_found = np.uint64(found.shape[1])
    root_nodes = roots.nodes
    while root < len(root_nodes) and root_nodes[root] < end_node:
        own = np.uint64(root_nodes[root] - first_node)
        live = is_live[own]
        for group in range(n_groups):
            if live >> np.uint8(group) & np.uint8(1):
                at = np.uint64(n_found[group])
                found[group, at] = root
                store(found_masks, group * most_found + at, load(masks, own * n_groups + group))
                n_found[group] += 1
        root += 1
    return root
