"""Reorganisation (A-Tree §4.2.2): a node replaces children by another node that has them all.

With `a AND b` in the index, `a AND b AND c` becomes `(a AND b) AND c`. No node is added, so nothing
more is evaluated, and there are fewer links. The choice is greedy: the largest first, without
overlaps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.index.kernels.order import find_levels, permute_children
from tamis.index.kernels.reorganise import reuse_subsets
from tamis.index.layout import AND, OR, NodeArrays

if TYPE_CHECKING:
    from tamis.index.finish import Finished


def reorganise(finished: Finished, is_apart: np.ndarray) -> Finished:
    """The same index with fewer links; children come before parents.

    Nodes with leaves in `is_apart` are not used by others: an AND of words is reached from the
    rarest of its own words.
    """
    nodes, n_leaves = finished.nodes, finished.n_leaves
    n_inner = len(nodes.operators)
    starts = np.zeros_like(nodes.child_starts)
    children = np.empty_like(nodes.children)
    reuse_subsets(
        nodes.operators,
        nodes.child_starts,
        nodes.children,
        n_leaves,
        *_list_by_rarest_child(nodes, n_leaves, is_apart),
        starts,
        children,
    )
    if starts[-1] == len(nodes.children):
        return finished
    order = _order(nodes, n_leaves)
    numbers = np.arange(n_leaves + n_inner, dtype=np.int32)
    numbers[n_leaves + order] = np.arange(n_leaves, n_leaves + n_inner, dtype=np.int32)
    reorganised = NodeArrays(
        nodes.operators[order],
        nodes.required[order],
        _permute_starts(starts, order),
        np.empty(int(starts[-1]), dtype=np.int32),
    )
    permute_children(starts, children, order, numbers, reorganised.children)
    roots = finished.roots._replace(nodes=numbers[finished.roots.nodes])
    return finished._replace(nodes=reorganised, roots=roots)


def _list_by_rarest_child(
    nodes: NodeArrays, n_leaves: int, is_apart: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The start of each child's list, and the AND and OR nodes, each listed under its rarest child.

    A node whose children are all among another's is found from one of these, exactly once.
    """
    n_parents = np.bincount(nodes.children, minlength=n_leaves + len(nodes.operators))
    if not len(nodes.operators):
        return np.zeros(len(n_parents) + 1, dtype=np.int64), np.empty(0, dtype=np.int64)
    firsts = nodes.child_starts[:-1]
    is_listed = (nodes.operators == AND) | (nodes.operators == OR)
    if is_apart.any():
        is_child_apart = np.append(is_apart, np.zeros(len(nodes.operators), dtype=np.bool_))
        is_listed &= ~np.logical_or.reduceat(is_child_apart[nodes.children], firsts)
    listed = np.flatnonzero(is_listed)
    # The number of parents is in the bits above the child: one minimum finds both.
    keys = (n_parents[nodes.children] << 32) | nodes.children
    rarest = np.minimum.reduceat(keys, firsts)[listed] & 0xFFFFFFFF
    order = np.argsort(rarest, kind="stable")
    starts = np.searchsorted(rarest[order], np.arange(len(n_parents) + 1))
    return starts, listed[order]


def _order(nodes: NodeArrays, n_leaves: int) -> np.ndarray:
    """Nodes by their old level and size: a node uses others of at most its level, and smaller
    ones.
    """
    levels = np.empty(len(nodes.operators), dtype=np.int32)
    find_levels(nodes.child_starts, nodes.children, n_leaves, levels)
    return np.lexsort((np.diff(nodes.child_starts), levels))


def _permute_starts(starts: np.ndarray, order: np.ndarray) -> np.ndarray:
    permuted = np.zeros_like(starts)
    np.cumsum(np.diff(starts)[order], out=permuted[1:])
    return permuted
