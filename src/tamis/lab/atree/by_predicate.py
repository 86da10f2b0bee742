"""Dewey ID and Interval ID as in this paper (§2, Figure 1): each predicate has an id.

Fontoura assigns ids to conjunctions, which an index finds; here each predicate is a conjunction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from tamis.index.layout import AND, OR
from tamis.lab.atree.encoding import plain
from tamis.lab.fontoura import Dewey, Interval
from tamis.lab.forest import Node

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.lab.forest import Tree


class DeweyByPredicate(Dewey):
    """Dewey ID without conjunctions."""

    name: ClassVar = "Dewey ID, by predicate"
    paper: ClassVar = "Ji and Jacobsen 2021, §2"

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Annotate each predicate."""
        super().build({ordinal: part_leaves(plain(tree)) for ordinal, tree in trees.items()})

    def insert(self, ordinal: int, tree: Tree) -> None:
        """Annotate each predicate."""
        super().insert(ordinal, part_leaves(plain(tree)))


class IntervalByPredicate(Interval):
    """Interval ID without conjunctions."""

    name: ClassVar = "Interval ID, by predicate"
    paper: ClassVar = "Ji and Jacobsen 2021, §2"

    def build(self, trees: Mapping[int, Tree]) -> None:
        """Annotate each predicate."""
        super().build({ordinal: part_leaves(plain(tree)) for ordinal, tree in trees.items()})

    def insert(self, ordinal: int, tree: Tree) -> None:
        """Annotate each predicate."""
        super().insert(ordinal, part_leaves(plain(tree)))


def part_leaves(tree: Tree) -> Tree:
    """The tree with each leaf below an AND wrapped in an OR, which is not a conjunction."""
    if isinstance(tree, int):
        return tree
    below = [part_leaves(child) for child in tree.children]
    if tree.operator == AND:
        below = [Node(OR, 0, (child,)) if isinstance(child, int) else child for child in below]
    return Node(tree.operator, tree.required, tuple(below))
