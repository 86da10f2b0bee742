"""The random draws of ABE-Gen: its parameters, and a workload as arrays, before it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from tamis.lab.workloads.draws import Ints, draw_sets, draw_zipf, require, require_small

DRAWN_AND, DRAWN_OR, DRAWN_NOT, DRAWN_XOR, DRAWN_XNOR = range(5)

PREDICATE_SHARES: Final = {
    "=": 0.18,
    "<>": 0.02,
    "<": 0.05,
    "<=": 0.05,
    ">": 0.045,
    ">=": 0.045,
    "IN": 0.33,
    "NOT IN": 0.015,
    "BETWEEN": 0.265,
}
SET_SIZES: Final = (2, 4)  # members of IN and NOT IN, minimum and maximum
UNUSED: Final = -1


@dataclass(frozen=True, slots=True)
class AbeParams:
    """The parameters of Table 3 with its defaults, then additional ones."""

    n_expressions: int = 1_000_000
    operator_shares: tuple[float, float, float, float, float] = (0.4, 0.4, 0.1, 0.05, 0.05)
    depth: int = 3
    n_children: int = 4  # of AND and OR
    alpha: float = 0.6  # of sharing
    n_dimensions: int = 1000
    cardinality: int = 100
    event_size: int = 20  # attributes of an event
    dimension_alpha: float = 0.6  # of attributes in predicates and events; 0 is uniform
    n_xor_children: int = 2  # of XOR and XNOR
    seed: int = 1

    def __post_init__(self) -> None:
        for name, least in (("n_expressions", 0), ("depth", 1), ("n_children", 2)):
            _require_at_least(self, name, least)
        for name, least in (("n_dimensions", 1), ("cardinality", 1), ("n_xor_children", 2)):
            _require_at_least(self, name, least)
        for name in ("alpha", "dimension_alpha"):
            _require_at_least(self, name, 0)
        size = self.event_size
        is_possible = 0 <= size <= self.n_dimensions
        require(is_possible, f"event_size is {size}; allowed: 0 to n_dimensions")
        shares = self.operator_shares
        is_split = len(shares) == 5 and min(shares) >= 0 and abs(sum(shares) - 1) < 1e-9
        require(is_split, f"operator_shares are {shares}; allowed: five that add up to 1")
        n_operands = (self.n_children, self.n_children, 1, *2 * (self.n_xor_children,))
        mean = sum(share * n for share, n in zip(shares, n_operands, strict=True))
        require_small(mean, self.depth - 1)


def _require_at_least(params: AbeParams, name: str, least: float) -> None:
    value = getattr(params, name)
    require(value >= least, f"{name} is {value}; at least {least}")


class Level(NamedTuple):
    """The nodes of one level above the predicates; children are members of the pool below."""

    operators: Ints  # uint8[n_nodes]
    child_starts: Ints  # int64[n_nodes + 1]
    children: Ints  # int32[:]


class Predicates(NamedTuple):
    """The pool of predicates; the meaning of `numbers` depends on the operator."""

    dimensions: Ints  # int32[n_predicates]
    operators: Ints  # uint8[n_predicates], indices into PREDICATE_SHARES
    numbers: Ints  # int64[n_predicates, SET_SIZES[1]]: a constant, two bounds, or a set's members
    n_members: Ints  # uint8[n_predicates], for sets


class Forest(NamedTuple):
    """A workload before it is written: the levels from 2 up, the last one with whole expressions.

    Without levels (depth 1) the expressions are `roots`, members of the pool of predicates.
    """

    predicates: Predicates
    levels: tuple[Level, ...]
    roots: Ints  # int32[n_expressions]


def draw_forest(params: AbeParams, n_expressions: int) -> Forest:
    """A workload: from the expressions down, each level draws from the pool below it."""
    rng = np.random.default_rng((params.seed, 0))
    if params.depth == 1:
        roots, n_pool = _fill(rng, n_expressions, params.alpha)
        return Forest(_draw_predicates(rng, params, n_pool), (), roots)
    levels: list[Level] = []
    n_nodes = n_expressions
    for _ in range(params.depth - 1):
        level, n_nodes = _draw_level(rng, params, n_nodes)
        levels.append(level)
    roots = np.arange(n_expressions, dtype=np.int32)
    return Forest(_draw_predicates(rng, params, n_nodes), tuple(reversed(levels)), roots)


def _draw_level(rng: np.random.Generator, params: AbeParams, n_nodes: int) -> tuple[Level, int]:
    """The nodes of a level, and the size of the pool below them."""
    operators = rng.choice(5, size=n_nodes, p=params.operator_shares).astype(np.uint8)
    n_operands = np.full(5, params.n_children)
    n_operands[DRAWN_NOT] = 1
    n_operands[[DRAWN_XOR, DRAWN_XNOR]] = params.n_xor_children
    child_starts = np.zeros(n_nodes + 1, dtype=np.int64)
    np.cumsum(n_operands[operators], out=child_starts[1:])
    children, n_pool = _fill(rng, int(child_starts[-1]), params.alpha)
    return Level(operators, child_starts, children), n_pool


def _fill(rng: np.random.Generator, n_places: int, alpha: float) -> tuple[Ints, int]:
    """A member of the pool for each position, and the pool's size."""
    n_pool = max(1, round(n_places * 10**-alpha))
    if alpha == 0:
        return np.arange(n_places, dtype=np.int32), n_pool
    return draw_zipf(rng, n_pool, n_places, alpha), n_pool


def _draw_predicates(rng: np.random.Generator, params: AbeParams, n: int) -> Predicates:
    """A pool of predicates.

    Duplicates are drawn again once, and then kept: for the most frequent dimensions, a large pool
    contains nearly every possible comparison.
    """
    predicates = _draw_any_predicates(rng, params, n)
    _, firsts = np.unique(_keys(predicates), return_index=True)
    is_repeated = np.ones(n, dtype=bool)
    is_repeated[firsts] = False
    others = _draw_any_predicates(rng, params, int(is_repeated.sum()))
    for drawn, redrawn in zip(predicates, others, strict=True):
        drawn[is_repeated] = redrawn
    return predicates


def _keys(predicates: Predicates) -> Ints:
    """A number for each predicate: equal for equal predicates, nearly always different for
    others.
    """
    parts = (predicates.dimensions, predicates.operators, *predicates.numbers.T)
    keys = np.zeros(len(predicates.dimensions), dtype=np.uint64)
    for part in parts:
        keys = keys * np.uint64(0x9E3779B97F4A7C15) + part.astype(np.uint64)
        keys ^= keys >> np.uint64(29)
    return keys


def _draw_any_predicates(rng: np.random.Generator, params: AbeParams, n: int) -> Predicates:
    cardinality = params.cardinality
    shares = list(PREDICATE_SHARES.values())
    dimensions = draw_zipf(rng, params.n_dimensions, n, params.dimension_alpha)
    operators = rng.choice(len(shares), size=n, p=shares).astype(np.uint8)
    fewest, most = (min(size, cardinality) for size in SET_SIZES)
    n_members = rng.integers(fewest, most, size=n, endpoint=True).astype(np.uint8)
    numbers = np.full((n, SET_SIZES[1]), UNUSED)
    for place, kind in enumerate(PREDICATE_SHARES):
        (here,) = np.nonzero(operators == place)
        if kind == "BETWEEN":
            bounds = rng.integers(0, cardinality, size=(len(here), 2))
            numbers[here, :2] = np.sort(bounds, axis=1)
        elif kind in ("IN", "NOT IN"):
            for size in range(fewest, most + 1):
                rows = here[n_members[here] == size]
                numbers[rows, :size] = draw_sets(rng, len(rows), size, cardinality)
        else:
            # d < 0 would never be true, d >= 0 always.
            least = int(kind in ("<", ">="))
            most_allowed = cardinality - 1 - int(kind in ("<=", ">"))
            numbers[here, 0] = rng.integers(least, max(least, most_allowed) + 1, size=len(here))
    return Predicates(dimensions, operators, numbers, n_members)
