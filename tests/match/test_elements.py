"""Conditions over the elements of arrays: every way in, the counts, explanations, statistics."""

from __future__ import annotations

import json
import warnings
from random import Random

import pyarrow as pa
import pytest

import tamis
from tamis.index.build import build_contents
from tamis.language import Schema, check, parse
from tamis.logic.evaluate import Missing, evaluate

SCHEMA = Schema.of(
    "tags ARRAY<STRING>, one ONE_OR_MANY<BIGINT>, p BOOLEAN, others ARRAY<STRUCT<a: STRING>>, "
    "items ARRAY<STRUCT<price: DOUBLE, sku: STRING, n: INT, tags: ARRAY<STRING>, "
    "dim: STRUCT<w: INT>>>"
)
EXPRESSIONS = (
    "exists(tags, t -> t ILIKE '%x%')",
    "NOT exists(tags, t -> t = 'a')",
    "forall(tags, t -> t LIKE 'a%' OR t IS NULL)",
    "NOT forall(tags, t -> t = 'a')",
    "xor(exists(tags, t -> t = 'a'), p, forall(one, n -> n > 1))",
    "xor(p, exists(tags, t -> t = 'a') AND size(tags) > 1)",
    "exists(one, n -> 10 / n > 3)",
    "element_at(tags, -1) = 'a' OR element_at(one, 2) > 3",
    "exists(items, i -> i.price > 10 AND i.sku = 'x')",
    "NOT exists(items, i -> i.price > 10 AND i.sku = 'x')",
    "forall(items, i -> i.dim.w > 1 OR exists(i.tags, t -> t = 'b'))",
    "array_contains(items.sku, 'y') AND size(items.n) > 1",
    "exists(items.sku, s -> lower(s) LIKE 'x%') OR exists(others, o -> o.a = 'q')",
    "items.n IS NULL OR exists(items, i -> xor(i.n = 1, array_contains(i.tags, 'a')))",
    "at_least(2, exists(items, i -> i.price * i.n > 9), forall(others, o -> o.a <> 'q'), p)",
)
ARROW = pa.schema(
    [
        ("tags", pa.list_(pa.string())),
        ("one", pa.large_list(pa.int16())),
        ("p", pa.bool_()),
        ("others", pa.list_(pa.struct([("a", pa.string())]))),
        (
            "items",
            pa.list_(
                pa.struct(
                    [
                        ("price", pa.float64()),
                        ("sku", pa.string()),
                        ("n", pa.int64()),
                        ("tags", pa.list_(pa.string())),
                        ("dim", pa.struct([("w", pa.int8())])),
                        ("unused", pa.binary()),
                    ]
                )
            ),
        ),
    ]
)


def draw_event(rng, *, is_arrow):
    wrong = [] if is_arrow else ["nix"]
    drawn = {
        "tags": [rng.choice(["a", "ab", "X", None]) for _ in range(rng.randint(0, 3))],
        "one": [rng.choice([0, 1, 2, 5, None]) for _ in range(rng.randint(0, 3))],
        "p": rng.random() < 0.5,
        "others": rng.choices([{"a": "q"}, {"a": "r"}, {}, None], k=rng.randint(0, 2)),
        "items": [draw_item(rng, wrong) for _ in range(rng.randint(0, 3))],
    }
    if not is_arrow and rng.random() < 0.3:
        drawn["one"] = rng.choice([1, 2.0, 1.5, "2"])
    if not is_arrow and rng.random() < 0.1:
        drawn["items"] = rng.choice([5, [5], [{}, "x"], {"sku": "x"}])
    return {name: own for name, own in drawn.items() if rng.random() < 0.85}


def draw_item(rng, wrong):
    drawn = {
        "price": rng.choice([1, 5.5, 11, None, *wrong]),
        "sku": rng.choice(["x", "y", "Xy", None]),
        "n": rng.choice([0, 1, 2, None, *wrong]),
        "tags": [rng.choice(["a", "b", None]) for _ in range(rng.randint(0, 2))],
        "dim": rng.choice([{"w": 2}, {}, None, *wrong]),
    }
    found = {name: own for name, own in drawn.items() if rng.random() < 0.8}
    return None if rng.random() < 0.1 else found


@pytest.fixture(scope="module", params=list(Missing))
def saved(request, tmp_path_factory):
    """An index that was saved, and whose structure was checked; and its meaning of missing."""
    numbered = {str(at): text for at, text in enumerate(EXPRESSIONS)}
    built = tamis.build(numbered, SCHEMA, missing=request.param)
    assert not built.rejects
    path = tmp_path_factory.mktemp("elements") / "index"
    built.save(path)
    return tamis.open(path, trusted=False), request.param


def answers_of(table, n_events):
    found = [[] for _ in range(n_events)]
    for row in table.to_pylist():
        found[row["event_row"]].append(row["subscription_id"])
    return [sorted(own, key=int) for own in found]


@pytest.mark.parametrize("is_arrow", [False, True])
def test_every_way_in(saved, seed, is_arrow):
    index, missing = saved
    rng = Random(f"{seed}-{is_arrow}")
    events = [draw_event(rng, is_arrow=is_arrow) for _ in range(60)]
    conditions = [check(parse(text), SCHEMA) for text in EXPRESSIONS]
    expected = [
        [str(at) for at, own in enumerate(conditions) if evaluate(own, event, missing) is True]
        for event in events
    ]
    texts = [json.dumps(event) for event in events]
    sources = [events, texts]
    if is_arrow:
        table = pa.Table.from_pylist(events, ARROW)
        sources = [table, pa.concat_tables([table.slice(0, 25), table.slice(25)])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rejects, which are meant
        for source in sources:
            assert answers_of(index.match_batch(source), len(events)) == expected
        for way in (events, texts):
            assert [sorted(index.match(own), key=int) for own in way] == expected


def test_faults_are_counted_by_element():
    index = tamis.build(
        {"a": "exists(ns, n -> 10 / n > 3)", "b": "exists(items, i -> i.price > 1)"},
        "ns ARRAY<BIGINT>, items ARRAY<STRUCT<price: DOUBLE>>",
    )
    events = [{}, {"ns": [0, 1, 0], "items": [{"price": 2}, {"price": "x"}]}, {"ns": [0]}]
    rejects = index.encode(events).rejects
    assert {name: n for (name, _), n in rejects.counts.items()} == {
        "ns: 10 / x": 3,
        "items.price": 1,
    }
    assert {reject.row for reject in rejects if reject.attribute == "items.price"} == {1}


def test_single_values_are_counted():
    index = tamis.build({"a": "array_contains(tags, 'a')"}, "tags ONE_OR_MANY<STRING>")
    with pytest.warns(UserWarning, match=r"tags \(2 values, the first in row 1\)"):
        found = index.match_batch([{"tags": ["a"]}, {"tags": "a"}, {"tags": "b"}, {}])
    assert found["event_row"].to_pylist() == [0, 1]


def test_explanation_shows_the_elements_that_decide():
    index = tamis.build(
        {"a": "exists(tags, t -> t LIKE 'x%')", "b": "forall(tags, t -> t LIKE 'x%')"}
    )
    event = {"tags": ["a", "xy", None]}
    assert "true for element 2, 'xy'" in str(index.explain("a", event))
    assert "false for element 1, 'a'" in str(index.explain("b", event))
    assert "undefined for element 1, NULL" in str(index.explain("a", {"tags": [None, "a"]}))
    assert "false for all 2 elements" in str(index.explain("a", {"tags": ["b", "a"]}))
    assert "the array is empty" in str(index.explain("a", {"tags": []}))


def test_equal_conditions_are_one():
    """Whatever the element is called."""
    texts = {"a": "exists(tags, t -> t = 'x')", "b": "exists(tags, u -> u = 'x')"}
    (column,) = build_contents(texts).contents.columns
    assert list(column.constants) == ["exists x = 'x'"]
    assert len(column.inner.ids) == 1


def test_the_types_of_elements_are_inferred():
    index = tamis.build(
        {
            "a": "exists(items, i -> i.price > 10 AND i.sku = 'x')",
            "b": "exists(items, i -> i.n = 3)",
            "c": "size(items) > 1",
            "d": "exists(items, i -> i.sku > 5)",
        }
    )
    assert [reject.subscription_id for reject in index.rejects] == ["d"]
    assert index.match({"items": [{"price": 11, "sku": "x", "n": 3}, {}]}) == ["a", "b", "c"]


def test_lint_looks_into_lambdas():
    (problem,) = tamis.check("exists(ns, n -> n > 5 AND n < 3)")
    assert "conflicts with n > 5" in problem.reason.message
