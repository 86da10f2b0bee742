"""Access children chosen by what events really look like (A-Tree §5.2.2)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.index.layout import freeze
from tamis.index.triggers import build_triggers
from tamis.match.batch import make_scratch
from tamis.match.index import Index
from tamis.match.kernels.block import BLOCK, match_block

if TYPE_CHECKING:
    import numpy.typing as npt

    from tamis.index.contents import Contents
    from tamis.spark.store import IndexStore


def measure_leaf_rates(contents: Contents, sample: pa.Table) -> npt.NDArray[np.float32]:
    """How often each leaf is true among the events of a sample; never quite 0 or 1."""
    events = Index(contents).encode(sample)
    scratch = make_scratch(contents.n_nodes, len(contents.columns))
    counts = np.zeros(contents.n_leaves, dtype=np.int64)
    for first_row in range(0, events.n_rows, BLOCK):
        n_rows = min(BLOCK, events.n_rows - first_row)
        match_block(first_row, n_rows, events.arrays, contents.leaves, contents.nodes, scratch)
        live = np.flatnonzero(scratch.is_live[: contents.n_leaves])
        counts[live] += np.bitwise_count(scratch.masks[live]).sum(axis=1, dtype=np.int64)
    rates: npt.NDArray[np.float32] = ((counts + 0.5) / (events.n_rows + 1)).astype(np.float32)
    return rates


def tune(contents: Contents, sample: pa.Table) -> Contents:
    """The same index, with access children that are rare among the events of the sample."""
    # Children are put in order, and those of an index are never written.
    nodes = contents.nodes._replace(children=contents.nodes.children.copy())
    triggers = build_triggers(nodes, measure_leaf_rates(contents, sample))
    return replace(contents, nodes=freeze(nodes), triggers=freeze(triggers))


def find_sample(store: IndexStore) -> str | None:
    """The object in which the newest version's statistics keep a sample of events."""
    newest = store.current_or_none()
    return None if newest is None else newest.statistics.get("sample")


def read_sample(content: bytes) -> pa.Table:
    """The sample in an object."""
    return pq.read_table(pa.BufferReader(content))
