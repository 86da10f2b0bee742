"""BoP, BDD and Translation: right, and honest about what they cannot take in."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.index.layout import AND, OR
from tamis.lab.atree.bdd import BDD
from tamis.lab.atree.bop import BoP
from tamis.lab.atree.encoding import encode
from tamis.lab.atree.translation import MOST_OF_ONE, Translation, translate
from tamis.lab.forest import Node, RanOutError, as_rows
from tests.effort import examples
from tests.lab.atree.forests import N_LEAVES, draw_example, lists_of

EXPRESSION = Node(AND, 0, (Node(OR, 0, (1, 2, 3)), 4, Node(OR, 0, (5, 6))))


@pytest.mark.parametrize("machine", [BoP, BDD, Translation], ids=lambda machine: machine.name)
@settings(max_examples=examples(25))
@given(seed=st.integers(0, 2**40))
def test_random_trees(machine: type[BoP | BDD | Translation], seed: int) -> None:
    example = draw_example(seed)
    taken = {}
    for ordinal, tree in example.trees.items():
        with suppress(RanOutError):
            machine({ordinal: tree}, N_LEAVES)
            taken[ordinal] = tree
    assert len(taken) > len(example.trees) // 2
    found = machine(taken, N_LEAVES).match(example.satisfied)
    assert lists_of(found) == example.wanted(set(taken))


def test_bop_looks_at_what_has_its_minimum() -> None:
    """§2: three predicates are needed, but not any three."""
    machine = BoP({0: EXPRESSION}, 7)
    events = as_rows([encode([*leaves]).values for leaves in ((1, 4), (1, 2, 3), (1, 4, 6))])
    assert lists_of(machine.match(events)) == [[], [], [0]]
    assert machine.counts["candidates"] == 2


def test_bop_counts_a_predicate_as_often_as_it_stands_there() -> None:
    twice = Node(AND, 0, (Node(OR, 0, (1, 2)), Node(OR, 0, (1, 3))))
    machine = BoP({0: twice}, 4)
    assert lists_of(machine.match(as_rows([encode([1]).values]))) == [[0]]


def test_translation_of_the_paper() -> None:
    found = {tuple(sorted(conjunction)) for conjunction in translate(EXPRESSION)}
    assert found == {(1, 4, 5), (1, 4, 6), (2, 4, 5), (2, 4, 6), (3, 4, 5), (3, 4, 6)}


def test_translation_runs_out() -> None:
    pairs = tuple(Node(OR, 0, (2 * at, 2 * at + 1)) for at in range(20))
    with pytest.raises(RanOutError, match=f"1,048,576 conjunctions .* {MOST_OF_ONE:,}"):
        Translation({0: Node(AND, 0, pairs)}, 40)


def test_bdd_runs_out() -> None:
    """Far apart in the order, the partners of many pairs must all be remembered."""
    n_pairs = 12
    pairs = tuple(Node(AND, 0, (at, at + n_pairs)) for at in range(n_pairs))
    tree = Node(OR, 0, pairs)
    assert BDD({0: tree}, 2 * n_pairs).n_nodes > 2**n_pairs
    with pytest.raises(RanOutError, match="more than 4,096 nodes"):
        BDD({0: tree}, 2 * n_pairs, most_nodes=1 << 12)


def test_bdd_shares_equal_parts() -> None:
    both = BDD({0: EXPRESSION, 1: Node(OR, 0, (5, 6)), 2: EXPRESSION}, 7)
    assert both.n_nodes == BDD({0: EXPRESSION}, 7).n_nodes
