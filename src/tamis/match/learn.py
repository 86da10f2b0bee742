"""Learns from a sample of events how often each leaf is true.

An AND uses these rates to choose its access child, the one least often true (A-Tree §5.2.2), and
puts it first. Without a sample the rates are estimated from the kinds of tests, which do not show
which attributes are rare.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.index.layout import freeze
from tamis.index.triggers import build_triggers
from tamis.match.batch import make_scratch
from tamis.match.kernels.leaves import set_leaves
from tamis.match.kernels.readout import add_bits
from tamis.match.kernels.rows import ROW

if TYPE_CHECKING:
    from tamis.events.encoder import EncodedEvents
    from tamis.index.contents import Contents


def learn(contents: Contents, sample: EncodedEvents) -> Contents:
    """The same index, optimised for events like those of the sample."""
    rates = (count_leaves(contents, sample) + 0.5) / (sample.n_rows + 1)
    # Children are sorted in a copy, since the arrays of an index are read-only.
    nodes = contents.nodes._replace(children=contents.nodes.children.copy())
    triggers = build_triggers(nodes, rates.astype(np.float32))
    statistics = contents.statistics | {"sample": describe(contents, sample)}
    return replace(contents, nodes=freeze(nodes), triggers=freeze(triggers), statistics=statistics)


def count_leaves(contents: Contents, sample: EncodedEvents) -> np.ndarray:
    """How many events of the sample satisfy each leaf."""
    counts = np.zeros(contents.n_leaves, dtype=np.int64)
    scratch = make_scratch(contents, 1)
    for first_row in range(0, sample.n_rows, ROW):
        n_rows = min(ROW, sample.n_rows - first_row)
        set_leaves(first_row, n_rows, sample.arrays, contents.leaves, scratch)
        add_bits(scratch.masks, counts)
    return counts


def describe(contents: Contents, sample: EncodedEvents) -> dict[str, Any]:
    """The number of events and the share of them that have each column, for the manifest."""
    arrays = sample.arrays
    rows = np.repeat(np.arange(sample.n_rows), np.diff(arrays.row_starts))
    cells = np.concatenate(
        (
            rows * len(contents.columns) + arrays.columns,
            arrays.mark_rows * len(contents.columns) + arrays.mark_columns,
        )
    )
    # A column with several codes for one event, such as an array, counts once.
    present = np.bincount(
        np.unique(cells) % max(1, len(contents.columns)), minlength=len(contents.columns)
    )
    return {
        "n_events": sample.n_rows,
        "presence": [round(n / max(1, sample.n_rows), 6) for n in present.tolist()],
    }
