"""One partition against documents: the matching phase, then the testing phase (§3.2, §3.3, §4.2).

The hash table is as large as a document needs, probed linearly, and its entries are cleared one by
one after it. In the primitive algorithm queries are numbered at random and their low bits are the
hash (§3.1). In the others they are numbered by their least frequent term, so that what is created
and tested together lies together, and the numbers are hashed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

EMPTY = np.int32(-1)


class Lists(NamedTuple):
    """Inverted lists of one partition: all postings, or those of position zero apart."""

    first_starts: np.ndarray  # int64[n_terms + 1], postings of position zero
    first_queries: np.ndarray  # int32[:]
    first_needs: np.ndarray  # uint8[:], how many terms more the query has
    rest_starts: np.ndarray  # int64[n_terms + 1], the others; in the primitive algorithm all
    rest_queries: np.ndarray  # int32[:]
    rest_bits: np.ndarray  # uint8[:], with superqueries: which bit of the mask the term is


class Queries(NamedTuple):
    """What is tested when an accumulator is there."""

    sizes: np.ndarray  # int32[n], terms of each query; only the primitive algorithm looks there
    # The queries of each superquery; without superqueries each query stands for itself.
    starts: np.ndarray  # int64[n + 1]
    members: np.ndarray  # int32[:]
    masks: np.ndarray  # uint32[:, n_words], the bits that a member needs


class Table(NamedTuple):
    """The hash table and the Bloom filter; empty between documents."""

    keys: np.ndarray  # int32[2 ** k]
    counts: np.ndarray  # uint8[2 ** k]
    bits: np.ndarray  # uint32[2 ** k, n_words]
    used: np.ndarray  # int32[:], slots in use
    bloom: np.ndarray  # uint64[2 ** j]
    passed: np.ndarray  # uint64[:], postings of one list that pass the filter


@njit(cache=True, nogil=True, inline="always")
def table_mask(n_entries, size):
    """The mask of the smallest table that is at most half full."""
    wanted = np.int64(16)
    while wanted < 2 * n_entries and wanted < size:
        wanted *= 2
    return wanted - 1


@njit(cache=True, nogil=True, inline="always")
def scatter(query):
    """A hash of a query's number."""
    return (np.uint64(np.uint32(query)) * np.uint64(2654435761)) >> np.uint64(13)


@njit(cache=True, nogil=True)
def match_documents(
    first,  # document
    starts,  # int64[n_documents + 1]
    terms,  # int32[:], of each document, rising
    lists,  # Lists
    queries,  # Queries
    table,  # Table
    is_split,
    has_bloom,
    is_super,
    found,  # int32[:], output: queries
    rows,  # int32[:], output: documents
):
    """Match documents from `first` on while there is room; the next one, and how many matched."""
    n_found = np.int64(0)
    for document in range(first, len(starts) - 1):
        if n_found + len(queries.members) > len(found):
            return document, n_found
        own = terms[starts[document] : starts[document + 1]]
        if is_split:
            n_found = match_split(
                document, own, lists, queries, table, has_bloom, is_super, found, rows, n_found
            )
        else:
            n_found = match_primitive(document, own, lists, queries, table, found, rows, n_found)
    return len(starts) - 1, n_found


@njit(cache=True, nogil=True)
def match_primitive(document, terms, lists, queries, table, found, rows, n_found):
    """Count every query that has one of the document's terms (Figure 3.1)."""
    n_postings = np.int64(0)
    for term in terms:
        n_postings += lists.rest_starts[term + 1] - lists.rest_starts[term]
    mask = table_mask(n_postings, len(table.keys))
    n_used = 0
    for term in terms:
        for at in range(lists.rest_starts[term], lists.rest_starts[term + 1]):
            query = lists.rest_queries[at]
            slot = query & mask
            while table.keys[slot] != query and table.keys[slot] != EMPTY:
                slot = (slot + 1) & mask
            if table.keys[slot] == EMPTY:
                table.keys[slot] = query
                table.counts[slot] = 1
                table.used[n_used] = slot
                n_used += 1
            else:
                table.counts[slot] += 1
    for at in range(n_used):
        slot = table.used[at]
        query = table.keys[slot]
        if table.counts[slot] == queries.sizes[query]:
            found[n_found] = queries.members[query]
            rows[n_found] = document
            n_found += 1
        table.keys[slot] = EMPTY
    return n_found


@njit(cache=True, nogil=True)
def match_split(document, terms, lists, queries, table, has_bloom, is_super, found, rows, n_found):
    """Accumulators for least frequent terms only; others update what is there (Figure 3.2)."""
    n_first = np.int64(0)
    for term in terms:
        n_first += lists.first_starts[term + 1] - lists.first_starts[term]
    if n_first == 0:
        return n_found
    mask = table_mask(n_first, len(table.keys))
    # 32 bits for each entry, of which one is set.
    bloom_mask = table_mask(16 * n_first, 64 * len(table.bloom))
    n_words = table.bits.shape[1]
    n_used = 0
    for term in terms:
        for at in range(lists.first_starts[term], lists.first_starts[term + 1]):
            query = lists.first_queries[at]
            place = np.int64(scatter(query))
            slot = place & mask
            while table.keys[slot] != EMPTY:
                slot = (slot + 1) & mask
            table.keys[slot] = query
            if is_super:
                for word in range(n_words):
                    table.bits[slot, word] = 0
            else:
                table.counts[slot] = lists.first_needs[at]
            table.used[n_used] = slot
            n_used += 1
            if has_bloom:
                bit = place & bloom_mask
                table.bloom[bit >> 6] |= np.uint64(1) << np.uint64(bit & 63)
    passed = table.passed
    for term in terms:
        begin, end = np.uint64(lists.rest_starts[term]), np.uint64(lists.rest_starts[term + 1])
        n_passed = np.uint64(end - begin)
        if has_bloom:
            # Without a branch: which postings pass cannot be foreseen.
            n_passed = np.uint64(0)
            for at in range(begin, end):
                bit = scatter(lists.rest_queries[at]) & np.uint64(bloom_mask)
                passed[n_passed] = at
                word = table.bloom[bit >> np.uint64(6)]
                n_passed += (word >> (bit & np.uint64(63))) & np.uint64(1)
        for i in range(n_passed):
            posting = passed[i] if has_bloom else begin + i
            query = lists.rest_queries[posting]
            slot = np.int64(scatter(query)) & mask
            while table.keys[slot] != query and table.keys[slot] != EMPTY:
                slot = (slot + 1) & mask
            if table.keys[slot] == query:
                if is_super:
                    own = lists.rest_bits[posting]
                    table.bits[slot, own >> 5] |= np.uint32(1) << np.uint32(own & 31)
                else:
                    table.counts[slot] -= 1
    if has_bloom:
        for at in range((bloom_mask >> 6) + 1):
            table.bloom[at] = 0
    return test(document, queries, table, n_used, is_super, found, rows, n_found)


@njit(cache=True, nogil=True)
def test(document, queries, table, n_used, is_super, found, rows, n_found):
    """The testing phase: which queries of the accumulators are complete."""
    n_words = table.bits.shape[1]
    for at in range(n_used):
        slot = table.used[at]
        query = table.keys[slot]
        table.keys[slot] = EMPTY
        if not is_super:
            if table.counts[slot] == 0:
                found[n_found] = queries.members[query]
                rows[n_found] = document
                n_found += 1
            continue
        for member in range(queries.starts[query], queries.starts[query + 1]):
            is_complete = True
            for word in range(n_words):
                wanted = queries.masks[member, word]
                if table.bits[slot, word] & wanted != wanted:
                    is_complete = False
                    break
            if is_complete:
                found[n_found] = queries.members[member]
                rows[n_found] = document
                n_found += 1
    return n_found
