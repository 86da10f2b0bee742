"""Expressions as defined in the paper (§2): AND and OR above conjunctions of ∈ and ∉.

A leaf of the forest stands for A ∈ {…}. A leaf that is true for exactly the events for which
another is not is the ∉ of that one. Such leaves exist if a missing attribute satisfies a negation,
which is the paper's meaning of ∉. Otherwise `A <> v` also requires that A is present, which the
absence of a posting cannot show, so the leaf is a key like any other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tamis.index.layout import AND, OR
from tamis.lab.forest import to_and_or

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from tamis.lab.forest import Tree


class Conjunction(NamedTuple):
    """The leaves that an event must satisfy, and those that it must not."""

    wanted: tuple[int, ...]  # leaves of ∈, ascending
    unwanted: tuple[int, ...]  # leaves of ∉, ascending


class Branch(NamedTuple):
    """AND or OR of expressions."""

    operator: int
    children: tuple[Expression, ...]


Expression: TypeAlias = Conjunction | Branch


def read_expression(tree: Tree, opposites: Mapping[int, int]) -> Expression:
    """The tree above conjunctions; sibling leaves under an AND form one conjunction.

    Raises `RanOutError` if XOR and AT_LEAST would need too many AND and OR nodes.
    """
    return read_branch(tree if is_plain(tree) else to_and_or(tree), opposites)


def is_plain(tree: Tree) -> bool:
    """Whether there are only AND and OR."""
    if isinstance(tree, int):
        return True
    return tree.operator in (AND, OR) and all(map(is_plain, tree.children))


def read_branch(tree: Tree, opposites: Mapping[int, int]) -> Expression:
    """A tree whose operators are kept unchanged."""
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
    # A leaf together with its opposite is never true; as a separate key it is never true either.
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
