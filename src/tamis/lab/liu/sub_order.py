"""Sub-Order: chains in the order that saves most, by exact cost differences of pairs (Liu §4.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.lab.liu.kernels.chains import link_greedily, unroll, weigh_pairs
from tamis.lab.liu.kernels.walks import SUB_ORDER
from tamis.lab.liu.walk import Walk, make_walk
from tamis.operators.schedule.gates import invert

if TYPE_CHECKING:
    from tamis.operators.schedule.gates import Floats, Gates, Ints

# The paper compares all pairs. A call in 30,000 chains has half a billion of them.
MAX_PARTNERS: Final = 32


def make_sub_order(gates: Gates, costs: Floats, selectivities: Floats) -> Walk:
    """Chains by cost differences, each with its calls by rank."""
    starts, calls = gates.call_lists
    ranks = rank_calls(costs, selectivities)
    calls = sort_chains(starts, calls, ranks)
    order = order_chains(starts, calls, ranks, costs, selectivities)
    return make_walk(SUB_ORDER, gates, starts, calls, order)


def rank_calls(costs: Floats, selectivities: Floats) -> Ints:
    """The rank of each call in any chain: by cost / (1 - selectivity), then by number.

    This is the order of minimum expected cost for one chain; with equal costs it is the paper's,
    least selectivity first.
    """
    with np.errstate(divide="ignore"):
        keys = costs / (1.0 - selectivities)
    ranks = np.empty(len(costs), dtype=np.int32)
    ranks[np.argsort(keys, kind="stable")] = np.arange(len(costs), dtype=np.int32)
    return ranks


def sort_chains(starts: Ints, calls: Ints, ranks: Ints) -> Ints:
    """The calls of each chain by rank."""
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return calls[np.lexsort((ranks[calls], owners))]


def order_chains(
    starts: Ints, calls: Ints, ranks: Ints, costs: Floats, selectivities: Floats
) -> Ints:
    """All chains, each sorted by rank, in the greedy order of §4.2.5.

    The pairs connect chains to many short fragments, whose order the paper does not give: here, the
    fragments whose first chain saves most by being before its partners come first.
    """
    n_chains = len(starts) - 1
    user_starts, users = list_users(starts, calls, costs, selectivities)
    sizes = np.diff(user_starts)
    n_most = int(np.minimum(sizes * (sizes - 1) // 2, sizes * 2 * MAX_PARTNERS).sum())
    before, after = np.empty(n_most, dtype=np.int32), np.empty(n_most, dtype=np.int32)
    weights = np.empty(n_most)
    links = (starts, calls, user_starts, users, ranks, costs, selectivities)
    n_pairs = weigh_pairs(*links, MAX_PARTNERS, before, after, weights)
    lightest = np.argsort(weights[:n_pairs], kind="stable")
    following = link_greedily(before[lightest], after[lightest], n_chains)
    savings = -weights[:n_pairs]
    net = np.bincount(before[:n_pairs], weights=savings, minlength=n_chains)
    net -= np.bincount(after[:n_pairs], weights=savings, minlength=n_chains)
    heads = np.setdiff1d(np.arange(n_chains), following)
    order: Ints = unroll(following, heads[np.argsort(-net[heads], kind="stable")])
    return order


def list_users(
    starts: Ints, calls: Ints, costs: Floats, selectivities: Floats
) -> tuple[Ints, Ints]:
    """The chains of each call, sorted by descending ratio P / C at it: starts, chains."""
    owners = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    reach, above = np.ones(len(calls)), np.zeros(len(calls))
    depths = np.arange(len(calls)) - starts[owners]
    for depth in range(1, int(depths.max(initial=0)) + 1):
        (here,) = np.nonzero(depths == depth)
        over = here - 1
        reach[here] = reach[over] * selectivities[calls[over]]
        above[here] = above[over] + reach[over] * costs[calls[over]]
    with np.errstate(divide="ignore"):
        ratios = reach / above
    order = np.argsort(-ratios, kind="stable")
    return invert(calls[order], owners[order], len(costs))
