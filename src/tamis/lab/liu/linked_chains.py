"""Insertion and deletion of chains in Sub-Order's order (§4.2.1)."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

import numpy as np

from tamis.errors import TamisError
from tamis.lab.liu.kernels.chains import cost_difference
from tamis.lab.liu.kernels.walks import SUB_ORDER
from tamis.lab.liu.sub_order import order_chains, rank_calls, sort_chains
from tamis.lab.liu.walk import Walk, make_walk
from tamis.operators.schedule.gates import Gates

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.operators.schedule.gates import Floats, Ints


class LinkedChains:
    """Chains from left to right; those that share a call are linked by it.

    A chain has a key, and keys ascend from left to right, so that chains are compared and found
    without counting positions.
    """

    def __init__(self, costs: Floats, selectivities: Floats) -> None:
        self.costs = np.asarray(costs, dtype=np.float64)
        self.selectivities = np.asarray(selectivities, dtype=np.float64)
        self.ranks = rank_calls(self.costs, self.selectivities)
        self._chains: dict[int, Ints] = {}  # calls by rank
        self._users: dict[int, set[int]] = {}  # chains of each call: the equivalence links
        self._keys: dict[int, float] = {}
        self._order: list[int] = []
        self._sorted_keys: list[float] = []

    @classmethod
    def of(cls, starts: Ints, calls: Ints, costs: Floats, selectivities: Floats) -> LinkedChains:
        """Chains 0, 1, … in the greedy order of all (§4.2.5)."""
        linked = cls(costs, selectivities)
        calls = sort_chains(starts, calls, linked.ranks)
        for chain in range(len(starts) - 1):
            linked._link(chain, calls[starts[chain] : starts[chain + 1]])
        statistics = (linked.ranks, linked.costs, linked.selectivities)
        linked._order = order_chains(starts, calls, *statistics).tolist()
        linked._relabel()
        return linked

    @property
    def order(self) -> list[int]:
        """The chains from left to right."""
        return list(self._order)

    def calls_of(self, chain: int) -> Ints:
        """The calls of a chain from top to bottom."""
        return self._chains[chain]

    def to_schedule(self) -> Walk:
        """Sub-Order over these chains; its subscription i is the i-th of `order`."""
        chains = [self._chains[chain] for chain in self._order]
        starts = np.concatenate(([0], np.cumsum([len(chain) for chain in chains], dtype=np.int64)))
        calls = np.concatenate([np.zeros(0, dtype=np.int32), *chains])
        gates = Gates.conjunctions(starts, calls, len(self.costs))
        return make_walk(SUB_ORDER, gates, starts, calls)

    def insert(self, chain: int, calls: Iterable[int]) -> None:
        """Insert a chain where it costs least; all others stay in place."""
        if chain in self._chains:
            raise TamisError(f"there is a chain {chain} already; delete it first")
        own = np.unique(np.fromiter(calls, dtype=np.int32))
        own = own[np.argsort(self.ranks[own])]
        near = sorted(
            {each for call in own.tolist() for each in self._users.get(call, ())},
            key=self._keys.__getitem__,
        )
        right = self._best_place(own, near)
        self._link(chain, own)
        self._place(chain, len(self._order) if right is None else self._find(right))

    def delete(self, chain: int) -> None:
        """Remove a chain and its links."""
        if chain not in self._chains:
            raise TamisError(f"there is no chain {chain}")
        at = self._find(chain)
        del self._order[at], self._sorted_keys[at], self._keys[chain]
        for call in self._chains.pop(chain).tolist():
            self._users[call].discard(chain)

    def _best_place(self, own: Ints, near: list[int]) -> int | None:
        """The linked chain to insert before, None for the end.

        Inserting before a chain costs its difference, after it nothing: the result has the least
        sum of differences over all chains to its right.
        """
        best, cost, least = None, 0.0, 0.0
        for other in reversed(near):
            cost += self.difference(own, self._chains[other])
            if cost < least:
                best, least = other, cost
        return best

    def difference(self, first: Ints, second: Ints) -> float:
        """Expected cost of first-then-second minus that of second-then-first."""
        return float(cost_difference(first, second, self.ranks, self.costs, self.selectivities))

    def _link(self, chain: int, calls: Ints) -> None:
        self._chains[chain] = calls
        for call in calls.tolist():
            self._users.setdefault(call, set()).add(chain)

    def _find(self, chain: int) -> int:
        return bisect_left(self._sorted_keys, self._keys[chain])

    def _place(self, chain: int, at: int) -> None:
        keys = self._sorted_keys
        left = keys[at - 1] if at > 0 else (keys[0] - 2.0 if keys else 0.0)
        right = keys[at] if at < len(keys) else left + 2.0
        key = (left + right) / 2
        self._order.insert(at, chain)
        if left < key < right:
            keys.insert(at, key)
            self._keys[chain] = key
        else:
            self._relabel()  # no number is left between the two

    def _relabel(self) -> None:
        self._sorted_keys = [float(at) for at in range(len(self._order))]
        self._keys = dict(zip(self._order, self._sorted_keys, strict=True))
