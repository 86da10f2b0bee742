"""Statistics of events that a build uses.

A sample of events determines the access children (A-Tree §5.2.2); the share of documents that have
each word determines the order of words (Irmak §3.3).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tamis.errors import TamisWarning
from tamis.match.index import Index
from tamis.match.learn import learn

if TYPE_CHECKING:
    from tamis.index.contents import Contents
    from tamis.index.frequencies import Frequencies
    from tamis.versions.store import IndexStore


def tune(contents: Contents, sample: pa.Table) -> Contents:
    """The same index, with access children that are rare among the events of the sample."""
    return learn(contents, Index(contents).encode(sample))


def find_sample(store: IndexStore) -> str | None:
    """The object in which the newest version's statistics keep a sample of events."""
    return _find(store, "sample")


def find_operator_statistics(store: IndexStore) -> dict[str, Any]:
    """What the newest version has learned about operators, as the statistics of an index."""
    newest = store.newest_whole()
    learned = None if newest is None else newest.statistics.get("operators")
    return {} if learned is None else {"operators": learned}


def find_terms(store: IndexStore) -> str | None:
    """The object in which the newest version's statistics keep the frequencies of words."""
    return _find(store, "terms")


def _find(store: IndexStore, what: str) -> str | None:
    """An object of the newest version's statistics; None if there is none, or if it was changed."""
    newest = store.newest_whole()
    name: str | None = None if newest is None else newest.statistics.get(what)
    if newest is None or name is None:
        return None
    if store.storage.checksum(name) == newest.statistics.get(f"{what}_crc32"):
        return name
    # Not an error: statistics only make matching faster.
    warnings.warn(
        f"{store.storage.where(name)} is missing or damaged; the build continues without it. "
        "Save the statistics again.",
        TamisWarning,
        stacklevel=4,
    )
    return None


def write_terms(counted: pa.Table, n_events: int) -> bytes:
    """The share of events that have each term, as an object."""
    shares = pc.divide(counted["n"].cast(pa.float64()), float(max(1, n_events)))
    sink = pa.BufferOutputStream()
    pq.write_table(counted.drop_columns("n").append_column("share", shares), sink)
    found: bytes = sink.getvalue().to_pybytes()
    return found


def read_terms(content: bytes) -> Frequencies:
    """The frequencies of words in an object: by attribute, then by term."""
    table = pq.read_table(pa.BufferReader(content))
    found: dict[str, dict[str, float]] = {}
    columns = (table[name].to_pylist() for name in ("attribute", "term", "share"))
    for attribute, term, share in zip(*columns, strict=True):
        found.setdefault(attribute, {})[term] = share
    return found


def read_sample(content: bytes) -> pa.Table:
    """The sample in an object."""
    return pq.read_table(pa.BufferReader(content))
