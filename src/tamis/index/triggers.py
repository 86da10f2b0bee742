"""Triggers: the child from which a node is reached when one event is matched (A-Tree §5.2.2).

An AND can only be true if its access child is, so it is evaluated only then. The access child is
the one least often true: by measurement if available, else by estimate. An OR is reached from all
its children, at_least(k of n) from its n - k + 1 rarest (one of them must be true), XOR from both
sides of its rarest pair.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.index.layout import run_starts

if TYPE_CHECKING:
    from tamis.index.layout import NodeArrays
    from tamis.kernels.arrays import Float32, Int32, Starts


class TriggerArrays(NamedTuple):
    """For each node, the inner nodes that are evaluated if it is true."""

    starts: Starts  # [n_nodes + 1]
    parents: Int32  # numbers of inner nodes


def build_triggers(nodes: NodeArrays, leaf_rates: Float32) -> TriggerArrays:
    """Choose the triggers of all inner nodes, given how often each leaf is true.

    Sorts the children of AND and at_least, the rarest first, so that evaluation stops early.
    """
    from tamis.index.kernels.triggers import choose_triggers

    n_leaves, n_inner = len(leaf_rates), len(nodes.operators)
    rates = np.empty(n_leaves + n_inner, dtype=np.float32)
    rates[:n_leaves] = leaf_rates
    is_trigger = np.zeros(len(nodes.children), dtype=np.bool_)
    choose_triggers(nodes, n_leaves, rates, is_trigger)
    parents = np.repeat(np.arange(n_inner, dtype=np.int32), np.diff(nodes.child_starts))
    children, parents = nodes.children[is_trigger], parents[is_trigger]
    starts = run_starts(np.bincount(children, minlength=n_leaves + n_inner))
    return TriggerArrays(starts, parents[np.argsort(children, kind="stable")])
