"""Random expressions of AND and OR, and what they are."""

from __future__ import annotations

import random

from tamis.index.layout import AND, OR
from tamis.lab.fontoura.expressions import Branch, Conjunction, Expression


def draw_expression(rng: random.Random, depth: int, names: list[int]) -> Expression:
    """A tree whose operators follow no order; its leaves are conjunctions of one new leaf each."""
    if depth == 0 or rng.random() < 0.2:
        names.append(len(names))
        return Conjunction((names[-1],), ())
    n_children = rng.choices((1, 2, 3, 4), (1, 14, 4, 1))[0]
    children = [draw_expression(rng, depth - 1, names) for _ in range(n_children)]
    return Branch(rng.choice((AND, OR)), tuple(children))


def is_true(node: Expression, satisfied: set[int]) -> bool:
    if isinstance(node, Conjunction):
        return satisfied.issuperset(node.wanted) and satisfied.isdisjoint(node.unwanted)
    truths = [is_true(child, satisfied) for child in node.children]
    return all(truths) if node.operator == AND else any(truths)
