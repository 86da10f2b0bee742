"""Random draws shared by several workloads."""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tamis.errors import TamisError

if TYPE_CHECKING:
    import pyarrow as pa

Ints: TypeAlias = "np.ndarray[Any, np.dtype[np.integer[Any]]]"
Floats: TypeAlias = "np.ndarray[Any, np.dtype[np.floating[Any]]]"

MOST_OF_ONE: Final = 1_000_000  # leaves of an expression, on average
BLOCK_CELLS = 2_000_000  # random numbers drawn at a time if a draw needs one per candidate


def zipf_shares(n_items: int, alpha: float) -> Floats:
    """P(r) = C / r^α for the ranks 1 … n; uniform if α is 0."""
    weights = np.arange(1, n_items + 1, dtype=np.float64) ** -alpha
    shares: Floats = weights / weights.sum()
    return shares


def draw_zipf(rng: np.random.Generator, n_items: int, n_draws: int, alpha: float) -> Ints:
    """Ranks from 0, drawn with replacement by a Zipf law."""
    limits = np.cumsum(zipf_shares(n_items, alpha))
    ranks = np.searchsorted(limits, rng.random(n_draws), side="right")
    # Rounding may leave the last limit a little below 1.
    return np.minimum(ranks, n_items - 1).astype(np.int32)


def draw_subsets(rng: np.random.Generator, shares: Floats, n_rows: int, size: int) -> Ints:
    """In each row `size` distinct items, drawn without replacement by their shares.

    The largest values of log p + Gumbel noise are such a draw.
    """
    n_items = len(shares)
    if size == n_items:
        return np.tile(np.arange(n_items), (n_rows, 1))
    block = max(1, BLOCK_CELLS // n_items)
    subsets = np.empty((n_rows, size), dtype=np.int64)
    for start in range(0, n_rows, block):
        n_block = min(block, n_rows - start)
        keys = np.log(shares) + rng.gumbel(size=(n_block, n_items))
        subsets[start : start + n_block] = np.argpartition(-keys, size, axis=1)[:, :size]
    return subsets


def draw_sets(rng: np.random.Generator, n_rows: int, size: int, cardinality: int) -> Ints:
    """In each row `size` distinct values of 0 … cardinality - 1, ascending."""
    # A sorted draw with repetition from a domain shorter by size - 1, with 0, 1, 2, … added.
    low = np.sort(rng.integers(0, cardinality - size + 1, size=(n_rows, size)), axis=1)
    return low + np.arange(size)


def sparse_table(names: list[str], columns: Ints, values: Ints, values_of: Any = None) -> pa.Table:
    """A table with a row for each row of `columns`, which holds the columns of its `values`.

    Everything else is NULL. `values_of`, an Arrow array, maps the numbers in `values` to values;
    without it the numbers are the values.
    """
    import pyarrow as pa

    n_rows, size = columns.shape
    order = np.argsort(columns, axis=None, kind="stable")
    starts = np.searchsorted(columns.ravel()[order], np.arange(len(names) + 1))
    rows = np.repeat(np.arange(n_rows), size)[order]
    sorted_values = values.ravel()[order]
    arrays = []
    for column in range(len(names)):
        here = slice(starts[column], starts[column + 1])
        numbers = np.zeros(n_rows, dtype=np.int64)
        is_missing = np.ones(n_rows, dtype=bool)
        numbers[rows[here]] = sorted_values[here]
        is_missing[rows[here]] = False
        array = pa.array(numbers, mask=is_missing)
        arrays.append(array if values_of is None else values_of.take(array))
    return pa.table(arrays, names=names)


def require(is_allowed: bool, problem: str) -> None:
    """Raise an error for an invalid parameter of a workload."""
    if not is_allowed:
        raise TamisError(problem)


def require_small(n_children: float, n_levels: int) -> None:
    """Raise an error for expressions that do not fit in memory."""
    most = log(MOST_OF_ONE) / log(n_children) if n_children > 1 else n_levels
    require(
        n_levels <= most,
        f"{n_levels} levels with {n_children:.2f} children each, on average, are more than "
        f"{MOST_OF_ONE:,} leaves of an expression; allowed: {int(most)} levels",
    )
