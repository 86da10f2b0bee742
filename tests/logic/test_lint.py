"""Lint says what is suspicious, where, and nothing false."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language import Schema, check, parse, print_expression
from tamis.language.ast import And, Condition, Or
from tamis.logic.evaluate import evaluate
from tamis.logic.lint import lint
from tests.generators import random_condition, random_event, random_schema

SCHEMA = Schema.of("a int, b int, x double, s string, flag boolean, tags array<string>")

# (text, [(code, the part of the text it points at)])
CASES = [
    ("a = 1 AND s = 'x'", []),
    ("a = 1 OR b = 1 AND NOT flag", []),
    ("a IN (1, 2) AND b BETWEEN 1 AND 2", []),
    ("a = 1 AND a = 2", [("conflict", "a = 2")]),
    ("a = 1 AND b = 2 AND a > 5", [("conflict", "a > 5")]),
    ("flag AND NOT flag", [("conflict", "NOT flag")]),
    ("s LIKE '%x%' AND s NOT LIKE '%x%'", [("conflict", "s NOT LIKE '%x%'")]),
    ("a IS NULL AND a = 1", [("conflict", "a = 1")]),
    ("a = 1 OR a = 1", [("duplicate", "a = 1")]),
    ("a = 1 OR b = 2 OR 1 = a", [("duplicate", "1 = a")]),
    ("a IN (1, 2, 1)", [("duplicate", "a IN (1, 2, 1)")]),
    ("a < 5 OR a < 3", [("redundant", "a < 3")]),
    ("a < 5 AND a < 3", [("redundant", "a < 5")]),
    ("a = 1 AND (a = 1 OR b = 2)", [("redundant", "(a = 1 OR b = 2)")]),
    ("a = 1 AND a IS NOT NULL", [("redundant", "a IS NOT NULL")]),
    ("a = 1 OR a IS NOT NULL", [("redundant", "a = 1")]),
    ("NOT (a = 1 AND a IS NOT NULL)", []),
    ("xor(a = 1 AND a IS NOT NULL, b = 2)", []),
    ("(a = 1 AND a IS NOT NULL) XNOR b = 2", []),
    ("s RLIKE '.*x'", [("redundant", "s RLIKE '.*x'")]),
    ("a <> 1 OR a <> 2", [("always-true", "a <> 2")]),
    ("a < 5 OR a > 3", [("always-true", "a > 3")]),
    ("a IS NULL OR a IS NOT NULL", [("always-true", "a IS NOT NULL")]),
    ("a = 1 OR TRUE", [("always-true", "TRUE")]),
    ("startswith(s, '')", [("always-true", "startswith(s, '')")]),
    ("a = 1 AND FALSE", [("never-true", "FALSE")]),
    ("a <=> a", [("always-true", "a <=> a")]),
    (r"s = 'C:\temp'", [("control-character", r"'C:\temp'")]),
    (r"endswith(s, '\new.exe')", [("control-character", r"endswith(s, '\new.exe')")]),
    (r"s = r'C:\temp' OR s = 'a:\t b'", []),
    ("a = 1.5 AND b = 1", [("never-true", "a = 1.5"), ("never-true", "a = 1.5")]),
    ("(a = 1 AND a = 2) OR b = 3", [("unreachable", "(a = 1 AND a = 2)"), ("conflict", "a = 2")]),
    ("a BETWEEN 5 AND 1", [("empty-range", "a BETWEEN 5 AND 1")]),
    ("1 = 1", [("constant", "1 = 1")]),
    ("s = 'CA '", [("padded-string", "'CA '")]),
    ("s = '  '", [("padded-string", "'  '")]),
    ("s IN ('a', 'NULL')", [("null-string", "'NULL'")]),
    ("s = '10%'", [("wildcard-in-equality", "'10%'")]),
    ("s LIKE 'abc'", [("no-wildcard", "s LIKE 'abc'")]),
    ("NOT NOT flag", [("double-negation", "NOT NOT flag")]),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_findings_and_their_places(text, expected):
    findings = lint(check(parse(text), SCHEMA))
    assert [(found.code, text[slice(*found.span)]) for found in findings] == expected
    assert all(found.message for found in findings)


def with_places(condition: Condition, schema: Schema) -> Condition:
    """The condition as the parser makes it, with spans."""
    return check(parse(print_expression(condition)), schema)


@given(seed=st.integers(0, 2**63))
def test_what_lint_calls_never_or_always_true_is_so(seed):
    rng = random.Random(seed)
    schema = random_schema(rng, rng.choice((1, 2)))
    condition = with_places(random_condition(rng, schema, depth=2), schema)
    verdicts = {x.code for x in lint(condition) if x.span == condition.span}
    for _ in range(8):
        truth = evaluate(condition, random_event(rng, schema))
        assert not ("never-true" in verdicts and truth is True)
        assert not ("empty-range" in verdicts and truth is True)
        assert not ("always-true" in verdicts and truth is not True)


@given(seed=st.integers(0, 2**63))
def test_a_redundant_operand_has_no_effect(seed):
    rng = random.Random(seed)
    schema = random_schema(rng, 1)
    operands = tuple(random_condition(rng, schema, depth=0) for _ in range(2))
    condition = with_places(rng.choice((And, Or))(operands), schema)
    messages = [found.message for found in lint(condition)]
    if any(message.startswith(("has no effect", "said twice")) for message in messages):
        events = [random_event(rng, schema) for _ in range(8)]
        whole = [evaluate(condition, event) is True for event in events]
        parts = [[evaluate(x, event) is True for event in events] for x in operands]
        assert whole in parts


def test_a_wide_or_is_linted_quickly_enough_to_finish():
    text = " OR ".join(f"a = {n}" for n in range(2000)) + " OR a = 7"
    assert [found.code for found in lint(check(parse(text), SCHEMA))] == ["duplicate"]
