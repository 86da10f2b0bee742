"""The shared DAG for inspection: levels, uses, parents, and the subscriptions of each node.

Matching needs none of this. Data that is not stored is derived once, by array operations.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.index.layout import AND, AT_LEAST, OR, XOR

if TYPE_CHECKING:
    from tamis.index.contents import Contents
    from tamis.kernels.arrays import Int32, Int64

OPERATOR_NAMES: Final = {AND: "AND", OR: "OR", AT_LEAST: "at_least", XOR: "XOR"}


class Graph:
    """Nodes of an index, leaves first; children come before their parents."""

    def __init__(self, contents: Contents) -> None:
        self.contents = contents
        self.n_leaves = contents.n_leaves
        self.n_inner = len(contents.nodes.operators)
        self.n_nodes = self.n_leaves + self.n_inner

    def is_leaf(self, node: int) -> bool:
        """Whether the node is a test of attributes."""
        return node < self.n_leaves

    def operator(self, node: int) -> str:
        """The operator of an inner node, such as `at_least(2)`."""
        nodes, inner = self.contents.nodes, node - self.n_leaves
        operator = int(nodes.operators[inner])
        if operator == AT_LEAST:
            return f"at_least({nodes.required[inner]})"
        if operator == XOR and not nodes.required[inner]:
            return "XNOR"
        return OPERATOR_NAMES[operator]

    def children(self, node: int) -> list[int]:
        """The children of a node; none for a leaf.

        Those of XOR are pairs: a node for the operand being true, and one for it being false.
        """
        if self.is_leaf(node):
            return []
        starts = self.contents.nodes.child_starts
        inner = node - self.n_leaves
        return list(self.contents.nodes.children[starts[inner] : starts[inner + 1]].tolist())

    def parents(self, node: int) -> list[int]:
        """The distinct inner nodes that have the node as a child."""
        starts, parents = self._parents
        return list(np.unique(parents[starts[node] : starts[node + 1]]).tolist())

    def subscriptions_at(self, node: int) -> list[int]:
        """The subscriptions whose whole expression is the node."""
        roots = self.contents.roots
        root = int(np.searchsorted(roots.nodes, node))
        if root == len(roots.nodes) or roots.nodes[root] != node:
            return []
        begin, end = roots.subscription_starts[root], roots.subscription_starts[root + 1]
        return list(roots.subscriptions[begin:end].tolist())

    def root_of(self, ordinal: int) -> int | None:
        """The node of a subscription; None if it is always or never true."""
        roots = self.contents.roots
        places = np.flatnonzero(roots.subscriptions == ordinal)
        if not len(places):
            return None
        root = np.searchsorted(roots.subscription_starts, places[0], side="right") - 1
        return int(roots.nodes[root])

    # ── of all nodes at once ───────────────────────────────────────────────────────────────

    @cached_property
    def n_children(self) -> Int64:
        """[n_nodes], the number of children of each node."""
        own = np.diff(self.contents.nodes.child_starts)
        return np.concatenate((np.zeros(self.n_leaves, dtype=np.int64), own))

    @cached_property
    def n_parents(self) -> Int64:
        """[n_nodes], the number of links to each node from inner nodes."""
        found = np.bincount(self.contents.nodes.children, minlength=self.n_nodes)
        return found.astype(np.int64)

    @cached_property
    def n_subscriptions(self) -> Int64:
        """[n_nodes], the number of subscriptions at each node."""
        found = np.zeros(self.n_nodes, dtype=np.int64)
        found[self.contents.roots.nodes] = np.diff(self.contents.roots.subscription_starts)
        return found

    @cached_property
    def levels(self) -> Int32:
        """[n_nodes], 0 for leaves, else one more than the highest child (A-Tree §4.1)."""
        levels = np.zeros(self.n_nodes, dtype=np.int32)
        if not self.n_inner:
            return levels
        nodes = self.contents.nodes
        while True:  # as many passes as the DAG has levels
            highest = np.maximum.reduceat(levels[nodes.children], nodes.child_starts[:-1])
            if np.array_equal(levels[self.n_leaves :], highest + 1):
                return levels
            levels[self.n_leaves :] = highest + 1

    @cached_property
    def uses(self) -> Int64:
        """[n_nodes], how often each node would occur if nothing were shared."""
        uses = self.n_subscriptions.copy()
        nodes = self.contents.nodes
        link_parents = np.repeat(np.arange(self.n_inner), np.diff(nodes.child_starts))
        link_levels = self.levels[self.n_leaves + link_parents]
        order = np.argsort(-link_levels, kind="stable")
        ends = np.flatnonzero(np.diff(link_levels[order], append=-1)) + 1
        begin = 0
        for end in ends.tolist():  # from the highest level down, so that parents are complete
            links = order[begin:end]
            np.add.at(uses, nodes.children[links], uses[self.n_leaves + link_parents[links]])
            begin = end
        return uses

    @cached_property
    def _parents(self) -> tuple[Int64, Int32]:
        nodes = self.contents.nodes
        owners = np.repeat(
            np.arange(self.n_leaves, self.n_nodes, dtype=np.int32), np.diff(nodes.child_starts)
        )
        starts = np.zeros(self.n_nodes + 1, dtype=np.int64)
        np.cumsum(self.n_parents, out=starts[1:])
        return starts, owners[np.argsort(nodes.children, kind="stable")]
