"""Superqueries: which queries share an accumulator (§4)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tamis.lab.irmak.kernels.clustering import (
    cluster_by_overlap,
    cluster_in_order,
    count_terms,
    write_clusters,
)

CLUSTERINGS: Final = ("random", "alphabetical", "overlap")
_LOOKED_AT: Final = 256  # queries of a pool that the greedy choice compares


class Clusters(NamedTuple):
    """Superqueries: their members with masks, and their terms with bits."""

    starts: np.ndarray  # int64[n + 1]
    members: np.ndarray  # int32[n_queries]
    masks: np.ndarray  # uint32[n_queries, n_words], by place in `members`
    first_terms: np.ndarray  # int32[n], the least frequent term of each
    owners: np.ndarray  # int32[:], superqueries of the other terms
    terms: np.ndarray  # int32[:]
    bits: np.ndarray  # uint8[:]


def cluster(
    starts: np.ndarray, terms: np.ndarray, method: str, n_words: int, seed: int
) -> Clusters:
    """Superqueries of 32 · n_words terms, from queries with terms ascending by frequency."""
    n_queries = len(starts) - 1
    firsts = terms[starts[:-1]]
    order = _order(starts, terms, firsts, method, seed)
    pool_ends = np.flatnonzero(np.diff(firsts[order])) + 1
    pool_starts = np.concatenate(([0], pool_ends, [n_queries])).astype(np.int64)
    n_terms = int(terms.max(initial=0)) + 1
    last_seen = np.full(n_terms, -1, dtype=np.int32)
    cluster_of = np.empty(n_queries, dtype=np.int32)
    common = (pool_starts, order, starts, terms, 32 * n_words)
    if method == "overlap":
        n_clusters = cluster_by_overlap(*common, _LOOKED_AT, last_seen, cluster_of)
    else:
        n_clusters = cluster_in_order(*common, last_seen, cluster_of)
    return _lay_out(starts, terms, cluster_of, n_clusters, n_words)


def _order(
    starts: np.ndarray, terms: np.ndarray, firsts: np.ndarray, method: str, seed: int
) -> np.ndarray:
    """Queries grouped by pool, in the order that the method requires."""
    n_queries = len(starts) - 1
    if method == "random":
        inside = [np.random.default_rng(seed).permutation(n_queries)]
    else:
        # By the most frequent term, then the next: a query's last, its second to last, …
        sizes = np.diff(starts)
        inside = [
            np.where(sizes > back, terms[np.maximum(starts[1:] - 1 - back, starts[:-1])], -1)
            for back in (2, 1, 0)
        ]
    return np.lexsort((*inside, firsts)).astype(np.int32)


def _lay_out(
    starts: np.ndarray, terms: np.ndarray, cluster_of: np.ndarray, n_clusters: int, n_words: int
) -> Clusters:
    members = np.argsort(cluster_of, kind="stable").astype(np.int32)
    counts = np.bincount(cluster_of, minlength=n_clusters)
    # A superquery that got no query is dropped.
    counts = counts[counts > 0]
    cluster_starts = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    n_terms = int(terms.max(initial=0)) + 1
    last_seen = np.full(n_terms, -1, dtype=np.int32)
    n_written = count_terms(cluster_starts, members, starts, terms, last_seen)
    last_seen[:] = -1
    owners, own_terms = (np.empty(n_written, dtype=np.int32) for _ in range(2))
    bits = np.empty(n_written, dtype=np.uint8)
    masks = np.zeros((len(members), n_words), dtype=np.uint32)
    bit_of = np.zeros(n_terms, dtype=np.int32)
    write_clusters(
        cluster_starts, members, starts, terms, last_seen, bit_of, owners, own_terms, bits, masks
    )
    first_terms = terms[starts[members[cluster_starts[:-1]]]]
    return Clusters(cluster_starts, members, masks, first_terms, owners, own_terms, bits)
