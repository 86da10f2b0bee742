"""The order of nodes in an index, chosen for the batch kernel.

Leaves are sorted by column, so that a block sets the leaves of one column after the other, each
within the cache; words are sorted by frequency, since most texts consist of the frequent ones.
Inner nodes that are children of others come before tops, which have only subscriptions: only the
former are read again, so they lie close together. Both groups are sorted by level, so that children
come before parents, and within a level by operator, so that one loop evaluates many nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.index.kernels.order import find_levels, permute_children
from tamis.index.layout import LeafArrays, NodeArrays, RootArrays

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.index.columns import Column
    from tamis.index.finish import Finished

_TOPS = 1 << 20  # above every level


def order_nodes(finished: Finished, term_rates: np.ndarray) -> Finished:
    """The same index, with its nodes renumbered for the kernels.

    `term_rates` is the rate of leaves that are words, and NaN for others.
    """
    nodes, n_leaves = finished.nodes, finished.n_leaves
    leaf_columns = _leaf_columns(finished.leaves, finished.columns, n_leaves)
    by_column = np.lexsort((-np.nan_to_num(term_rates), leaf_columns))
    inner_order = _order_inner(nodes, n_leaves, term_rates)
    numbers = np.empty(n_leaves + len(inner_order), dtype=np.int32)
    numbers[by_column] = np.arange(n_leaves, dtype=np.int32)
    numbers[n_leaves + inner_order] = np.arange(n_leaves, len(numbers), dtype=np.int32)
    for column in finished.columns:
        column.pattern_leaves = numbers[column.pattern_leaves]
    starts = np.searchsorted(leaf_columns[by_column], np.arange(len(finished.columns) + 1))
    return finished._replace(
        leaves=_renumber_leaves(finished.leaves, numbers, starts.astype(np.int32)),
        nodes=_permute_nodes(nodes, inner_order, numbers),
        roots=_renumber_roots(finished.roots, numbers),
    )


def _leaf_columns(leaves: LeafArrays, columns: Sequence[Column], n_leaves: int) -> np.ndarray:
    """The column of each leaf; leaves without a column come last."""
    n_columns = len(columns)
    found = np.full(n_leaves, n_columns, dtype=np.int32)
    code_columns = np.repeat(np.arange(n_columns), np.diff(leaves.column_codes))
    n_postings = np.diff(leaves.posting_starts)
    found[leaves.posting_leaves] = np.repeat(code_columns, n_postings)
    found[leaves.threshold_leaves] = np.repeat(
        np.arange(n_columns), np.diff(leaves.column_thresholds)
    )
    for of_column in (leaves.present_leaves, leaves.absent_leaves):
        has_leaf = of_column >= 0
        found[of_column[has_leaf]] = np.flatnonzero(has_leaf)
    for at, column in enumerate(columns):
        found[column.pattern_leaves] = at
    # Complements on all events come after all columns, and so do their leaves.
    n_of_columns = int(leaves.column_complements[-1])
    found[leaves.complement_leaves[:n_of_columns]] = np.repeat(
        np.arange(n_columns), np.diff(leaves.column_complements)
    )
    return found


def _order_inner(nodes: NodeArrays, n_leaves: int, term_rates: np.ndarray) -> np.ndarray:
    n_inner = len(nodes.operators)
    levels = np.empty(n_inner, dtype=np.int32)
    find_levels(nodes.child_starts, nodes.children, n_leaves, levels)
    is_used = np.zeros(n_leaves + n_inner, dtype=np.bool_)
    is_used[nodes.children] = True
    keys = 4 * np.where(is_used[n_leaves:], levels, _TOPS) + nodes.operators
    return np.lexsort((_rarest_terms(nodes, n_leaves, term_rates), keys))


def _rarest_terms(nodes: NodeArrays, n_leaves: int, term_rates: np.ndarray) -> np.ndarray:
    """The rarity of the rarest word among each node's children, as a rank; 0 if there is none.

    Nodes with the same rarest word are adjacent (Irmak's pools, §4.3): a block reads it once.
    """
    is_term = ~np.isnan(term_rates)
    if not is_term.any():
        return np.zeros(len(nodes.operators), dtype=np.int32)
    ranks = np.zeros(n_leaves + len(nodes.operators), dtype=np.int32)
    ranks[:n_leaves][is_term] = 1 + np.argsort(np.argsort(-term_rates[is_term], kind="stable"))
    return np.maximum.reduceat(ranks[nodes.children], nodes.child_starts[:-1])


def _permute_nodes(nodes: NodeArrays, order: np.ndarray, numbers: np.ndarray) -> NodeArrays:
    starts = np.zeros_like(nodes.child_starts)
    np.cumsum(np.diff(nodes.child_starts)[order], out=starts[1:])
    children = np.empty_like(nodes.children)
    permute_children(nodes.child_starts, nodes.children, order, numbers, children)
    return NodeArrays(nodes.operators[order], nodes.required[order], starts, children)


def _renumber_roots(roots: RootArrays, numbers: np.ndarray) -> RootArrays:
    nodes = numbers[roots.nodes]
    order = np.argsort(nodes, kind="stable")
    starts = np.zeros_like(roots.subscription_starts)
    np.cumsum(np.diff(roots.subscription_starts)[order], out=starts[1:])
    subscriptions = np.empty_like(roots.subscriptions)
    permute_children(roots.subscription_starts, roots.subscriptions, order, None, subscriptions)
    return RootArrays(nodes[order], starts, subscriptions, roots.always)


def _renumber_leaves(
    leaves: LeafArrays, numbers: np.ndarray, column_leaves: np.ndarray
) -> LeafArrays:
    present, absent = (
        np.where(own >= 0, numbers[own], np.int32(-1))
        for own in (leaves.present_leaves, leaves.absent_leaves)
    )
    return leaves._replace(
        column_leaves=column_leaves,
        posting_leaves=numbers[leaves.posting_leaves],
        threshold_leaves=numbers[leaves.threshold_leaves],
        complement_leaves=numbers[leaves.complement_leaves],
        complement_bases=numbers[leaves.complement_bases],
        present_leaves=present,
        absent_leaves=absent,
    )
