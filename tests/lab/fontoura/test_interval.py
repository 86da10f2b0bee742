"""Interval ID: the paper's example, valid labellings (invariants 1 to 3), and what they mean."""

from __future__ import annotations

import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.index.layout import AND, OR
from tamis.lab.fontoura import Interval
from tamis.lab.fontoura.expressions import Branch, Conjunction, Expression
from tamis.lab.fontoura.interval import count_leaves, label
from tamis.lab.fontoura.kernels.interval import match_intervals
from tamis.lab.forest import Node, RanOutError
from tests.effort import examples
from tests.lab.fontoura.trees import draw_expression, is_true

A, B, C, D, E, F = (Conjunction((leaf,), ()) for leaf in range(6))
FIGURE_5 = Branch(OR, (Branch(AND, (A, B)), C, Branch(AND, (D, E, F))))


def cover(intervals: list[tuple[int, int]], end: int) -> bool:
    """MATCH, for one event and one expression."""
    keys = np.array(sorted(begin << 16 | stop for begin, stop in intervals), dtype=np.uint64)
    found = np.empty(1, dtype=np.int32)
    found_starts = np.zeros(2, dtype=np.int64)
    matched = np.zeros(end + 1, dtype=np.int32)
    match_intervals(np.array([0, len(keys)]), keys, matched, found_starts, found)
    return bool(found_starts[1])


def test_figure_5() -> None:
    labels = {node: span for node, *span in label(FIGURE_5, 1, 10)}
    assert labels[A] == [1, 1]
    assert labels[B] == [2, 10]
    assert labels[C] == [1, 10]
    assert labels[D] == [1, 4]
    assert labels[E] == [5, 5]
    assert labels[F] == [6, 10]


def test_table_1() -> None:
    labels = {node: (begin, end) for node, begin, end in label(FIGURE_5, 1, 10)}
    assert cover([labels[node] for node in (A, D, E, F)], 10)
    assert not cover([labels[node] for node in (B, D)], 10)
    assert not cover([labels[node] for node in (A, D, F)], 10)


def draw(seed: int) -> tuple[random.Random, Expression, int]:
    rng = random.Random(seed)
    tree = draw_expression(rng, rng.randrange(1, 6), [])
    return rng, tree, count_leaves(tree) + rng.randrange(3)


@settings(max_examples=examples(200))
@given(seed=st.integers(0, 2**40))
def test_labellings_are_valid(seed: int) -> None:
    _, tree, line_end = draw(seed)
    # Every node once: equal subtrees differ in their places.
    spans = [(node, begin, end) for node, begin, end in label(tree, 1, line_end)]
    later_starts: list[int] = []
    place = 0

    def walk() -> tuple[int, int]:
        nonlocal place
        node, begin, end = spans[place]
        place += 1
        assert 1 <= begin <= end <= line_end
        if isinstance(node, Conjunction):
            return begin, end
        below = [walk() for _ in node.children]
        if node.operator == OR:
            assert all(span == (begin, end) for span in below)  # invariant 1
        else:
            joints = [(one[1] + 1, other[0]) for one, other in pairwise(below)]
            assert all(after == start for after, start in joints)  # invariant 2
            assert (below[0][0], below[-1][1]) == (begin, end)
            later_starts.extend(start for start, _ in below[1:])
        return begin, end

    assert walk() == (1, line_end)
    assert place == len(spans)
    assert len(later_starts) == len(set(later_starts))  # invariant 3


@settings(max_examples=examples(200))
@given(seed=st.integers(0, 2**40))
def test_a_cover_is_the_truth(seed: int) -> None:
    """On trees whose operators need not alternate."""
    rng, tree, line_end = draw(seed)
    leaves = [
        (node.wanted[0], (begin, end))
        for node, begin, end in label(tree, 1, line_end)
        if isinstance(node, Conjunction)
    ]
    for share in (0.3, 0.5, 0.7, 0.9):
        satisfied = {leaf for leaf, _ in leaves if rng.random() < share}
        spans = [span for leaf, span in leaves if leaf in satisfied]
        assert cover(spans, line_end) == is_true(tree, satisfied)


def test_more_leaves_than_16_bits_count() -> None:
    wide = Node(OR, 0, tuple(range(70_000)))
    with pytest.raises(RanOutError, match="70,000 conjunctions; intervals of 16 bits"):
        Interval({0: wide}, 70_000)
