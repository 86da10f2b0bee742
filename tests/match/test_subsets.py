"""`subset`, `tagged` and `at` say which subscriptions answer, in every mode."""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import pytest

import tamis
from tamis.operators.registry import Registry, operator

ROWS = [
    {"id": "always", "expression": "TRUE", "tags": ["news"]},
    {"id": "low", "expression": "x < 3", "tags": ["news", "sport"]},
    {"id": "same", "expression": "x < 3", "valid_until": "2090-01-01"},
    {"id": "high", "expression": "x >= 3", "tags": ["sport"]},
    {"id": "odd", "expression": "odd()", "tags": ["sport"]},
    {"id": "both", "expression": "odd() AND x < 3"},
]
EVENTS = [{"x": x} for x in (*range(6), None)]
CHOICES = [
    ({"subset": ["low", "odd", "always"]}, {"low", "odd", "always"}),
    ({"subset": []}, set()),
    ({"tagged": "sport"}, {"low", "high", "odd"}),
    ({"tagged": ["news", "sport"]}, {"always", "low", "high", "odd"}),
    ({"tagged": "news", "subset": ["low", "high"]}, {"low"}),
    ({"at": "2095-01-01"}, {"always", "low", "high", "odd", "both"}),
    ({"at": "2095-01-01", "subset": ["same", "both"]}, {"both"}),
]


@pytest.fixture(scope="module")
def index() -> tamis.Index:
    registry = Registry()
    operator("odd()", timeout=None, registry=registry)(lambda event: (event["x"] or 0) % 2 == 1)
    return tamis.build(ROWS, operators=registry)


@pytest.mark.filterwarnings("ignore:no subscription has a weight:tamis.TamisWarning")
@pytest.mark.parametrize(("options", "wanted"), CHOICES)
@pytest.mark.parametrize("threads", [1, 2])
def test_every_mode(index, options, wanted, threads):
    everyone = [index.match(event) for event in EVENTS]
    expected = [[name for name in found if name in wanted] for found in everyone]
    assert [index.match(event, **options) for event in EVENTS] == expected
    assert [list(index.match_bindings(event, **options)) for event in EVENTS] == expected
    best = [sorted(found) for found in expected]  # all weights are equal
    assert [index.match_top(event, 2, **options) for event in EVENTS] == [own[:2] for own in best]
    options = {**options, "threads": threads}
    for k in (2, len(ROWS)):
        top = index.match_top(EVENTS, k, **options)["subscription_id"].to_pylist()
        assert top == [name for found in best for name in found[:k]]
    assert index.match_lists(EVENTS, **options).to_pylist() == expected
    pairs = index.match_batch(EVENTS, bindings=True, **options)
    assert pairs["subscription_id"].to_pylist() == [name for found in expected for name in found]
    chunks = index.match_chunks(EVENTS, **options)
    assert sum(map(len, chunks)) == len(pairs)
    counts = [len(found) for found in expected]
    assert index.count_by_event(EVENTS, **options).tolist() == counts
    summary = index.summarise_by_event(EVENTS, **options)
    assert summary.counts.tolist() == counts
    firsts = [index.ordinal(found[0]) if found else -1 for found in expected]
    assert summary.firsts.tolist() == firsts
    by_subscription = [sum(name in found for found in expected) for name in index]
    assert index.count_by_subscription(EVENTS, **options).tolist() == by_subscription
    summary = index.summarise_by_subscription(EVENTS, **options)
    assert summary.counts.tolist() == by_subscription
    rows = [[row for row, found in enumerate(expected) if name in found] for name in index]
    assert summary.firsts.tolist() == [own[0] if own else -1 for own in rows]


def test_rows_without_an_event_match_nothing(index):
    events = ['{"x": 1}', "{", None, '{"x": 4}', "[]"]
    with pytest.warns(tamis.RejectWarning):
        counts = index.count_by_subscription(events, subset=["always", "low", "odd"])
    assert counts.tolist() == [2, 1, 0, 0, 1, 0]
    with pytest.warns(tamis.RejectWarning):
        lists = index.match_lists(events, tagged="news")
    assert pc.list_value_length(lists).to_pylist() == [2, 0, 0, 1, 0]
    assert np.array_equal(index.ids.to_pylist(), [row["id"] for row in ROWS])


def test_an_unknown_tag_is_reported(index):
    with pytest.warns(tamis.TamisWarning, match='no subscription has the tag "sprt"'):
        assert index.match({"x": 1}, tagged="sprt") == []
    with pytest.raises(tamis.InputError, match="a tag must be a string"):
        index.match({"x": 1}, tagged=[5])


@pytest.mark.parametrize("argument", ["subset", "tagged"])
def test_an_empty_list_selects_nothing(index, argument):
    for nothing in ([], (), iter(())):
        assert index.match(EVENTS[0], **{argument: nothing}) == []
    assert index.match_batch(EVENTS, **{argument: []}).num_rows == 0
