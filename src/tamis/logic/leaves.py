"""Leaves of canonical trees: their kinds, and the exact opposite of each.

A canonical scalar leaf compares one attribute with constants: `=`, `<>`, `<`, `<=`, `>`, `>=`, IN
and NOT IN. An IN list may be empty: if `a` is present, `a IN ()` is false and `a NOT IN ()` is
true; if it is missing, both are undefined.
"""

from __future__ import annotations

from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import TYPE_CHECKING, Any, Final

from tamis.language.array_keys import ARRAY_KEY
from tamis.language.ast import (
    And,
    ArraysOverlap,
    Attribute,
    Comparison,
    Condition,
    Derived,
    ElementTest,
    In,
    IsNull,
    Like,
    Literal,
    Not,
    OperatorCall,
    Or,
    Rlike,
    StringTest,
    Words,
    tested_attributes,
)
from tamis.language.comparators import Comparator, IndexTest, bound_by, compare_by
from tamis.language.types import BOOLEAN, KINDS, NUMBER
from tamis.language.value_functions import FUNCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

TRUE: Final = Literal(True, BOOLEAN)
FALSE: Final = Literal(False, BOOLEAN)
# Decimals of at most this many digits and their doubles have the same order.
SHORT_DIGITS: Final = 15


def constant(is_true: bool) -> Literal:
    """The condition TRUE or FALSE."""
    return TRUE if is_true else FALSE


def one_of(
    attribute: Attribute, values: Iterable[Literal], *, is_negated: bool = False
) -> Condition:
    """Test whether the attribute is (not) one of the values, sorted and distinct; `=` if there is
    one value.
    """
    members = distinct(values)
    if len(members) == 1:
        return Comparison(compare_by(IndexTest.EQUAL, is_negated=is_negated), attribute, members[0])
    return In(attribute, members, is_negated)


def distinct(values: Iterable[Literal]) -> tuple[Literal, ...]:
    """The distinct constants, sorted. For numbers, 5 and the double 5.0 are distinct: compared as
    doubles, more decimals are equal.
    """
    by_value = {(literal.value, literal.type.is_floating): literal for literal in values}
    return tuple(by_value[key] for key in sorted(by_value))


def bound(attribute: Attribute, operator: Comparator, literal: Literal) -> Condition:
    """`attribute operator literal` for <, <=, > and >=.

    For types with successors (integers, dates, timestamps) only <= and >= are used, so that `level
    > 4` and `level >= 5` are one leaf.
    """
    assert attribute.type is not None
    if attribute.type == NUMBER:
        return _bound_number(attribute, operator, literal)
    step = KINDS[attribute.type.name].step
    if step is None:
        return Comparison(operator, attribute, literal)
    signed = operator.signed_test
    is_upper = signed.is_upper
    value = _nearest(literal.value, step, is_upper=is_upper, is_open=not signed.is_closed)
    if value is not None:
        closed = bound_by(is_upper=is_upper, is_closed=True)
        return Comparison(closed, attribute, Literal(value, attribute.type))
    # The bound lies at the end of the type, and no value beyond it: no value is inside.
    return one_of(attribute, ())


def _bound_number(attribute: Attribute, operator: Comparator, literal: Literal) -> Condition:
    """A bound of a number, spelled so that an index can look it up by one code (`index.numbers`).

    A double equals all exact constants that round to it. Constants below the decimal that the
    double prints as are used with `<` and `>=` only, those above it with `<=` and `>`.
    """
    if literal.type.is_floating or is_short(literal):
        return Comparison(operator, attribute, literal)
    printed = Decimal(repr(float(literal.value)))
    if literal.value == printed:
        return Comparison(operator, attribute, literal)
    equal = Comparison(Comparator.EQUAL, attribute, literal)
    is_upper, is_closed = operator.signed_test.is_upper, operator.signed_test.is_closed
    if (literal.value < printed) == is_upper:  # written with < or >
        bare = Comparison(bound_by(is_upper=is_upper, is_closed=False), attribute, literal)
        return Or((bare, equal)) if is_closed else bare
    bare = Comparison(bound_by(is_upper=is_upper, is_closed=True), attribute, literal)
    return bare if is_closed else And((bare, Not(equal)))


def _nearest(value: Any, step: Callable[[Any, int], Any], *, is_upper: bool, is_open: bool) -> Any:
    """The outermost value inside the bound; None if the type has no such value."""
    if isinstance(value, Decimal):
        whole = value.to_integral_value(ROUND_FLOOR if is_upper else ROUND_CEILING)
        is_open = is_open and whole == value
        value = int(whole)
    return step(value, (-1 if is_upper else 1) if is_open else 0)


def scalar_attribute(leaf: Condition) -> Attribute | None:
    """The attribute of a canonical scalar leaf that can be merged with others, else None."""
    if isinstance(leaf, In):
        return leaf.operand if _are_ordered(leaf.operand, leaf.values) else None
    if isinstance(leaf, Comparison) and isinstance(leaf.right, Literal):
        attribute = leaf.left
        if isinstance(attribute, Attribute):  # a constraint has none
            return attribute if _are_ordered(attribute, (leaf.right,)) else None
    return None


def _are_ordered(attribute: Attribute, constants: tuple[Literal, ...]) -> bool:
    """Whether the constants and all values have one total order.

    For a double, long constants may be equal that differ for an integer or a decimal: tests with
    such constants are not rewritten.
    """
    return attribute.type != NUMBER or all(is_short(constant) for constant in constants)


def is_short(constant: Literal) -> bool:
    """Whether an exact number has so few digits that no other such number rounds to its double."""
    if constant.type.is_floating:
        return False
    if isinstance(constant.value, int) and abs(constant.value) < 10**SHORT_DIGITS:
        return True
    digits = Decimal(constant.value).as_tuple().digits
    return len(bytes(digits).strip(b"\0")) <= SHORT_DIGITS


def is_null(value: Attribute, *, negated: bool = False) -> IsNull:
    """The test whether a value is missing; the key of an array is missing if the array is."""
    if isinstance(value, Derived) and value.function == ARRAY_KEY:
        (array,) = value.arguments
        assert isinstance(array, Attribute)
        value = array
    return IsNull(value, negated=negated)


def inverse(leaf: Condition) -> Condition:
    """The leaf that is true where this one is false, and undefined where it is undefined.

    This is exact because the order of values is total: `NOT a < 1` is `a >= 1`, also for NaN. Tests
    without an opposite test (patterns, arrays, operators) are put under NOT.
    """
    match leaf:
        case Literal():
            return constant(not leaf.value)
        case Not():
            return leaf.operand
        case Comparison():
            return _inverse_comparison(leaf)
        case In() | IsNull():
            return replace(leaf, negated=not leaf.negated)
        case ElementTest():
            return _inverse_elements(leaf)
        case _:
            return Not(leaf, leaf.span)


def _inverse_elements(leaf: ElementTest) -> ElementTest:
    """No element satisfies a condition if all satisfy its negation."""
    body = leaf.test.body
    negation = body.operand if isinstance(body, Not) else Not(body, body.span)
    function = "forall" if leaf.function == "exists" else "exists"
    return replace(leaf, function=function, test=replace(leaf.test, body=negation))


def _inverse_comparison(leaf: Comparison) -> Condition:
    operator = leaf.operator.inverse
    if not isinstance(leaf.left, Attribute) or not isinstance(leaf.right, Literal):
        return replace(leaf, operator=operator)
    if leaf.left.type == BOOLEAN and operator is Comparator.NOT_EQUAL:
        return Comparison(Comparator.EQUAL, leaf.left, constant(not leaf.right.value))
    if operator.is_equality:
        return replace(leaf, operator=operator)
    return bound(leaf.left, operator, leaf.right)


def required_attributes(leaf: Condition) -> frozenset[tuple[str, ...]]:
    """The attributes without which the positive leaf is undefined; empty if it is never
    undefined.
    """
    if isinstance(
        leaf,
        Comparison
        | In
        | Like
        | Rlike
        | StringTest
        | ArraysOverlap
        | ElementTest
        | Words
        | OperatorCall,
    ):
        return frozenset(path for own in tested_attributes(leaf) for path in _required_paths(own))
    return frozenset()


def _required_paths(attribute: Attribute) -> Iterator[tuple[str, ...]]:
    """The attribute; a derived value is missing if one of its arguments is, unless its function
    takes missing values.
    """
    yield attribute.path
    if isinstance(attribute, Derived) and not FUNCTIONS[attribute.function].takes_missing:
        for own in attribute.arguments:
            if isinstance(own, Attribute):
                yield from _required_paths(own)
