"""What a node says in words is what it means: leaf by leaf, and as a whole."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.index.describe import NodeDescriber
from tamis.index.graph import Graph
from tamis.language.printer import print_expression
from tamis.logic.canonical import canonicalize
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tests.generators import random_condition, random_event, random_schema
from tests.generators.conditions import random_leaf
from tests.leaves import describe_leaf

SCHEMA = (
    "age INT, name STRING, vip BOOLEAN, tags ARRAY<STRING>, url STRING, x INT, y INT, "
    "born DATE, price DECIMAL(9,2), at TIMESTAMP, score DOUBLE, ratio FLOAT"
)

LEAVES = [
    *("age >= 18", "age < 3", "age = 5", "age <> 5", "age IN (1, 2)", "age NOT IN (1, 2)"),
    *("age IS NULL", "age IS NOT NULL", "vip", "NOT vip", "tags IS NULL"),
    *("name = 'it''s'", "name < 'b'", "name >= 'b'", "price < 10.50", "price >= 10.50"),
    *("ratio < 16777217", "ratio IN (1, 16777219)", "ratio = 0.1"),
    *("score < 1.5", "score > 1.5", "score = 1.5", "born > DATE '2024-01-01'"),
    *("at <= TIMESTAMP '2024-01-01'", "x < y", "x <= y", "x = y", "x <> y", "x > y", "x >= y"),
    *("array_contains(tags, 'a')", "NOT arrays_overlap(tags, array('a', 'b'))"),
    *("url LIKE '%x%'", "url NOT LIKE 'x%'", "url ILIKE 'a_b%'", "url RLIKE 'a+'"),
    *("NOT url RLIKE 'a+'", "startswith(url, 'h')", "NOT endswith(url, 'h')"),
]


def root_label(index, subscription_id="s", width=10_000):
    graph = Graph(index.contents)
    root = graph.root_of(index.ordinal(subscription_id))
    return None if root is None else NodeDescriber(graph).label(root, width)


@pytest.mark.parametrize("missing", list(Missing))
@pytest.mark.parametrize("text", LEAVES)
def test_leaf_reads_as_its_canonical_form(text, missing):
    index = build({"s": text}, SCHEMA, missing=missing)
    graph = Graph(index.contents)
    leaf = graph.root_of(0)
    canonical = canonicalize(tamis.parse(text, SCHEMA), missing)
    assert graph.is_leaf(leaf)
    assert describe_leaf(index.contents, leaf) == print_expression(canonical)


@pytest.mark.parametrize("missing", list(Missing))
def test_leaves_among_many_read_the_same(missing):
    index = build({text: text for text in LEAVES}, SCHEMA, missing=missing)
    for text in LEAVES:
        canonical = canonicalize(tamis.parse(text, SCHEMA), missing)
        assert root_label(index, text) == print_expression(canonical)


@pytest.mark.parametrize("missing", list(Missing))
@given(seed=st.integers(0, 2**32))
def test_any_leaf_reads_as_what_it_means(missing, seed):
    rng = Random(seed)
    schema = random_schema(rng)
    leaf = random_leaf(rng, schema)
    index = build({"s": print_expression(leaf)}, schema, missing=missing)
    label = root_label(index)
    if label is None or "IN ()" in label:  # decided, or true wherever there is a value
        return
    read = tamis.parse(label, schema)
    for _ in range(10):
        event = random_event(rng, schema)
        assert (tamis.evaluate(read, event, missing=missing) is True) == (
            tamis.evaluate(leaf, event, missing=missing) is True
        )


@given(seed=st.integers(0, 2**32))
def test_any_expression_reads_as_what_it_means(seed):
    rng = Random(seed)
    schema = random_schema(rng)
    condition = random_condition(rng, schema, depth=2)
    index = build({"s": print_expression(condition)}, schema)
    label = root_label(index)
    # The true side of an operand of XOR does not say where the operand is undefined.
    if label is None or "IN ()" in label or "xor(" in label or "xnor(" in label:
        return
    read = tamis.parse(label, schema)
    for _ in range(10):
        event = random_event(rng, schema)
        assert (tamis.evaluate(read, event) is True) == (tamis.evaluate(condition, event) is True)


def test_labels_are_cut():
    index = build({"s": " OR ".join(f"name = 'n{n}' AND age = {n}" for n in range(50))})
    label = root_label(index, width=40)
    assert len(label) == 40
    assert label.endswith("…")


def test_gates_read_as_functions():
    index = build({"s": "at_least(2, a = 1, b = 1, c = 1)", "x": "a = 1 XOR b = 2"})
    # The order of children is the index's own.
    count, *operands = root_label(index).removesuffix(")").split(", ")
    assert (count, sorted(operands)) == ("at_least(2", ["a = 1", "b = 1", "c = 1"])
    assert root_label(index, "x").startswith(("xor(", "xnor("))
