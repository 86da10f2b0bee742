"""Groups queries with the same least frequent term into superqueries (§4.3)."""

from __future__ import annotations

import numpy as np

from tamis.kernels.compiled import kernel


@kernel(_nrt=True)
def cluster_in_order(
    pool_starts,  # int64[n_pools + 1], queries by least frequent term
    order,  # int32[:], queries, pool by pool, in processing order
    starts,  # int64[n_queries + 1]
    terms,  # int32[:], of each query ascending; the first is that of the pool
    n_bits,
    last_seen,  # int32[n_terms], -1 at first
    cluster_of,  # int32[n_queries], output
):
    """Group the queries in order; start a new superquery if the current one would have too many
    terms.
    """
    n_clusters = 0
    for pool in range(len(pool_starts) - 1):
        n_terms = 0
        is_open = False
        for at in range(pool_starts[pool], pool_starts[pool + 1]):
            query = order[at]
            n_new = 0
            for place in range(starts[query] + 1, starts[query + 1]):
                n_new += last_seen[terms[place]] != n_clusters
            if is_open and n_terms + n_new > n_bits:
                n_clusters += 1
                n_terms = 0
                n_new = starts[query + 1] - starts[query] - 1
            for place in range(starts[query] + 1, starts[query + 1]):
                last_seen[terms[place]] = n_clusters
            n_terms += n_new
            is_open = True
            cluster_of[query] = n_clusters
        n_clusters += is_open
    return n_clusters


@kernel(_nrt=True)
def cluster_by_overlap(
    pool_starts, order, starts, terms, n_bits, n_looked_at, last_seen, cluster_of
):
    """Always add the query that shares most terms with the superquery (Figure 4.2).

    The best query has the largest share of common terms in the resulting superquery. In a large
    pool only the next `n_looked_at` queries are compared: the paper's choice takes quadratic time.
    """
    n_clusters = 0
    for pool in range(len(pool_starts) - 1):
        begin, end = pool_starts[pool], pool_starts[pool + 1]
        n_terms = 0
        while begin < end:
            best, best_share, best_new = -1, -1.0, 0
            for at in range(begin, min(end, begin + n_looked_at)):
                query = order[at]
                n_common = 0
                for place in range(starts[query] + 1, starts[query + 1]):
                    n_common += last_seen[terms[place]] == n_clusters
                n_new = starts[query + 1] - starts[query] - 1 - n_common
                share = n_common / (n_terms + n_new + 1)
                if (n_terms == 0 or n_terms + n_new <= n_bits) and share > best_share:
                    best, best_share, best_new = at, share, n_new
            if best < 0:
                n_clusters += 1
                n_terms = 0
                continue
            query = order[best]
            order[best] = order[begin]
            order[begin] = query
            begin += 1
            for place in range(starts[query] + 1, starts[query + 1]):
                last_seen[terms[place]] = n_clusters
            n_terms += best_new
            cluster_of[query] = n_clusters
        n_clusters += 1
    return n_clusters


@kernel(_nrt=True)
def count_terms(cluster_starts, members, starts, terms, last_seen):
    """The number of distinct terms of the superqueries, without the least frequent ones."""
    n_terms = np.int64(0)
    for cluster in range(len(cluster_starts) - 1):
        for at in range(cluster_starts[cluster], cluster_starts[cluster + 1]):
            query = members[at]
            for place in range(starts[query] + 1, starts[query + 1]):
                if last_seen[terms[place]] != cluster:
                    last_seen[terms[place]] = cluster
                    n_terms += 1
    return n_terms


@kernel(_nrt=True)
def write_clusters(
    cluster_starts, members, starts, terms, last_seen, bit_of, owners, own_terms, bits, masks
):
    """Write each superquery's terms with their bits, and each member's mask."""
    n_written = np.int64(0)
    for cluster in range(len(cluster_starts) - 1):
        n_bits = 0
        for at in range(cluster_starts[cluster], cluster_starts[cluster + 1]):
            query = members[at]
            for place in range(starts[query] + 1, starts[query + 1]):
                term = terms[place]
                if last_seen[term] != cluster:
                    last_seen[term] = cluster
                    bit_of[term] = n_bits
                    owners[n_written] = cluster
                    own_terms[n_written] = term
                    bits[n_written] = n_bits
                    n_bits += 1
                    n_written += 1
                masks[at, bit_of[term] >> 5] |= np.uint32(1) << np.uint32(bit_of[term] & 31)
    return n_written
