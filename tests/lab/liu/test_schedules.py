"""Every schedule finds what evaluating everything finds, with each call made at most once."""

from __future__ import annotations

import numpy as np
import pytest

from tamis.errors import TamisError
from tamis.lab.liu import SCHEDULES, make_schedule
from tamis.operators.schedule import Gates
from tamis.operators.schedule.kernels.gates import TRUE
from tests.effort import examples
from tests.lab.liu.instances import (
    draw_conjunctions,
    draw_gates,
    draw_results,
    evaluate_everything,
)

RESULTS = {1: False, 2: True, 3: None}


def draw_instances(seed, n):
    """Small ones of both kinds, with a generator for their events."""
    for at in range(examples(n)):
        rng = np.random.default_rng((seed, at))
        n_calls, n = rng.integers(1, 12), rng.integers(0, 20)
        yield rng, draw_conjunctions(rng, n, n_calls)
        yield rng, draw_gates(rng, rng.integers(0, 15), n_calls, n)


def walk(run, results) -> list[int]:
    """Drive a run step by step; the calls that were made."""
    made = []
    call = run.next_call()
    while call >= 0:
        assert run.next_call() == call, "asking again changes nothing"
        made.append(call)
        call = run.record_result(call, RESULTS[int(results[call])])
    return made


@pytest.mark.parametrize("name", SCHEDULES)
def test_finds_what_evaluating_everything_finds(name, seed):
    for rng, instance in draw_instances(seed, 40):
        gates, costs, selectivities = instance[:3]
        run = make_schedule(name, gates, costs, selectivities).new_run()
        for _ in range(3):
            results = draw_results(rng, selectivities, failure=0.1)
            run.start()
            made = walk(run, results)
            assert len(made) == len(set(made))
            assert sorted(run.matched) == evaluate_everything(gates, results)
            assert sorted(run.decided) == list(range(gates.n_subscriptions))
            assert run.undecided.size == 0
            assert run.made.tolist() == made


@pytest.mark.parametrize("name", SCHEDULES)
def test_some_subscriptions_at_a_time(name, seed):
    for rng, instance in draw_instances(seed, 25):
        gates, costs, selectivities = instance[:3]
        run = make_schedule(name, gates, costs, selectivities).new_run()
        for _ in range(3):
            some = np.flatnonzero(rng.random(gates.n_subscriptions) < 0.4).astype(np.int32)
            results = draw_results(rng, selectivities)
            run.start(some)
            made = walk(run, results)
            wanted = [each for each in evaluate_everything(gates, results) if each in some]
            assert sorted(run.matched) == wanted
            assert sorted(run.decided) == some.tolist()
            below = {call for each in some for call in calls_below(gates, each)}
            assert set(made) <= below


def calls_below(gates, subscription):
    starts, calls = gates.call_lists
    return calls[starts[subscription] : starts[subscription + 1]].tolist()


@pytest.mark.parametrize("name", SCHEDULES)
def test_play_and_steps_are_the_same(name, seed):
    for rng, instance in draw_instances(seed, 20):
        gates, costs, selectivities = instance[:3]
        schedule = make_schedule(name, gates, costs, selectivities)
        stepped, played = schedule.new_run(), schedule.new_run()
        results = draw_results(rng, selectivities)
        stepped.start(np.arange(gates.n_subscriptions, dtype=np.int32))
        made = walk(stepped, results)
        played.start()
        played.play(results)
        assert played.made.tolist() == made
        assert played.decided.tolist() == stepped.decided.tolist()


@pytest.mark.parametrize("name", ["sequential", "sub_order", "adaptive"])
def test_a_call_is_made_only_while_it_is_needed(name, seed):
    for rng, instance in draw_instances(seed, 25):
        gates, costs, selectivities = instance[:3]
        run = make_schedule(name, gates, costs, selectivities).new_run()
        results = draw_results(rng, selectivities)
        run.start()
        call = run.next_call()
        while call >= 0:
            decided = set(run.decided.tolist())
            open_ones = set(range(gates.n_subscriptions)) - decided
            assert any(call in calls_below(gates, each) for each in open_ones)
            call = run.record_result(call, RESULTS[int(results[call])])


def test_naive_evaluates_each_by_itself():
    # c1 is false, which decides both; naive asks c0 of the second all the same.
    gates = Gates.conjunctions([0, 1, 3], [1, 0, 1], 2)
    results = np.array([TRUE, 1], dtype=np.int32)
    made = {}
    for name in ("naive", "sub_order"):
        run = make_schedule(name, gates, 1.0, [0.5, 0.4]).new_run()
        run.start()
        run.play(results)
        made[name] = run.made.tolist()
    assert made == {"naive": [1, 0], "sub_order": [1]}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: make_schedule("adaptiv", g), "unknown schedule 'adaptiv'"),
        (lambda g: make_schedule("naive", g, 0.0), "cost of call 0 is 0.0"),
        (lambda g: make_schedule("naive", g, 1.0, [0.5, 1.5]), "selectivity of call 1 is 1.5"),
        (lambda g: make_schedule("naive", g, float("nan")), "cost of call 0 is nan"),
    ],
)
def test_mistakes_are_named(make, message):
    gates = Gates.conjunctions([0, 2], [0, 1], 2)
    with pytest.raises(TamisError, match=message):
        make(gates)
