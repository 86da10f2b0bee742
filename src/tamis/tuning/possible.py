"""Which truths can a condition have for events that lack some attributes?

Too many are better than too few: an event that has the other attributes may have any values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.language.ast import (
    And,
    Arithmetic,
    AtLeast,
    Attribute,
    Between,
    Comparison,
    Derived,
    IsNull,
    Literal,
    Matches,
    Not,
    OperatorCall,
    Or,
    Variable,
    Xnor,
    Xor,
    attributes,
    tested_attributes,
)
from tamis.language.comparators import Comparator
from tamis.language.value_functions import FUNCTIONS
from tamis.logic.truth import and_, not_, or_, xor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from tamis.language.ast import Condition, Value
    from tamis.language.schema import Path
    from tamis.logic.truth import Truth

    IsAbsent = Callable[[Path], bool]
    Truths = frozenset[Truth]

_UNDEFINED: Final = frozenset((None,))
_ANY: Final = frozenset((True, False, None))


def possible_truths(node: Condition, is_absent: IsAbsent) -> Truths:
    """The truths that the condition may have if no event has the absent attributes."""
    match node:
        case And():
            return _fold(and_, _each(node.operands, is_absent))
        case Or():
            return _fold(or_, _each(node.operands, is_absent))
        case Xor():
            return _fold(xor, _each(node.operands, is_absent))
        case Xnor():
            return frozenset(map(not_, _fold(xor, _each(node.operands, is_absent))))
        case Not():
            return frozenset(map(not_, possible_truths(node.operand, is_absent)))
        case AtLeast():
            return _count(node, list(_each(node.operands, is_absent)))
    return _leaf_truths(node, is_absent)


def find_lacking(node: Condition, is_absent: IsAbsent) -> Iterator[Path]:
    """The absent attributes for lack of which a condition cannot be TRUE."""
    match node:
        case And() | Or() | AtLeast():
            # The other operands of an AND may well be TRUE.
            for own in node.operands:
                if True not in possible_truths(own, is_absent):
                    yield from find_lacking(own, is_absent)
        case _:
            yield from (own.path for own in attributes(node) if is_absent(own.path))


def _each(operands: Iterable[Condition], is_absent: IsAbsent) -> Iterator[Truths]:
    return (possible_truths(own, is_absent) for own in operands)


def _fold(join: Callable[[Iterable[Truth]], Truth], each: Iterator[Truths]) -> Truths:
    found = next(each)
    for own in each:
        found = frozenset(join((one, other)) for one in found for other in own)
    return found


def _count(node: AtLeast, each: list[Truths]) -> Truths:
    n_true = sum(True in own for own in each)
    n_false = sum(False in own for own in each)
    is_possible = {True: n_true >= node.k, False: n_false > len(each) - node.k, None: True}
    return frozenset(truth for truth in (True, False, None) if is_possible[truth])


# ── leaves ──────────────────────────────────────────────────────────────────────────────────


def _leaf_truths(node: Condition, is_absent: IsAbsent) -> Truths:
    match node:
        case Literal():
            return frozenset((bool(node.value),))
        case IsNull():
            # Others can be there or not.
            is_null = _is_missing(node.operand, is_absent)
            return frozenset((not node.negated,)) if is_null else frozenset((True, False))
        case Comparison(operator=Comparator.SAME):
            return _same_truths(node, is_absent)
        case Comparison():
            is_undefined = any(_is_missing(own, is_absent) for own in (node.left, node.right))
            return _UNDEFINED if is_undefined else _ANY
        case Between():
            return _between_truths(node, is_absent)
        case Matches():
            # A word may be in any of the attributes.
            is_undefined = all(_is_missing(own, is_absent) for own in node.attributes)
            return _UNDEFINED if is_undefined else _ANY
        case OperatorCall():
            return _ANY
    tested = list(tested_attributes(node))
    is_undefined = any(_is_missing(own, is_absent) for own in tested)
    return _UNDEFINED if is_undefined else _ANY


def _same_truths(node: Comparison, is_absent: IsAbsent) -> Truths:
    """Equality that treats missing values as values."""
    sides = (node.left, node.right)
    missing = [_is_missing(own, is_absent) for own in sides]
    if all(missing):
        return frozenset((True,))
    is_constant = any(isinstance(own, Literal) for own in sides)
    return frozenset((False,)) if any(missing) and is_constant else _ANY


def _between_truths(node: Between, is_absent: IsAbsent) -> Truths:
    if _is_missing(node.operand, is_absent):
        return _UNDEFINED
    bounds = [_is_missing(own, is_absent) for own in (node.low, node.high)]
    if all(bounds):
        return _UNDEFINED
    # The other bound alone can make it false.
    return frozenset((node.negated, None)) if any(bounds) else _ANY


def _is_missing(value: Value, is_absent: IsAbsent) -> bool:
    """Whether the value is missing in all events."""
    match value:
        case Derived():
            given = (own for own in value.arguments if isinstance(own, Attribute))
            missing = [_is_missing(own, is_absent) for own in given]
            if FUNCTIONS[value.function].takes_missing:
                return len(missing) == len(value.arguments) and all(missing)
            return any(missing)
        case Attribute():
            return is_absent(value.path)
        case Arithmetic():
            return _is_missing(value.left, is_absent) or _is_missing(value.right, is_absent)
        case Variable():
            return False
    return False
