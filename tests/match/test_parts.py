"""An index of several parts answers as one index of the subscriptions that are not hidden."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.index.hiding import find_hidden
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tamis.match.catalogue import IndexPart
from tamis.match.index import Index
from tamis.operators.registry import Registry, operator
from tests.effort import examples
from tests.match.engines import ENGINES
from tests.match.examples import RANDOM_EVENTS, Example, draw_example, reference

pytestmark = RANDOM_EVENTS

SEEDS = st.integers(0, 2**40)


def join_parts(*texts: dict[str, str], **options) -> Index:
    """An index with a part for each dict; ids of later ones replace those of earlier ones."""
    built = [build(own, **options).contents for own in texts]
    later = [
        pa.array([one for own in texts[at + 1 :] for one in own], pa.string())
        for at in range(len(texts))
    ]
    parts = [
        IndexPart(contents, find_hidden(contents, pa.array(ids, pa.string())))
        for contents, ids in zip(built, later, strict=True)
    ]
    return Index(*parts, registry=options.get("operators") or tamis.operators.registry.REGISTRY)


def draw_parts(example: Example, n_parts: int) -> tuple[list[dict[str, str]], list[str]]:
    """The example's subscriptions in parts, some replaced by later ones; the ids in their order."""
    rng = random.Random(example.seed)
    texts: list[dict[str, str]] = [{} for _ in range(n_parts)]
    others = list(example.texts.values())
    for name, text in example.texts.items():
        last = rng.randrange(n_parts)
        texts[last][name] = text
        for part in texts[:last]:
            if rng.random() < 0.2:
                part[name] = rng.choice(others)
    shown = [
        name
        for at, part in enumerate(texts)
        for name in part
        if not any(name in later for later in texts[at + 1 :])
    ]
    return texts, shown


@settings(max_examples=examples(12), deadline=None)
@given(SEEDS, st.integers(1, 4), st.sampled_from(Missing))
def test_parts_answer_as_the_reference(seed, n_parts, missing):
    example = draw_example(seed, n_subscriptions=24, n_events=20)
    texts, shown = draw_parts(example, n_parts)
    index = join_parts(*texts, schema=example.schema, missing=missing)
    assert list(index) == shown
    assert len(index) == len(shown)
    truth = reference([example.conditions[name] for name in shown], example.events, missing)
    for engine in ENGINES:
        got, wanted = engine.ask(index, example.events), engine.expected(truth)
        assert np.array_equal(got, wanted), f"{engine.name}, seed {seed}, {n_parts} parts"


@settings(max_examples=examples(5), deadline=None)
@given(SEEDS)
def test_blocks_of_parts_are_put_together(seed):
    example = draw_example(seed, n_subscriptions=30, n_events=40)
    texts, shown = draw_parts(example, 3)
    index = join_parts(*texts, schema=example.schema)
    rows = random.Random(seed).choices(range(40), k=1_100)
    events = [example.events[row] for row in rows]
    truth = example.reference(Missing.UNDEFINED)[rows]
    truth = truth[:, [list(example.conditions).index(name) for name in shown]]
    for engine in ENGINES:
        if engine.name != "single":
            assert np.array_equal(engine.ask(index, events), engine.expected(truth)), engine.name


@pytest.fixture
def index() -> Index:
    return join_parts(
        {"a": "x > 1", "b": "x > 2", "c": "TRUE"},
        {"b": "x > 4", "d": "y = 'u'"},
        {"e": "x > 0 AND y = 'u'", "a": "x > 3"},
    )


def test_single_events_in_the_order_of_parts(index):
    assert index.match({"x": 5, "y": "u"}) == ["c", "b", "d", "a", "e"]
    assert index.match({"x": 2}) == ["c"]
    assert index.match({"x": 5}, subset=["a", "b"]) == ["b", "a"]
    assert index.match_bindings({"x": 4}) == {"c": {}, "a": {}}


def test_subscriptions_of_parts(index):
    assert list(index) == ["c", "b", "d", "e", "a"]
    assert "a" in index
    assert index.expression("a") == "x > 3"
    assert [index.ordinal(name) for name in index] == [0, 1, 2, 3, 4]
    assert repr(index).endswith("in 3 parts)")
    assert index.explain("b", {"x": 3}).truth is False
    with pytest.raises(tamis.InputError, match="has 3 parts"):
        index.save("nowhere")


def test_rows_that_hold_no_event(index):
    with pytest.warns(tamis.RejectWarning):
        lists = index.match_lists(['{"x": 5}', "{", '{"y": "u"}']).to_pylist()
    assert lists == [["c", "b", "a"], [], ["c", "d"]]
    with pytest.warns(tamis.RejectWarning):
        counts = index.count_by_subscription(['{"x": 5}', "{", '{"y": "u"}'])
    assert counts.tolist() == [2, 1, 1, 0, 1]


def test_parts_that_disagree_about_a_type_are_refused():
    with pytest.raises(tamis.IndexFormatError, match="attribute x has the type"):
        join_parts({"a": "x > 1"}, {"b": "x = 'u'"})


def test_no_parts():
    with pytest.raises(tamis.InputError, match="at least one part"):
        Index()
    index = join_parts({}, {})
    assert len(index) == 0
    assert index.match({"x": 1}) == []
    assert index.match_lists([{"x": 1}, {}]).to_pylist() == [[], []]


def make_rows(n_parts: int) -> list[dict]:
    return [
        {"id": f"s{at}", "expression": f"x > {at}", "tags": ["odd" if at % 2 else "even"]}
        | {"title": f"t{at}", "valid_until": "2090-01-01" if at % 3 == 0 else None}
        for at in range(n_parts)
    ]


def test_details_tags_and_validity_of_parts():
    first, second = (build(rows) for rows in (make_rows(6)[:3], make_rows(6)[3:]))
    index = Index(first.contents, second.contents)
    whole = build(make_rows(6))
    columns = ["expression", "tags", "title", "valid_until"]
    events = [{"x": 3}, {"x": 9}]
    for at in ("2030-01-01", "2095-01-01"):
        for options in ({}, {"tagged": "odd"}, {"tagged": ["odd", "even"], "subset": ["s1", "s4"]}):
            got = index.match_batch(events, columns=columns, at=at, **options)
            wanted = whole.match_batch(events, columns=columns, at=at, **options)
            assert got.to_pylist() == wanted.to_pylist()
            assert index.match({"x": 9}, at=at, **options) == whole.match(
                {"x": 9}, at=at, **options
            )
    assert index.attributes("s3") == whole.attributes("s3")
    assert index.tagged("odd") == ["s1", "s3", "s5"]


def bound_rows(index: Index, events: list[dict]) -> list[tuple]:
    rows = index.match_batch(events, bindings=True).to_pylist()
    return sorted((row["event_row"], row["subscription_id"], str(row["bindings"])) for row in rows)


def test_operators_of_parts():
    registry = Registry()
    operator("odd(integer)", timeout=None, registry=registry)(lambda event, n: event["x"] % n == 1)
    operator("near(?integer)", timeout=None, registry=registry)(lambda event: [event["x"] + 1])
    texts = {"a": "odd(2)", "b": "x > 1", "c": "near(?n) AND ?n > 3", "d": "odd(3) AND x > 3"}
    names = list(texts)
    index = join_parts(
        {"a": "TRUE", "b": texts["b"]}, {n: texts[n] for n in "acd"}, operators=registry
    )
    whole = build({n: texts[n] for n in ("b", "a", "c", "d")}, operators=registry)
    events = [{"x": x} for x in range(9)]
    assert list(index) == list(whole)
    assert bound_rows(index, events) == bound_rows(whole, events)
    assert index.count_by_event(events).tolist() == whole.count_by_event(events).tolist()
    for engine in ENGINES:
        assert np.array_equal(engine.ask(index, events), engine.ask(whole, events)), engine.name
    assert index.match_bindings({"x": 7}) == whole.match_bindings({"x": 7})
    assert set(index.operators.calls) == set(whole.operators.calls)
    assert index.operators.faults == []
    assert len(names) == len(index)
