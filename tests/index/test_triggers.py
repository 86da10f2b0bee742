"""Triggers: whatever is true has a true child from which it is reached."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.index.layout import AND, AT_LEAST, OR, XOR, NodeArrays
from tamis.index.triggers import TriggerArrays, build_triggers
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tests.effort import examples
from tests.match.examples import draw_example

SEEDS = st.integers(0, 2**40)


def children_of(nodes: NodeArrays, inner: int) -> list[int]:
    return nodes.children[nodes.child_starts[inner] : nodes.child_starts[inner + 1]].tolist()


def triggers_of(triggers: TriggerArrays, node: int) -> list[int]:
    return triggers.parents[triggers.starts[node] : triggers.starts[node + 1]].tolist()


def evaluate_nodes(nodes: NodeArrays, is_true: list[bool]) -> list[bool]:
    """The truth of leaves and inner nodes, given that of the leaves."""
    truth = list(is_true)
    for inner, operator in enumerate(nodes.operators.tolist()):
        below = [truth[child] for child in children_of(nodes, inner)]
        required = int(nodes.required[inner])
        if operator == AND:
            truth.append(all(below))
        elif operator == OR:
            truth.append(any(below))
        elif operator == AT_LEAST:
            truth.append(sum(below) >= required)
        else:
            is_defined = all(map(any, zip(below[::2], below[1::2], strict=True)))
            truth.append(is_defined and sum(below[::2]) % 2 == required)
    return truth


def check_reached(
    nodes: NodeArrays, triggers: TriggerArrays, truth: list[bool], n_leaves: int
) -> None:
    """Going up from true nodes by triggers alone reaches every true node."""
    reached = {
        parent for node, one in enumerate(truth) if one for parent in triggers_of(triggers, node)
    }
    for inner in range(len(nodes.operators)):
        assert not truth[n_leaves + inner] or inner in reached, f"inner node {inner} is missed"


def check_links(nodes: NodeArrays, triggers: TriggerArrays, n_leaves: int) -> None:
    """A node is triggered by as many of its children as its operator needs."""
    by_parent: dict[int, list[int]] = {inner: [] for inner in range(len(nodes.operators))}
    for node in range(n_leaves + len(nodes.operators)):
        for parent in triggers_of(triggers, node):
            by_parent[parent].append(node)
    for inner, found in by_parent.items():
        children = children_of(nodes, inner)
        assert set(found) <= set(children)
        n_needed = {
            AND: 1,
            OR: len(children),
            AT_LEAST: len(children) - int(nodes.required[inner]) + 1,
            XOR: 2,
        }[int(nodes.operators[inner])]
        assert len(found) == n_needed


@pytest.mark.parametrize("missing", Missing)
@given(seed=SEEDS)
@settings(max_examples=examples(20))
def test_every_true_node_is_reached(missing, seed):
    example = draw_example(seed, n_subscriptions=40, n_events=0)
    contents = build(example.texts, example.schema, missing=missing).contents
    check_links(contents.nodes, contents.triggers, contents.n_leaves)
    rng = np.random.default_rng(seed)
    for share in (0.1, 0.5, 0.9):
        is_true = (rng.random(contents.n_leaves) < share).tolist()
        truth = evaluate_nodes(contents.nodes, is_true)
        check_reached(contents.nodes, contents.triggers, truth, contents.n_leaves)


@given(seed=SEEDS)
@settings(max_examples=examples(20))
def test_whatever_the_rates_are(seed):
    """The choice depends on estimates, being right does not."""
    rng = np.random.default_rng(seed)
    example = draw_example(seed, n_subscriptions=20, n_events=0)
    contents = build(example.texts, example.schema).contents
    kinds = (rng.random(contents.n_leaves), np.zeros(contents.n_leaves), np.ones(contents.n_leaves))
    for rates in kinds:
        nodes = NodeArrays(*(array.copy() for array in contents.nodes))
        triggers = build_triggers(nodes, rates.astype(np.float32))
        check_links(nodes, triggers, contents.n_leaves)
        is_true = (rng.random(contents.n_leaves) < 0.5).tolist()
        truth = evaluate_nodes(nodes, is_true)
        assert truth == evaluate_nodes(contents.nodes, is_true), "the nodes mean what they meant"
        check_reached(nodes, triggers, truth, contents.n_leaves)


def test_the_rarest_child_is_the_access_child():
    contents = build({"s": "a = 1 AND b = 2 AND c = 3"}).contents
    (members,) = (children_of(contents.nodes, 0),)
    for rarest in members:
        rates = np.full(contents.n_leaves, 0.5, dtype=np.float32)
        rates[rarest] = 0.1
        nodes = NodeArrays(*(array.copy() for array in contents.nodes))
        triggers = build_triggers(nodes, rates)
        assert triggers_of(triggers, rarest) == [0]
