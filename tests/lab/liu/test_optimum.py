"""The optimum is one: no schedule is below it, and the paper's guarantees hold against it."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import TamisError
from tamis.lab.liu import SCHEDULES, make_schedule
from tamis.lab.liu.optimum import expected_cost, optimal_cost
from tamis.operators.schedule import Gates
from tests.effort import examples
from tests.lab.liu.instances import draw_conjunctions, draw_gates


def test_one_conjunction_by_hand():
    gates = Gates.conjunctions([0, 2], [0, 1], 2)
    costs, chances = np.ones(2), np.array([0.5, 0.1])
    assert optimal_cost(gates, costs, chances) == pytest.approx(1 + 0.1)
    assert optimal_cost(gates, np.array([1.0, 9.0]), chances) == pytest.approx(1 + 0.5 * 9)


def test_a_set_cover_by_hand():
    # §3: with selectivity zero, the least number of calls that hit every subscription.
    gates = Gates.conjunctions([0, 2, 4, 6], [0, 1, 1, 2, 2, 3], 4)
    assert optimal_cost(gates, np.ones(4), np.zeros(4)) == 2


def test_an_or_by_hand():
    gates = Gates.of(2, [1], [0, 2], [0, 2], [4])
    assert optimal_cost(gates, np.ones(2), np.array([0.9, 0.2])) == pytest.approx(1.1)


@pytest.mark.parametrize("name", SCHEDULES)
def test_no_schedule_is_below_the_optimum(name, seed):
    for at in range(examples(6)):
        rng = np.random.default_rng((seed, at))
        for instance in (draw_conjunctions(rng, 6, 6, 3), draw_gates(rng, 5, 5, 4)):
            gates, costs, chances = instance[:3]
            schedule = make_schedule(name, gates, costs, chances)
            cost = expected_cost(schedule, costs, chances)
            assert cost >= optimal_cost(gates, costs, chances) - 1e-9


def test_one_chain_is_scheduled_optimally(seed):
    for at in range(examples(10)):
        rng = np.random.default_rng((seed, at))
        gates, costs, chances, *_ = draw_conjunctions(rng, 1, 5, 5)
        best = optimal_cost(gates, costs, chances)
        for name in ("sub_order", "adaptive"):
            schedule = make_schedule(name, gates, costs, chances)
            cost = expected_cost(schedule, costs, chances)
            # Buckets hold priorities that are alike to one part in a hundred.
            assert cost <= best * (1.0 if name == "sub_order" else 1.02) + 1e-9


def test_sequential_is_a_d_approximation(seed):
    for at in range(examples(10)):
        rng = np.random.default_rng((seed, at))
        gates, costs, chances, starts, _ = draw_conjunctions(rng, 8, 6, 3, same_costs=True)
        schedule = make_schedule("sequential", gates, costs, chances)
        longest = np.diff(starts).max()
        assert expected_cost(schedule, costs, chances) <= longest * optimal_cost(
            gates, costs, chances
        )


def test_adaptive_is_near_the_optimum(seed):
    """On average: a single instance may be worse."""
    ratios = {"sub_order": [], "adaptive": []}
    for at in range(examples(12)):
        rng = np.random.default_rng((seed, at))
        gates, costs, chances, *_ = draw_conjunctions(rng, 10, 8, 4)
        best = optimal_cost(gates, costs, chances)
        for name, found in ratios.items():
            schedule = make_schedule(name, gates, costs, chances)
            found.append(expected_cost(schedule, costs, chances) / best)
    assert np.mean(ratios["adaptive"]) <= np.mean(ratios["sub_order"])
    assert np.mean(ratios["adaptive"]) < 1.1


def test_large_instances_are_refused():
    gates = Gates.conjunctions([0, 1], [0], 13)
    with pytest.raises(TamisError, match="13 calls"):
        optimal_cost(gates, np.ones(13), np.ones(13))
