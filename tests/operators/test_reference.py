"""Random subscriptions with random operators: the engine answers as the reference evaluator."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.logic.evaluate import Missing, evaluate, solve
from tamis.match.build import build
from tamis.operators.caller import OperatorLimits
from tests.effort import examples
from tests.operators.toys import Toys, random_event, random_subscription, true_answers
from tests.schedules import SCHEDULES, use_schedule

SEEDS = st.integers(0, 2**32)


def draw(seed, *, missing=Missing.UNDEFINED, batch=False, n_subscriptions=12, n_events=4):
    rng = Random(seed)
    toys = Toys(batch=batch)
    drawn = [random_subscription(rng, toys.schema) for _ in range(n_subscriptions)]
    texts = {f"s{number}": text for number, (text, _) in enumerate(drawn)}
    conditions = {f"s{number}": condition for number, (_, condition) in enumerate(drawn)}
    events = [random_event(rng, number, with_errors=not batch) for number in range(n_events)]
    index = build(texts, toys.schema, missing=missing, operators=toys.registry)
    assert not index.rejects
    index.operators.limits = OperatorLimits(faults_in_a_row=10**9)  # the breaker stays closed
    expected = [expect(conditions, event, toys, missing) for event in events]
    return toys, index, conditions, events, expected


def expect(conditions, event, toys, missing):
    """The substitution of each subscription that the event satisfies."""
    found = {
        name: solve(condition, event, true_answers(condition, event, toys.schema), missing)
        for name, condition in conditions.items()
    }
    return {name: values for name, values in found.items() if values is not None}


def assert_each_call_once(toys):
    assert all(n == 1 for n in toys.calls.values()), toys.calls
    toys.calls.clear()


@pytest.mark.parametrize("schedule", SCHEDULES)
@settings(max_examples=examples(8), deadline=None)
@given(SEEDS, st.sampled_from(list(Missing)))
def test_every_schedule_is_the_reference(schedule, seed, missing):
    toys, index, _, events, expected = draw(seed, missing=missing)
    with pytest.MonkeyPatch.context() as monkeypatch:
        use_schedule(monkeypatch, schedule)
        for event, wanted in zip(events, expected, strict=True):
            assert set(index.match(event)) == set(wanted)
            assert_each_call_once(toys)
            assert index.match_bindings(event) == wanted
            assert_each_call_once(toys)


@settings(max_examples=examples(10), deadline=None)
@given(SEEDS, st.booleans())
def test_batches_lists_and_counts_are_the_same(seed, batch):
    toys, index, _, events, expected = draw(seed, batch=batch, n_events=7)
    pairs = [(row, name) for row, wanted in enumerate(expected) for name in wanted]
    table = index.match_batch(events, bindings=True)
    assert_each_call_once(toys)
    found = {
        (row["event_row"], row["subscription_id"]): json.loads(row["bindings"] or "{}")
        for row in table.to_pylist()
    }
    assert found == {(row, name): expected[row][name] for row, name in pairs}
    assert [set(names) for names in index.match_lists(events).to_pylist()] == [
        set(wanted) for wanted in expected
    ]
    by_event = [len(wanted) for wanted in expected]
    assert index.count_by_event(events).tolist() == by_event
    by_subscription = index.count_by_subscription(events)
    named = dict(zip(index.contents.ids.to_pylist(), by_subscription.tolist(), strict=True))
    assert named == {name: sum(name in wanted for wanted in expected) for name in named}
    subset = ["s0", "s3", "s5"]
    kept = [(row, name) for row, name in pairs if name in subset]
    result = index.match_batch(events, subset=subset).to_pylist()
    assert sorted((row["event_row"], row["subscription_id"]) for row in result) == sorted(kept)
    counts = index.count_by_event(events, subset=subset)
    assert np.array_equal(counts, np.bincount([row for row, _ in kept], minlength=len(events)))


@settings(max_examples=examples(5), deadline=None)
@given(SEEDS)
def test_truth_is_that_of_the_best_substitution(seed):
    toys, index, conditions, events, expected = draw(seed)
    for event, wanted in zip(events, expected, strict=True):
        for name, condition in conditions.items():
            answers = true_answers(condition, event, toys.schema)
            assert (evaluate(condition, event, answers=answers) is True) == (name in wanted)
            assert index.explain(name, event).matches == (name in wanted)


@settings(max_examples=examples(5), deadline=None)
@given(seed=SEEDS)
def test_saved_and_opened_again(seed, tmp_path_factory):
    toys, index, _, events, expected = draw(seed)
    index.match_batch(events)
    path = tmp_path_factory.mktemp("saved") / "index"
    index.save(path)
    again = tamis.open(path, operators=toys.registry)
    assert again.operators.statistics == index.operators.statistics
    assert [again.match_bindings(event) for event in events] == expected
    assert again.contents.schema == index.contents.schema
    with pytest.raises(tamis.TamisError):
        tamis.open(path, operators=None).match_batch(events) if len(index.operators) else (
            tamis.open(path / "nowhere")
        )


def test_threads_and_layouts():
    _, index, _, events, expected = draw(5, n_subscriptions=30, n_events=40)
    pairs = sorted((row, name) for row, wanted in enumerate(expected) for name in wanted)
    layouts = {
        "dicts": (events, None),
        "iterator": (iter(events), None),
        "JSON": ([json.dumps(event) for event in events], None),
        "structs": (pa.table({"e": [json.dumps(event) for event in events]}), "e"),
    }
    for name, (layout, column) in layouts.items():
        encoded = index.encode(layout, column=column)
        for threads in (1, 3):
            result = index.match_batch(encoded, threads=threads).to_pylist()
            found = sorted((row["event_row"], row["subscription_id"]) for row in result)
            assert found == pairs, (name, threads)
