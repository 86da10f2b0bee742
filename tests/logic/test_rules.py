"""Each rule keeps what it says it keeps; normal forms mean what the condition means."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language import Schema, check, parse, print_expression
from tamis.language.ast import (
    NARY,
    And,
    AtLeast,
    Condition,
    IsNull,
    Literal,
    Not,
    Xnor,
    Xor,
    children,
)
from tamis.logic.canonical import canonicalize, simplify, to_nnf
from tamis.logic.digest import digest
from tamis.logic.evaluate import Missing, evaluate
from tamis.logic.leaves import inverse
from tamis.logic.rules import RULES, Preserves, order, spelling
from tamis.logic.truth import not_
from tests.generators import random_condition, random_event, random_schema

ALL_RULES = (spelling.RULE, *RULES, order.RULE)
N_EVENTS = 4  # tried on each condition


def nodes(condition: Condition) -> list[Condition]:
    """The condition and everything below it."""
    return [condition, *(node for below in children(condition) for node in nodes(below))]


def drawn(seed: int) -> tuple[random.Random, Schema, Condition]:
    """A random condition over few attributes, so that its parts meet."""
    rng = random.Random(seed)
    schema = random_schema(rng, rng.choice((1, 2, 3, 8)))
    return rng, schema, random_condition(rng, schema, depth=rng.choice((1, 2, 3)))


def assert_same(
    before: Condition,
    after: Condition,
    event: dict,
    missing: Missing,
    *,
    keeps: Preserves = Preserves.VALUE,
) -> None:
    """Both conditions have the same value for the event, or are both (not) TRUE."""
    one, other = evaluate(before, event, missing), evaluate(after, event, missing)
    if keeps is Preserves.TRUTH:
        one, other = one is True, other is True
    assert one == other, (print_expression(before), print_expression(after), event)


def check_each_rule(seed: int, missing: Missing) -> None:
    """A rule preserves what it says it preserves, on every node it may meet."""
    rng, schema, condition = drawn(seed)
    events = [random_event(rng, schema, wrong_types=True) for _ in range(N_EVENTS)]
    form = to_nnf(condition, missing)
    for rule in ALL_RULES:
        if missing is Missing.SATISFIES_NEGATION and (rule.uses_opposites or rule is spelling.RULE):
            continue  # never applied there alone; to_nnf decides spelling and empty sets together
        for node in nodes(condition if rule is spelling.RULE else form):
            rewritten = rule.rewrite(node)
            for event in events if rewritten is not node else ():
                assert_same(node, rewritten, event, missing, keeps=rule.preserves)


def check_negation_normal_form(seed: int, missing: Missing) -> None:
    """NOT stands on leaves only, and the value is the same."""
    rng, schema, condition = drawn(seed)
    form = to_nnf(condition, missing)
    for node in nodes(form):
        if isinstance(node, Not):
            assert not children(node.operand), print_expression(node)
            assert not isinstance(node.operand, IsNull | Literal), print_expression(node)
    for _ in range(N_EVENTS):
        assert_same(condition, form, random_event(rng, schema, wrong_types=True), missing)


def check_canonical_form(seed: int, missing: Missing) -> None:
    """The canonical form is TRUE for the same events, and one more pass changes nothing."""
    rng, schema, condition = drawn(seed)
    form = canonicalize(condition, missing)
    exact = canonicalize(condition, missing, is_exact=True)
    assert simplify(form, missing) == form
    assert canonicalize(form, missing) == form
    for _ in range(N_EVENTS):
        event = random_event(rng, schema, wrong_types=True)
        assert_same(condition, form, event, missing, keeps=Preserves.TRUTH)
        assert_same(condition, exact, event, missing)


def check_zero_suppression(seed: int, missing: Missing) -> None:
    """In canonical form undefined may be taken for false (A-Tree §5.2.1), outside XOR."""
    rng, schema, condition = drawn(seed)
    form = canonicalize(condition, missing)
    event = random_event(rng, schema)

    def is_true(node: Condition) -> bool:
        if isinstance(node, Xor | Xnor) or not isinstance(node, NARY):
            return evaluate(node, event, missing) is True
        n_true = sum(is_true(operand) for operand in node.operands)
        if isinstance(node, AtLeast):
            return n_true >= node.k
        return n_true == len(node.operands) if isinstance(node, And) else n_true > 0

    assert is_true(form) == (evaluate(condition, event, missing) is True)


def check_order_of_operands(seed: int, missing: Missing) -> None:
    """Shuffled operands have the same hash; other conditions have it only if their form is."""
    rng, schema, condition = drawn(seed)

    def shuffled(node: Condition) -> Condition:
        if isinstance(node, Not):
            return Not(shuffled(node.operand))
        if not isinstance(node, NARY):
            return node
        operands = [shuffled(operand) for operand in node.operands]
        rng.shuffle(operands)
        return replace(node, operands=tuple(operands))

    assert content_hash(shuffled(condition), missing) == content_hash(condition, missing)
    other = random_condition(rng, schema, depth=1)
    has_same_form = canonicalize(condition, missing) == canonicalize(other, missing)
    has_same_hash = content_hash(condition, missing) == content_hash(other, missing)
    assert has_same_hash == has_same_form


def check_inverses(seed: int, missing: Missing) -> None:
    """A leaf's opposite is its negation, undefined included."""
    rng, schema, condition = drawn(seed)
    events = [random_event(rng, schema) for _ in range(N_EVENTS)]
    for leaf in nodes(to_nnf(condition)):
        if not children(leaf):
            for event in events:
                assert evaluate(inverse(leaf), event) == not_(evaluate(leaf, event))


PROPERTIES = (
    check_each_rule,
    check_negation_normal_form,
    check_canonical_form,
    check_zero_suppression,
    check_order_of_operands,
    check_inverses,
)


@pytest.mark.parametrize("missing", list(Missing))
@pytest.mark.parametrize("holds", PROPERTIES)
@given(seed=st.integers(0, 2**63))
def test_property(holds, missing, seed):
    holds(seed, missing)


@pytest.mark.slow
@pytest.mark.parametrize("missing", list(Missing))
@pytest.mark.parametrize("holds", PROPERTIES)
def test_property_on_many_cases(holds, missing, seed):
    """100,000 pairs of a condition and an event for each property."""
    rng = random.Random(seed)
    for _ in range(100_000 // N_EVENTS // len(Missing)):
        case = rng.getrandbits(63)
        try:
            holds(case, missing)
        except AssertionError as error:
            raise AssertionError(f"seed {case}: {error}") from error


SCHEMA = Schema.of(
    "a int, b int, c int, x double, f float, s string, t string, flag boolean, day date, "
    "tags array<string>"
)


def content_hash(condition: Condition, missing: Missing = Missing.UNDEFINED) -> bytes:
    """The 128-bit name of what the condition means, equal on every machine."""
    return digest(canonicalize(condition, missing))


def typed(text: str) -> Condition:
    return check(parse(text), SCHEMA)


# (text, canonical text), both in the author's spelling of the canonical form
EQUAL = [
    ("a = 1 OR b = 2", "b = 2 OR a = 1"),
    ("(a = 1 OR b = 2) AND c = 3", "c = 3 AND (b = 2 OR a = 1)"),
    ("a = 1 OR a = 2", "a IN (2, 1)"),
    ("NOT (a = 1 OR b = 2)", "b <> 2 AND a <> 1"),
    ("5 < a", "a > 5"),
    ("a > 5", "a >= 6"),
    ("a < 4.5", "a <= 4"),
    ("a BETWEEN 1 AND 3", "a >= 1 AND a <= 3"),
    ("a NOT BETWEEN 1 AND 3", "a < 1 OR a > 3"),
    ("day < DATE '2024-03-01'", "day <= DATE '2024-02-29'"),
    ("a > 3 AND a > 5", "a > 5"),
    ("a > 3 OR a > 5", "a > 3"),
    ("a >= 5 AND a <= 5", "a = 5"),
    ("a >= 5 AND a <= 5 AND a <> 5", "FALSE"),
    ("a < 5 OR a > 5 OR a = 5", "a IS NOT NULL"),
    ("x <= 1 AND x < 1", "x < 1"),
    ("x < 1 AND x <= 1", "x < 1"),
    ("x > 1 AND x >= 1", "x > 1"),
    ("x >= 1 AND x > 1", "x > 1"),
    ("x < 1 OR x <= 1", "x <= 1"),
    ("x >= 1 OR x > 1", "x >= 1"),
    ("x >= 1 AND x <> 1 AND x <= 1", "FALSE"),
    ("a IN (1, 2, 3) AND a > 1 AND a <> 3", "a = 2"),
    ("x < 1 OR x > 1", "x <> 1"),
    ("a = 1 AND a = 2", "FALSE"),
    ("a < 5 OR a > 3", "a IS NOT NULL"),
    ("a IS NOT NULL AND a < 5", "a < 5"),
    ("tags = tags", "tags IS NOT NULL"),
    ("tags = array('a') OR tags <> array('a')", "tags IS NOT NULL"),
    ("tags <=> array('a')", "tags = array('a') AND tags IS NOT NULL"),
    ("a IS NULL AND a < 5", "FALSE"),
    ("a IS NULL OR a IS NOT NULL", "TRUE"),
    ("a <=> 5", "a = 5"),
    ("NOT a <=> 5", "a <> 5 OR a IS NULL"),
    ("a = 1 AND (a = 1 OR b = 2)", "a = 1"),
    ("a = 1 OR (a = 1 AND b = 2)", "a = 1"),
    ("s LIKE 'x%'", "startswith(s, 'x')"),
    ("s LIKE '%x'", "endswith(s, 'x')"),
    ("s LIKE '%x%'", "contains(s, 'x')"),
    ("s LIKE 'x'", "s = 'x'"),
    ("s LIKE '%'", "s IS NOT NULL"),
    ("s LIKE 'a!%b' ESCAPE '!'", "s = 'a%b'"),
    ("s NOT LIKE '%x%'", "NOT contains(s, 'x')"),
    ("s ILIKE 'ABC%'", "s ILIKE 'abc%'"),
    ("flag", "flag = TRUE"),
    ("NOT flag", "flag = FALSE"),
    ("flag <> TRUE", "NOT flag"),
    ("flag OR NOT flag", "flag IS NOT NULL"),
    ("a = b", "b = a"),
    ("a < b", "b > a"),
    ("NOT a < b", "b <= a"),
    ("a = a", "a IS NOT NULL"),
    ("array_contains(tags, 'x')", "arrays_overlap(tags, array('x', 'x'))"),
    ("a = 1 XOR b = 2", "(b = 2) <> (a = 1)"),
    ("a = 1 XNOR b = 2", "a <> 1 XOR b = 2"),
    ("xor(a = 1, b = 2, TRUE)", "a = 1 XNOR b = 2"),
    ("NOT xor(a = 1, b = 2, c = 3)", "xnor(a = 1, b = 2, c = 3)"),
    ("xor(a = 1, xor(b = 2, c = 3))", "xor(a = 1, b = 2, c = 3)"),
    ("at_least(1, a = 1, b = 2)", "a = 1 OR b = 2"),
    ("at_least(2, a = 1, b = 2)", "a = 1 AND b = 2"),
    ("at_least(2, a = 1, b = 2, TRUE)", "a = 1 OR b = 2"),
    ("at_least(2, a = 1, FALSE, c = 3)", "a = 1 AND c = 3"),
    ("NOT at_least(2, a = 1, b = 2, c = 3)", "at_least(2, a <> 1, b <> 2, c <> 3)"),
    ("1 = 1 AND a = 1", "a = 1"),
    ("a = 1.5 OR b = 2", "b = 2"),
]
DIFFERENT = [
    ("a = 1 OR b = 2", "a = 1 AND b = 2"),
    ("a = 1", "b = 1"),
    ("a = 1", "a = 2"),
    ("x = 1", "a = 1"),
    ("f = 0.1", "x = 0.1"),
    ("a < b", "a < c"),
    ("a < b", "a > b"),
    ("at_least(2, a = 1, b = 2, c = 3)", "at_least(2, a = 1, a = 1, b = 2, c = 3)"),
    ("a = 1 XOR b = 2", "a = 1 XNOR b = 2"),
    ("flag OR NOT flag", "TRUE"),
    ("s LIKE 'x_'", "s LIKE 'x%'"),
    ("s = 'x'", "s = 'X'"),
    ("s RLIKE 'x'", "contains(s, 'x')"),
    ("(a = 1 OR b = 2) AND c = 3", "a = 1 OR b = 2 AND c = 3"),
    ("s = 'x'", "t = 'x'"),
]


@pytest.mark.parametrize(("one", "other"), EQUAL)
def test_equal_meaning_equal_hash(one, other):
    assert canonicalize(typed(one)) == canonicalize(typed(other))
    assert content_hash(typed(one)) == content_hash(typed(other))


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_different_meaning_different_hash(one, other):
    assert content_hash(typed(one)) != content_hash(typed(other))


def test_all_orders_of_one_or_have_one_hash():
    parts = ["a = 1", "b = 2", "s = 'x'", "NOT flag"]
    hashes = {content_hash(typed(" OR ".join(order))) for order in permutations(parts)}
    assert len(hashes) == 1


def test_the_hash_is_stable_across_machines_and_versions():
    """Indexes on disk hold these: a change here is a change of the format."""
    assert content_hash(typed("a = 1 AND s LIKE 'x%'")).hex() == STABLE_HASH


STABLE_HASH = "028424f61d3393a03f3152d1f202e2ee"
