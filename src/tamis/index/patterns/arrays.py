"""Converts plans to the arrays that the kernels read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from tamis.index.layout import freeze
from tamis.index.patterns.kernels.automaton import Automaton, build_automaton
from tamis.index.patterns.kernels.matching import (
    ANY_TEXT,
    DECIDED,
    LENGTH,
    LINK,
    N_LITERAL_FIELDS,
    ONE_CHARACTER,
    POSTINGS,
    TEST_LIKE,
    TEST_LIKE_FOLDED,
    TEST_REGEX,
    Candidates,
    Literals,
)
from tamis.index.patterns.plan import LiteralPosition, plan_patterns
from tamis.language.patterns import Wild

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.index.patterns.plan import Pattern, PatternPlan, Tokens
    from tamis.kernels.arrays import Int32

_WILD_TOKENS: Final = {Wild.ANY_TEXT: ANY_TEXT, Wild.ONE_CHARACTER: ONE_CHARACTER}


class PatternArrays(NamedTuple):
    """The patterns of one attribute."""

    plain: Automaton
    folded: Automaton
    literals: Literals
    candidates: Candidates


class _Literal(NamedTuple):
    is_folded: bool
    text: str


def build_arrays(patterns: Sequence[Pattern], leaves: Sequence[int] | Int32) -> PatternArrays:
    """The arrays of patterns with these leaves, read-only."""
    plans = plan_patterns(patterns)
    numbers, plain, folded, links = _build_automata(plans)
    tested = [at for at, plan in enumerate(plans) if plan.test is not None]
    literals = _build_literals(plans, leaves, tested, numbers, links)
    candidates = _build_candidates(plans, leaves, tested, numbers)
    return PatternArrays(freeze(plain), freeze(folded), freeze(literals), freeze(candidates))


def _build_automata(
    plans: Sequence[PatternPlan],
) -> tuple[dict[_Literal, int], Automaton, Automaton, Int32]:
    """The number of each literal, both automata, and the links of all literals."""
    literals = {
        _Literal(trigger.is_folded, trigger.text) for plan in plans for trigger in plan.triggers
    }
    for plan in plans:
        for clause in plan.clauses:
            literals.update(_Literal(clause.is_folded, text) for text in clause.texts)
    # Case-sensitive ones first; UTF-8 strings sort by code point, like Python's.
    ordered = sorted(literals)
    n_plain = sum(not literal.is_folded for literal in ordered)
    encoded = [literal.text.encode() for literal in ordered]
    plain, plain_links = build_automaton(encoded[:n_plain], 0)
    folded, folded_links = build_automaton(encoded[n_plain:], n_plain)
    numbers = {literal: number for number, literal in enumerate(ordered)}
    return numbers, plain, folded, np.concatenate([plain_links, folded_links])


def _build_literals(
    plans: Sequence[PatternPlan],
    leaves: Sequence[int] | Int32,
    tested: Sequence[int],
    numbers: dict[_Literal, int],
    links: Int32,
) -> Literals:
    candidate_of = dict(zip(tested, range(len(tested)), strict=True))
    postings = np.array(
        [
            (
                len(LiteralPosition) * numbers[_Literal(trigger.is_folded, trigger.text)]
                + trigger.place,
                leaf,
                candidate_of.get(at, DECIDED),
            )
            for at, (plan, leaf) in enumerate(zip(plans, leaves, strict=True))
            for trigger in plan.triggers
        ],
        dtype=np.int32,
    ).reshape(-1, 3)
    postings = postings[np.argsort(postings[:, 0], kind="stable")]
    starts = np.searchsorted(postings[:, 0], np.arange(len(LiteralPosition) * len(numbers) + 1))
    table = np.zeros((len(numbers), N_LITERAL_FIELDS), dtype=np.int32)
    table[:, LINK] = links
    table[:, LENGTH] = [len(literal.text.encode()) for literal in numbers]
    for place in range(len(LiteralPosition) + 1):
        table[:, POSTINGS + place] = starts[
            place : len(starts) + place - len(LiteralPosition) : len(LiteralPosition)
        ]
    return Literals(table, postings[:, 1:].copy())


def _build_candidates(
    all_plans: Sequence[PatternPlan],
    leaves: Sequence[int] | Int32,
    tested: Sequence[int],
    numbers: dict[_Literal, int],
) -> Candidates:
    plans = [all_plans[at] for at in tested]
    clauses = [
        [numbers[_Literal(clause.is_folded, text)] for text in sorted(clause.texts)]
        for plan in plans
        for clause in plan.clauses
    ]
    tokens = [_encode_tokens(plan.test) for plan in plans]
    return Candidates(
        np.array(tested, dtype=np.int32),
        np.array([_test_of(plan) for plan in plans], dtype=np.uint8),
        np.array([leaves[at] for at in tested], dtype=np.int32),
        np.array([plan.min_length for plan in plans], dtype=np.int64),
        _starts(len(plan.clauses) for plan in plans),
        _starts(map(len, clauses)),
        np.array([number for clause in clauses for number in clause], dtype=np.int32),
        _starts(map(len, tokens)),
        np.array([token for each in tokens for token in each], dtype=np.int16),
        np.array([at for at, plan in enumerate(plans) if not plan.triggers], dtype=np.int32),
    )


def _test_of(plan: PatternPlan) -> int:
    if isinstance(plan.test, str):
        return TEST_REGEX
    return TEST_LIKE_FOLDED if plan.is_folded else TEST_LIKE


def _encode_tokens(test: Tokens | str | None) -> list[int]:
    tokens: list[int] = []
    if isinstance(test, tuple):
        for token in test:
            if isinstance(token, Wild):
                tokens.append(_WILD_TOKENS[token])
            else:
                tokens.extend(token.encode())
    return tokens


def _starts(lengths: Iterable[int]) -> Int32:
    ends = np.cumsum(np.fromiter(lengths, dtype=np.int32), dtype=np.int32)
    return np.concatenate([np.zeros(1, dtype=np.int32), ends])
