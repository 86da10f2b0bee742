"""Random untyped conditions: all that the grammar has, whether or not it has a meaning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tamis.language.ast import (
    SUBSCRIPTION,
    And,
    ArraysOverlap,
    AtLeast,
    Attribute,
    Between,
    Comparison,
    Condition,
    ElementTest,
    In,
    IsNull,
    Lambda,
    Like,
    Literal,
    Matches,
    Not,
    OperatorCall,
    Or,
    Reference,
    Rlike,
    StringTest,
    Value,
    Variable,
    Xnor,
    Xor,
    make_arithmetic,
)
from tamis.language.types import BOOLEAN, DATE, DOUBLE, FLOAT, INTEGER, STRING, TIMESTAMP
from tests.generators.conditions import (
    ESCAPES,
    OPERATORS,
    REGEXES,
    random_derived,
    random_like_pattern,
    random_pattern_list,
)
from tests.generators.schemas import random_path
from tests.generators.values import DECIMALS, random_literal, random_scalar

if TYPE_CHECKING:
    from random import Random

LITERAL_TYPES: Final = (BOOLEAN, INTEGER, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP, *DECIMALS)
OPERATOR_NAMES: Final = ("loc_in", "mob_pattern", "f", "date", "Arrays", "matches_all", "_")
VARIABLE_NAMES: Final = ("x", "people", "_", "AND", "null", "x1")


def random_untyped_condition(rng: Random, depth: int = 4) -> Condition:
    """A condition as `parse` makes it, at most `depth` levels above its leaves."""
    if depth <= 0 or rng.random() < 0.2:
        return _leaf(rng)

    def operands(least: int) -> tuple[Condition, ...]:
        n_operands = rng.randint(least, 4)
        return tuple(random_untyped_condition(rng, depth - 1) for _ in range(n_operands))

    node = rng.choice((And, And, Or, Or, Not, Xor, Xnor, AtLeast))
    if node is Not:
        return Not(random_untyped_condition(rng, depth - 1))
    if node is AtLeast:
        below = operands(1)
        return AtLeast(rng.randint(1, len(below)), below)
    return node(operands(2))


def random_literal_of_any_type(rng: Random) -> Literal:
    """A constant as `parse` makes it."""
    return random_literal(rng, rng.choice(LITERAL_TYPES))


def random_any_value(rng: Random, depth: int = 2) -> Value:
    """An attribute, constant, variable or arithmetic expression."""
    draw = rng.random()
    if depth > 0 and draw < 0.2:
        sides = (random_any_value(rng, depth - 1), random_any_value(rng, depth - 1))
        return make_arithmetic(rng.choice("+-*/%"), *sides)
    if draw < 0.6:
        return Attribute(random_path(rng))
    if draw < 0.7:
        return Variable(rng.choice(VARIABLE_NAMES))
    return random_literal_of_any_type(rng)


def _lambda(rng: Random) -> tuple[str, Condition]:
    name = rng.choice((*VARIABLE_NAMES, "order id", "exists"))
    test = In(Attribute((name, *random_path(rng))), (random_literal_of_any_type(rng),))
    return name, rng.choice((test, Not(test), And((test, Attribute((name,))))))


def _leaf(rng: Random) -> Condition:
    attribute = Attribute(random_path(rng))
    text = random_scalar(rng, STRING)
    is_negated = rng.random() < 0.4
    values = tuple(random_literal_of_any_type(rng) for _ in range(rng.randint(1, 4)))
    escape = rng.choice(ESCAPES)
    ignores_case = rng.random() < 0.4 and escape.lower() == escape.upper()
    k = rng.randint(1, 3)
    others = tuple(Attribute(random_path(rng)) for _ in range(rng.randint(1, 3)))
    arguments = tuple(random_any_value(rng) for _ in range(rng.randint(0, 3)))
    return rng.choice(
        (
            attribute,
            Literal(is_negated, BOOLEAN),
            Comparison(rng.choice(OPERATORS), random_any_value(rng), random_any_value(rng)),
            Comparison(rng.choice(OPERATORS), attribute, values[0]),
            In(attribute, values, is_negated),
            Between(*(random_any_value(rng) for _ in range(3)), is_negated),
            IsNull(attribute, is_negated),
            Like(attribute, random_like_pattern(rng, escape), escape, ignores_case, is_negated),
            Like(attribute, text, escape, ignores_case, is_negated),
            Rlike(attribute, rng.choice((*REGEXES, text)), is_negated),
            In(random_derived(rng, attribute), values, is_negated),
            IsNull(random_derived(rng, attribute, rng.choice(LITERAL_TYPES)), is_negated),
            Comparison(
                rng.choice(OPERATORS), random_any_value(rng), random_derived(rng, attribute)
            ),
            random_pattern_list(rng, attribute),
            Reference(rng.choice(("a", "_b1", "AND", f"{SUBSCRIPTION}{text}"))),
            StringTest(rng.choice(("startswith", "endswith", "contains")), attribute, text),
            ArraysOverlap(attribute, values),
            ArraysOverlap(attribute, values[:1], "array_contains"),
            ElementTest(rng.choice(("exists", "forall")), attribute, Lambda(*_lambda(rng))),
            Matches(rng.choice(("all", "any", "phrase")), others, text),
            Matches("at_least", others, text, k),
            OperatorCall(rng.choice(OPERATOR_NAMES), arguments),
        )
    )
