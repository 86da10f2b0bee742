"""Expressions as the paper has them (§2): AND and OR above conjunctions of ∈ and ∉.

A leaf of the forest stands for A ∈ {…}. One that holds exactly where another does not, on every
event, is that one's ∉; there are such leaves where a missing attribute satisfies a negation, which
is how the paper means ∉. Where it does not, `A <> v` also asks that A is there, no absence of a
posting says that, and the leaf is a key of its own like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tamis.index.layout import AND, OR
from tamis.lab.forest import to_and_or

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.lab.forest import Tree


class Conjunction(NamedTuple):
    """What an event must satisfy, and what it must not."""

    wanted: tuple[int, ...]  # leaves of ∈, rising
    unwanted: tuple[int, ...]  # leaves of ∉, rising


class Branch(NamedTuple):
    """AND or OR of expressions."""

    operator: int
    children: tuple[Expression, ...]


Expression: TypeAlias = Conjunction | Branch


def read_expression(tree: Tree, opposites: Mapping[int, int]) -> Expression:
    """The tree above conjunctions; leaves that stand together under an AND are one.

    Raises `RanOutError` where XOR and AT_LEAST would take too many nodes of AND and OR.
    """
    return read_branch(tree if is_plain(tree) else to_and_or(tree), opposites)


def is_plain(tree: Tree) -> bool:
    """Whether there are AND and OR alone."""
    if isinstance(tree, int):
        return True
    return tree.operator in (AND, OR) and all(map(is_plain, tree.children))


def read_branch(tree: Tree, opposites: Mapping[int, int]) -> Expression:
    """A tree whose operators are kept as they are."""
    if isinstance(tree, int):
        return join([tree], opposites)
    leaves = [child for child in tree.children if isinstance(child, int)]
    below = [read_branch(c, opposites) for c in tree.children if not isinstance(c, int)]
    if tree.operator != AND:
        return Branch(tree.operator, (*(join([leaf], opposites) for leaf in leaves), *below))
    if not below:
        return join(leaves, opposites)
    return Branch(AND, (*([join(leaves, opposites)] if leaves else ()), *below))


def join(leaves: list[int], opposites: Mapping[int, int]) -> Conjunction:
    """The conjunction of leaves."""
    distinct = set(leaves)
    # A leaf beside its own opposite never holds; as a key of its own it never does either.
    negated = {leaf for leaf in distinct if opposites.get(leaf, leaf) not in distinct}
    unwanted = sorted({opposites[leaf] for leaf in negated})
    return Conjunction(tuple(sorted(distinct - negated)), tuple(unwanted))


def conjunctions_of(expression: Expression) -> Iterator[Conjunction]:
    """The conjunctions of an expression, from left to right."""
    if isinstance(expression, Conjunction):
        yield expression
        return
    for child in expression.children:
        yield from conjunctions_of(child)
