"""Checks the automata and the terms of an untrusted index.

This is the part of `index.structure` for columns that search texts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tamis.index.array_checks import (
    expect,
    expect_length,
    expect_starts,
    expect_texts,
    expect_within,
)
from tamis.index.patterns.kernels.automaton import (
    FAILURE,
    FIRST_CHILD,
    LABEL,
    LITERAL,
    N_FIELDS,
    NO_LITERAL,
)
from tamis.index.patterns.kernels.matching import (
    DECIDED,
    LENGTH,
    LINK,
    N_LITERAL_FIELDS,
    ONE_CHARACTER,
    POSTINGS,
    TEST_REGEX,
)
from tamis.index.patterns.plan import LiteralPosition
from tamis.index.patterns.stored import KINDS, StoredPatterns
from tamis.text.kernels.find import ANY_NUMBER

if TYPE_CHECKING:
    from tamis.index.columns import Column
    from tamis.index.patterns.arrays import PatternArrays
    from tamis.index.patterns.kernels.automaton import Automaton
    from tamis.index.patterns.kernels.matching import Candidates, Literals
    from tamis.kernels.arrays import UInt8
    from tamis.text.kernels.wildcards import Literals as WildcardLiterals

_N_BYTES = 256


def check_patterns(column: Column, leaves: tuple[int, int]) -> None:
    """Raise an error unless the column's patterns are valid; `leaves` are its first leaf and its
    end.
    """
    arrays = column.pattern_arrays
    assert arrays is not None
    assert isinstance(column.patterns, StoredPatterns)
    kinds, offsets, data = column.patterns.texts
    n_patterns, n_literals = len(kinds), len(arrays.literals.table)
    expect_within(kinds, 0, len(KINDS), "the kinds of patterns")
    expect_texts(offsets, data, n_patterns, "the texts of patterns")
    expect_length(column.pattern_leaves, n_patterns, "the leaves of patterns")
    expect_within(column.pattern_leaves, *leaves, "the leaves of patterns")
    _check_automaton(arrays.plain, n_literals)
    _check_automaton(arrays.folded, n_literals)
    _check_literals(arrays.literals, arrays.candidates, leaves)
    _check_candidates(arrays.candidates, kinds, n_literals, leaves)
    _check_room(arrays, n_patterns)


def _check_automaton(automaton: Automaton, n_literals: int) -> None:
    nodes, byte_classes, dense_rows = automaton
    n_nodes = len(nodes) - 1
    expect(nodes.shape[1] == N_FIELDS, "a node of an automaton has a wrong number of fields")
    expect(n_nodes >= 1, "an automaton has no root")
    children = nodes[:, FIRST_CHILD]
    expect(children[0] == 1, "the first child of a root is not the node after it")
    expect((children[1:] >= children[:-1]).all(), "the children in an automaton are not ascending")
    expect(children[-1] == n_nodes, "the children in an automaton exceed its nodes")
    # Failure links lead to lower nodes, so following them ends.
    failures = nodes[:n_nodes, FAILURE]
    is_back = (failures >= 0) & (failures < np.maximum(np.arange(n_nodes), 1))
    expect(is_back.all(), "a failure link does not lead to a lower node")
    expect_within(nodes[:n_nodes, LITERAL], NO_LITERAL, n_literals, "a literal of an automaton")
    expect_within(nodes[:n_nodes, LABEL], 0, _N_BYTES, "a label of an automaton")
    n_dense, n_classes = dense_rows.shape
    expect(1 <= n_dense <= n_nodes and n_classes >= 1, "an automaton lacks its dense rows")
    expect_within(dense_rows, 0, n_nodes, "the dense rows of an automaton")
    expect_length(byte_classes, _N_BYTES, "the classes of bytes")
    expect_within(byte_classes, 0, n_classes, "the classes of bytes")


def _check_literals(literals: Literals, candidates: Candidates, leaves: tuple[int, int]) -> None:
    table, postings = literals
    n_literals, n_postings = len(table), len(postings)
    expect(table.shape[1] == N_LITERAL_FIELDS, "a literal has a wrong number of fields")
    expect(postings.shape[1] == 2, "a posting of a literal is not a pair")
    links = table[:, LINK]
    expect_within(links, NO_LITERAL, n_literals, "the link of a literal")
    # A link leads to a shorter literal, so following the links ends.
    linked = links != NO_LITERAL
    lengths = table[:, LENGTH]
    expect(
        (lengths[links[linked]] < lengths[linked]).all(),
        "a literal ends with a longer one",
    )
    fields = table[:, POSTINGS : POSTINGS + len(LiteralPosition) + 1]
    expect_within(fields, 0, n_postings + 1, "the postings of a literal")
    expect((fields[:, 1:] >= fields[:, :-1]).all(), "the postings of a literal are not ascending")
    expect_within(postings[:, 0], *leaves, "the leaf of a literal")
    expect_within(postings[:, 1], DECIDED, len(candidates.tests), "the candidate of a literal")
    # Each posting is followed once in a text, so it must belong to one literal at one position.
    n_followed = int((fields[:, -1] - fields[:, 0]).sum()) if n_literals else 0
    expect(n_followed == n_postings, "literals share postings, or leave some out")
    starts = np.sort(fields[:, 0])
    ends = np.sort(fields[:, -1])
    expect((starts[1:] >= ends[:-1]).all(), "literals share postings")


def _check_candidates(
    candidates: Candidates, kinds: UInt8, n_literals: int, leaves: tuple[int, int]
) -> None:
    n_candidates, n_patterns = len(candidates.tests), len(kinds)
    patterns, tests = candidates.patterns, candidates.tests
    for name in ("patterns", "leaves", "min_lengths"):
        expect_length(getattr(candidates, name), n_candidates, f"the {name} of candidates")
    expect_within(patterns, 0, n_patterns, "the patterns of candidates")
    expect((patterns[1:] > patterns[:-1]).all(), "the patterns of candidates are not ascending")
    expect_within(tests, 0, TEST_REGEX + 1, "the tests of candidates")
    is_regex = kinds[patterns] == KINDS.index("rlike")
    expect(
        np.array_equal(is_regex, tests == TEST_REGEX),
        "a candidate and its pattern have different tests",
    )
    expect_within(candidates.leaves, *leaves, "the leaves of candidates")
    n_clauses = len(candidates.literal_starts) - 1
    expect_starts(candidates.clause_starts, n_candidates, n_clauses, "the clauses of candidates")
    expect_starts(
        candidates.literal_starts, n_clauses, len(candidates.literals), "the literals of clauses"
    )
    expect_within(candidates.literals, 0, n_literals, "the literals of clauses")
    n_tokens = len(candidates.tokens)
    expect_starts(candidates.token_starts, n_candidates, n_tokens, "the tokens of candidates")
    expect_within(candidates.tokens, 0, ONE_CHARACTER + 1, "the tokens of candidates")
    expect_within(candidates.always, 0, n_candidates, "the candidates for all texts")


def _check_room(arrays: PatternArrays, n_patterns: int) -> None:
    """Raise an error if there could be more leaves than patterns, or more hits than candidates:
    memory is allocated for these numbers.
    """
    candidates = arrays.candidates
    followed = arrays.literals.postings[:, 1]
    n_decided = int((followed == DECIDED).sum())
    expect(
        n_decided + len(candidates.tests) <= n_patterns, "more is decided than there are patterns"
    )
    expect(len(np.unique(candidates.always)) == len(candidates.always), "a candidate occurs twice")
    is_both = np.isin(candidates.always, followed)
    expect(not is_both.any(), "a candidate for all texts is also admitted by a literal")


def check_terms(column: Column) -> None:
    """Raise an error unless the column's terms are valid."""
    assert column.term_arrays is not None
    words, terms, patterns, *tables = column.term_arrays
    n_plain, n_patterns = len(words.offsets) - 1, len(patterns.is_decided)
    n_words, n_terms, n_phrases = (
        n_plain + n_patterns,
        column.n_constants,
        len(terms.anchor_places),
    )
    expect(n_plain >= 0, "the words of terms have no offsets")
    expect_texts(words.offsets, words.data, n_plain, "the words of terms")
    expect_texts(patterns.offsets, patterns.data, n_patterns, "the words with wildcards")
    for table in tables:
        check_literals(table, n_patterns)
    expect_length(terms.term_of_word, n_words, "the terms of words")
    expect_within(terms.term_of_word, -1, n_terms, "the terms of words")
    expect_starts(terms.anchor_starts, n_words, len(terms.anchored), "the anchors of phrases")
    expect_within(terms.anchored, 0, n_phrases, "the anchored phrases")
    expect_starts(terms.phrase_starts, n_phrases, len(terms.phrase_words), "the words of phrases")
    expect_within(terms.phrase_words, ANY_NUMBER, n_words, "the words of phrases")
    expect((terms.anchor_places >= 0).all(), "an anchor is before its phrase")
    is_inside = terms.anchor_places < np.diff(terms.phrase_starts)
    expect(is_inside.all(), "an anchor is after its phrase")
    expect_length(terms.term_of_phrase, n_phrases, "the terms of phrases")
    expect_within(terms.term_of_phrase, 0, n_terms, "the terms of phrases")
    expect_length(terms.phrase_windows, n_phrases, "the windows of phrases")


def check_literals(literals: WildcardLiterals, n_patterns: int) -> None:
    """Raise an error unless these literals find words with wildcards."""
    n_literals = len(literals.offsets) - 1
    expect(n_literals >= 0, "the literals of wildcards have no offsets")
    # Reversed suffixes are not UTF-8.
    expect_starts(literals.offsets, n_literals, len(literals.data), "the literals of wildcards")
    expect_starts(
        literals.pattern_starts, n_literals, len(literals.patterns), "the patterns of literals"
    )
    expect_within(literals.patterns, 0, n_patterns, "the patterns of literals")
