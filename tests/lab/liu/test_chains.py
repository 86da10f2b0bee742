"""Linked chains: cost differences are exact, orders use them, chains come and go."""

from __future__ import annotations

from itertools import pairwise, permutations, product

import numpy as np
import pytest

from tamis.errors import TamisError
from tamis.lab.liu.kernels.chains import cost_difference
from tamis.lab.liu.linked_chains import LinkedChains
from tamis.lab.liu.sub_order import order_chains, rank_calls, sort_chains
from tamis.operators.schedule import Gates
from tests.effort import examples
from tests.lab.liu.instances import draw_conjunctions, draw_results


def expected_cost_in_order(chains, costs, selectivities) -> float:
    """The expected cost of chains from left to right (§4.2.2), over all outcomes."""
    total = 0.0
    for outcome in product([False, True], repeat=len(costs)):
        made: set[int] = set()
        removed: set[int] = set()
        for at, chain in enumerate(chains):
            for call in chain:
                if at in removed:
                    break
                made.add(call)
                if not outcome[call]:
                    removed |= {other for other, own in enumerate(chains) if call in own}
        sides = np.where(outcome, selectivities, 1.0 - selectivities)
        total += sides.prod() * costs[list(made)].sum()
    return total


def draw_pair(rng, n_calls, n_links, same_costs):
    """Two chains by rank, with so many links."""
    shuffled = rng.permutation(n_calls)
    shared, rest = shuffled[:n_links], shuffled[n_links:]
    cut = rng.integers(0, len(rest), endpoint=True)
    costs = np.ones(n_calls) if same_costs else rng.uniform(0.5, 4, n_calls)
    selectivities = rng.random(n_calls)
    ranks = rank_calls(costs, selectivities)
    chains = [np.concatenate((shared, own)).astype(np.int32) for own in (rest[:cut], rest[cut:])]
    return [chain[np.argsort(ranks[chain])] for chain in chains], ranks, costs, selectivities


@pytest.mark.parametrize("same_costs", [True, False])
@pytest.mark.parametrize("n_links", [0, 1, 2, 3, 4])
def test_cost_difference_is_exact(n_links, same_costs, seed):
    rng = np.random.default_rng((seed, n_links))
    for _ in range(examples(5)):
        (one, other), ranks, costs, chances = draw_pair(rng, 8, n_links, same_costs)
        direct = expected_cost_in_order([one, other], costs, chances) - expected_cost_in_order(
            [other, one], costs, chances
        )
        assert cost_difference(one, other, ranks, costs, chances) == pytest.approx(direct)
        assert cost_difference(other, one, ranks, costs, chances) == pytest.approx(-direct)


def test_cost_difference_of_one_link_as_in_the_paper():
    # §4.2.4: (1 - p) · (P₂ · C₁ - P₁ · C₂), with C the cost of what stands above the link.
    chances = np.array([0.1, 0.2, 0.3, 0.9])
    first, second = np.array([0, 1, 3], np.int32), np.array([2, 3], np.int32)
    reach_1, reach_2, above_1, above_2 = 0.1 * 0.2, 0.3, 1 + 0.1, 1.0
    wanted = (1 - 0.9) * (reach_2 * above_1 - reach_1 * above_2)
    ranks = rank_calls(np.ones(4), chances)
    assert cost_difference(first, second, ranks, np.ones(4), chances) == pytest.approx(wanted)


def test_ranks_are_those_of_selectivities_when_costs_are_equal():
    assert rank_calls(np.ones(4), np.array([0.9, 0.1, 1.0, 0.1])).tolist() == [2, 0, 3, 1]


def test_ranks_give_a_chain_its_least_cost(seed):
    rng = np.random.default_rng(seed)
    for _ in range(examples(5)):
        costs, chances = rng.uniform(0.5, 4, 4), rng.random(4)
        chain = np.argsort(rank_calls(costs, chances))
        least = min(expected_cost_in_order([own], costs, chances) for own in permutations(range(4)))
        assert expected_cost_in_order([chain], costs, chances) == pytest.approx(least)


def test_order_of_two_is_the_cheaper_one(seed):
    rng = np.random.default_rng(seed)
    for _ in range(examples(20)):
        chains, ranks, costs, chances = draw_pair(rng, 6, 2, same_costs=False)
        starts = np.array([0, len(chains[0]), len(chains[0]) + len(chains[1])])
        order = order_chains(starts, np.concatenate(chains), ranks, costs, chances)
        ways = [[chains[at] for at in each] for each in (order, order[::-1])]
        first, second = (expected_cost_in_order(way, costs, chances) for way in ways)
        assert first <= second + 1e-12


def test_order_has_each_chain_once(seed):
    rng = np.random.default_rng(seed)
    for _ in range(examples(20)):
        instance = draw_conjunctions(rng, rng.integers(0, 60), 12)
        gates, costs, chances, starts, calls = instance
        ranks = rank_calls(costs, chances)
        order = order_chains(starts, sort_chains(starts, calls, ranks), ranks, costs, chances)
        assert sorted(order) == list(range(gates.n_subscriptions))


def test_order_of_a_call_in_very_many_chains(seed):
    """Where pairs are sampled, the order is still one of all chains."""
    rng = np.random.default_rng(seed)
    n = 300
    calls = np.column_stack((np.zeros(n), rng.integers(1, 50, n))).astype(np.int32).ravel()
    starts = np.arange(0, 2 * n + 1, 2)
    costs, chances = np.ones(50), rng.random(50)
    ranks = rank_calls(costs, chances)
    order = order_chains(starts, sort_chains(starts, calls, ranks), ranks, costs, chances)
    assert sorted(order) == list(range(n))


# ── insertion and deletion ──────────────────────────────────────────────────────────────────


def test_insertion_takes_the_best_place(seed):
    rng = np.random.default_rng(seed)
    for _ in range(examples(10)):
        _, costs, chances, starts, calls = draw_conjunctions(rng, 5, 6)
        linked = LinkedChains.of(starts, calls, costs, chances)
        before = linked.order
        own = rng.choice(6, 3, replace=False)
        linked.insert(99, own)
        assert [chain for chain in linked.order if chain != 99] == before
        assert pairwise_cost(linked, linked.order) == pytest.approx(
            min(
                pairwise_cost(linked, [*before[:at], 99, *before[at:]])
                for at in range(len(before) + 1)
            )
        )


def pairwise_cost(linked, order):
    """What an insertion weighs: the differences of all pairs as they stand."""
    return sum(
        linked.difference(linked.calls_of(one), linked.calls_of(other))
        for at, one in enumerate(order)
        for other in order[at + 1 :]
    )


def test_chains_come_and_go_and_match_alike(seed):
    rng = np.random.default_rng(seed)
    costs, chances = rng.uniform(0.5, 2, 8), rng.random(8)
    linked = LinkedChains(costs, chances)
    subscriptions: dict[int, list[int]] = {}
    for step in range(examples(120)):
        if subscriptions and rng.random() < 0.4:
            gone = int(rng.choice(list(subscriptions)))
            linked.delete(gone)
            del subscriptions[gone]
        else:
            subscriptions[step] = rng.choice(8, rng.integers(1, 4), replace=False).tolist()
            linked.insert(step, subscriptions[step])
        assert sorted(linked.order) == sorted(subscriptions)
    for chain, own in subscriptions.items():
        ranks = linked.ranks[linked.calls_of(chain)]
        assert sorted(linked.calls_of(chain)) == sorted(own)
        assert all(a < b for a, b in pairwise(ranks))
    check_matches(rng, linked, subscriptions)


def check_matches(rng, linked, subscriptions):
    run = linked.to_schedule().new_run()
    ids = linked.order
    for _ in range(20):
        results = draw_results(rng, linked.selectivities)
        run.start()
        run.play(results)
        matched = {ids[at] for at in run.matched}
        assert matched == {
            chain for chain, own in subscriptions.items() if (results[own] == 2).all()
        }


def test_many_insertions_at_one_place():
    """Keys between two neighbours run out after some fifty; then all get new ones."""
    linked = LinkedChains(np.ones(2), np.array([0.1, 0.5]))
    linked.insert(0, [1])
    linked.insert(1, [0, 1])
    for chain in range(2, 200):
        linked.insert(chain, [0, 1] if chain % 2 else [1])
    assert sorted(linked.order) == list(range(200))
    for chain in range(200):
        linked.delete(chain)
    assert linked.order == []


def test_chains_are_refused_twice():
    linked = LinkedChains(np.ones(1), np.array([0.5]))
    linked.insert(7, [0])
    with pytest.raises(TamisError, match="there is a chain 7"):
        linked.insert(7, [0])
    with pytest.raises(TamisError, match="there is no chain 8"):
        linked.delete(8)


def test_schedule_of_all_chains_keeps_their_order(seed):
    rng = np.random.default_rng(seed)
    gates, costs, chances, starts, calls = draw_conjunctions(rng, 12, 8)
    linked = LinkedChains.of(starts, calls, costs, chances)
    assert isinstance(gates, Gates)
    check_matches(
        rng, linked, {at: calls[starts[at] : starts[at + 1]].tolist() for at in range(12)}
    )
