"""Dewey ID: the paper's example, ids that fit 32 bits and ids that do not."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.index.layout import AND, OR
from tamis.lab.fontoura import Dewey
from tamis.lab.fontoura.delta import Work
from tamis.lab.fontoura.dewey import DeweyPart, dewey_ids, with_and_root
from tamis.lab.fontoura.expressions import Branch, Conjunction, Expression, read_expression
from tamis.lab.forest import Node, Tree, as_rows
from tests.effort import examples
from tests.lab.fontoura.trees import draw_expression, is_true

A, B, C, D, E, F = range(6)
FIGURE_2: Tree = Node(OR, 0, (Node(AND, 0, (A, B)), C, Node(AND, 0, (D, E, F))))


def spell(steps: tuple[int, ...]) -> str:
    return ".".join(f"{step >> 1}{'*' if step & 1 else ''}" for step in steps)


def test_figure_2() -> None:
    one = [Conjunction((leaf,), ()) for leaf in range(6)]
    tree = Branch(OR, (Branch(AND, (one[A], one[B])), one[C], Branch(AND, (*one[3:],))))
    ids = {leaf.wanted[0]: spell(steps) for leaf, steps in dewey_ids(with_and_root(tree))}
    assert ids[A] == "1*.1.1"
    assert ids[C] == "1*.2"
    assert [ids[leaf] for leaf in (D, E, F)] == ["1*.3*.1", "1*.3*.2", "1*.3*.3*"]


def to_tree(node: Expression) -> Tree:
    """A tree in which conjunctions of one leaf stay apart: an AND above each."""
    if isinstance(node, Conjunction):
        return Node(AND, 0, node.wanted)
    return Node(node.operator, 0, tuple(map(to_tree, node.children)))


def check(expressions: list[Expression], rng: random.Random) -> DeweyPart:
    trees = dict(enumerate(map(to_tree, expressions)))
    assert [read_expression(tree, {}) for tree in trees.values()] == expressions
    part = DeweyPart(trees, 2_000, {})
    events = [{leaf for leaf in range(400) if rng.random() < share} for share in (0.3, 0.6, 0.9)]
    found = part.match(as_rows([np.array(sorted(one), dtype=np.int32) for one in events]), Work())
    for row, satisfied in enumerate(events):
        wanted = [at for at, one in enumerate(expressions) if is_true(one, satisfied)]
        assert found[row].tolist() == wanted
    return part


@settings(max_examples=examples(60))
@given(seed=st.integers(0, 2**40))
def test_short_and_long_ids_side_by_side(seed: int) -> None:
    rng = random.Random(seed)
    check([draw_expression(rng, rng.randrange(1, 12), []) for _ in range(6)], rng)


def chain(depth: int) -> Expression:
    """AND, OR, AND, … with a leaf next to each."""
    node: Expression = Conjunction((depth,), ())
    for level in range(depth - 1, -1, -1):
        node = Branch(AND if level % 2 == 0 else OR, (Conjunction((level,), ()), node))
    return node


@pytest.mark.parametrize(
    ("expression", "fits"),
    [
        (chain(8), True),
        (chain(10), True),
        (chain(11), False),
        (chain(300), False),
        (Branch(OR, tuple(Conjunction((leaf,), ()) for leaf in range(300))), True),
    ],
)
def test_what_fits(expression: Expression, fits: bool) -> None:
    part = check([expression], random.Random(1))
    assert (part._layouts.step_bits[0] > 0) == fits


def test_memory_is_that_of_the_index_and_the_ids() -> None:
    machine = Dewey({0: FIGURE_2}, 6)
    postings = machine._main.index.postings
    assert machine.n_bytes > sum(array.nbytes for array in postings)
