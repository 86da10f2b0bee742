"""Matches texts against patterns: finds literals, collects candidates, and tests those of LIKE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from tamis.index.patterns.kernels.automaton import (
    LITERAL,
    NO_LITERAL,
    Automaton,
    next_node,
)
from tamis.index.patterns.kernels.skipping import N_SHALLOW, Skips, begin_of, find_start
from tamis.index.patterns.plan import LiteralPosition
from tamis.kernels.compiled import kernel

if TYPE_CHECKING:
    from tamis.kernels.arrays import Int16, Int32, Int32Rows, Int64, UInt8

ANYWHERE: Final = int(LiteralPosition.ANYWHERE)
START: Final = int(LiteralPosition.START)
END: Final = int(LiteralPosition.END)
WHOLE: Final = int(LiteralPosition.WHOLE)

# The kinds of tests of a candidate.
TEST_LIKE: Final = 0
TEST_LIKE_FOLDED: Final = 1  # in lower case
TEST_REGEX: Final = 2  # not here: the pair is returned

# Tokens of LIKE in addition to the bytes.
ANY_TEXT: Final = 256
ONE_CHARACTER: Final = 257

# Fields of a literal, stored together: half a cache line.
LINK: Final = 0  # the longest literal that is a suffix of it, or NO_LITERAL
LENGTH: Final = 1  # in bytes
POSTINGS: Final = 2  # + position: where they start; the next field is where they end
N_LITERAL_FIELDS: Final = 8

DECIDED: Final = -1

# Indices into PatternScratch.counts.
N_LEAVES: Final = 0
N_CANDIDATES: Final = 1
N_PAIRS: Final = 2
N_COUNTS: Final = 3


class TextBytes(NamedTuple):
    """Texts in UTF-8, unchanged or in lower case; all empty if not needed."""

    text: UInt8
    begins: Int64  # [n_texts]
    ends: Int64  # [n_texts]


class Span(NamedTuple):
    """One text in UTF-8."""

    text: UInt8
    begin: int
    end: int


class Literals(NamedTuple):
    """The literals of both automata, and their postings."""

    table: Int32Rows  # [n_literals, N_LITERAL_FIELDS]
    postings: Int32Rows  # [:, 2], a leaf, and the candidate to test for it, or DECIDED


class Candidates(NamedTuple):
    """Patterns that literals alone do not decide."""

    patterns: Int32  # [n_candidates], numbers of the patterns, ascending
    tests: UInt8  # [n_candidates], TEST_LIKE, TEST_LIKE_FOLDED or TEST_REGEX
    leaves: Int32  # [n_candidates]
    min_lengths: Int64  # [n_candidates], of the text, in characters
    # Each clause is a run of literals, one of which must occur.
    clause_starts: Int32  # [n_candidates + 1]
    literal_starts: Int32  # [n_clauses + 1]
    literals: Int32
    token_starts: Int32  # [n_candidates + 1]
    tokens: Int16  # of LIKE
    always: Int32  # candidates for all texts


class Search(NamedTuple):
    """The patterns of one attribute, and what is made of them to search faster."""

    plain: Automaton
    folded: Automaton
    literals: Literals
    candidates: Candidates
    plain_skips: Skips
    folded_skips: Skips


class PatternScratch(NamedTuple):
    """Scratch space of a call."""

    # The latest text, numbered from 1, in which a literal occurred or a pattern was a candidate:
    # nothing has to be reset between texts.
    literal_texts: Int32  # [n_literals], zero on entry
    candidate_texts: Int32  # [n_candidates], zero on entry
    candidates: Int32  # [n_candidates], those of the current text
    counts: Int64  # [N_COUNTS]


class PatternResults(NamedTuple):
    """The results, text by text."""

    leaf_ends: Int64  # [n_texts], where the leaves of each text end
    leaves: Int32
    pairs: Int32  # [:, 2], texts and candidates whose regular expressions must be tested


@kernel
def match_block(
    first_text,
    max_leaves,  # of one text
    plain,  # TextBytes
    folded,  # TextBytes, in lower case
    search,  # Search
    scratch,  # PatternScratch
    found,  # PatternResults, with room for at least one text that satisfies all patterns
):
    """Match texts from `first_text` on while there is room; return the first text not matched."""
    n_texts = len(found.leaf_ends)
    counts = scratch.counts
    counts[:] = 0
    for text in range(first_text, n_texts):
        is_full = counts[N_LEAVES] + max_leaves > len(found.leaves)
        if is_full or counts[N_PAIRS] + len(search.candidates.tests) > len(found.pairs):
            return text
        own = Span(plain.text, plain.begins[text], plain.ends[text])
        lower = Span(folded.text, folded.begins[text], folded.ends[text])
        match_text(
            text,
            text + 1,
            own,
            lower,
            search,
            scratch,
            found,
        )
        found.leaf_ends[text] = counts[N_LEAVES]
    return n_texts


@kernel
def match_text(
    text,  # its number, which is returned in pairs
    stamp,  # differs from those of all texts before
    plain,  # Span
    folded,  # Span
    search,  # Search
    scratch,  # PatternScratch
    found,  # PatternResults
):
    """Append the leaves and pairs of one text."""
    candidates = search.candidates
    counts = scratch.counts
    counts[N_CANDIDATES] = 0
    for candidate in candidates.always:
        scratch.candidates[counts[N_CANDIDATES]] = candidate
        counts[N_CANDIDATES] += 1
    literals = search.literals
    meet_literals(stamp, plain, search.plain, search.plain_skips, literals, scratch, found)
    meet_literals(stamp, folded, search.folded, search.folded_skips, literals, scratch, found)
    # In bytes, and lower case has no fewer characters: not below the text's own length.
    length = max(plain.end - plain.begin, folded.end - folded.begin)
    for at in range(counts[N_CANDIDATES]):
        candidate = scratch.candidates[at]
        if length >= candidates.min_lengths[candidate] and is_admitted(
            stamp, candidate, candidates, scratch.literal_texts
        ):
            test_candidate(text, candidate, plain, folded, candidates, counts, found)


@kernel
def meet_literals(stamp, span, automaton, skips, literals, scratch, found):
    """Traverse one text, and follow the postings of every literal at its first occurrence."""
    begin, end = span.begin, span.end
    n_shallow = skips.sizes[N_SHALLOW]
    node = 0
    at = begin
    while at < end:
        # No literal is begun before `start`.
        start = at = find_start(span.text, at, end, skips)
        node = 0
        while at < end:
            node = next_node(automaton, node, span.text[at])
            at += 1
            literal = automaton.nodes[node, LITERAL]
            if literal != NO_LITERAL and scratch.literal_texts[literal] != stamp:
                meet_literal(stamp, literal, begin, at, end, literals, scratch, found)
            # If too little of a literal is left, look again whether one may begin with it.
            if node < n_shallow and begin_of(node, at, skips.sizes) > start:
                at = begin_of(node, at, skips.sizes)
                node = 0
                break
    literal = automaton.nodes[node, LITERAL]
    while literal != NO_LITERAL:
        follow(stamp, literal, END, literals, scratch, found)
        literal = literals.table[literal, LINK]


@kernel
def meet_literal(stamp, literal, begin, at, end, literals, scratch, found):
    """Follow the postings of a literal that is new in the text and ends before `at`."""
    table, met_in = literals.table, scratch.literal_texts
    if table[literal, LENGTH] == at - begin:
        follow(stamp, literal, START, literals, scratch, found)
        if at == end:
            follow(stamp, literal, WHOLE, literals, scratch, found)
    # The suffixes of a literal occur with it: each literal is visited once per text.
    while literal != NO_LITERAL and met_in[literal] != stamp:
        met_in[literal] = stamp
        follow(stamp, literal, ANYWHERE, literals, scratch, found)
        literal = table[literal, LINK]


@kernel(inline="always")
def follow(stamp, literal, place, literals, scratch, found):
    """Write the leaves that a literal at a position decides; record the new candidates."""
    counts = scratch.counts
    field = POSTINGS + place
    for at in range(literals.table[literal, field], literals.table[literal, field + 1]):
        candidate = literals.postings[at, 1]
        if candidate == DECIDED:
            found.leaves[counts[N_LEAVES]] = literals.postings[at, 0]
            counts[N_LEAVES] += 1
        elif scratch.candidate_texts[candidate] != stamp:
            scratch.candidate_texts[candidate] = stamp
            scratch.candidates[counts[N_CANDIDATES]] = candidate
            counts[N_CANDIDATES] += 1


@kernel
def is_admitted(stamp, candidate, candidates, literal_texts):
    """Whether a literal of each clause occurs in the text."""
    first, last = candidates.clause_starts[candidate], candidates.clause_starts[candidate + 1]
    for clause in range(first, last):
        is_satisfied = False
        for at in range(candidates.literal_starts[clause], candidates.literal_starts[clause + 1]):
            if literal_texts[candidates.literals[at]] == stamp:
                is_satisfied = True
                break
        if not is_satisfied:
            return False
    return True


@kernel
def test_candidate(text, candidate, plain, folded, candidates, counts, found):
    """Write the candidate's leaf if LIKE matches; return the pair if a regex must be tested."""
    test = candidates.tests[candidate]
    if test == TEST_REGEX:
        found.pairs[counts[N_PAIRS], 0] = text
        found.pairs[counts[N_PAIRS], 1] = candidate
        counts[N_PAIRS] += 1
        return
    span = plain if test == TEST_LIKE else folded
    first, last = candidates.token_starts[candidate], candidates.token_starts[candidate + 1]
    if is_like(span.text[span.begin : span.end], candidates.tokens[first:last]):
        found.leaves[counts[N_LEAVES]] = candidates.leaves[candidate]
        counts[N_LEAVES] += 1


@kernel
def is_like(text, tokens):
    """`tamis.language.patterns.is_like` on UTF-8."""
    at_text, at_token = 0, 0
    retry_text, retry_token = 0, -1  # where to continue if the latest % takes one more
    while at_text < len(text):
        token = tokens[at_token] if at_token < len(tokens) else -1
        if token == ANY_TEXT:
            at_token += 1
            retry_text, retry_token = at_text, at_token
        elif token == ONE_CHARACTER:
            at_text = skip_character(text, at_text)
            at_token += 1
        elif token == text[at_text]:
            at_text += 1
            at_token += 1
        elif retry_token >= 0:
            retry_text = skip_character(text, retry_text)
            at_text, at_token = retry_text, retry_token
        else:
            return False
    while at_token < len(tokens) and tokens[at_token] == ANY_TEXT:
        at_token += 1
    return at_token == len(tokens)


@kernel(inline="always")
def skip_character(text, at):
    """The start of the next character."""
    at += 1
    while at < len(text) and text[at] & 0xC0 == 0x80:
        at += 1
    return at
