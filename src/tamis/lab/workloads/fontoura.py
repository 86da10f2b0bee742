"""Fontoura's generator of contracts and user visits (§5.1), with his selectivity (§5.5).

An expression is a tree in which AND and OR alternate, AND at the root. A node has 2 children with
probability 0.7, 3 with 0.2, and 1 or 4 with 0.05 each; above `min_depth` it always has children,
and at `max_depth` none. A node without children is a conjunction: its size is drawn by c_s, its
attributes without replacement by a_i, a target value for each by p_i.

The paper leaves open some points, which are decided here as follows:

- *The statistics* of its contracts and its log of visits are not published. Attributes are drawn by
  a Zipf law, both in conjunctions and in visits, and so are values. The defaults were chosen so
  that selectivities are near those of Table 3: about every second conjunction is true.
- *Nodes without children* have probability zero, since the probabilities above sum to 1, so all
  paths are as long as `max_depth`; `child_shares` may give them a share.
- *Candidates that match no query* (§5.5) are drawn like all others, but each of their conjunctions
  requires an additional value, which no visit has.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from tamis.index.layout import AND, OR
from tamis.lab.forest import Node, Rows
from tamis.lab.workloads.draws import (
    Ints,
    draw_subsets,
    draw_zipf,
    require,
    require_small,
    sparse_table,
    zipf_shares,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

    from tamis.lab.forest import Tree

CANDIDATES = 2  # the random stream of the candidates that match nothing


@dataclass(frozen=True, slots=True)
class FontouraParams:
    """The shape of trees, conjunctions and visits."""

    n_expressions: int = 100_000
    min_depth: int = 1
    max_depth: int = 2
    child_shares: tuple[float, ...] = (0, 0.05, 0.7, 0.2, 0.05)  # of 0, 1, 2, … children
    size_shares: tuple[float, ...] = (0.7, 0.2, 0.1)  # c_s: conjunctions of 1, 2, … predicates
    n_attributes: int = 20
    attribute_alpha: float = 0.5  # a_i
    cardinality: int = 50  # values of an attribute
    value_alpha: float = 2.7  # p_i
    event_size: int = 18  # attributes of a visit
    selectivity: float | None = None  # the share of expressions a visit matches; None: not adjusted
    n_queries: int = 2_000  # visits of the test set, on which the selectivity is measured
    seed: int = 1

    def __post_init__(self) -> None:
        low, high = self.min_depth, self.max_depth
        require(1 <= low <= high, f"depth is {low} to {high}; allowed: 1 or more, rising")
        for name in ("child_shares", "size_shares"):
            shares = getattr(self, name)
            is_law = min(shares) >= 0 and abs(sum(shares) - 1) < 1e-9
            require(is_law, f"{name} is {shares}; allowed: shares that sum to 1")
        require_small(sum(n * share for n, share in enumerate(self.child_shares)), high)
        size, most = self.event_size, self.n_attributes
        require(0 <= size <= most, f"event_size is {size}; allowed: 0 to n_attributes")
        n_sizes = len(self.size_shares)
        require(n_sizes <= most, f"size_shares has {n_sizes} sizes; allowed: up to n_attributes")
        share = self.selectivity
        is_share = share is None or 0 <= share <= 1
        require(is_share, f"selectivity is {share}; allowed: 0 to 1, or none")


class Fontoura:
    """Expressions and events; equal parameters give equal workloads."""

    def __init__(self, params: FontouraParams | None = None) -> None:
        self.params = params or FontouraParams()

    @property
    def schema(self) -> dict[str, str]:
        """The type of each attribute."""
        return {f"a{attribute}": "string" for attribute in range(self.params.n_attributes)}

    @property
    def n_leaves(self) -> int:
        """Leaf (c + 1) · a + v of a tree is `a<a> = 'v<v>'`; no visit has the value c."""
        return self.params.n_attributes * (self.params.cardinality + 1)

    # ── expressions ────────────────────────────────────────────────────────────────────────

    def expressions(self, n: int | None = None) -> list[str]:
        """`n` expressions as text, `n_expressions` by default."""
        stride = self.params.cardinality + 1
        tests = [f"a{leaf // stride} = 'v{leaf % stride}'" for leaf in range(self.n_leaves)]
        return [write(tree, tests) for tree in self.trees(n)]

    def trees(self, n: int | None = None) -> list[Tree]:
        """The same expressions as trees; each conjunction is a separate AND."""
        n = self.params.n_expressions if n is None else n
        drawn = self._draw_trees(n, np.random.default_rng((self.params.seed, 0)))
        if self.params.selectivity is None:
            return drawn
        n_kept = self._count_kept(drawn, self.params.selectivity)
        rng = np.random.default_rng((self.params.seed, CANDIDATES))
        more = self._draw_trees(n - n_kept, rng)
        stride = self.params.cardinality + 1
        nobodys = cycle(range(stride - 1, self.n_leaves, stride))
        mixed = drawn[:n_kept] + [self._spoil(tree, nobodys) for tree in more]
        return [mixed[place] for place in rng.permutation(n).tolist()]

    def _count_kept(self, drawn: list[Tree], wanted: float) -> int:
        """The number of matching candidates for which a visit matches the given share of all."""
        from tamis.lab.fontoura.interval import Interval

        machine = Interval(dict(enumerate(drawn)), self.n_leaves)
        found = machine.match(self.leaves(self.params.n_queries))
        so_far = np.cumsum(np.bincount(found.values, minlength=len(drawn)))
        n_pairs = self.params.n_queries * len(drawn)
        own = so_far[-1] / n_pairs if len(drawn) else wanted
        require(
            own >= wanted,
            f"selectivity is {wanted:.1%}; allowed: up to {own:.1%}, that of the trees as drawn",
        )
        return int(np.searchsorted(so_far, wanted * n_pairs))

    def _spoil(self, node: Tree, nobodys: Iterator[int]) -> Tree:
        """The tree, in which each conjunction also requires a value that no visit has."""
        assert isinstance(node, Node)
        if isinstance(node.children[0], int):
            return node._replace(children=(*node.children, next(nobodys)))
        return node._replace(children=tuple([self._spoil(c, nobodys) for c in node.children]))

    def _draw_trees(self, n: int, rng: np.random.Generator) -> list[Tree]:
        """Trees, drawn level by level from the roots and assembled bottom-up."""
        levels = self._draw_levels(n, rng)
        n_conjunctions = sum(int((level == 0).sum()) for level in levels)
        conjunctions = self._draw_conjunctions(n_conjunctions, rng)
        below: Iterator[Tree] = iter(())
        for depth in range(len(levels) - 1, -1, -1):
            operator = OR if depth % 2 else AND
            # A node's children are the next nodes of the level below.
            below = iter(
                [
                    Node(operator, 0, tuple([next(below) for _ in range(n_children)]))
                    if n_children
                    else next(conjunctions)
                    for n_children in levels[depth].tolist()
                ]
            )
        return list(below)

    def _draw_levels(self, n: int, rng: np.random.Generator) -> list[Ints]:
        """The number of children of each node, level by level."""
        params = self.params
        numbers = np.arange(len(params.child_shares))
        some = np.array(params.child_shares) * (numbers > 0)
        levels: list[Ints] = []
        n_nodes = n
        for depth in range(params.max_depth):
            is_shallow = depth < params.min_depth
            shares = some / some.sum() if is_shallow else np.array(params.child_shares)
            levels.append(rng.choice(numbers, size=n_nodes, p=shares))
            n_nodes = int(levels[-1].sum())
        return [*levels, np.zeros(n_nodes, dtype=np.int64)]

    def _draw_conjunctions(self, n: int, rng: np.random.Generator) -> Iterator[Node]:
        """Conjunctions of predicates, each an AND."""
        params = self.params
        sizes = rng.choice(len(params.size_shares), size=n, p=np.array(params.size_shares)) + 1
        shares = zipf_shares(params.n_attributes, params.attribute_alpha)
        drawn: list[Node] = [Node(AND, 0, ())] * n
        for size in np.unique(sizes).tolist():
            (rows,) = np.nonzero(sizes == size)
            attributes = draw_subsets(rng, shares, len(rows), size)
            leaves = attributes * (params.cardinality + 1) + self._draw_values(rng, attributes)
            for row, own in zip(rows.tolist(), leaves.tolist(), strict=True):
                drawn[row] = Node(AND, 0, tuple(own))
        return iter(drawn)

    def _draw_values(self, rng: np.random.Generator, attributes: Ints) -> Ints:
        """A value for each attribute."""
        params = self.params
        values = draw_zipf(rng, params.cardinality, attributes.size, params.value_alpha)
        return values.reshape(attributes.shape)

    # ── events ─────────────────────────────────────────────────────────────────────────────

    def events(self, n: int) -> list[dict[str, str]]:
        """Visits as dictionaries; the first `n_queries` are the test set."""
        attributes, values = self._draw_events(n)
        names = list(self.schema)
        return [
            {names[at]: f"v{value}" for at, value in zip(row, numbers, strict=True)}
            for row, numbers in zip(attributes.tolist(), values.tolist(), strict=True)
        ]

    def event_table(self, n: int) -> pa.Table:
        """The same visits as a table of strings."""
        import pyarrow as pa

        texts = pa.array([f"v{value}" for value in range(self.params.cardinality)])
        return sparse_table(list(self.schema), *self._draw_events(n), texts)

    def leaves(self, n: int) -> Rows:
        """The leaves of trees that each visit satisfies."""
        attributes, values = self._draw_events(n)
        leaves = np.sort(attributes * (self.params.cardinality + 1) + values, axis=1)
        starts = np.arange(n + 1, dtype=np.int64) * self.params.event_size
        return Rows(starts, leaves.ravel().astype(np.int32))

    def _draw_events(self, n: int) -> tuple[Ints, Ints]:
        """Attributes and values, a row per visit."""
        params = self.params
        rng = np.random.default_rng((params.seed, 1))
        shares = zipf_shares(params.n_attributes, params.attribute_alpha)
        # All visits are always drawn, so that a smaller number is a prefix of a larger one.
        n_drawn = max(n, params.n_queries)
        attributes = draw_subsets(rng, shares, n_drawn, params.event_size)
        values = self._draw_values(rng, attributes)
        return attributes[:n], values[:n]


def write(tree: Tree, tests: list[str]) -> str:
    """A tree as text."""
    if isinstance(tree, int):
        return tests[tree]
    operands = [
        write(child, tests)
        if isinstance(child, int) or len(child.children) == 1
        else f"({write(child, tests)})"
        for child in tree.children
    ]
    return (" OR " if tree.operator == OR else " AND ").join(operands)
