"""Count predicates, then evaluate candidates in their encoded form (Figure 2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tamis.kernels.compiled import kernel

# Indices into `counts`.
N_POSTINGS, N_CANDIDATES, N_NODES = range(3)
NEVER: Final = 1 << 30  # more predicates than there are


@kernel
def minimum_counts(starts, codes, needed, minima):
    """Write the minimum number of true predicates for each expression to be true."""
    for at in range(len(minima) - 1, -1, -1):
        top = 0  # of a stack of minima, stored in `needed`; children before their parent
        for place in range(starts[at + 1] - 1, starts[at] - 1, -1):
            code = codes[place]
            if code < 0:
                least = 1
            else:
                is_or = code & 1
                least = NEVER if is_or else 0
                for _ in range(code >> 1):
                    top -= 1
                    below = needed[top]
                    least = min(least, below) if is_or else min(least + below, NEVER)
            needed[top] = least
            top += 1
        minima[at] = needed[0]


@kernel
def match_by_counts(
    first,  # event
    satisfied,  # Rows
    is_true,  # bool[n_leaves], all false before and after
    index,  # BoPArrays
    hits,  # int32[n_expressions], all zero before and after
    found_starts,
    found,
    counts,
):
    """Write which expressions are true for events from `first` on; return the next event.

    Expressions that are always true come first, then candidates in the order in which they are
    found.
    """
    for event in range(first, len(found_starts) - 1):
        begin = found_starts[event]
        if len(found) - begin < len(hits):
            return event
        own = satisfied.values[satisfied.starts[event] : satisfied.starts[event + 1]]
        for expression in index.always:
            found[begin] = expression
            begin += 1
        for leaf in own:
            is_true[leaf] = True
        n_candidates = count_leaves(own, index, hits, found[begin:], counts)
        n_found = evaluate_candidates(index, is_true, found[begin:], n_candidates, counts)
        for leaf in own:
            is_true[leaf] = False
        found_starts[event + 1] = begin + n_found
    return len(found_starts) - 1


@kernel
def count_leaves(leaves, index, hits, candidates, counts):
    """Write the expressions with their minimum of true predicates; return how many."""
    posting_starts, postings, minima = index.posting_starts, index.postings, index.minima
    n_candidates = 0
    for leaf in leaves:
        for place in range(posting_starts[leaf], posting_starts[leaf + 1]):
            expression = postings[place]
            hits[expression] += 1
            if hits[expression] == minima[expression]:
                candidates[n_candidates] = expression
                n_candidates += 1
    # Undo only the touched counters: a full reset costs more than an event.
    for leaf in leaves:
        counts[N_POSTINGS] += posting_starts[leaf + 1] - posting_starts[leaf]
        for place in range(posting_starts[leaf], posting_starts[leaf + 1]):
            hits[postings[place]] = 0
    counts[N_CANDIDATES] += n_candidates
    return n_candidates


@kernel
def evaluate_candidates(index, is_true, candidates, n_candidates, counts):
    """Keep the candidates that are true; return how many."""
    n_found = 0
    for at in range(n_candidates):
        start = np.int64(index.starts[candidates[at]])
        if evaluate(start, index.codes, is_true, counts) & 1:
            candidates[n_found] = candidates[at]
            n_found += 1
    return n_found


@kernel
def evaluate(place, codes, is_true, counts):
    """Twice the position after the part that begins here, plus 1 if the part is true."""
    counts[N_NODES] += 1
    code = codes[place]
    place += 1
    if code < 0:
        return place << 1 | is_true[~code]
    is_or = code & 1
    for child in range(code >> 1):
        result = evaluate(np.int64(place), codes, is_true, counts)
        place = result >> 1
        if (result & 1) == is_or:
            return skip(place, (code >> 1) - child - 1, codes) << 1 | is_or
    return place << 1 | (1 - is_or)


@kernel
def skip(place, n_parts, codes):
    """The position after the next `n_parts` parts."""
    while n_parts > 0:
        code = codes[place]
        n_parts += -1 if code < 0 else (code >> 1) - 1
        place += 1
    return place
