"""Overlapping conjunctions of expensive calls: the workload of Liu's Table 1 (§5.2).

Each call has a popularity weight, uniform in [0, 1] or by a Zipf law over ranks; a subscription
draws 3 to 5 (… 11) distinct calls by these weights. About events the paper says only that on
average 0.2% of the subscriptions match. Here results are independent, as in its analysis (§3), and
selectivities are drawn from [0, s] or are all s, with the s that gives the match ratio. Under a
Zipf law, calls are numbered by popularity, which favours a schedule that breaks ties by number.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final, TypeAlias

import numpy as np

from tamis.lab.workloads.draws import Floats, Ints, require, zipf_shares

SELECTIVITIES: Final = ("uniform", "equal")
_HALVINGS: Final = 60
Bools: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"


@dataclass(frozen=True, slots=True)
class OverlapParams:
    """The parameters of Table 1."""

    n_subscriptions: int = 80_000
    n_calls: int = 40_000
    zipf: float | None = None  # exponent of the popularity, None for weights uniform in [0, 1]
    n_calls_of_one: tuple[int, int] = (3, 5)  # calls of a subscription, minimum and maximum
    match_ratio: float = 0.002
    selectivity: str = "uniform"
    seed: int = 1

    def __post_init__(self) -> None:
        low, high = self.n_calls_of_one
        is_range = 1 <= low <= high <= self.n_calls
        require(is_range, f"n_calls_of_one is {low} to {high}; allowed: 1 to {self.n_calls}")
        is_share = 0 < self.match_ratio < 1
        require(is_share, f"match_ratio is {self.match_ratio}; allowed: between 0 and 1")
        is_known = self.selectivity in SELECTIVITIES
        allowed = ", ".join(SELECTIVITIES)
        require(is_known, f"selectivity is {self.selectivity!r}; allowed: {allowed}")


class Overlaps:
    """Conjunctions and results of calls; equal parameters give equal workloads."""

    def __init__(self, params: OverlapParams | None = None) -> None:
        self.params = params or OverlapParams()

    @cached_property
    def conjunctions(self) -> tuple[Ints, Ints]:
        """The starts, and the calls of each subscription."""
        params = self.params
        rng = np.random.default_rng((params.seed, 0))
        lengths = rng.integers(*params.n_calls_of_one, size=params.n_subscriptions, endpoint=True)
        rows = draw_distinct(rng, self._shares(), params.n_subscriptions, params.n_calls_of_one[1])
        is_own = np.arange(rows.shape[1]) < lengths[:, np.newaxis]
        return np.concatenate(([0], np.cumsum(lengths))), rows[is_own]

    def _shares(self) -> Floats:
        """The probability that each call is drawn."""
        n_calls, zipf = self.params.n_calls, self.params.zipf
        if zipf is not None:
            return zipf_shares(n_calls, zipf)
        weights = np.random.default_rng((self.params.seed, 1)).random(n_calls)
        shares: Floats = weights / weights.sum()
        return shares

    @cached_property
    def selectivities(self) -> Floats:
        """The probability that each call is true, chosen to give the match ratio."""
        starts, calls = self.conjunctions
        shape = np.ones(self.params.n_calls)
        if self.params.selectivity == "uniform":
            shape = np.random.default_rng((self.params.seed, 2)).random(self.params.n_calls)
        low, high = 0.0, 1.0 / float(shape.min())
        chances: Floats = shape
        for _ in range(_HALVINGS):
            scale = (low + high) / 2
            chances = np.minimum(1.0, scale * shape)
            is_high = (
                np.multiply.reduceat(chances[calls], starts[:-1]).mean() > self.params.match_ratio
            )
            low, high = (low, scale) if is_high else (scale, high)
        return chances

    def is_true(self, event: int) -> Bools:
        """The result of each call for one event."""
        rng = np.random.default_rng((self.params.seed, 3, event))
        found: Bools = rng.random(self.params.n_calls) < self.selectivities
        return found


def draw_distinct(rng: np.random.Generator, shares: Floats, n_rows: int, size: int) -> Ints:
    """In each row `size` distinct items, drawn without replacement by their shares.

    Duplicates in a row are drawn again: for few items out of very many.
    """
    limits = np.cumsum(shares)
    rows = np.full((n_rows, size), -1, dtype=np.int32)
    for place in range(size):
        (open_rows,) = np.nonzero(rows[:, place] < 0)
        while open_rows.size:
            drawn = np.searchsorted(limits, rng.random(open_rows.size), side="right")
            drawn = np.minimum(drawn, len(shares) - 1)
            is_new = (rows[open_rows, :place] != drawn[:, np.newaxis]).all(axis=1)
            rows[open_rows[is_new], place] = drawn[is_new]
            open_rows = open_rows[~is_new]
    return rows


def packing_bound(starts: Ints, calls: Ints, n_calls: int, n_rounds: int = 300) -> float:
    """A lower bound on the number of calls of any schedule for the event.

    Every subscription needs at least one of its calls. If weights of subscriptions sum to at most 1
    at each call (a fractional packing), their total is at most the number of calls made. Each round
    makes the weights feasible, keeps the best total, and moves weight away from crowded calls.
    """
    if len(starts) < 2:
        return 0.0
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    shares = np.ones(len(starts) - 1)
    best = 0.0
    for _ in range(n_rounds):
        loads = np.bincount(calls, weights=shares[owners], minlength=n_calls)
        shares = shares / np.maximum.reduceat(loads[calls], starts[:-1])
        best = max(best, float(shares.sum()))
        crowding = np.add.reduceat((loads**8)[calls], starts[:-1])
        shares = shares * np.exp(-0.1 * crowding / crowding.mean())
    return best
