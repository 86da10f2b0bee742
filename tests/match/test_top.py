"""The best matches of each event: as if all matches were sorted by weight and id."""

from __future__ import annotations

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.index.hiding import find_hidden
from tamis.match.build import build
from tamis.match.catalogue import IndexPart
from tamis.match.index import Index
from tamis.operators.registry import Registry, operator
from tests.effort import examples
from tests.match.engines import reopened
from tests.match.examples import RANDOM_EVENTS, draw_example

pytestmark = [
    RANDOM_EVENTS,
    pytest.mark.filterwarnings("ignore:no subscription has a weight:tamis.TamisWarning"),
]


def sort_matches(index: Index, events, weights, k: int, **options) -> list[list[str]]:
    """The first k of each event's matches by (weight descending, id ascending)."""
    lists = index.match_lists(events, **options).to_pylist()
    return [sorted(found, key=lambda one: (-weights.get(one, 0), one))[:k] for found in lists]


def list_top(index: Index, events, weights, k: int, **options) -> list[list[str]]:
    """The same by `match_top`, whose weights must be right."""
    found: list[list[str]] = [[] for _ in events]
    for row in index.match_top(events, k, **options).to_pylist():
        found[row["event_row"]].append(row["subscription_id"])
        assert row["weight"] == weights.get(row["subscription_id"], 0)
    return found


def draw_weights(rng: random.Random, ids) -> dict[str, float]:
    few = [rng.choice([0, -1.5, 2, 1e300, -0.0]) for _ in range(3)]
    return {one: rng.choice([*few, rng.random()]) for one in ids if rng.random() < 0.7}


@settings(max_examples=examples(15), deadline=None)
@given(st.integers(0, 2**40), st.integers(1, 4), st.sampled_from([1, 2, 3, 7, 10_000]))
def test_top_is_sorting_all(seed, n_parts, k):
    rng = random.Random(seed)
    example = draw_example(seed, n_subscriptions=40, n_events=30)
    weights = draw_weights(rng, example.texts)
    dealt: list[dict[str, str]] = [{} for _ in range(n_parts)]
    for name, text in example.texts.items():
        rng.choice(dealt)[name] = text
    first = rng.choice(list(example.texts.items()))
    dealt[0][first[0]] = "TRUE" if n_parts > 1 else first[1]
    parts = []
    for at, texts in enumerate(dealt):
        own = {name: weights[name] for name in texts if name in weights}
        contents = build(texts, example.schema, weights=own).contents
        later = pa.array([name for other in dealt[at + 1 :] for name in other], pa.string())
        parts.append(IndexPart(contents, find_hidden(contents, later)))
    index = Index(*parts)
    rows = rng.choices(range(30), k=rng.choice([5, 600]))
    events = [example.events[row] for row in rows]
    wanted = sort_matches(index, events, weights, k)
    assert list_top(index, events, weights, k) == wanted
    assert list_top(index, events, weights, k, threads=2) == wanted
    assert [index.match_top(event, k) for event in events[:20]] == wanted[:20]
    subset = list(index)[::3]
    wanted = sort_matches(index, events, weights, k, subset=subset)
    assert list_top(index, events, weights, k, subset=subset) == wanted


def test_many_matches_and_few_wanted():
    n = 3_000
    weights = {f"s{at}": float(at * 7919 % n) for at in range(n)}
    index = build({f"s{at}": f"x > {at % 50}" for at in range(n)}, weights=weights)
    events = [{"x": x % 60} for x in range(700)]
    for k in (1, 5, 100, n):
        assert list_top(index, events, weights, k) == sort_matches(index, events, weights, k)


ROWS = [
    {"id": "c", "expression": "TRUE", "weight": 1, "tags": ["news"]},
    {"id": "a", "expression": "x > 1", "weight": 1.0},
    {"id": "b", "expression": "x > 2", "weight": "3.5", "tags": ["news"]},
    {"id": "d", "expression": "x > 0"},
    {"id": "e", "expression": "x > 3", "weight": Decimal("-2"), "valid_until": "2090-01-01"},
]


@pytest.fixture
def index() -> Index:
    return tamis.build(ROWS)


def test_weights_of_rows(index):
    assert index.match_top({"x": 5}, 10) == ["b", "a", "c", "d", "e"]
    assert index.match_top({"x": 5}, 2, tagged="news") == ["b", "c"]
    assert index.match_top({"x": 5}, 9, at="2095-01-01") == ["b", "a", "c", "d"]
    assert index.match_top({"x": 5}, 1, subset=["d", "e"]) == ["d"]
    assert index.attributes("a") == {"weight": 1.0}
    table = index.match_top([{"x": 2, "u": "me"}], 2, columns=["tags"], event_id="u")
    assert table.to_pylist() == [
        {"event_id": "me", "subscription_id": "a", "weight": 1.0, "tags": []},
        {"event_id": "me", "subscription_id": "c", "weight": 1.0, "tags": ["news"]},
    ]
    table = index.match_batch([{"x": 1}], columns=["weight"])
    assert sorted(table["weight"].to_pylist()) == [0.0, 1.0]


def test_weights_are_saved(index):
    with reopened(index) as opened:
        assert opened.match_top({"x": 5}, 3) == index.match_top({"x": 5}, 3)
        assert opened.attributes("b") == {"weight": "3.5", "tags": ["news"]}


def test_events_without_a_match_and_rows_without_an_event(index):
    with pytest.warns(tamis.RejectWarning):
        table = index.match_top(['{"x": 2}', "{", None], 1)
    assert table["event_row"].to_pylist() == [0]
    empty = index.match_top([], 3)
    assert empty.schema.names == ["event_row", "subscription_id", "weight"]
    assert len(empty) == 0


WRONG = [float("nan"), float("inf"), "heavy", True, [1], 10**400, "1_000", "٣", "1e999", 2**53 + 1]


@pytest.mark.parametrize("wrong", WRONG)
def test_an_invalid_weight_is_a_reject(wrong):
    with pytest.warns(tamis.RejectWarning, match="the weight is"):
        index = tamis.build({"a": "x > 1", "b": "x > 0"}, weights={"a": wrong})
    assert list(index) == ["b"]
    (reject,) = index.rejects
    assert (reject.subscription_id, reject.code) == ("a", "bad-weight")
    rows = [("zz", "x >"), ("a", "TRUE"), ("b", "x > 0"), ("b", "x > 1"), ("c", "odd(")]
    with pytest.warns(tamis.RejectWarning):
        index = tamis.build(rows, weights={"a": wrong, "c": wrong})
    assert [reject.subscription_id for reject in index.rejects] == ["zz", "a", "b", "c"]


def test_arguments():
    with pytest.warns(tamis.TamisWarning, match='an id in weights belongs to no subscription: "z"'):
        index = tamis.build({"a": "x > 1"}, weights={"z": 1, "a": np.float32(2)})
    assert index.attributes("a") == {"weight": 2.0}
    with pytest.raises(tamis.InputError, match="weights are"):
        tamis.build({"a": "x > 1"}, weights=[1])
    for wrong in (0, -1, 1.5, "3", None):
        with pytest.raises(tamis.InputError, match="k is"):
            index.match_top([{"x": 1}], wrong)


@pytest.mark.parametrize(
    ("given", "weight"), [(" 3", 3.0), ("-2.5e1", -25.0), (".5", 0.5), (2**60, 2.0**60), ("", 0.0)]
)
def test_a_weight_may_be_text(given, weight):
    index = tamis.build([{"id": "a", "expression": "TRUE", "weight": given}])
    assert index.match_top([{}], 1)["weight"].to_pylist() == [weight]


@pytest.mark.parametrize("given", [2**53 + 1, str(2**53 + 1), np.int64(2**53 + 1)])
def test_a_weight_is_not_rounded_silently(given):
    with pytest.raises(tamis.BuildError, match="which a double cannot hold exactly") as raised:
        tamis.build([{"id": "a", "expression": "TRUE", "weight": given}])
    assert [reject.code for reject in raised.value.rejects] == ["bad-weight"]


def test_columns_are_checked(index):
    with pytest.raises(tamis.InputError, match="columns is the string 'expression'"):
        index.match_top([{"x": 5}], 1, columns="expression")
    with pytest.raises(tamis.InputError, match="columns is None"):
        index.match_top([{"x": 5}], 1, columns=None)
    for name, one in {"columns": ["tags"], "event_columns": ["x"], "event_id": "x"}.items():
        with pytest.raises(tamis.InputError, match=f"{name} is .* one event is a list of ids"):
            index.match_top({"x": 5}, 1, **{name: one})
    assert index.match_top({"x": 5}, 1, columns=[], event_columns=()) == ["b"]


@pytest.mark.parametrize("k", [2**31, 2**63, 10**30])
def test_more_than_there_are_is_all(index, k):
    assert index.match_top({"x": 5}, k) == index.match_top({"x": 5}, 5)
    assert len(index.match_top([{"x": 5}], k)) == 5


def test_an_index_without_weights_is_reported():
    index = tamis.build({"b": "TRUE", "a": "TRUE"})
    for events in ({}, [{}]):
        with pytest.warns(tamis.TamisWarning, match="no subscription has a weight, so the best"):
            index.match_top(events, 1)


def test_whole_numbers_are_ids_as_in_rows():
    rows = [{"id": 7, "expression": "TRUE"}, {"id": 8, "expression": "TRUE"}]
    index = tamis.build(rows, weights={8: 5}, tags={7: ["news"]})
    assert index.match_top({}, 1) == ["8"]
    assert index.match({}, tagged="news") == ["7"]
    with pytest.raises(tamis.InputError, match='weights has 7 and "7", which are the same id'):
        tamis.build(rows, weights={7: 5, "7": 6})


def test_operators_are_asked_before_matches_count():
    registry = Registry()
    operator("odd(integer)", timeout=None, registry=registry)(lambda event, n: event["x"] % n == 1)
    texts = {"a": "odd(2)", "b": "x > 1", "c": "odd(3) AND x > 2", "d": "TRUE"}
    weights = {"a": 5, "c": 4, "b": 3}
    index = build(texts, weights=weights, operators=registry)
    events = [{"x": x} for x in range(9)] * 70
    for k in (1, 2, 4):
        wanted = sort_matches(index, events, weights, k)
        assert list_top(index, events, weights, k) == wanted
        assert [index.match_top(event, k) for event in events[:9]] == wanted[:9]
