"""The vectorised scan: all predicates, then all nodes level by level, with array operations.

Two of them. `PlainScan` is the scan as one would write it down: every predicate and every node of
every expression, one event at a time, three-valued by two Boolean arrays, operands combined by
`reduceat`. `NumpyScan` is the same idea as far as NumPy goes: one byte of truth per node, groups of
nodes with equally many children instead of `reduceat`, equal parts shared, many events at once.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.baselines.leaf_scan import FALSE, TRUE, UNDEFINED, LeafScan
from benchmarks.baselines.trees import Group, Sharing, take_apart
from tamis.language.ast import And, AtLeast, Condition, Not, Or, Xnor, Xor

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CHUNK_BYTES = 1 << 19  # of one child's truths at a time, so that they stay in the cache


class NumpyScan:
    """The scan over typed conditions, as fast as NumPy does it."""

    def __init__(
        self, conditions: Iterable[Condition], sharing: Sharing = Sharing.PREDICATES
    ) -> None:
        trees = take_apart(conditions, sharing)
        self._leaves = LeafScan(trees.leaves, trees.uses)
        self.n_predicates, self.n_nodes = len(trees.uses), trees.n_nodes
        places = np.arange(self.n_nodes)
        places[: self.n_predicates] = self._leaves.places
        self._groups = [group._replace(children=places[group.children]) for group in trees.groups]
        self._roots = places[trees.roots]

    def match(self, event: Mapping[str, Any]) -> np.ndarray:
        """The positions of the conditions that are TRUE."""
        truths = np.empty(self.n_nodes, dtype=np.int8)
        self._leaves.evaluate_one(event, truths)
        self._evaluate_nodes(truths)
        return np.flatnonzero(truths[self._roots] == TRUE)

    def match_batch(self, events: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
        """The same for many events at once: a row of truths per node."""
        truths = np.empty((self.n_nodes, len(events)), dtype=np.int8)
        self._leaves.evaluate_many(events, truths)
        self._evaluate_nodes(truths)
        is_true = truths[self._roots] == TRUE
        return [np.flatnonzero(is_true[:, column]) for column in range(len(events))]

    def _evaluate_nodes(self, truths: np.ndarray) -> None:
        """From the leaves up; `truths` has a row or a single value per node."""
        step = max(1, CHUNK_BYTES // max(1, truths[:1].nbytes))
        for group in self._groups:
            n_nodes = group.children.shape[1]
            for start in range(0, n_nodes, step):
                below = [truths[child[start : start + step]] for child in group.children]
                end = group.first + min(start + step, n_nodes)
                truths[group.first + start : end] = _combine(group.kind, group.required, below)


def _combine(kind: type, required: int, below: list[np.ndarray]) -> np.ndarray:
    if kind is And:
        return reduce(np.minimum, below)
    if kind is Or:
        return reduce(np.maximum, below)
    if kind is Not:
        return TRUE - below[0]
    if kind is AtLeast:
        n_true = sum((truth == TRUE).astype(np.int16) for truth in below)
        n_possible = sum((truth != FALSE).astype(np.int16) for truth in below)
        return (n_true >= required).astype(np.int8) + (n_possible >= required)
    is_odd = reduce(np.bitwise_xor, below) & TRUE  # the bit that only TRUE has
    is_undefined = reduce(np.bitwise_or, below) & UNDEFINED
    if kind is Xnor:
        is_odd = TRUE - is_odd
    return np.where(is_undefined, UNDEFINED, is_odd)


class PlainScan:
    """The scan over typed conditions without any cleverness."""

    def __init__(self, conditions: Iterable[Condition]) -> None:
        trees = take_apart(conditions, Sharing.NOTHING)
        self._leaves = LeafScan(trees.leaves, trees.uses)
        self.n_predicates, self.n_nodes = len(trees.uses), trees.n_nodes
        places = np.arange(self.n_nodes)
        places[: self.n_predicates] = self._leaves.places
        self._roots = places[trees.roots]
        # Operands of a node side by side, and where each node's begin, as `reduceat` wants them.
        self._groups = [
            (group, places[group.children].T.ravel(), _starts(group)) for group in trees.groups
        ]

    def match(self, event: Mapping[str, Any]) -> np.ndarray:
        """The positions of the conditions that are TRUE."""
        truths = np.empty(self.n_predicates, dtype=np.int8)
        self._leaves.evaluate_one(event, truths)
        is_true = np.empty(self.n_nodes, dtype=bool)
        is_false = np.empty(self.n_nodes, dtype=bool)
        is_true[: self.n_predicates] = truths == TRUE
        is_false[: self.n_predicates] = truths == FALSE
        for group, operands, starts in self._groups:
            here = slice(group.first, group.first + len(starts))
            below = is_true[operands], is_false[operands]
            is_true[here], is_false[here] = _combine_plain(group, *below, starts)
        return np.flatnonzero(is_true[self._roots])

    def match_batch(self, events: Sequence[Mapping[str, Any]]) -> list[np.ndarray]:
        """The same for many events, one by one."""
        return [self.match(event) for event in events]


def _starts(group: Group) -> np.ndarray:
    n_children, n_nodes = group.children.shape
    return np.arange(n_nodes) * n_children


def _combine_plain(
    group: Group, true: np.ndarray, false: np.ndarray, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which nodes are true and which are false, of their operands side by side."""
    all_of, any_of = np.logical_and.reduceat, np.logical_or.reduceat
    if group.kind is And:
        return all_of(true, starts), any_of(false, starts)
    if group.kind is Or:
        return any_of(true, starts), all_of(false, starts)
    if group.kind is Not:
        return false, true
    if group.kind is AtLeast:
        n_true, n_false = (np.add.reduceat(x.astype(np.int32), starts) for x in (true, false))
        return n_true >= group.required, n_false > len(group.children) - group.required
    is_defined = all_of(true | false, starts)
    is_odd = np.logical_xor.reduceat(true, starts)
    odd, even = is_defined & is_odd, is_defined & ~is_odd
    return (odd, even) if group.kind is Xor else (even, odd)
