"""Liu's workload is as Table 1 says, and the bound that judges it is one."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import TamisError
from tamis.lab.liu.optimum import optimal_cost
from tamis.lab.workloads import OverlapParams, Overlaps
from tamis.lab.workloads.overlaps import SELECTIVITIES, packing_bound
from tamis.operators.schedule import Gates
from tests.effort import examples


def test_lengths_and_calls_are_in_range():
    starts, calls = Overlaps(OverlapParams(500, 60, n_calls_of_one=(3, 7))).conjunctions
    assert set(np.diff(starts)) == {3, 4, 5, 6, 7}
    assert calls.min() >= 0
    assert calls.max() < 60
    owners = np.repeat(np.arange(500), np.diff(starts))
    assert len(np.unique(owners * 60 + calls)) == len(calls), "a call is twice in a subscription"


@pytest.mark.parametrize("selectivity", SELECTIVITIES)
def test_match_ratio_comes_out(selectivity):
    workload = Overlaps(OverlapParams(2_000, 300, selectivity=selectivity))
    starts, calls = workload.conjunctions
    found = [
        np.logical_and.reduceat(workload.is_true(event)[calls], starts[:-1]).mean()
        for event in range(200)
    ]
    assert np.mean(found) == pytest.approx(0.002, rel=0.25)


def test_popularity_follows_its_law():
    for zipf, most in ((1.2, 0.1), (1.0, 0.07), (0.8, 0.03)):
        _, calls = Overlaps(OverlapParams(5_000, 1_000, zipf)).conjunctions
        counts = np.bincount(calls, minlength=1_000)
        assert counts.argmax() == 0
        assert counts[0] / len(calls) > most
    _, calls = Overlaps(OverlapParams(50_000, 1_000)).conjunctions
    counts = np.bincount(calls, minlength=1_000)
    # Weights are uniform in [0, 1]: a quarter of the calls has half the mean or less.
    assert np.mean(counts < counts.mean() / 2) == pytest.approx(0.25, abs=0.05)


def test_same_seed_same_workload():
    params = OverlapParams(50, 40, 1.0, seed=3)
    one, other = Overlaps(params), Overlaps(params)
    assert np.array_equal(one.conjunctions[1], other.conjunctions[1])
    assert np.array_equal(one.is_true(7), other.is_true(7))
    assert not np.array_equal(one.is_true(7), one.is_true(8))


def test_bound_is_below_the_optimum(seed):
    for at in range(examples(15)):
        workload = Overlaps(OverlapParams(10, 8, n_calls_of_one=(1, 3), seed=seed + at))
        gates = Gates.conjunctions(*workload.conjunctions, 8)
        best = optimal_cost(gates, np.ones(8), np.zeros(8))
        bound = packing_bound(*workload.conjunctions, 8)
        assert best / 2 <= bound <= best + 1e-9


def test_bound_of_disjoint_subscriptions_is_their_number():
    assert packing_bound(np.array([0, 2, 4]), np.array([0, 1, 2, 3]), 4) == pytest.approx(2)
    assert packing_bound(np.array([0]), np.zeros(0, np.int32), 4) == 0


@pytest.mark.parametrize(
    "wrong",
    [{"n_calls_of_one": (5, 3)}, {"match_ratio": 0}, {"selectivity": "normal"}, {"n_calls": 4}],
)
def test_impossible_parameters_are_refused(wrong):
    with pytest.raises(TamisError, match="allowed"):
        OverlapParams(**wrong)
