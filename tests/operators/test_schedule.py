"""The adaptive schedule and its gates; tests/lab/liu compares it with the paper's."""

from __future__ import annotations

import pytest

from tamis.errors import TamisError
from tamis.operators.schedule import Gates, make_schedule


def test_an_or_needs_no_more_once_it_is_true():
    # (c0 OR c1) AND c2, and c1 alone for another subscription.
    gates = Gates.of(3, [1, 2], [0, 2, 4], [0, 2, 6, 4], [7])
    run = make_schedule(gates).new_run()
    run.start()
    run.record_result(0, True)
    assert (run.popularity > 0).tolist() == [False, False, True]
    assert run.next_call() == 2
    assert run.record_result(2, True) == -1
    assert run.matched.tolist() == [0]


def test_a_call_without_a_result_is_neither_true_nor_false():
    gates = Gates.of(1, [], [0], [], [0, 1])  # c0, and NOT c0
    run = make_schedule(gates).new_run()
    run.start()
    assert run.record_result(0, None) == -1
    assert sorted(run.decided) == [0, 1]
    assert run.matched.size == 0


@pytest.mark.parametrize("is_joined", [True, False])
def test_a_joined_gate_waits_for_a_word(is_joined):
    gates = Gates.of(3, [2, 2], [0, 2, 4], [0, 2, 6, 4], [7], [1, 0])
    run = make_schedule(gates).new_run()
    run.start()
    assert run.record_result(0, True) != -1
    run.record_result(1, True)
    assert run.pending.tolist() == [0]
    run.settle(0, is_joined)
    if is_joined:
        run.record_result(2, True)
    assert run.next_call() == -1
    assert run.matched.tolist() == ([0] if is_joined else [])
    assert run.decided.tolist() == [0]


def test_forced_calls_go_first():
    # c2 alone decides the third subscription, so it is asked though c0 is the most popular.
    gates = Gates.conjunctions([0, 2, 4, 5], [0, 1, 0, 2, 2], 3)
    run = make_schedule(gates, 1.0, [0.1, 0.1, 0.9]).new_run()
    run.start()
    assert run.next_call() == 2


def test_adaptive_takes_popularity_selectivity_and_cost():
    starts, calls = [0, 2, 4, 6], [0, 1, 0, 2, 0, 3]
    gates = Gates.conjunctions(starts, calls, 4)

    def first(costs, selectivities):
        run = make_schedule(gates, costs, selectivities).new_run()
        run.start()
        return run.next_call()

    assert first(1.0, 0.5) == 0  # most popular
    assert first(1.0, [0.9, 0.5, 0.5, 0.2]) == 3  # 3 · 0.1 < 1 · 0.8
    assert first([9, 1, 2, 2], 0.5) == 1  # 3 / 9 < 1 / 1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda g: make_schedule(g, 0.0), "cost of call 0 is 0.0"),
        (lambda g: make_schedule(g, 1.0, [0.5, 1.5]), "selectivity of call 1 is 1.5"),
        (lambda g: make_schedule(g, float("nan")), "cost of call 0 is nan"),
        (lambda _: Gates.of(1, [2], [0, 1], [0], [0]), "gate 0 requires 2 of 1 children"),
        (lambda _: Gates.of(1, [1], [0, 1], [2], [0]), "the child 2"),
        (lambda _: Gates.of(1, [1], [0, 1], [0], [3]), "the node of subscription 0 is 3"),
        (lambda _: Gates.of(1, [1], [0, 2], [0], [0]), "child_starts"),
    ],
)
def test_mistakes_are_named(make, message):
    gates = Gates.conjunctions([0, 2], [0, 1], 2)
    with pytest.raises(TamisError, match=message):
        make(gates)
