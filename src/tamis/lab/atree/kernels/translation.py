"""Count the true predicates of conjunctions."""

from __future__ import annotations

from tamis.kernels.compiled import kernel

# Indices into `counts`.
N_POSTINGS, N_CONJUNCTIONS = range(2)


@kernel
def match_conjunctions(
    first,  # event
    satisfied,  # Rows
    index,  # ConjunctionArrays
    hits,  # int32[n_conjunctions], all zero before and after
    found_at,  # int32[n_expressions], the last event that found each
    found_starts,
    found,
    counts,
):
    """Write the distinct expressions with a true conjunction, for events from `first` on.

    Returns the next event.
    """
    posting_starts, postings = index.posting_starts, index.postings
    for event in range(first, len(found_starts) - 1):
        n_found = found_starts[event]
        if len(found) - n_found < len(found_at):
            return event
        for owner in index.always:
            found_at[owner] = event
            found[n_found] = owner
            n_found += 1
        own = satisfied.values[satisfied.starts[event] : satisfied.starts[event + 1]]
        for leaf in own:
            counts[N_POSTINGS] += posting_starts[leaf + 1] - posting_starts[leaf]
            for place in range(posting_starts[leaf], posting_starts[leaf + 1]):
                conjunction = postings[place]
                hits[conjunction] += 1
                if hits[conjunction] == index.sizes[conjunction]:
                    counts[N_CONJUNCTIONS] += 1
                    owner = index.owners[conjunction]
                    if found_at[owner] != event:
                        found_at[owner] = event
                        found[n_found] = owner
                        n_found += 1
        # Undo only the touched counters: a full reset costs more than an event.
        for leaf in own:
            for place in range(posting_starts[leaf], posting_starts[leaf + 1]):
                hits[postings[place]] = 0
        found_starts[event + 1] = n_found
    return len(found_starts) - 1
