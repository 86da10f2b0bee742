"""Expressions as BoP encodes them (§2, Figure 2): root first, pairs of a kind and a count or leaf
number.

Conj 3  Disj 3  Leaf 1  Leaf 2  Leaf 3  Leaf 4  Disj 2  Leaf 5  Leaf 6

A whole workload is one array of such pairs, so that kernels can read it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tamis.index.layout import AND, AT_LEAST, OR, XOR
from tamis.lab.forest import Node, to_and_or

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy.typing as npt

    from tamis.kernels.arrays import Int64, UInt8
    from tamis.lab.forest import Tree

LEAF: Final = 4  # in addition to the operators of `tamis.index.layout`


class Encoding(NamedTuple):
    """Expressions one after the other."""

    starts: Int64  # [n_expressions + 1]
    kinds: UInt8  # an operator or LEAF
    values: npt.NDArray[np.int32]  # number of children, or number of the leaf
    required: npt.NDArray[np.int32]  # of AT_LEAST and XOR


def encode(trees: Iterable[Tree]) -> Encoding:
    """The trees in the form of Figure 2."""
    kinds: list[int] = []
    values: list[int] = []
    required: list[int] = []
    starts = [0]

    def write(tree: Tree) -> None:
        if isinstance(tree, int):
            kinds.append(LEAF)
            values.append(tree)
            required.append(0)
            return
        kinds.append(tree.operator)
        values.append(len(tree.children))
        required.append(tree.required)
        for child in tree.children:
            write(child)

    for tree in trees:
        write(tree)
        starts.append(len(kinds))
    return Encoding(
        np.array(starts, dtype=np.int64),
        np.array(kinds, dtype=np.uint8),
        np.array(values, dtype=np.int32),
        np.array(required, dtype=np.int32),
    )


def plain(tree: Tree) -> Tree:
    """The tree written with AND and OR only."""
    return tree if is_plain(tree) else to_and_or(tree)


def is_plain(tree: Tree) -> bool:
    """Whether the tree has only AND and OR."""
    if isinstance(tree, int):
        return True
    return tree.operator not in (AT_LEAST, XOR) and all(map(is_plain, tree.children))


def to_binary(tree: Tree) -> Tree:
    """The same tree with two children under each AND and OR; equal prefixes stay equal parts."""
    if isinstance(tree, int):
        return tree
    children = [to_binary(child) for child in tree.children]
    if tree.operator not in (AND, OR):
        return Node(tree.operator, tree.required, tuple(children))
    return _join(tree.operator, children)


def _join(operator: int, children: Sequence[Tree]) -> Tree:
    joined = children[0]
    for child in children[1:]:
        joined = Node(operator, 0, (joined, child))
    return joined
