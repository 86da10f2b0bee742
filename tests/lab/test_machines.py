"""The contract of the lab: every machine answers as the reference evaluator does."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.errors import InputError
from tamis.lab.forest import NEVER, Forest, RanOutError, Rows, Tree, holds, to_and_or
from tamis.lab.machine import Machine, Updatable
from tamis.lab.machines import MACHINES, find_machine
from tamis.logic.evaluate import Missing, evaluate
from tests.effort import examples
from tests.match.examples import draw_example
from tests.test_cases import FOLDER, read_cases

SEEDS = st.integers(0, 2**40)
UPDATABLE = [name for name, machine in MACHINES.items() if issubclass(machine, Updatable)]


def make(name: str, trees: Mapping[int, Tree], n_leaves: int) -> tuple[Machine, set[int]]:
    """The machine and the ordinals of the trees it could take in."""
    taken = dict(trees)
    for ordinal, tree in trees.items():
        try:
            MACHINES[name]({ordinal: tree}, n_leaves)
        except RanOutError:  # a paper's form may be too large; the machine says so
            del taken[ordinal]
    while True:
        try:
            return MACHINES[name](taken, n_leaves), set(taken)
        except RanOutError:  # so may be the form of all of them together
            taken.popitem()


def truth_of(found: Rows, n_ordinals: int) -> np.ndarray:
    truth = np.zeros((len(found), n_ordinals), dtype=np.int64)
    for row in range(len(found)):
        assert (np.diff(found[row]) > 0).all(), "not rising"
        truth[row, found[row]] = 1
    return truth


@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.txt")), ids=lambda path: path.stem)
def test_every_case_file(name: str, path: Path) -> None:
    for case in read_cases(path):
        forest = Forest.of({"case": case.query}, case.schema, missing=case.missing)
        machine, taken = make(name, dict(enumerate(forest.trees)), forest.n_leaves)
        events = [one.event for one in case.expectations]
        if taken:
            found = machine.match(forest.satisfied(events))
            wanted = [evaluate(case.condition, event, case.missing) is True for event in events]
            assert [len(found[row]) == 1 for row in range(len(events))] == wanted, case.place


@pytest.mark.parametrize("missing", Missing)
@pytest.mark.parametrize("name", MACHINES)
@settings(max_examples=examples(25))
@given(seed=SEEDS)
def test_random_sets(name: str, missing: Missing, seed: int) -> None:
    example = draw_example(seed)
    forest = Forest.of(example.texts, example.schema, missing=missing)
    machine, taken = make(name, dict(enumerate(forest.trees)), forest.n_leaves)
    wanted = example.reference(missing).astype(np.int64)
    wanted[:, [at for at in range(len(forest.trees)) if at not in taken]] = 0
    found = truth_of(machine.match(forest.satisfied(example.events)), len(forest.trees))
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("name", UPDATABLE)
@settings(max_examples=examples(25))
@given(seed=SEEDS)
def test_updates(name: str, seed: int) -> None:
    """Insertions, deletions and re-insertions in any order leave what is meant to be there."""
    rng = random.Random(seed)
    example = draw_example(seed)
    forest = Forest.of(example.texts, example.schema)
    wanted = example.reference(Missing.UNDEFINED).astype(np.int64)
    satisfied = forest.satisfied(example.events)
    _, possible = make(name, dict(enumerate(forest.trees)), forest.n_leaves)
    inside = {at for at in possible if rng.random() < 0.5}
    machine = MACHINES[name]({at: forest.trees[at] for at in inside}, forest.n_leaves)
    assert isinstance(machine, Updatable)
    for _ in range(4):
        for at in rng.sample(sorted(possible), len(possible) // 2):
            if at in inside:
                machine.delete(at)
            else:
                machine.insert(at, forest.trees[at])
            inside ^= {at}
        outside = [at for at in range(len(forest.trees)) if at not in inside]
        expected = wanted.copy()
        expected[:, outside] = 0
        found = truth_of(machine.match(satisfied), len(forest.trees))
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("name", MACHINES)
def test_nothing_at_all(name: str) -> None:
    machine, _ = make(name, {}, 0)
    found = machine.match(Rows(np.zeros(3, dtype=np.int64), np.empty(0, dtype=np.int32)))
    assert len(found) == 2
    assert len(found.values) == 0


@settings(max_examples=examples(50))
@given(seed=SEEDS)
def test_trees_mean_what_the_expressions_mean(seed: int) -> None:
    example = draw_example(seed, n_events=6)
    forest = Forest.of(example.texts, example.schema)
    satisfied = forest.satisfied(example.events)
    wanted = example.reference(Missing.UNDEFINED)
    for row in range(len(satisfied)):
        leaves = set(satisfied[row].tolist())
        for ordinal, tree in enumerate(forest.trees):
            assert holds(tree, leaves) == wanted[row, ordinal]
            try:
                plain = to_and_or(tree, most_nodes=300)
            except RanOutError:
                continue
            assert holds(plain, leaves) == wanted[row, ordinal]


def test_one_that_is_never_true() -> None:
    forest = Forest.of({"a": "x = 1 AND NOT x = 1", "b": "x = 1"})
    assert forest.trees[0] == NEVER
    assert isinstance(forest.trees[1], int)


def test_a_machine_that_does_not_exist() -> None:
    with pytest.raises(InputError, match=r'no algorithm "Skan" in the lab; allowed: Scan'):
        find_machine("Skan")
