"""Queries contained in others (§4.1)."""

from __future__ import annotations

import numpy as np

from tamis.lab.irmak.kernels.containment import find_contained


def count_contained(starts: np.ndarray, terms: np.ndarray) -> tuple[int, int]:
    """How many queries have all their terms in a longer query, and in one with the same first term.

    The first term of a query is its least frequent one. Query i has terms[starts[i]:starts[i + 1]].
    """
    n_terms = int(terms.max(initial=-1)) + 1
    tid = np.empty(n_terms, dtype=np.int32)
    tid[np.argsort(np.bincount(terms, minlength=n_terms), kind="stable")] = np.arange(n_terms)
    owners = np.repeat(np.arange(len(starts) - 1, dtype=np.int32), np.diff(starts))
    tids = tid[terms]
    tids = tids[np.lexsort((tids, owners))]
    list_starts = np.concatenate(([0], np.cumsum(np.bincount(tids, minlength=n_terms))))
    queries = owners[np.argsort(tids, kind="stable")]
    found = np.zeros(2, dtype=np.int64)
    find_contained(starts.astype(np.int64), tids, list_starts.astype(np.int64), queries, found)
    return int(found[0]), int(found[1])
