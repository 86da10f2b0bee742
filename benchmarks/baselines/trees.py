"""Conditions taken apart into leaves and into groups of nodes that are evaluated together."""

from __future__ import annotations

from array import array
from collections import defaultdict
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.baselines.leaves import Leaf, read_leaf
from tamis.language.ast import AtLeast, Condition, children

if TYPE_CHECKING:
    from collections.abc import Iterable


class Sharing(StrEnum):
    """What of equal parts is evaluated only once."""

    NOTHING = "nothing"  # each expression by itself, as a scan does
    PREDICATES = "predicates"
    NODES = "nodes"  # predicates, subexpressions and expressions: the A-Tree's idea


class Group(NamedTuple):
    """Nodes that are evaluated together; their numbers follow each other."""

    kind: type
    required: int  # at_least only
    first: int
    children: np.ndarray  # intp[n_children, n_nodes]


class Trees(NamedTuple):
    """Many conditions; leaves are numbered first, then the nodes group by group."""

    leaves: list[Leaf]  # distinct
    uses: np.ndarray  # intp[n_uses], the distinct leaf that each numbered one is
    groups: list[Group]  # children before parents
    roots: np.ndarray  # intp[n_conditions], the number of each condition's node

    @property
    def n_nodes(self) -> int:
        """Leaves included."""
        return len(self.uses) + sum(group.children.shape[1] for group in self.groups)


def take_apart(conditions: Iterable[Condition], sharing: Sharing) -> Trees:
    """All conditions, which are read one by one and not kept."""
    taker = _Taker(sharing)
    roots = np.array([taker.add(condition) for condition in conditions], dtype=np.intp)
    uses = np.array(taker.uses, dtype=np.intp)
    groups, numbers = taker.group()
    return Trees(list(taker.leaves), uses, groups, numbers[_slots(roots, len(uses))])


def _slots(ids: np.ndarray, n_leaves: int) -> np.ndarray:
    """Leaves, written as ~i, before inner nodes."""
    return np.where(ids < 0, ~ids, ids + n_leaves)


class _Taker:
    """Takes conditions apart; leaf i is written as ~i where there are inner nodes too."""

    def __init__(self, sharing: Sharing) -> None:
        self.sharing = sharing
        self.leaves: dict[Leaf, int] = {}
        self.uses = array("q")
        self._leaf_ids: dict[Condition, int] = {}
        self._node_ids: dict[tuple[Any, ...], int] = {}
        self._heights = array("i")
        # By height, kind, k and number of children: the nodes and, flat, their children.
        self._nodes: dict[tuple[int, type, int, int], array[int]] = defaultdict(lambda: array("q"))
        self._below: dict[tuple[int, type, int, int], array[int]] = defaultdict(lambda: array("q"))

    def add(self, condition: Condition) -> int:
        """The id of the condition's node."""
        below = children(condition)
        if not below:
            return ~self._add_leaf(condition)
        ids = tuple([self.add(child) for child in below])
        k = condition.k if isinstance(condition, AtLeast) else 0
        if self.sharing is not Sharing.NODES:
            return self._add_node(type(condition), k, ids)
        key = (type(condition), k, *sorted(ids))
        known = self._node_ids.get(key)
        if known is None:
            known = self._node_ids[key] = self._add_node(type(condition), k, ids)
        return known

    def _add_leaf(self, condition: Condition) -> int:
        known = self._leaf_ids.get(condition)
        if known is None:
            n_before = len(self.leaves)
            leaf = self.leaves.setdefault(read_leaf(condition), n_before)
            known = self._leaf_ids[condition] = leaf
            # Two spellings of one leaf may come one after the other.
            if self.sharing is not Sharing.NOTHING and len(self.leaves) > n_before:
                self.uses.append(leaf)
        if self.sharing is Sharing.NOTHING:
            self.uses.append(known)
            return len(self.uses) - 1
        return known

    def _add_node(self, kind: type, k: int, ids: tuple[int, ...]) -> int:
        height = 1 + max([self._heights[child] if child >= 0 else 0 for child in ids])
        key = (height, kind, k, len(ids))
        self._heights.append(height)
        node = len(self._heights) - 1
        self._nodes[key].append(node)
        self._below[key].extend(ids)
        return node

    def group(self) -> tuple[list[Group], np.ndarray]:
        """The groups from the leaves up, and the number of each leaf and node."""
        n_leaves = len(self.uses)
        numbers = np.arange(n_leaves + len(self._heights))
        groups = []
        first = n_leaves
        for key in sorted(self._nodes, key=lambda key: (key[0], key[1].__name__, *key[2:])):
            _, kind, k, n_children = key
            nodes = np.array(self._nodes[key], dtype=np.intp)
            below = np.array(self._below[key], dtype=np.intp).reshape(-1, n_children).T
            numbers[n_leaves + nodes] = first + np.arange(len(nodes))
            members = numbers[_slots(below, n_leaves)]
            groups.append(Group(kind, k, first, np.ascontiguousarray(members)))
            first += len(nodes)
        return groups, numbers
