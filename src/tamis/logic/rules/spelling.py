"""Leaves of the same meaning get the same spelling, before negation is pushed down.

5 < a is a > 5; a BETWEEN 1 AND 3 is a >= 1 AND a <= 3; a IN (2, 1, 2) is a IN (1, 2); a LIKE 'x%'
is startswith(a, 'x'); a <=> 5 is a = 5 AND a IS NOT NULL; a NOT LIKE p is NOT a LIKE p; matches(a,
'x y') is the word x AND the word y. All of these are exact.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tamis.language.ast import (
    And,
    ArraysOverlap,
    AtLeast,
    Attribute,
    Between,
    Comparison,
    Condition,
    ElementTest,
    In,
    InNetwork,
    Like,
    Literal,
    Matches,
    Not,
    Or,
    PatternList,
    Rlike,
    StringTest,
    Value,
    Words,
)
from tamis.language.comparators import Comparator
from tamis.language.lambdas import with_parameter
from tamis.language.patterns import Wild, parse_like
from tamis.language.queries import distinct_words, near_words, query_words
from tamis.language.types import BOOLEAN, INTEGER, IP, STRING, parse_network
from tamis.language.types.addresses import join_networks
from tamis.logic.evaluate import test_leaf
from tamis.logic.leaves import FALSE, TRUE, bound, constant, distinct, is_null, one_of
from tamis.logic.rules.rule import Preserves, Rule
from tamis.text.terms import NEAR, NEAR_IN_ORDER, PHRASE

if TYPE_CHECKING:
    from tamis.language.types import Type


def rewrite(node: Condition) -> Condition:
    """The leaf in its canonical spelling, with its negation outside."""
    match node:
        case Attribute():
            return Comparison(Comparator.EQUAL, node, TRUE)
        case Comparison():
            positive = node.operator.positive
            spelled = _spell_comparison(positive, node.left, node.right)
            return _signed(spelled, is_negated=positive is not node.operator)
        case Between():
            low = _spell_comparison(Comparator.AT_LEAST, node.operand, node.low)
            high = _spell_comparison(Comparator.AT_MOST, node.operand, node.high)
            return _signed(And((low, high)), is_negated=node.negated)
        case In():
            return _signed(_spell_set(node.operand, node.values), is_negated=node.negated)
        case Like():
            return _signed(_spell_like(node), is_negated=node.negated)
        case Rlike():
            return _signed(replace(node, negated=False), is_negated=node.negated)
        case PatternList():
            return _signed(_spell_patterns(node), is_negated=node.negated)
        case InNetwork():
            return _spell_networks(node)
        case Matches():
            return _spell_matches(node)
        case StringTest(text=""):
            return _is_present(node.operand)
        case ArraysOverlap():
            assert node.operand.type is not None
            possible = _possible(node.values, node.operand.type.element)
            return ArraysOverlap(node.operand, distinct(possible))
        case ElementTest():
            return ElementTest(node.function, node.operand, with_parameter(node.test))
        case _:
            return node


def _signed(node: Condition, *, is_negated: bool) -> Condition:
    return Not(node) if is_negated else node


def _is_present(attribute: Attribute) -> Condition:
    """True if the attribute is present, undefined if it is missing."""
    return one_of(attribute, (), is_negated=True)


def _spell_comparison(operator: Comparator, left: Value, right: Value) -> Condition:
    if isinstance(left, Literal) and isinstance(right, Literal):
        return constant(test_leaf(Comparison(operator, left, right), {}) is True)
    if isinstance(left, Attribute) and isinstance(right, Attribute):
        return _spell_pair(operator, left, right)
    if isinstance(left, Literal):
        operator, left, right = operator.mirrored, right, left
    if not isinstance(left, Attribute) or not isinstance(right, Literal):
        return Comparison(operator, left, right)  # a constraint on variables
    if operator is Comparator.SAME:
        return And((_spell_set(left, (right,)), is_null(left, negated=True)))
    if left.type == BOOLEAN:
        return _spell_boolean(operator, left, right)
    return (
        _spell_set(left, (right,)) if operator is Comparator.EQUAL else bound(left, operator, right)
    )


def _spell_pair(operator: Comparator, left: Attribute, right: Attribute) -> Condition:
    if left.path > right.path:
        operator, left, right = operator.mirrored, right, left
    if operator is Comparator.SAME:
        both_absent = And((is_null(left), is_null(right)))
        both_present = (is_null(left, negated=True), is_null(right, negated=True))
        return Or((And((_spell_pair(Comparator.EQUAL, left, right), *both_present)), both_absent))
    if left.path == right.path:
        return one_of(left, (), is_negated=operator.holds(0))
    return Comparison(operator, left, right)


def _spell_boolean(operator: Comparator, attribute: Attribute, literal: Literal) -> Condition:
    """The comparison as a set of the boolean values that satisfy it: one, none or both."""
    values = [
        candidate
        for candidate in (FALSE, TRUE)
        if test_leaf(Comparison(operator, candidate, literal), {})
    ]
    return _is_present(attribute) if len(values) > 1 else one_of(attribute, values)


def _spell_set(attribute: Attribute, values: tuple[Literal, ...]) -> Condition:
    values = _possible(values, attribute.type)
    if attribute.type == BOOLEAN and len({literal.value for literal in values}) > 1:
        return _is_present(attribute)
    return one_of(attribute, values)


def _possible(values: tuple[Literal, ...], type_: Type | None) -> tuple[Literal, ...]:
    """The constants without those that no value can equal, such as 1.5 among integers."""
    return tuple(x for x in values if x.type == INTEGER) if type_ == INTEGER else values


def _spell_networks(node: InNetwork) -> Condition:
    """The networks as the fewest ranges of addresses."""
    ranges = join_networks([parse_network(network) for network in node.networks])
    spelled = tuple(
        _spell_set(node.operand, (Literal(own.first, IP),))
        if own.first == own.last
        else And(
            (
                bound(node.operand, Comparator.AT_LEAST, Literal(own.first, IP)),
                bound(node.operand, Comparator.AT_MOST, Literal(own.last, IP)),
            )
        )
        for own in ranges
    )
    return Or(spelled) if len(spelled) > 1 else spelled[0]


def _spell_like(node: Like) -> Condition:
    pattern = node.pattern.lower() if node.ignores_case else node.pattern
    tokens = parse_like(pattern, node.escape)
    if tokens == (Wild.ANY_TEXT,):
        return _is_present(node.operand)
    if not node.ignores_case and Wild.ONE_CHARACTER not in tokens:
        opens, closes = tokens[:1] == (Wild.ANY_TEXT,), tokens[-1:] == (Wild.ANY_TEXT,)
        middle = tokens[opens : len(tokens) - closes]
        if Wild.ANY_TEXT not in middle:
            text = "".join(map(str, middle))
            return _spell_text(node.operand, text, opens=opens, closes=closes)
    spelled = pattern
    if node.escape != "\\" or "%%" in pattern:
        spelled = "".join(
            token.value if isinstance(token, Wild) else _escape(token) for token in tokens
        )
    return Like(node.operand, spelled, "\\", node.ignores_case)


def _spell_patterns(node: PatternList) -> Condition:
    """The patterns as leaves, joined by AND or OR."""
    each = tuple(dict.fromkeys(map(rewrite, node.tests)))
    if len(each) == 1:
        return each[0]
    return And(each) if node.needs_all else Or(each)


def _escape(character: str) -> str:
    return "\\" + character if character in "%_\\" else character


def _spell_matches(node: Matches) -> Condition:
    """The words of a query as leaves, each searched in all of the attributes."""

    def found(*words: str, mode: str = PHRASE, distance: int = 0) -> Condition:
        attributes = dict.fromkeys(node.attributes)
        leaves = tuple(Words(attribute, words, mode, distance) for attribute in attributes)
        return Or(leaves) if len(leaves) > 1 else leaves[0]

    if node.mode == PHRASE or (node.mode == NEAR_IN_ORDER and node.k == 0):
        return found(*(query_words(node) if node.mode == PHRASE else near_words(node)))
    if node.mode in (NEAR, NEAR_IN_ORDER):
        return found(*near_words(node), mode=node.mode, distance=node.k)
    each = tuple(map(found, distinct_words(node)))
    if len(each) == 1:
        return each[0]
    match node.mode:
        case "all":
            return And(each)
        case "any":
            return Or(each)
        case _:
            return AtLeast(node.k, each)


def _spell_text(operand: Attribute, text: str, *, opens: bool, closes: bool) -> Condition:
    if not opens and not closes:
        return Comparison(Comparator.EQUAL, operand, Literal(text, STRING))
    function = "contains" if opens and closes else "endswith" if opens else "startswith"
    return StringTest(function, operand, text)


RULE = Rule("spelling", Preserves.VALUE, rewrite)
