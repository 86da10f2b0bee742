"""Conjunctions of IN sets, the usual form of targeting and routing rules.

Each expression tests 2 to 5 attributes, each against a set of 1 to 8 values; an event has a value
for each attribute, like a user profile. All draws are uniform: nothing is shared on purpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tamis.lab.workloads.draws import (
    Ints,
    draw_sets,
    draw_subsets,
    require,
    sparse_table,
    zipf_shares,
)

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class InSetsParams:
    """The number, width and domain of expressions."""

    n_expressions: int = 100_000
    n_attributes: int = 20
    cardinality: int = 100  # values of an attribute
    n_sets: tuple[int, int] = (2, 5)  # of an expression, minimum and maximum
    n_values: tuple[int, int] = (1, 8)  # of a set
    event_size: int = 20  # attributes of an event
    seed: int = 1

    def __post_init__(self) -> None:
        for name, most in (("n_sets", self.n_attributes), ("n_values", self.cardinality)):
            low, high = getattr(self, name)
            is_range = 1 <= low <= high <= most
            require(is_range, f"{name} is {low} to {high}; allowed: 1 to {most}")
        size = self.event_size
        is_possible = 0 <= size <= self.n_attributes
        require(is_possible, f"event_size is {size}; allowed: 0 to n_attributes")


class InSets:
    """Expressions and events; equal parameters give equal workloads."""

    def __init__(self, params: InSetsParams | None = None) -> None:
        self.params = params or InSetsParams()

    @property
    def schema(self) -> dict[str, str]:
        """The type of each attribute."""
        return {f"a{attribute}": "string" for attribute in range(self.params.n_attributes)}

    def expressions(self, n: int | None = None) -> list[str]:
        """`n` expressions as text, `n_expressions` by default."""
        params = self.params
        rng = np.random.default_rng((params.seed, 0))
        n_rows = params.n_expressions if n is None else n
        n_sets = rng.integers(*params.n_sets, size=n_rows, endpoint=True)
        shares = zipf_shares(params.n_attributes, 0)
        attributes = draw_subsets(rng, shares, n_rows, params.n_sets[1]).tolist()
        texts = iter(self._draw_lists(rng, int(n_sets.sum())))
        return [
            " AND ".join([f"a{attribute} IN ({next(texts)})" for attribute in row[:n_row]])
            for row, n_row in zip(attributes, n_sets.tolist(), strict=True)
        ]

    def _draw_lists(self, rng: np.random.Generator, n_lists: int) -> list[str]:
        """The list of values of each IN."""
        cardinality = self.params.cardinality
        names = [f"'v{value}'" for value in range(cardinality)]
        n_values = rng.integers(*self.params.n_values, size=n_lists, endpoint=True)
        texts = [""] * n_lists
        for size in np.unique(n_values).tolist():
            (rows,) = np.nonzero(n_values == size)
            drawn = draw_sets(rng, len(rows), size, cardinality)
            for row, values in zip(rows.tolist(), drawn.tolist(), strict=True):
                texts[row] = ", ".join([names[value] for value in values])
        return texts

    def events(self, n: int) -> list[dict[str, str]]:
        """Events as dictionaries."""
        attributes, values = self._draw_events(n)
        names = list(self.schema)
        return [
            {names[at]: f"v{value}" for at, value in zip(row, numbers, strict=True)}
            for row, numbers in zip(attributes.tolist(), values.tolist(), strict=True)
        ]

    def event_table(self, n: int) -> pa.Table:
        """The same events as a table of strings."""
        import pyarrow as pa

        texts = pa.array([f"v{value}" for value in range(self.params.cardinality)])
        return sparse_table(list(self.schema), *self._draw_events(n), texts)

    def _draw_events(self, n: int) -> tuple[Ints, Ints]:
        """Attributes and values, a row per event."""
        params = self.params
        rng = np.random.default_rng((params.seed, 1))
        shares = zipf_shares(params.n_attributes, 0)
        attributes = draw_subsets(rng, shares, n, params.event_size)
        values = rng.integers(0, params.cardinality, size=attributes.size)
        return attributes, values.reshape(attributes.shape)
