"""Advertisements with the shape of the A-Tree paper's Ads dataset (§6.2).

The published properties are reproduced: 122 dimensions, expressions of 1 to 9 levels, events of
about 20 attributes, and how often a subexpression of each level is used, from 68.76 times
(predicates) to 2.88 times (level 9), by a Zipf law. Predicates per expression are 1 to 55 (1 to 56
there).

The rest is our choice. Level 2 is an AND of predicates, a campaign's target; level 3 an OR of such
targets and predicates, and so on alternately, so that simplification of expressions preserves the
levels. Each node has one child of the level below, predicates, and in an OR sometimes another
target. A tenth of the children below an AND are negated. Dimensions are drawn by a Zipf law, a
third are numbers and the rest words; they have from 2 to 2,000 values, some of which are far more
frequent than others, both in predicates and in events.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tamis.lab.workloads.abe_write import LevelSharing
from tamis.lab.workloads.draws import (
    Floats,
    Ints,
    draw_subsets,
    draw_zipf,
    require,
    sparse_table,
    zipf_shares,
)

if TYPE_CHECKING:
    import pyarrow as pa

TARGETS: Final = 2  # the level of ANDs of predicates
OWN_PREDICATES: Final = {"target": (2, 5), "and": (1, 6), "or": (0, 3)}  # minimum and maximum
NEGATED: Final = 0.1  # of the children below an AND
CARDINALITIES: Final = (2, 2000)
KINDS: Final = {"=": 0.35, "IN": 0.35, "<>": 0.05, "NOT IN": 0.05, "<=": 0.1, ">=": 0.1}
SET_SIZES: Final = (2, 8)
_REDRAWS: Final = 3  # of predicates on a dimension that the node already has


@dataclass(frozen=True, slots=True)
class AdsLikeParams:
    """The figures of §6.2, then additional parameters."""

    n_expressions: int = 100_000
    n_dimensions: int = 122
    event_size: int = 20  # attributes of an event, on average
    # Uses of a subexpression, by level; the paper gives the first and the last.
    sharing: tuple[float, ...] = (68.76, 46.2, 31.1, 20.9, 14.1, 9.46, 6.36, 4.28, 2.88)
    depth_shares: tuple[float, ...] = (0.05, 0.2, 0.25, 0.2, 0.12, 0.08, 0.05, 0.03, 0.02)
    alpha: float = 0.8  # of sharing
    dimension_alpha: float = 0.6  # of dimensions, in predicates and in events
    value_alpha: float = 0.8  # of a dimension's values
    seed: int = 1

    def __post_init__(self) -> None:
        for name in ("n_dimensions", "event_size"):
            require(getattr(self, name) >= 1, f"{name} is {getattr(self, name)}; at least 1")
        spread = self.event_size // 4
        is_possible = self.event_size + spread <= self.n_dimensions
        require(is_possible, f"event_size is {self.event_size}; allowed: 4/5 of n_dimensions")
        for name in ("alpha", "dimension_alpha", "value_alpha"):
            value = getattr(self, name)
            require(0 <= value != 1, f"{name} is {value}; allowed: from 0, but not 1")
        require(min(self.sharing) >= 1, f"sharing is {self.sharing}; at least 1 use each")
        require(len(self.sharing) == len(self.depth_shares), "sharing and depth_shares differ")
        is_split = abs(sum(self.depth_shares) - 1) < 1e-9 and min(self.depth_shares) >= 0
        require(is_split, f"depth_shares are {self.depth_shares}; allowed: what adds up to 1")


class Pool(NamedTuple):
    """The distinct nodes of a level above the predicates."""

    below: Ints  # [n_nodes], member of the pool of the level below; -1 at level 2
    target: Ints  # [n_nodes], an additional child of level 2, or -1
    n_own: Ints  # [n_nodes], predicates
    n_uses: Ints  # [n_nodes], in all expressions written out


class Own(NamedTuple):
    """The predicates of the nodes of a level."""

    is_or: bool
    predicates: list[list[str]]
    is_negated: list[bool]  # the first child


class AdsLike:
    """Expressions and events; equal parameters give equal workloads."""

    def __init__(self, params: AdsLikeParams | None = None) -> None:
        self.params = params or AdsLikeParams()
        rng = np.random.default_rng(122)  # the dimensions do not depend on the number drawn
        low, high = np.log(CARDINALITIES)
        n_dimensions = self.params.n_dimensions
        self._cardinalities = np.exp(rng.uniform(low, high, n_dimensions)).astype(np.int64)
        self._is_number = rng.permutation(n_dimensions) % 3 == 0

    @property
    def schema(self) -> dict[str, str]:
        """The type of each attribute."""
        kinds = ["integer" if is_number else "string" for is_number in self._is_number]
        return {f"a{dimension}": kind for dimension, kind in enumerate(kinds)}

    # ── expressions ────────────────────────────────────────────────────────────────────────

    def expressions(self, n: int | None = None) -> list[str]:
        """A workload of `n` expressions as text; pools grow with `n`, so sharing stays the same."""
        return self._draw(n)[0]

    def sharing(self, n: int | None = None) -> list[LevelSharing]:
        """How often subexpressions are used, level by level, identified by their text."""
        return self._draw(n)[1]

    def _draw(self, n: int | None) -> tuple[list[str], list[LevelSharing]]:
        """The expressions and their sharing: pools from the top down, texts from the bottom up."""
        params = self.params
        rng = np.random.default_rng((params.seed, 0))
        n_all = params.n_expressions if n is None else n
        n_levels = len(params.depth_shares)
        depths = 1 + rng.choice(n_levels, size=n_all, p=params.depth_shares)
        roots, pools = _draw_pools(rng, params, depths)
        owners, n_uses = _slots(depths, pools)
        members, n_predicates = _members(rng, len(owners), int(n_uses.sum()), params, 1)
        predicates = _Predicates(self, rng, n_predicates)
        members = predicates.separate(rng, owners, members % max(1, len(predicates.texts)))
        texts = predicates.texts
        used = np.bincount(members, n_uses, minlength=len(texts)).astype(np.int64)
        shared = [_count(1, texts, used)]
        n_roots = int((depths == 1).sum())
        by_level = {1: [texts[member] for member in members[:n_roots].tolist()]}
        own = _own(rng, members[n_roots:], texts, pools)
        below: list[str] = []
        targets: list[str] = []
        for level in range(TARGETS, n_levels + 1):
            below = _write_pool(pools[level], below, targets, own[level])
            targets = targets or below
            shared.append(_count(level, below, pools[level].n_uses))
            by_level[level] = [below[root] for root in roots[level].tolist()]
        found = [iter(by_level[level]) for level in range(1, n_levels + 1)]
        return [next(found[depth - 1]) for depth in depths.tolist()], shared

    # ── events ─────────────────────────────────────────────────────────────────────────────

    def events(self, n: int) -> list[dict[str, int | str]]:
        """Events as dictionaries."""
        names = list(self.schema)
        return [
            {
                names[dimension]: value if self._is_number[dimension] else f"v{value}"
                for dimension, value in zip(row, values, strict=True)
                if value >= 0
            }
            for row, values in zip(*(part.tolist() for part in self._draw_events(n)), strict=True)
        ]

    def event_table(self, n: int) -> pa.Table:
        """The same events as a table with a nullable column for each dimension."""
        import pyarrow as pa

        dimensions, values = self._draw_events(n)
        table = sparse_table(list(self.schema), dimensions, values)
        columns = []
        for dimension, column in enumerate(table.columns):
            numbers = column.combine_chunks()
            known = pa.compute.if_else(pa.compute.greater_equal(numbers, 0), numbers, None)
            words = pa.array([f"v{value}" for value in range(self._cardinalities[dimension])])
            columns.append(known if self._is_number[dimension] else words.take(known))
        return pa.table(columns, names=table.column_names)

    def _draw_events(self, n: int) -> tuple[Ints, Ints]:
        """Dimensions and values, a row per event; a value below 0 is absent."""
        params = self.params
        rng = np.random.default_rng((params.seed, 1))
        spread = params.event_size // 4
        shares = zipf_shares(params.n_dimensions, params.dimension_alpha)
        dimensions = draw_subsets(rng, shares, n, params.event_size + spread)
        values = self._draw_values(rng, dimensions.ravel()).reshape(dimensions.shape)
        sizes = params.event_size + rng.integers(-spread, spread, size=n, endpoint=True)
        places = rng.permuted(np.tile(np.arange(dimensions.shape[1]), (n, 1)), axis=1)
        values[places >= sizes[:, None]] = -1
        return dimensions, values

    def _draw_values(self, rng: np.random.Generator, dimensions: Ints) -> Ints:
        """A value of each dimension; small numbers are frequent."""
        # The inverse of the distribution function of a continuous Zipf law.
        limits = self._cardinalities[dimensions].astype(np.float64)
        power = 1 - self.params.value_alpha
        top = (1 + limits) ** power
        ranks: Floats = (1 + rng.random(len(dimensions)) * (top - 1)) ** (1 / power) - 1
        return np.minimum(ranks, limits - 1).astype(np.int64)


class _Predicates:
    """The pool of predicates: their texts and dimensions."""

    def __init__(self, workload: AdsLike, rng: np.random.Generator, n: int) -> None:
        params = workload.params
        n_drawn = 2 * n  # some are equal
        drawn = draw_zipf(rng, params.n_dimensions, n_drawn, params.dimension_alpha)
        kinds = rng.choice(list(KINDS), size=n_drawn, p=list(KINDS.values())).tolist()
        values = workload._draw_values(rng, np.repeat(drawn, SET_SIZES[1]))
        sets = values.reshape(n_drawn, SET_SIZES[1]).tolist()
        sizes = rng.integers(*SET_SIZES, size=n_drawn, endpoint=True).tolist()
        is_number = workload._is_number[drawn].tolist()
        rows = zip(drawn.tolist(), kinds, sets, sizes, is_number, strict=True)
        texts = {_write_predicate(*row): row[0] for row in rows}
        self.texts = list(texts)[:n]
        self.dimensions = np.array(list(texts.values())[:n], dtype=np.int64)

    def separate(self, rng: np.random.Generator, owners: Ints, members: Ints) -> Ints:
        """The members, drawn again if an owner has two of one dimension."""
        for _ in range(_REDRAWS):
            keys = owners * (1 + int(self.dimensions.max(initial=0))) + self.dimensions[members]
            _, firsts = np.unique(keys, return_index=True)
            is_repeated = np.ones(len(members), dtype=bool)
            is_repeated[firsts] = False
            others = rng.integers(0, max(1, len(self.texts)), size=int(is_repeated.sum()))
            members[is_repeated] = others
        return members


def _write_predicate(
    dimension: int, kind: str, values: list[int], size: int, is_number: bool
) -> str:
    """A predicate such as `a3 IN ('v1', 'v7')`; strings are not compared by order."""
    if not is_number and kind in ("<=", ">="):
        kind = "IN"
    literals = [str(value) if is_number else f"'v{value}'" for value in values[:size]]
    if kind in ("IN", "NOT IN"):
        return f"a{dimension} {kind} ({', '.join(sorted(set(literals)))})"
    return f"a{dimension} {kind} {literals[0]}"


def _draw_pools(
    rng: np.random.Generator, params: AdsLikeParams, depths: Ints
) -> tuple[dict[int, Ints], dict[int, Pool]]:
    """By level, the members that are whole expressions, and the pool."""
    roots: dict[int, Ints] = {}
    pools: dict[int, Pool] = {}
    n_above = 0
    uses_above: Ints = np.empty(0, dtype=np.int64)
    wants_target: dict[int, Ints] = {}
    for level in range(len(params.depth_shares), TARGETS - 1, -1):
        n_roots = int((depths == level).sum())
        n_uses: list[Ints] = [np.ones(n_roots, dtype=np.int64), uses_above]
        if level == TARGETS:  # also the children of nodes with an additional one
            n_uses += [pools[above].n_uses[wanted] for above, wanted in wants_target.items()]
        uses = np.concatenate(n_uses)
        members, n_pool = _members(rng, len(uses), int(uses.sum()), params, level)
        roots[level] = members[:n_roots]
        if level + 1 in pools:
            pools[level + 1] = pools[level + 1]._replace(below=members[n_roots:][:n_above])
        kind = "target" if level == TARGETS else "or" if level % 2 else "and"
        n_own = rng.integers(*OWN_PREDICATES[kind], size=n_pool, endpoint=True)
        nobody = np.full(n_pool, -1, dtype=np.int64)
        uses_above = np.bincount(members, uses, minlength=n_pool).astype(np.int64)
        pools[level] = Pool(nobody, nobody.copy(), n_own, uses_above)
        if kind == "or":
            wants_target[level] = np.flatnonzero((n_own == 0) | (rng.random(n_pool) < 0.5))
        n_above = n_pool
    n_linked = len(pools[TARGETS + 1].below) if TARGETS + 1 in pools else 0
    extra = members[n_roots + n_linked :]
    for level, wanted in wants_target.items():
        pools[level].target[wanted] = extra[: len(wanted)]
        extra = extra[len(wanted) :]
    return roots, pools


def _members(
    rng: np.random.Generator, n_places: int, n_uses: int, params: AdsLikeParams, level: int
) -> tuple[Ints, int]:
    """A member of the pool for each position, and the pool's size: all are used, some often."""
    n_pool = min(n_places, max(1, round(n_uses / params.sharing[level - 1])))
    if n_pool == 0:
        return np.empty(0, dtype=np.int64), 0
    drawn = draw_zipf(rng, n_pool, n_places - n_pool, params.alpha)
    return rng.permutation(np.concatenate((np.arange(n_pool), drawn))), n_pool


def _slots(depths: Ints, pools: dict[int, Pool]) -> tuple[Ints, Ints]:
    """For each predicate occurrence, its owner (a number per node) and the owner's uses.

    Expressions of one predicate come first, then the nodes of each level.
    """
    n_roots = int((depths == 1).sum())
    n_own = [np.ones(n_roots, dtype=np.int64), *(pools[level].n_own for level in sorted(pools))]
    uses = [np.ones(n_roots, dtype=np.int64), *(pools[level].n_uses for level in sorted(pools))]
    sizes = np.concatenate(n_own)
    return np.repeat(np.arange(len(sizes)), sizes), np.repeat(np.concatenate(uses), sizes)


def _own(
    rng: np.random.Generator, members: Ints, texts: list[str], pools: dict[int, Pool]
) -> dict[int, Own]:
    """The predicates of the nodes of each level."""
    places = iter([texts[member] for member in members.tolist()])
    found = {}
    for level in sorted(pools):
        sizes = pools[level].n_own.tolist()
        predicates = [[next(places) for _ in range(size)] for size in sizes]
        is_or = level % 2 == 1
        is_negated = (rng.random(len(sizes)) < NEGATED) & (not is_or)
        found[level] = Own(is_or, predicates, is_negated.tolist())
    return found


def _write_pool(pool: Pool, below: list[str], targets: list[str], own: Own) -> list[str]:
    """The texts of a level's nodes, given those of the level below and of level 2."""
    joint = " OR " if own.is_or else " AND "
    columns = (pool.below.tolist(), pool.target.tolist(), own.predicates, own.is_negated)
    texts = []
    for child, target, predicates, is_negated in zip(*columns, strict=True):
        parts = [f"({below[child]})"] if child >= 0 else [predicates[0]]
        if is_negated:
            parts = [f"NOT ({parts[0]})"]
        parts += predicates[child < 0 :]
        if target >= 0:
            parts.append(f"({targets[target]})")
        texts.append(joint.join(parts))
    return texts


def _count(level: int, texts: list[str], n_uses: Ints) -> LevelSharing:
    used = {texts[member] for member in np.flatnonzero(n_uses).tolist()}
    return LevelSharing(level, int(n_uses.sum()), len(used))
