"""Linked chains (Liu §4.2): the cost of taking one chain before another, and an order of all.

The calls of a chain are sorted by rank, which is the same in every chain, so equivalence links
never cross and two chains are compared in one pass.
"""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel


@kernel
def cost_difference(
    first,  # int32[:], calls of the chain taken first, by rank
    second,  # int32[:], calls of the other, by rank
    ranks,  # int32[n_calls], each once
    costs,  # float64[n_calls]
    selectivities,  # float64[n_calls]
):
    """Expected cost of first-then-second minus that of second-then-first (§4.2.4, §4.3).

    Σ (1 - p) · [P₂ · C'₁ - P₁ · C'₂] over the k links. P is the probability that a chain reaches
    the link; C' the expected cost of the calls above it, without the links before it.
    """
    difference = 0.0
    linked = 1.0  # probability that all links so far are true
    reach_1, reach_2 = 1.0, 1.0  # and that the chain's other calls so far are
    above_1, above_2 = 0.0, 0.0  # C' of each chain
    i, j = 0, 0
    while i < len(first) and j < len(second):
        rank_1, rank_2 = ranks[first[i]], ranks[second[j]]
        if rank_1 < rank_2:
            above_1 += reach_1 * costs[first[i]]
            reach_1 *= selectivities[first[i]]
            i += 1
        elif rank_2 < rank_1:
            above_2 += reach_2 * costs[second[j]]
            reach_2 *= selectivities[second[j]]
            j += 1
        else:
            p = selectivities[first[i]]
            difference += (1.0 - p) * linked * (reach_2 * above_1 - reach_1 * above_2)
            linked *= p
            i += 1
            j += 1
    return difference


@kernel
def shares_earlier(first, second, ranks, shared):
    """Whether the chains share a call that comes before `shared` in them."""
    i, j = 0, 0
    while ranks[first[i]] < ranks[shared] and ranks[second[j]] < ranks[shared]:
        if first[i] == second[j]:
            return True
        if ranks[first[i]] < ranks[second[j]]:
            i += 1
        else:
            j += 1
    return False


@kernel
def weigh_pairs(
    call_starts,  # int64[n_chains + 1]
    calls,  # int32[:], by rank in each chain
    user_starts,  # int64[n_calls + 1]
    users,  # int32[:], chains, in each call's list sorted by the cost of reaching it
    ranks,
    costs,
    selectivities,
    max_partners,  # of a chain in one list
    before,  # int32[:], output
    after,  # int32[:], output
    weights,  # float64[:], output, negative: `before` first costs that much less
):
    """Write the pairs of linked chains whose order matters; return how many there are.

    All pairs of a list longer than 2 · max_partners + 1 would be too many: there, each chain is
    paired with at most max_partners others, evenly spread over the rest of the list.
    """
    n_pairs = 0
    for call in range(len(user_starts) - 1):
        own = users[user_starts[call] : user_starts[call + 1]]
        n_own = len(own)
        step = max(1, (n_own - 1) // max_partners) if n_own > 2 * max_partners + 1 else 1
        for i in range(n_own):
            chain_1 = calls[call_starts[own[i]] : call_starts[own[i] + 1]]
            for j in range(i + 1 if step == 1 else i + 1 + (i % step), n_own, step):
                chain_2 = calls[call_starts[own[j]] : call_starts[own[j] + 1]]
                if shares_earlier(chain_1, chain_2, ranks, call):
                    continue  # the pair is counted at its first link
                difference = cost_difference(chain_1, chain_2, ranks, costs, selectivities)
                if difference == 0.0:
                    continue
                if n_pairs < len(before):
                    is_first = difference < 0.0
                    before[n_pairs] = own[i] if is_first else own[j]
                    after[n_pairs] = own[j] if is_first else own[i]
                    weights[n_pairs] = -abs(difference)
                n_pairs += 1
    return n_pairs


@kernel(inline="always")
def find_end(ends, chain):
    """The representative of a chain's fragment, with the path to it shortened."""
    while ends[chain] != chain:
        ends[chain] = ends[ends[chain]]
        chain = ends[chain]
    return chain


@kernel(_nrt=True)
def link_greedily(
    before,  # int32[n_pairs], lightest pair first
    after,  # int32[n_pairs]
    n_chains,
):
    """The chain that follows each, or -1: a path found as in Kruskal's algorithm (§4.2.5).

    A pair is used unless a chain would get two successors or two predecessors, or a cycle would
    form.
    """
    following = np.full(n_chains, -1, dtype=np.int32)
    has_previous = np.zeros(n_chains, dtype=np.bool_)
    ends = np.arange(n_chains, dtype=np.int32)
    for pair in range(len(before)):
        u, v = before[pair], after[pair]
        if following[u] >= 0 or has_previous[v]:
            continue
        end_u, end_v = find_end(ends, u), find_end(ends, v)
        if end_u == end_v:
            continue
        following[u] = v
        has_previous[v] = True
        ends[end_u] = end_v
    return following


@kernel(_nrt=True)
def unroll(following, heads):
    """The chains in order: each fragment from its head, the heads in the given order."""
    order = np.empty(len(following), dtype=np.int32)
    n = 0
    for head in heads:
        chain = head
        while chain >= 0:
            order[n] = chain
            n += 1
            chain = following[chain]
    return order
