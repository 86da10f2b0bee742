"""A-Tree: right with each design element left out, and of the shape that the paper describes."""

from __future__ import annotations

import random
from itertools import permutations, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.errors import InputError
from tamis.index.layout import AND, OR
from tamis.lab.atree.a_tree import ATree
from tamis.lab.atree.arrays import N_NODES, PRIME, Design
from tamis.lab.atree.encoding import LEAF, encode
from tamis.lab.atree.kernels.ids import multiply
from tamis.lab.forest import Forest, Node, Tree, as_rows
from tests.effort import examples
from tests.lab.atree.forests import N_LEAVES, draw_example, lists_of

SEEDS = st.integers(0, 2**40)
DESIGNS = {
    "whole": Design(),
    **{f"no {name}": Design(**{name: False}) for name in Design._fields},
    "nothing": Design(*[False] * len(Design._fields)),
    "neither filter nor demand": Design(zero_suppression=False, propagation_on_demand=False),
}


def conj(*children: Tree) -> Node:
    return Node(AND, 0, children)


def disj(*children: Tree) -> Node:
    return Node(OR, 0, children)


def links_of(machine: ATree, node: int) -> tuple[list[int], list[int]]:
    """Children, as links, and parents of a node."""
    tree = machine._tree
    child, parent = int(tree.child_starts[node]), int(tree.parent_starts[node])
    children = tree.pool[child : child + tree.n_children[node]].tolist()
    return children, tree.pool[parent : parent + tree.n_parents[node]].tolist()


def check_invariants(machine: ATree) -> None:
    """Levels, uses and links are what they should be, however the tree came about."""
    tree, design = machine._tree, machine.design
    nodes = range(int(tree.sizes[N_NODES]))
    inner = [node for node in nodes if tree.operators[node] != LEAF]
    assert len(inner) == machine.n_nodes
    uses = dict.fromkeys(nodes, 0)
    pairs = []
    for node in inner:
        children, _ = links_of(machine, node)
        plain = [max(link, ~link) for link in children]
        pairs += [(child, node) for child in plain]
        assert tree.levels[node] == 1 + max(tree.levels[child] for child in plain)
        for link in children:
            if link >= 0:
                uses[link] += 1
        if design.propagation_on_demand and tree.operators[node] == AND:
            reached = [links_of(machine, c)[1][: tree.n_pushed[c]].count(node) for c in plain]
            assert sum(reached) == 1, "one access child"
    assert sorted(pairs) == sorted((n, parent) for n in nodes for parent in links_of(machine, n)[1])
    for node in tree.nodes_of[tree.nodes_of >= 0].tolist():
        uses[node] += 1
    assert uses == {node: int(tree.use_counts[node]) for node in nodes}
    if design.sharing:
        ids = [int(tree.ids[node]) for node in inner]
        assert len(ids) == len(set(ids)), "each expression once"


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
@settings(max_examples=examples(15))
@given(seed=SEEDS)
def test_every_design_answers_right(design: Design, seed: int) -> None:
    example = draw_example(seed)
    machine = ATree(example.trees, N_LEAVES, design)
    assert lists_of(machine.match(example.satisfied)) == example.wanted()
    found = machine.match(example.satisfied, example.unsatisfied)
    assert lists_of(found) == example.wanted()
    check_invariants(machine)


@pytest.mark.parametrize("design", DESIGNS.values(), ids=DESIGNS)
@settings(max_examples=examples(10))
@given(seed=SEEDS)
def test_every_design_can_be_updated(design: Design, seed: int) -> None:
    rng = random.Random(seed)
    example = draw_example(seed)
    inside = {at for at in example.trees if rng.random() < 0.5}
    machine = ATree({at: example.trees[at] for at in inside}, N_LEAVES, design)
    for _ in range(3):
        for at in rng.sample(sorted(example.trees), len(example.trees) // 2):
            if at in inside:
                machine.delete(at)
            else:
                machine.insert(at, example.trees[at])
            inside ^= {at}
        check_invariants(machine)
        assert lists_of(machine.match(example.satisfied)) == example.wanted(inside)
    for at in inside:
        machine.delete(at)
    assert machine.n_nodes == 0, "nothing is left behind"
    assert not machine._tree.use_counts.any()


def test_false_leaves_are_those_of_attributes_that_are_there() -> None:
    forest = Forest.of({"a": "x = 1", "b": "x >= 5", "c": "z = 'q'", "d": "z <> 'q'"})
    one, five, equal, other = forest.trees
    events: list[dict[str, object]] = [{"x": 1}, {"x": 7, "z": "p"}, {}]
    true, false = forest.satisfied(events), forest.unsatisfied(events)
    assert {one} <= set(true[0].tolist())
    assert {five} <= set(false[0].tolist())
    assert {five, other} <= set(true[1].tolist())
    assert {one, equal} <= set(false[1].tolist())
    assert len(false[2]) == 0
    for row in range(3):
        assert not set(true[row].tolist()) & set(false[row].tolist())


# ── the paper's examples; predicate P1 is leaf 1 ────────────────────────────────────────────

FIRST = conj(disj(1, 2, 3), 4, disj(5, 6))
SECOND = conj(disj(5, 6), disj(7, 8))


def test_figure_2_is_the_encoding() -> None:
    encoding = encode([FIRST])
    kinds = [AND, OR, LEAF, LEAF, LEAF, LEAF, OR, LEAF, LEAF]
    assert encoding.kinds.tolist() == kinds
    assert encoding.values.tolist() == [3, 3, 1, 2, 3, 4, 2, 5, 6]


def test_figure_4_shares_a_subexpression() -> None:
    machine = ATree({0: FIRST, 1: SECOND}, 9)
    assert machine.n_nodes == 5
    apart = ATree({0: FIRST, 1: SECOND}, 9, Design(sharing=False))
    assert apart.n_nodes == 6


def test_an_id_does_not_depend_on_the_order() -> None:
    other = conj(4, disj(3, 2, 1), disj(6, 5))
    assert ATree({0: FIRST, 1: other}, 9).n_nodes == 3
    literal = ATree({0: FIRST, 1: other}, 9, Design(unique_id=False, reorganisation=False))
    assert literal.n_nodes == 6


def test_reorganisation_reuses_nodes() -> None:
    """§4.2.2: P1 ∧ P2 ∧ P3 ∧ P4 becomes (P1 ∧ P2 ∧ P3) ∧ (P3 ∧ P4)."""
    trees = {0: conj(1, 2, 3), 1: conj(3, 4), 2: conj(1, 2, 3, 4)}
    machine = ATree(trees, 9)
    first, second, third = machine._tree.nodes_of[:3].tolist()
    assert sorted(links_of(machine, third)[0]) == sorted([first, second])
    without = ATree(trees, 9, Design(reorganisation=False, self_adjustment=False))
    assert sorted(links_of(without, int(without._tree.nodes_of[2]))[0]) == [1, 2, 3, 4]


def test_self_adjustment_does_not_depend_on_the_order() -> None:
    """§4.2.3: (P1 ∨ P2 ∨ P3) ∧ P4 comes after FIRST, which then has it as a child."""
    machine = ATree({0: FIRST, 1: conj(disj(1, 2, 3), 4)}, 9)
    whole, part = machine._tree.nodes_of[:2].tolist()
    assert ~part in links_of(machine, whole)[0]
    assert machine._tree.levels[whole] == 4
    trees = [conj(1, 2, 3), conj(1, 2, 3, 4), conj(1, 2, 3, 4, 5), disj(1, 2), disj(1, 2, 6)]
    sizes = set()
    for order in permutations(trees):
        machine = ATree(dict(enumerate(order)), 9)
        sizes.add(sum(len(links_of(machine, n)[0]) for n in range(9, 9 + machine.n_nodes)))
    assert len(sizes) == 1


def test_a_deleted_child_leaves_its_children() -> None:
    """§4.2.4: who used the deleted node consumes its child nodes."""
    machine = ATree({0: FIRST, 1: conj(disj(1, 2, 3), 4)}, 9)
    machine.delete(1)
    assert machine.n_nodes == 3
    whole = int(machine._tree.nodes_of[0])
    assert len(links_of(machine, whole)[0]) == 3
    assert machine._tree.levels[whole] == 3
    check_invariants(machine)


def test_only_the_access_child_leads_to_an_and() -> None:
    trees: dict[int, Tree] = {at: conj(0, at + 1, at + 20) for at in range(18)}
    event = as_rows([encode([0]).values])
    on_demand, counted = ATree(trees, 40), ATree(trees, 40, Design(propagation_on_demand=False))
    assert lists_of(on_demand.match(event)) == lists_of(counted.match(event)) == [[]]
    assert counted.counts["nodes"] == 18
    assert on_demand.counts["nodes"] < 18


def test_products_are_exact() -> None:
    numbers = [2, 3, 2**31, 2**31 - 1, 2**60, PRIME - 1, PRIME - 2, 0x1234567890ABCDE]
    for a in numbers:
        for b in numbers:
            assert multiply(a, b) == a * b % PRIME


# ── parts that must not be taken for each other ─────────────────────────────────────────────

ALIKE = {
    "nested": {"p": "x = 1 AND (y = 2 OR z = 3)", "q": "y = 2 AND (x = 1 OR z = 3)"},
    "counted": {
        "p": "at_least(2, x = 1, y = 2, z = 3) AND w = 4",
        "q": "at_least(2, x = 1, y = 2, w = 4) AND z = 3",
    },
    "odd": {
        "p": "xor(x = 1, y = 2, z = 3) AND w = 4",
        "q": "xor(x = 1, y = 2, w = 4) AND z = 3",
    },
}
VALUES = {"x": 1, "y": 2, "z": 3, "w": 4}


@pytest.mark.parametrize("texts", ALIKE.values(), ids=ALIKE)
@pytest.mark.parametrize("unique_id", [True, False])
@pytest.mark.parametrize("zero_suppression", [True, False])
def test_a_part_does_not_give_its_operands_away(texts, unique_id, zero_suppression):
    forest = Forest.of(texts)
    design = Design(unique_id=unique_id, zero_suppression=zero_suppression)
    machine = ATree(dict(enumerate(forest.trees)), forest.n_leaves, design)
    events = [
        {name: VALUES[name] if has_it else 0 for name, has_it in zip(VALUES, chosen, strict=True)}
        for chosen in product((False, True), repeat=4)
    ]
    found = machine.match(forest.satisfied(events), forest.unsatisfied(events))
    expected = [
        [at for at, text in enumerate(texts.values()) if tamis.evaluate(text, event)]
        for event in events
    ]
    assert [found[row].tolist() for row in range(len(events))] == expected


def test_subscriptions_that_are_there_already_or_not_at_all():
    forest = Forest.of({"p": "x = 1", "q": "y = 2"})
    machine = ATree(dict(enumerate(forest.trees)), forest.n_leaves)
    with pytest.raises(InputError, match="subscription 1 is in the index already"):
        machine.insert(1, forest.trees[0])
    for ordinal in (7, 10**6, -1):
        with pytest.raises(InputError, match=f"subscription {ordinal} is not in the index"):
            machine.delete(ordinal)
    machine.delete(1)
    with pytest.raises(InputError, match="subscription 1 is not in the index"):
        machine.delete(1)
    machine.insert(1, forest.trees[0])
    assert machine.match(forest.satisfied([{"x": 1}]))[0].tolist() == [0, 1]
