"""Access children chosen by what events really look like (A-Tree §5.2.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from tamis.match.index import Index
from tamis.match.learn import learn

if TYPE_CHECKING:
    from tamis.index.contents import Contents
    from tamis.spark.store import IndexStore


def tune(contents: Contents, sample: pa.Table) -> Contents:
    """The same index, with access children that are rare among the events of the sample."""
    return learn(contents, Index(contents).encode(sample))


def find_sample(store: IndexStore) -> str | None:
    """The object in which the newest version's statistics keep a sample of events."""
    newest = store.current_or_none()
    return None if newest is None else newest.statistics.get("sample")


def find_operator_statistics(store: IndexStore) -> dict[str, Any]:
    """What the newest version knows of operators, as an index keeps it."""
    newest = store.current_or_none()
    learned = None if newest is None else newest.statistics.get("operators")
    return {} if learned is None else {"operators": learned}


def read_sample(content: bytes) -> pa.Table:
    """The sample in an object."""
    return pq.read_table(pa.BufferReader(content))
