"""Matches documents against one partition: the matching phase, then the testing phase (§3.2, §3.3,
§4.2).

The hash table is as large as the document requires and uses linear probing; its entries are cleared
one by one after each document. In the primitive algorithm queries are numbered at random and their
low bits are the hash (§3.1). In the others they are numbered by their least frequent term, so that
entries created and tested together are adjacent, and the numbers are hashed. The Bloom filter has
one hash function, the low bits, and a byte for each of its bits, so that eight postings are tested
at once with a single branch.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.kernels.compiled import kernel

EMPTY = np.int32(-1)
NOWHERE = ~np.uint64(0)
QUERY_BITS = 25
QUERY_MASK = np.uint32((1 << QUERY_BITS) - 1)


class Lists(NamedTuple):
    """Inverted lists of one partition: all postings, or those of position zero separately."""

    # uint32[n_terms + 1, 2], the start of the postings of position zero, and of the others: next to
    # each other, because both are read for every term. In the primitive algorithm all postings are
    # among the others.
    starts: np.ndarray
    first_queries: np.ndarray  # int32[:]
    first_needs: np.ndarray  # uint8[:], number of further terms of the query
    # uint32[:], the query in the low QUERY_BITS; above them, with superqueries, the term's bit of
    # the mask (§3.1: a posting is one integer).
    rest: np.ndarray


class Queries(NamedTuple):
    """The data of the testing phase."""

    sizes: np.ndarray  # int32[n], terms of each query; used by the primitive algorithm only
    # The queries of each superquery; without superqueries each query is its own.
    starts: np.ndarray  # int64[n + 1]
    members: np.ndarray  # int32[:]
    masks: np.ndarray  # uint32[:, n_words], the bits that a member requires


class Table(NamedTuple):
    """The hash table and the Bloom filter; empty between documents."""

    keys: np.ndarray  # int32[2 ** k]
    counts: np.ndarray  # uint8[2 ** k]
    bits: np.ndarray  # uint32[2 ** k, n_words]
    used: np.ndarray  # int32[:], slots in use
    bloom: np.ndarray  # uint8[2 ** j], 0 or 1
    passed: np.ndarray  # uint32[:], postings of one document that passed the filter
    work: np.ndarray  # int64[N_COUNTS], totals so far


# The counts: postings read, accumulators created, postings that passed the Bloom filter,
# accumulators updated, queries tested.
POSTINGS, ACCUMULATORS, PASSED, UPDATES, TESTS, N_COUNTS = range(6)
FIRST, REST = 0, 1
ONE = np.uint64(1)
EIGHT = np.uint64(8)


@kernel(_nrt=True, inline="always")
def table_mask(n_entries, size):
    """The mask of the smallest table that is at most half full."""
    wanted = np.int64(16)
    while wanted < 2 * n_entries and wanted < size:
        wanted *= 2
    return np.uint64(wanted - 1)


@kernel(_nrt=True, inline="always")
def scatter(query):
    """A hash of a query's number."""
    return (np.uint64(np.uint32(query)) * np.uint64(2654435761)) >> np.uint64(13)


@kernel(_nrt=True)
def count_postings(terms, starts, part):
    """The number of postings in this part of the terms' lists."""
    n_postings = np.int64(0)
    for term in terms:
        n_postings += np.int64(starts[term + 1, part]) - np.int64(starts[term, part])
    return n_postings


@kernel(_nrt=True)
def match_documents(
    first,  # document
    starts,  # int64[n_documents + 1]
    terms,  # int32[:], of each document, ascending
    lists,  # Lists
    queries,  # Queries
    table,  # Table
    is_split,
    has_bloom,
    is_super,
    found,  # int32[:], output: queries
    rows,  # int32[:], output: documents
):
    """Match documents from `first` on while there is room; return the next one and the number of
    matches.
    """
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


@kernel(_nrt=True)
def match_primitive(document, terms, lists, queries, table, found, rows, n_found):
    """Count every query that contains one of the document's terms (Figure 3.1)."""
    postings, starts = lists.rest, lists.starts
    keys, counts, used = table.keys, table.counts, table.used
    n_postings = count_postings(terms, starts, REST)
    mask = table_mask(n_postings, len(table.keys))
    n_used = np.int64(0)
    for term in terms:
        for at in range(np.uint64(starts[term, REST]), np.uint64(starts[term + 1, REST])):
            query = np.int32(postings[at])
            slot = np.uint64(np.uint32(query)) & mask
            key = keys[slot]
            while key != query and key != EMPTY:
                slot = (slot + ONE) & mask
                key = keys[slot]
            if key == EMPTY:
                keys[slot] = query
                counts[slot] = 1
                used[n_used] = slot
                n_used += 1
            else:
                counts[slot] += 1
    for at in range(n_used):
        slot = used[at]
        query = keys[slot]
        if counts[slot] == queries.sizes[query]:
            found[n_found] = queries.members[query]
            rows[n_found] = document
            n_found += 1
        keys[slot] = EMPTY
    table.work[POSTINGS] += n_postings
    table.work[ACCUMULATORS] += n_used
    table.work[UPDATES] += n_postings - n_used
    table.work[TESTS] += n_used
    return n_found


@kernel(_nrt=True)
def match_split(document, terms, lists, queries, table, has_bloom, is_super, found, rows, n_found):
    """Create accumulators for least frequent terms only; other terms update them (Figure 3.2)."""
    n_first = count_postings(terms, lists.starts, FIRST)
    table.work[POSTINGS] += n_first + count_postings(terms, lists.starts, REST)
    if n_first == 0:
        return n_found
    mask = table_mask(n_first, len(table.keys))
    # The filter is so large that hardly a posting passes without an accumulator: each such posting
    # costs as much as a hundred that do not pass.
    bloom_mask = table_mask(256 * n_first, len(table.bloom))
    create_accumulators(terms, lists, table, mask, bloom_mask, is_super)
    if has_bloom:
        update_passed(terms, lists, table, mask, bloom_mask, is_super)
    else:
        for term in terms:
            own = lists.rest[lists.starts[term, REST] : lists.starts[term + 1, REST]]
            update(own, table, mask, is_super)
    return test(document, queries, table, n_first, bloom_mask, is_super, found, rows, n_found)


@kernel(_nrt=True)
def create_accumulators(terms, lists, table, mask, bloom_mask, is_super):
    """Insert all queries whose least frequent term is in the document."""
    keys, counts, bits, bloom = table.keys, table.counts, table.bits, table.bloom
    n_used = 0
    for term in terms:
        for at in range(lists.starts[term, FIRST], lists.starts[term + 1, FIRST]):
            query = lists.first_queries[at]
            slot = scatter(query) & mask
            while keys[slot] != EMPTY:
                slot = (slot + ONE) & mask
            keys[slot] = query
            if is_super:
                for word in range(bits.shape[1]):
                    bits[slot, word] = 0
            else:
                counts[slot] = lists.first_needs[at]
            table.used[n_used] = slot
            n_used += 1
            bloom[np.uint64(query) & bloom_mask] = 1
    table.work[ACCUMULATORS] += n_used


@kernel(_nrt=True)
def update_passed(terms, lists, table, mask, bloom_mask, is_super):
    """Update accumulators from the other postings that pass the Bloom filter."""
    bloom, postings, starts = table.bloom, lists.rest, lists.starts
    passed = table.passed
    n_passed = np.uint64(0)
    for term in terms:
        at, end = np.uint64(starts[term, REST]), np.uint64(starts[term + 1, REST])
        whole = end - ((end - at) & (EIGHT - ONE))
        while at < whole:
            if has_any(bloom, postings, at, bloom_mask):
                n_passed = keep_passed(
                    bloom, postings, at, at + EIGHT, bloom_mask, passed, n_passed
                )
            at += EIGHT
        n_passed = keep_passed(bloom, postings, at, end, bloom_mask, passed, n_passed)
    table.work[PASSED] += np.int64(n_passed)
    update(passed[:n_passed], table, mask, is_super)


@kernel(_nrt=True)
def keep_passed(bloom, postings, at, end, bloom_mask, passed, n_passed):
    """Append the postings that pass, without a branch, since the outcome is unpredictable."""
    while at < end:
        passed[n_passed] = postings[at]
        n_passed += np.uint64(bloom[np.uint64(postings[at]) & bloom_mask])
        at += ONE
    return n_passed


@kernel(_nrt=True, inline="always")
def has_any(bloom, postings, at, bloom_mask):
    """Whether one of eight postings passes; written out, because Numba does not unroll a loop."""
    one = (
        bloom[np.uint64(postings[at]) & bloom_mask]
        | bloom[np.uint64(postings[at + ONE]) & bloom_mask]
    )
    two = (
        bloom[np.uint64(postings[at + np.uint64(2)]) & bloom_mask]
        | bloom[np.uint64(postings[at + np.uint64(3)]) & bloom_mask]
    )
    three = (
        bloom[np.uint64(postings[at + np.uint64(4)]) & bloom_mask]
        | bloom[np.uint64(postings[at + np.uint64(5)]) & bloom_mask]
    )
    four = (
        bloom[np.uint64(postings[at + np.uint64(6)]) & bloom_mask]
        | bloom[np.uint64(postings[at + np.uint64(7)]) & bloom_mask]
    )
    return (one | two | three | four) != 0


@kernel(_nrt=True)
def update(postings, table, mask, is_super):
    """Count or mark the terms of postings whose queries have accumulators."""
    keys, counts, bits = table.keys, table.counts, table.bits
    n_updated = np.int64(0)
    for posting in postings:
        slot = find_slot(keys, np.int32(posting & QUERY_MASK), mask)
        if slot != NOWHERE:
            n_updated += 1
            if is_super:
                own = posting >> QUERY_BITS
                bits[slot, own >> 5] |= np.uint32(1) << (own & 31)
            else:
                counts[slot] -= 1
    table.work[UPDATES] += n_updated


@kernel(_nrt=True)
def find_slot(keys, query, mask):
    """The slot of a query's accumulator, or NOWHERE."""
    slot = scatter(query) & mask
    key = keys[slot]
    while key != query and key != EMPTY:
        slot = (slot + ONE) & mask
        key = keys[slot]
    return slot if key == query else NOWHERE


@kernel(_nrt=True)
def test(document, queries, table, n_used, bloom_mask, is_super, found, rows, n_found):
    """The testing phase: find the accumulators whose queries are complete."""
    keys, counts, bits, bloom = table.keys, table.counts, table.bits, table.bloom
    starts, members, masks = queries.starts, queries.members, queries.masks
    n_tested = np.int64(0 if is_super else n_used)
    for at in range(n_used):
        slot = np.uint64(table.used[at])
        query = keys[slot]
        keys[slot] = EMPTY
        bloom[np.uint64(query) & bloom_mask] = 0
        if not is_super:
            if counts[slot] == 0:
                found[n_found] = members[query]
                rows[n_found] = document
                n_found += 1
            continue
        n_tested += starts[query + 1] - starts[query]
        for member in range(np.uint64(starts[query]), np.uint64(starts[query + 1])):
            missing = np.uint32(0)
            for word in range(bits.shape[1]):
                missing |= masks[member, word] & ~bits[slot, word]
            if missing == 0:
                found[n_found] = members[member]
                rows[n_found] = document
                n_found += 1
    table.work[TESTS] += n_tested
    return n_found
