"""Reorganisation: fewer links, the same nodes and answers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.index import build as building
from tamis.index.layout import AND, OR
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tamis.match.index import Index
from tests.effort import examples
from tests.match.examples import RANDOM_EVENTS, draw_example

pytestmark = RANDOM_EVENTS


def build_flat(*args, **options) -> Index:
    """The index without reorganisation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(building, "reorganise", lambda finished, _: finished)
        return build(*args, **options)


def n_links(index: Index) -> int:
    return len(index.contents.nodes.children)


def matches(index: Index, events: list) -> list[set[str]]:
    return [set(found) for found in index.match_lists(events).to_pylist()]


def opened(index: Index) -> list[tuple]:
    """Each node as (operator, k, children), AND in AND and OR in OR opened again; sorted."""
    contents = index.contents
    nodes, n_leaves = contents.nodes, contents.n_leaves
    found: list[tuple] = [(leaf,) for leaf in range(n_leaves)]
    for at, operator in enumerate(nodes.operators.tolist()):
        children: list[tuple] = []
        for child in nodes.children[nodes.child_starts[at] : nodes.child_starts[at + 1]].tolist():
            below = found[child]
            is_opened = operator in (AND, OR) and below[0] == operator and len(below) > 1
            children.extend(below[2] if is_opened else [below])
        if operator in (AND, OR):
            assert len(set(map(repr, children))) == len(children), "none overlap"
            children.sort(key=repr)
        found.append((operator, int(nodes.required[at]), tuple(children)))
    return sorted(map(repr, found))


@pytest.mark.parametrize("missing", Missing)
@given(seed=st.integers(0, 2**40))
@settings(max_examples=examples(20))
def test_same_nodes_and_answers(missing, seed):
    example = draw_example(seed, n_subscriptions=60, n_events=40)
    index = build(example.texts, example.schema, missing=missing)
    flat = build_flat(example.texts, example.schema, missing=missing)
    assert len(index.contents.nodes.operators) == len(flat.contents.nodes.operators)
    assert n_links(index) <= n_links(flat)
    assert matches(index, example.events) == matches(flat, example.events)


NAMES = [f"a{at}" for at in range(7)]
SETS = st.sets(st.sampled_from(NAMES), min_size=1, max_size=7)


@given(sets=st.lists(SETS, min_size=1, max_size=25), joint=st.sampled_from((" AND ", " OR ")))
@settings(max_examples=examples(40))
def test_subsets_are_reused(sets, joint):
    schema = dict.fromkeys(NAMES, "integer")
    texts = {
        str(at): joint.join(f"{name} = 1" for name in sorted(own)) for at, own in enumerate(sets)
    }
    index, flat = build(texts, schema), build_flat(texts, schema)
    assert opened(index) == opened(flat)
    distinct = {frozenset(own) for own in sets if len(own) > 1}
    has_subset = any(one < other for one in distinct for other in distinct)
    assert (n_links(index) < n_links(flat)) == has_subset
    events = [dict.fromkeys(own, 1) for own in sets] + [{}]
    assert matches(index, events) == matches(flat, events)
    assert [set(index.match(event)) for event in events] == matches(index, events)


def test_one_node_takes_several():
    texts = {
        "ab": "a = 1 AND b = 1",
        "cd": "c = 1 AND d = 1",
        "all": "a = 1 AND b = 1 AND c = 1 AND d = 1",
        "more": "a = 1 AND b = 1 AND c = 1 AND d = 1 AND e = 1",
    }
    index = build(texts, dict.fromkeys("abcde", "integer"))
    sizes = np.diff(index.contents.nodes.child_starts)
    assert sizes.tolist() == [2, 2, 2, 2]
    assert set(index.match(dict.fromkeys("abcde", 1))) == set(texts)
