"""A missing attribute as an empty text, in the condition of a search-box query."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from tamis.language.ast import And, Attribute, Condition, ElementTest, IsNull, Matches, Not, Or
from tamis.text import DEFAULT_ANALYSER
from tamis.text.queries import analyse_query

if TYPE_CHECKING:
    from collections.abc import Sequence


def with_empty(condition: Condition, *, is_negated: bool) -> Condition:
    """The condition, or its negation, where a missing attribute has no words.

    A word found in one attribute is found even if others are missing; only an exclusion must handle
    missing attributes.
    """
    match condition:
        case Not():
            return with_empty(condition.operand, is_negated=not is_negated)
        case And() | Or():
            operands = [with_empty(one, is_negated=is_negated) for one in condition.operands]
            return _join(And if isinstance(condition, And) != is_negated else Or, operands)
        case Matches() if is_negated:
            return _not_found(condition)
        case ElementTest() if is_negated:  # of `search_arrays`
            element = Attribute((condition.test.parameter,))
            body = And((Not(IsNull(element)), condition.test.body))
            there = replace(condition, test=replace(condition.test, body=body))
            return Or((IsNull(condition.operand), Not(there)))
        case _:
            return condition


def _not_found(search: Matches) -> Condition:
    texts = search.query.split() if search.mode == "all" else [search.query]
    return _join(Or, [_lacks(search, text) for text in texts])


def _lacks(search: Matches, text: str) -> Condition:
    """True if no attribute contains the text, or if the present attributes together do not."""
    fields = search.attributes
    is_one_word = len(analyse_query(DEFAULT_ANALYSER, text)) == 1
    if is_one_word or search.mode != "all" or len(fields) == 1:
        own = [replace(search, attributes=(field,), query=text) for field in fields]
        either = [(IsNull(field), Not(one)) for field, one in zip(fields, own, strict=True)]
        return _join(And, [Or(both) for both in either])
    # A word such as wi-fi is several words, and each attribute may contain some: the exclusion is
    # expanded over every choice of present attributes.
    choices = []
    for n_there in range(len(fields), -1, -1):
        for there in combinations(fields, n_there):
            absent = [IsNull(field) for field in fields if field not in there]
            lacking = [Not(Matches(search.mode, there, text))] if there else []
            choices.append(_join(And, [*absent, *lacking]))
    return _join(Or, choices)


def _join(kind: type[And | Or], operands: Sequence[Condition]) -> Condition:
    """The operands joined, with nested operands of the same kind lifted."""
    flat: list[Condition] = []
    for operand in operands:
        flat.extend(operand.operands if isinstance(operand, kind) else (operand,))
    return kind(tuple(flat)) if len(flat) > 1 else flat[0]
