"""The conjunction index: ∈, ∉, Z, walking and counting; and machines that are given ∉."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import InputError
from tamis.index.layout import AND, OR
from tamis.lab.fontoura import Dewey, Dnf, Interval, ScanConjunctions
from tamis.lab.fontoura.conjunction_index import ConjunctionIndex
from tamis.lab.fontoura.delta import SMALL, WithDelta
from tamis.lab.fontoura.dnf import expand
from tamis.lab.fontoura.expressions import Branch, Conjunction, read_expression
from tamis.lab.fontoura.kernels.conjunctions import MOST_WALKED
from tamis.lab.forest import Forest, Node, RanOutError, Rows, as_rows
from tamis.logic.evaluate import Missing
from tests.effort import examples
from tests.lab.fontoura.trees import draw_expression, is_true
from tests.match.examples import draw_example

SEEDS = st.integers(0, 2**40)
WITH_DELTA = [ScanConjunctions, Dnf, Dewey, Interval]


def draw_conjunctions(rng: random.Random, n: int, n_leaves: int) -> list[Conjunction]:
    drawn = set()
    for _ in range(n):
        leaves = rng.sample(range(n_leaves), rng.randrange(min(6, n_leaves)))
        n_wanted = rng.randrange(len(leaves) + 1)
        drawn.add(Conjunction(tuple(sorted(leaves[:n_wanted])), tuple(sorted(leaves[n_wanted:]))))
    return sorted(drawn)


def rows(events: list[set[int]]) -> Rows:
    return as_rows([np.array(sorted(event), dtype=np.int32) for event in events])


@settings(max_examples=examples(150))
@given(seed=SEEDS, n_leaves=st.sampled_from([1, 5, 20, 2 * MOST_WALKED]))
def test_found_are_those_that_hold(seed: int, n_leaves: int) -> None:
    rng = random.Random(seed)
    conjunctions = draw_conjunctions(rng, rng.randrange(40), n_leaves)
    index = ConjunctionIndex({one: [at] for at, one in enumerate(conjunctions)}, n_leaves, np.int32)
    events = [{leaf for leaf in range(n_leaves) if rng.random() < 0.5} for _ in range(5)]
    found = index.find(0, rows(events))
    starts, annotations = index.gather(found)
    assert found.n_rows == len(events)
    for row, event in enumerate(events):
        wanted = [at for at, one in enumerate(conjunctions) if is_true(one, event)]
        assert sorted(annotations[starts[row] : starts[row + 1]].tolist()) == wanted


def test_lists_are_skipped() -> None:
    """One rare leaf next to a common one: few postings of the long list are read."""
    common = {Conjunction((0, leaf), ()): [leaf] for leaf in range(1, 5_000)}
    index = ConjunctionIndex(common, 5_000, np.int32)
    found = index.find(0, rows([{0, 4_321}]))
    assert len(found.conjunctions) == 1
    assert index.scratch.n_postings[0] < 50


def test_z_is_read_by_every_event() -> None:
    index = ConjunctionIndex({Conjunction((), ()): [7], Conjunction((), (1,)): [8]}, 2, np.int32)
    starts, annotations = index.gather(index.find(0, rows([set(), {0}, {1}])))
    found = [sorted(annotations[starts[row] : starts[row + 1]].tolist()) for row in range(3)]
    assert found == [[7, 8], [7, 8], [7]]


# ── expressions ─────────────────────────────────────────────────────────────────────────────


def test_leaves_of_an_and_are_one_conjunction() -> None:
    tree = Node(AND, 0, (3, Node(OR, 0, (1, Node(AND, 0, (4, 2)))), 0))
    one = Conjunction
    assert read_expression(tree, {4: 1}) == Branch(
        AND, (one((0, 3), ()), Branch(OR, (one((1,), ()), one((2,), (1,)))))
    )


def test_a_leaf_beside_its_opposite_never_holds() -> None:
    assert read_expression(Node(AND, 0, (1, 4)), {4: 1}) == Conjunction((1, 4), ())


def test_dnf_runs_out() -> None:
    pairs = [
        Branch(OR, (Conjunction((2 * at,), ()), Conjunction((2 * at + 1,), ()))) for at in range(20)
    ]
    assert len(expand(Branch(AND, tuple(pairs[:10])))) == 1024
    with pytest.raises(RanOutError, match="more than 10,000 conjunctions"):
        expand(Branch(AND, tuple(pairs)))


@settings(max_examples=examples(100))
@given(seed=SEEDS)
def test_dnf_means_the_same(seed: int) -> None:
    rng = random.Random(seed)
    tree = draw_expression(rng, 3, [])
    conjunctions = expand(tree)
    for share in (0.3, 0.6, 0.9):
        satisfied = {leaf for leaf in range(100) if rng.random() < share}
        assert any(is_true(one, satisfied) for one in conjunctions) == is_true(tree, satisfied)


# ── machines ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("machine", WITH_DELTA, ids=lambda machine: machine.name)
@settings(max_examples=examples(15))
@given(seed=SEEDS)
def test_negations_as_not_in(machine: type[WithDelta], seed: int) -> None:
    """Where a missing attribute satisfies a negation, ∉ is kept as the paper keeps it."""
    example = draw_example(seed)
    missing = Missing.SATISFIES_NEGATION
    forest = Forest.of(example.texts, example.schema, missing=missing)
    wanted = example.reference(missing)
    satisfied = forest.satisfied(example.events)
    for ordinal, tree in enumerate(forest.trees):
        try:
            made = machine({ordinal: tree}, forest.n_leaves, forest.opposites)
        except RanOutError:
            continue
        found = made.match(satisfied)
        truth = [len(found[row]) == 1 for row in range(len(found))]
        assert truth == wanted[:, ordinal].tolist()


def test_opposites_are_there() -> None:
    texts = {"a": "NOT x = 1 AND y = 2", "b": "x = 1"}
    forest = Forest.of(texts, missing="satisfies_negation")
    assert len(forest.opposites) == 1
    assert Forest.of(texts).opposites == {}
    (conjunction,) = [read_expression(forest.trees[0], forest.opposites)]
    assert conjunction == Conjunction((forest.opposites and 1,), (forest.trees[1],))


@pytest.mark.parametrize("machine", WITH_DELTA, ids=lambda machine: machine.name)
def test_a_delta_is_merged_when_it_has_grown(machine: type[WithDelta]) -> None:
    made = machine({0: 0}, 3)
    for ordinal in range(1, SMALL + 1):
        made.insert(ordinal, Node(AND, 0, (0, 1 + ordinal % 2)))
    event = rows([{0, 1}])
    assert made.match(event)[0].tolist() == list(range(0, SMALL + 1, 2))
    assert len(made._main.ordinals) == 1
    made.insert(SMALL + 1, 0)
    assert made.match(event)[0].tolist() == [*range(0, SMALL + 1, 2), SMALL + 1]
    assert len(made._main.ordinals) == SMALL + 2


@pytest.mark.parametrize("machine", WITH_DELTA, ids=lambda machine: machine.name)
def test_wrong_updates_are_refused(machine: type[WithDelta]) -> None:
    made = machine({0: 0}, 1)
    with pytest.raises(InputError, match="subscription 0 is in the index already"):
        made.insert(0, 0)
    with pytest.raises(InputError, match="subscription 1 is not in the index"):
        made.delete(1)


@pytest.mark.parametrize("machine", WITH_DELTA, ids=lambda machine: machine.name)
def test_what_is_counted(machine: type[WithDelta]) -> None:
    made = machine({0: Node(AND, 0, (0, 1)), 1: Node(OR, 0, (1, 2))}, 3)
    made.match(rows([{1}, {0, 1}]))
    assert made.counts["conjunctions"] == 3
    assert made.counts["postings"] > 0
    assert made.seconds["index"] > 0
