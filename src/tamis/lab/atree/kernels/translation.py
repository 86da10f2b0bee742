"""Count the predicates of conjunctions."""

from __future__ import annotations

from tamis.kernels.compiled import kernel

# Places of `counts`.
N_POSTINGS, N_CONJUNCTIONS = range(2)


@kernel
def match_conjunctions(
    leaves,
    posting_starts,
    postings,  # conjunctions, by predicate
    sizes,  # predicates of each conjunction
    owners,  # its expression
    hits,  # int32[n_conjunctions], zero on entry and on return
    event,
    found_at,  # int32[n_expressions], the last event that each was found by
    found,
    counts,
):
    """Write the expressions of the conjunctions that hold, each once; return how many."""
    n_found = 0
    for leaf in leaves:
        counts[N_POSTINGS] += posting_starts[leaf + 1] - posting_starts[leaf]
        for place in range(posting_starts[leaf], posting_starts[leaf + 1]):
            conjunction = postings[place]
            hits[conjunction] += 1
            if hits[conjunction] == sizes[conjunction]:
                counts[N_CONJUNCTIONS] += 1
                owner = owners[conjunction]
                if found_at[owner] != event:
                    found_at[owner] = event
                    found[n_found] = owner
                    n_found += 1
    # Undo only what was touched: a full reset costs more than an event.
    for leaf in leaves:
        for place in range(posting_starts[leaf], posting_starts[leaf + 1]):
            hits[postings[place]] = 0
    return n_found
