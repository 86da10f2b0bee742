"""Subscriptions as gates over calls: built once, shared by all events."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tamis.errors import TamisError
from tamis.operators.schedule.kernels.arena import pack
from tamis.operators.schedule.kernels.gates import (
    CHILDREN,
    CHILDREN_END,
    PARENTS,
    PARENTS_END,
    RECORD,
    ROOTED,
    ROOTED_END,
    THRESHOLD,
    WEIGHT,
    GateArrays,
    pack_residue,
)
from tamis.operators.schedule.kernels.reach import collect_calls, count_above

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.integer[Any]]]"
Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.floating[Any]]]"

_MAX_POPULARITY = 2**29


@dataclass(frozen=True, eq=False)
class Gates:
    """Gates over the results of calls, and the node of each subscription.

    Node 2c means that call c is true, node 2c + 1 that it is false, node 2 · n_calls + g is gate g.
    Gate g is true if `thresholds[g]` of its children are; children come before it. A joined gate
    becomes true only when the caller settles it, after its children.
    """

    n_calls: int
    thresholds: Ints  # [n_gates]
    child_starts: Ints  # [n_gates + 1]
    children: Ints  # nodes
    roots: Ints  # [n_subscriptions], nodes
    is_joined: Ints  # [n_gates], 0 or 1

    @classmethod
    def of(  # noqa: PLR0913 - one argument for each array
        cls,
        n_calls: int,
        thresholds: ArrayLike,
        child_starts: ArrayLike,
        children: ArrayLike,
        roots: ArrayLike,
        is_joined: ArrayLike | None = None,
    ) -> Gates:
        """Gates from their arrays, which are checked."""
        thresholds = np.asarray(thresholds, dtype=np.int32)
        joined = np.zeros(len(thresholds)) if is_joined is None else is_joined
        gates = cls(
            int(n_calls),
            thresholds,
            np.asarray(child_starts, dtype=np.int64),
            np.asarray(children, dtype=np.int32),
            np.asarray(roots, dtype=np.int32),
            np.asarray(joined, dtype=np.int32),
        )
        gates._refuse_nonsense()
        return gates

    @classmethod
    def conjunctions(cls, call_starts: ArrayLike, calls: ArrayLike, n_calls: int) -> Gates:
        """Subscription s requires all of calls[call_starts[s]:call_starts[s + 1]]."""
        starts = np.asarray(call_starts, dtype=np.int64)
        roots = 2 * n_calls + np.arange(len(starts) - 1)
        return cls.of(n_calls, np.diff(starts), starts, 2 * np.asarray(calls), roots)

    @property
    def n_gates(self) -> int:
        return len(self.thresholds)

    @property
    def n_nodes(self) -> int:
        return 2 * self.n_calls + self.n_gates

    @property
    def n_subscriptions(self) -> int:
        return len(self.roots)

    def _refuse_nonsense(self) -> None:
        """Raise an error for invalid arrays, naming the first invalid gate."""
        starts = self.child_starts
        widths = np.diff(starts)
        if len(starts) != self.n_gates + 1 or starts[0] != 0 or starts[-1] != len(self.children):
            raise TamisError("child_starts must go from 0 to the number of children")
        if (wrong := np.flatnonzero((self.thresholds < 1) | (self.thresholds > widths))).size:
            gate = int(wrong[0])
            raise TamisError(
                f"gate {gate} requires {self.thresholds[gate]} of {widths[gate]} children; "
                "allowed: 1 to all of them"
            )
        limits = np.repeat(np.arange(self.n_gates), widths) + 2 * self.n_calls
        if (wrong := np.flatnonzero((self.children < 0) | (self.children >= limits))).size:
            node = int(self.children[wrong[0]])
            raise TamisError(f"a gate has the child {node}; allowed: the nodes before it")
        if (wrong := np.flatnonzero((self.roots < 0) | (self.roots >= self.n_nodes))).size:
            raise TamisError(
                f"the node of subscription {wrong[0]} is {self.roots[wrong[0]]}, which does not "
                "exist"
            )

    @cached_property
    def n_above(self) -> Floats:
        """The number of subscriptions above each gate, counted once per path."""
        above: Floats = count_above(self.n_calls, self.child_starts, self.children, self.roots)
        return above

    def scale_weights(self, weights: Floats) -> Ints:
        """Weights of gates as integers from 1: a popularity of 0 means that no subscription needs a
        call.

        The median becomes at most 64, the others at most 256 times that, and all popularities fit
        an int32.
        """
        if not self.n_gates:
            return np.zeros(0, dtype=np.int32)
        middle = float(np.median(weights)) or 1.0
        weights = np.minimum(weights, 256 * middle)
        unit = max(middle / 64, float(weights @ np.diff(self.child_starts)) / _MAX_POPULARITY)
        scaled: Ints = np.maximum(1, np.round(weights / unit)).astype(np.int32)
        return scaled

    def pack_with(self, weights: Ints) -> Ints:
        """The arrays of the kernels; the popularity of a call is the weight of the gates above
        it.
        """
        owners = np.repeat(np.arange(self.n_gates), np.diff(self.child_starts))
        parent_starts, parents = invert(self.children, owners, self.n_nodes)
        rooted_starts, rooted = invert(self.roots, np.arange(self.n_subscriptions), self.n_nodes)
        records = np.zeros((self.n_nodes, RECORD), dtype=np.int32)
        gates = slice(2 * self.n_calls, None)
        records[gates, THRESHOLD], records[gates, WEIGHT] = self.thresholds, weights
        records[gates, CHILDREN] = self.child_starts[:-1]
        records[gates, CHILDREN_END] = self.child_starts[1:]
        records[:, PARENTS], records[:, PARENTS_END] = parent_starts[:-1], parent_starts[1:]
        records[:, ROOTED], records[:, ROOTED_END] = rooted_starts[:-1], rooted_starts[1:]
        flat = records.ravel()
        return pack(GateArrays(flat, self.children, parents, rooted, self.roots, self.is_joined))

    def new_residue(self) -> Ints:
        """The initial state of an event."""
        return pack_residue(self.n_calls, self.n_gates, self.n_subscriptions)

    @cached_property
    def call_lists(self) -> tuple[Ints, Ints]:
        """The distinct calls on which each subscription depends, in order: starts, calls."""
        starts, calls = collect_calls(self.n_calls, self.child_starts, self.children, self.roots)
        return starts, calls


def invert(keys: Ints, values: Ints, n_keys: int) -> tuple[Ints, Ints]:
    """The values of each key, in order: starts and values."""
    order = np.argsort(keys, kind="stable")
    starts = np.concatenate(([0], np.cumsum(np.bincount(keys, minlength=n_keys))))
    return starts, values[order]
