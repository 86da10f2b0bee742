"""Random trees over few leaves, so that they share parts, and events that know some leaves."""

from __future__ import annotations

import random
from typing import NamedTuple

import numpy as np

from tamis.index.layout import AND, AT_LEAST, OR, XOR
from tamis.lab.forest import ALWAYS, NEVER, Node, Rows, Tree, as_rows, gather, holds

N_LEAVES = 12  # leaf 2b + 1 is the negation of leaf 2b


class Example(NamedTuple):
    trees: dict[int, Tree]
    satisfied: Rows
    unsatisfied: Rows

    def wanted(self, inside: set[int] | None = None) -> list[list[int]]:
        """The ordinals that each event matches, by definition."""
        ordinals = sorted(self.trees if inside is None else inside)
        events = [set(self.satisfied[row].tolist()) for row in range(len(self.satisfied))]
        return [[at for at in ordinals if holds(self.trees[at], event)] for event in events]


def draw_example(seed: int) -> Example:
    rng = random.Random(seed)
    trees = {ordinal: draw_tree(rng, 3) for ordinal in range(16)}
    trees |= {16 + ordinal: trees[ordinal] for ordinal in range(4)}
    trees |= {20: ALWAYS, 21: NEVER}
    satisfied, unsatisfied = [], []
    for _ in range(6):
        values = [rng.choice((0, 0, 1, 1, None)) for _ in range(N_LEAVES // 2)]
        known = [(test, value) for test, value in enumerate(values) if value is not None]
        satisfied.append(np.array([2 * test + value for test, value in known], dtype=np.int32))
        unsatisfied.append(np.array([2 * test + 1 - value for test, value in known], np.int32))
    return Example(trees, as_rows(satisfied), as_rows(unsatisfied))


def draw_tree(rng: random.Random, depth: int) -> Tree:
    if depth == 0 or rng.random() < 0.25:
        return rng.randrange(N_LEAVES)
    operator = rng.choice((AND, AND, OR, OR, XOR, AT_LEAST))
    if operator == XOR:
        tests = rng.sample(range(N_LEAVES // 2), rng.randint(2, 3))
        pairs = tuple(leaf for test in tests for leaf in (2 * test, 2 * test + 1))
        return Node(XOR, rng.randint(0, 1), pairs)
    children = dict.fromkeys(draw_tree(rng, depth - 1) for _ in range(rng.randint(2, 5)))
    if operator == AT_LEAST:
        return Node(AT_LEAST, rng.randint(1, len(children)), tuple(children))
    return gather(operator, list(children))


def lists_of(found: Rows) -> list[list[int]]:
    return [found[row].tolist() for row in range(len(found))]
