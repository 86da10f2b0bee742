"""Disjunctive normal form: an OR of ANDs of leaves; raises an error if it would be too large."""

from __future__ import annotations

from itertools import combinations
from typing import TypeAlias

from tamis.errors import LimitError
from tamis.language.ast import And, AtLeast, Condition, Literal, Or, Xnor, Xor
from tamis.logic.canonical import canonicalize
from tamis.logic.evaluate import Missing
from tamis.logic.rules.negation import push_negation

Conjunction: TypeAlias = frozenset[Condition]  # leaves, all of which must be true

DEFAULT_MAX_CONJUNCTIONS = 10_000


def to_dnf(
    condition: Condition,
    missing: Missing = Missing.UNDEFINED,
    max_conjunctions: int = DEFAULT_MAX_CONJUNCTIONS,
) -> frozenset[Conjunction]:
    """The conjunctions of leaves; the condition is TRUE if at least one of them is.

    Empty for a condition that is never true; contains the empty conjunction for one that is always
    true. Raises `LimitError` if there are more than `max_conjunctions`.
    """
    is_signed = missing is Missing.SATISFIES_NEGATION

    def conjunctions(node: Condition) -> frozenset[Conjunction]:
        match node:
            case Literal():
                return frozenset((frozenset[Condition](),)) if node.value else frozenset()
            case Or():
                return _limited(frozenset().union(*map(conjunctions, node.operands)))
            case And():
                product = frozenset((frozenset[Condition](),))
                for operand in node.operands:
                    product = _multiply(product, conjunctions(operand))
                return product
            case AtLeast():
                chosen = combinations(node.operands, node.k)
                found = frozenset[Conjunction]()
                for subset in chosen:
                    found = _limited(found | conjunctions(And(subset)))
                return found
            case Xor() | Xnor():
                return conjunctions(_expand_xor(node, is_signed=is_signed))
            case _:
                return frozenset((frozenset((node,)),))

    def _multiply(
        left: frozenset[Conjunction], right: frozenset[Conjunction]
    ) -> frozenset[Conjunction]:
        if len(left) * len(right) > max_conjunctions * 4:
            _refuse()
        return _limited(_minimal(frozenset(one | other for one in left for other in right)))

    def _limited(found: frozenset[Conjunction]) -> frozenset[Conjunction]:
        if len(found) > max_conjunctions:
            _refuse()
        return found

    def _refuse() -> None:
        raise LimitError(
            "dnf-too-large",
            f"the disjunctive normal form has more than {max_conjunctions} conjunctions",
            span=condition.span,
        )

    return _minimal(conjunctions(canonicalize(condition, missing)))


_MAX_COMPARED = 512  # absorption compares all pairs; beyond this it costs more than it saves


def _minimal(found: frozenset[Conjunction]) -> frozenset[Conjunction]:
    """The conjunctions without those that contain another one: these imply it."""
    if len(found) > _MAX_COMPARED:
        return found
    return frozenset(one for one in found if not any(other < one for other in found))


def _expand_xor(node: Xor | Xnor, *, is_signed: bool) -> Condition:
    """p XOR q as (p AND NOT q) OR (NOT p AND q), in negation normal form, one operand at a time."""
    first, *others = node.operands
    for other in others:
        not_first = push_negation(first, is_negated=True, is_signed=is_signed)
        not_other = push_negation(other, is_negated=True, is_signed=is_signed)
        first = Or((And((first, not_other)), And((not_first, other))))
    is_negated = isinstance(node, Xnor)
    return push_negation(first, is_negated=is_negated, is_signed=is_signed)
