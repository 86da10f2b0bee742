"""An index of several parts answers as one index of the subscriptions that are not hidden."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import cycle
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.index.hiding import find_hidden
from tamis.logic.evaluate import Missing
from tamis.match import engine as engine_module
from tamis.match import wanted_subscriptions
from tamis.match.build import build
from tamis.match.catalogue import IndexPart
from tamis.match.index import Index
from tamis.match.view import View
from tamis.operators.registry import Registry, operator
from tests.effort import examples
from tests.match.engines import ENGINES, ONE_BY_ONE
from tests.match.examples import RANDOM_EVENTS, Example, draw_example, reference

pytestmark = RANDOM_EVENTS

SEEDS = st.integers(0, 2**40)
START = datetime(2090, 1, 1, tzinfo=UTC)


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
@given(SEEDS, st.permutations([1, 2, 4]))
def test_blocks_of_parts_are_put_together(seed, n_groups):
    """Also if one part is so large that its blocks are smaller than those of the others."""
    example = draw_example(seed, n_subscriptions=30, n_events=40)
    texts, shown = draw_parts(example, 3)
    view = join_parts(*texts, schema=example.schema).view
    # The engines of the parts are the first that are made; those of elements come later.
    with patch.object(engine_module, "choose_groups", side_effect=cycle(n_groups)):
        index = Index(*view.catalogue.parts, registry=view.registry)
    assert [own.n_groups for own in index.view.engines] == n_groups
    rows = random.Random(seed).choices(range(40), k=1_100)
    events = [example.events[row] for row in rows]
    truth = example.reference(Missing.UNDEFINED)[rows]
    truth = truth[:, [list(example.conditions).index(name) for name in shown]]
    for engine in ENGINES:
        if engine.name not in ONE_BY_ONE:
            assert np.array_equal(engine.ask(index, events), engine.expected(truth)), engine.name


@settings(max_examples=examples(8), deadline=None)
@given(SEEDS, st.integers(1, 3), st.sampled_from([0, 2, 1_000]), st.booleans())
def test_subscriptions_are_hidden_one_after_the_other(seed, n_parts, cost, is_timed):
    """Roots of an earlier moment are used for a while; `cost` decides for how long."""
    example = draw_example(seed, n_subscriptions=24, n_events=20)
    texts, shown = draw_parts(example, n_parts)
    ended = set(shown[::5] if is_timed else ())
    hidden = [
        part.is_hidden for part in join_parts(*texts, schema=example.schema).view.catalogue.parts
    ]
    built = [build(with_end(own, ended), example.schema).contents for own in texts]
    index = Index(*map(IndexPart, built, hidden))
    rng = random.Random(seed)
    with patch.object(wanted_subscriptions, "_CHOICE_COST", cost):
        while shown:
            gone = set(rng.sample(shown, min(len(shown), rng.randrange(1, 6))))
            shown = [name for name in shown if name not in gone]
            parts = [hide_more(part, gone) for part in index.view.catalogue.parts]
            view = View(parts, index.view.registry, like=index.view)
            index = Index.showing(view.frozen(START - timedelta(days=1)))
            conditions = [example.conditions[name] for name in shown]
            truth = reference(conditions, example.events, Missing.UNDEFINED)
            for engine in rng.sample(ENGINES, len(ENGINES)):
                got, wanted = engine.ask(index, example.events), engine.expected(truth)
                assert np.array_equal(got, wanted), f"{engine.name}, seed {seed}"
            later = Index.showing(view.frozen(START + timedelta(days=1)))
            left = truth[:, [name not in ended for name in shown]]
            assert np.array_equal(later.count_by_event(example.events), left.sum(axis=1))
            lists = later.match_lists(example.events)
            assert pc.list_value_length(lists).to_pylist() == left.sum(axis=1).tolist()


def with_end(texts: dict[str, str], names: set[str]) -> list[dict[str, str | None]]:
    """Subscriptions, some of which end at START."""
    return [
        {
            "subscription_id": name,
            "expression": text,
            "valid_until": START.isoformat() if name in names else None,
        }
        for name, text in texts.items()
    ]


def hide_more(part: IndexPart, ids: set[str]) -> IndexPart:
    """The part without some more subscriptions; the same if it has none of them."""
    is_hidden = find_hidden(part.contents, pa.array(sorted(ids), pa.string()))
    if part.is_hidden is not None:
        is_hidden |= part.is_hidden
    if np.count_nonzero(is_hidden) == part.n_hidden:
        return part
    return IndexPart(part.contents, is_hidden)


def test_a_result_after_a_replacement_has_distinct_categories():
    index = join_parts({"a": "x > 1", "b": "x > 2", "c": "x > 3"})
    parts = index.view.catalogue.parts
    view = View([hide_more(parts[0], {"a"})], index.view.registry, like=index.view)
    assert view.listing is index.view.listing  # not gathered again
    more = IndexPart(build({"a": "x > 0"}).contents)
    view = View([view.catalogue.parts[0], more], index.view.registry, like=view)
    found = Index.showing(view).match_batch([{"x": 5}, {"x": 1}])
    assert found["subscription_id"].to_pandas().tolist() == ["b", "c", "a", "a"]


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
    operator("nearby(?integer)", timeout=None, registry=registry)(lambda event: [event["x"] + 1])
    texts = {"a": "odd(2)", "b": "x > 1", "c": "nearby(?n) AND ?n > 3", "d": "odd(3) AND x > 3"}
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
