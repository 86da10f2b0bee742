"""Two conditions on one attribute, joined and distributed: `a >= 1 AND a <= 5` with its negation
`a <= 0 OR a >= 6` is FALSE, which the rules alone do not find.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.language.ast import And, Condition, Literal, Or, tested_attributes
from tamis.logic.canonical import simplify
from tamis.logic.leaves import FALSE, TRUE

if TYPE_CHECKING:
    from tamis.logic.evaluate import Missing

# Alternatives of a distributed condition. Ranges of one attribute stay few, since most of their
# combinations are empty and dropped.
MAX_ALTERNATIVES: Final = 64


def join_forms(
    kind: type[And | Or], forms: tuple[Condition, ...], missing: Missing, *, is_exact: bool
) -> Condition:
    """The canonical form of canonical conditions that AND or OR joins."""
    joined = simplify(kind(forms), missing, is_exact=is_exact)
    tested = {attribute.path for form in forms for attribute in tested_attributes(form)}
    if isinstance(joined, Literal) or len(tested) != 1:
        return joined
    return _distribute(kind, forms, missing, is_exact=is_exact) or joined


def _distribute(
    kind: type[And | Or], forms: tuple[Condition, ...], missing: Missing, *, is_exact: bool
) -> Condition | None:
    """AND as an OR of conjunctions, or OR as an AND of disjunctions; None if this changes nothing
    or there are too many.
    """
    other: type[And | Or] = Or if kind is And else And
    parts = [part for form in forms for part in _operands(form, kind)]
    if not any(isinstance(part, other) for part in parts):
        return None
    dropped = FALSE if kind is And else TRUE
    alternatives: list[Condition] = [TRUE if kind is And else FALSE]
    for part in parts:
        found = (
            simplify(kind((alternative, choice)), missing, is_exact=is_exact)
            for alternative in alternatives
            for choice in _operands(part, other)
        )
        alternatives = [own for own in dict.fromkeys(found) if own != dropped]
        if len(alternatives) > MAX_ALTERNATIVES:
            return None
        if not alternatives:
            return dropped
    whole = other(tuple(alternatives)) if len(alternatives) > 1 else alternatives[0]
    return simplify(whole, missing, is_exact=is_exact)


def _operands(condition: Condition, kind: type[And | Or]) -> tuple[Condition, ...]:
    return condition.operands if isinstance(condition, kind) else (condition,)
