"""The reference evaluator: three-valued truth, what a missing attribute means, wrong types."""

from __future__ import annotations

from itertools import product
from random import Random
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import TamisError
from tamis.language import Schema, check, parse
from tamis.language.ast import And, AtLeast, Attribute, Not, Or, Xnor, Xor
from tamis.language.types import BOOLEAN
from tamis.logic.evaluate import Missing, evaluate
from tamis.logic.truth import and_, at_least, not_, or_, xor
from tamis.text import get_analyser
from tests.generators import random_condition, random_event, random_schema

TRUTHS = (True, None, False)
UNDEFINED, NEGATION = Missing.UNDEFINED, Missing.SATISFIES_NEGATION

# A-Tree, Table 2: rows are the left operand, columns the right one, each true, undefined, false.
CONJUNCTION = ((True, None, False), (None, None, False), (False, False, False))
DISJUNCTION = ((True, True, True), (True, None, None), (True, None, False))
EXCLUSIVE = ((False, None, True), (None, None, None), (True, None, False))


@pytest.mark.parametrize(
    ("function", "table"), [(and_, CONJUNCTION), (or_, DISJUNCTION), (xor, EXCLUSIVE)]
)
def test_truth_table(function, table):
    found = tuple(tuple(function((left, right)) for right in TRUTHS) for left in TRUTHS)
    assert found == table


def test_negation():
    assert [not_(truth) for truth in TRUTHS] == [False, None, True]


@pytest.mark.parametrize("n_operands", range(1, 6))
def test_at_least_is_what_every_completion_says(n_operands):
    """True or false if so however the undefined ones turn out, else undefined."""
    for truths in product(TRUTHS, repeat=n_operands):
        for k in range(1, n_operands + 1):
            choices = [(True, False) if truth is None else (truth,) for truth in truths]
            answers = {sum(chosen) >= k for chosen in product(*choices)}
            expected = answers.pop() if len(answers) == 1 else None
            assert at_least(k, truths) is expected, (k, truths)


@pytest.mark.parametrize("n_operands", range(1, 5))
def test_connectives_are_folds(n_operands):
    for truths in product(TRUTHS, repeat=n_operands):
        conjunction, disjunction, parity = truths[0], truths[0], truths[0]
        for truth in truths[1:]:
            conjunction = and_((conjunction, truth))
            disjunction = or_((disjunction, truth))
            parity = xor((parity, truth))
        assert and_(truths) is at_least(n_operands, truths) is conjunction
        assert or_(truths) is at_least(1, truths) is disjunction
        assert xor(truths) is parity


def test_connectives_of_nothing():
    assert (and_(()), or_(()), xor(())) == (True, False, False)


@pytest.mark.parametrize("truths", list(product(TRUTHS, repeat=3)), ids=str)
def test_nodes_are_their_truth_functions(truths):
    operands = tuple(Attribute((name,), BOOLEAN) for name in "abc")
    event = dict(zip("abc", truths, strict=True))
    assert evaluate(And(operands), event) is and_(truths)
    assert evaluate(Or(operands), event) is or_(truths)
    assert evaluate(Xor(operands), event) is xor(truths)
    assert evaluate(Xnor(operands), event) is not_(xor(truths))
    assert evaluate(Not(operands[0]), event) is not_(truths[0])
    for k in (1, 2, 3):
        assert evaluate(AtLeast(k, operands), event) is at_least(k, truths)


# ── missing attributes ──────────────────────────────────────────────────────────────────────

SCHEMA = Schema.of("i BIGINT, n BIGINT, s STRING, b BOOLEAN, tags ARRAY<STRING>")


def typed(text):
    return check(parse(text), SCHEMA)


@pytest.mark.parametrize(
    ("text", "undefined", "negation"),
    [
        # A test on a missing attribute is undefined; in Fontoura's meaning it does not hold, so
        # whatever is spelled as its negation does.
        ("i = 1", None, False),
        ("i <> 1", None, True),
        ("NOT i = 1", None, True),
        ("NOT i <> 1", None, False),
        ("i < 1", None, False),
        ("NOT i < 1", None, True),
        ("i >= 1", None, False),
        ("i IN (1)", None, False),
        ("i NOT IN (1)", None, True),
        ("NOT i NOT IN (1)", None, False),
        ("i BETWEEN 1 AND 2", None, False),
        ("i NOT BETWEEN 1 AND 2", None, True),
        ("s LIKE 'a'", None, False),
        ("s NOT LIKE 'a'", None, True),
        ("s NOT RLIKE 'a'", None, True),
        ("startswith(s, 'a')", None, False),
        ("NOT contains(s, 'a')", None, True),
        ("array_contains(tags, 'a')", None, False),
        ("NOT array_contains(tags, 'a')", None, True),
        ("b", None, False),
        ("NOT b", None, True),
        ("i = n", None, False),
        ("i <> n", None, True),
        # Tests of presence are never undefined.
        ("i IS NULL", True, True),
        ("i IS NOT NULL", False, False),
        ("NOT i IS NULL", False, False),
        ("i <=> n", True, True),
        ("i <=> 1", False, False),
        ("NOT i <=> 1", True, True),
        # And above them.
        ("i = 1 AND FALSE", False, False),
        ("i = 1 OR TRUE", True, True),
        ("i = 1 OR NOT i = 1", None, True),
        ("i = 1 AND i <> 1", None, False),
        ("i = 1 XOR s = 'a'", None, False),
        ("i <> 1 XOR s = 'a'", None, True),
        ("i = 1 XNOR s = 'a'", None, True),
        ("at_least(2, i <> 1, s <> 'a', b)", None, True),
        ("at_least(1, i <> 1, TRUE)", True, True),
    ],
)
def test_without_any_attribute(text, undefined, negation):
    assert evaluate(typed(text), {}) is undefined
    assert evaluate(typed(text), {}, NEGATION) is negation
    nulls = {"i": None, "n": None, "s": None, "b": None, "tags": None}
    assert evaluate(typed(text), nulls) is undefined
    wrong = {"i": "1", "n": 1.5, "s": 5, "b": 0, "tags": "a"}
    assert evaluate(typed(text), wrong) is undefined
    assert evaluate(typed(text), wrong, NEGATION) is negation


@pytest.mark.parametrize(
    ("text", "event", "undefined", "negation"),
    [
        ("i BETWEEN 5 AND n", {"i": 1}, False, False),
        ("i BETWEEN 0 AND n", {"i": 1}, None, False),
        ("i NOT BETWEEN 5 AND n", {"i": 1}, True, True),
        ("i NOT BETWEEN 0 AND n", {"i": 1}, None, True),
        ("i NOT BETWEEN 5 AND 2", {"i": 3}, True, True),
        ("array_contains(tags, 'z')", {"tags": ["a", None]}, None, False),
        ("NOT array_contains(tags, 'z')", {"tags": ["a", None]}, None, True),
        ("NOT array_contains(tags, 'a')", {"tags": ["a", None]}, False, False),
        ("NOT array_contains(tags, 'a')", {"tags": []}, True, True),
        ("i <> n", {"i": 1}, None, True),
        ("i <=> n", {"i": 1}, False, False),
    ],
)
def test_with_some_attributes(text, event, undefined, negation):
    assert evaluate(typed(text), event) is undefined
    assert evaluate(typed(text), event, NEGATION) is negation


@given(st.integers(0, 2**32))
def test_negation_mode_differs_only_where_something_is_undefined(seed):
    rng = Random(seed)
    schema = random_schema(rng)
    condition = random_condition(rng, schema, 2)
    event = random_event(rng, schema, wrong_types=True)
    undefined, negation = evaluate(condition, event), evaluate(condition, event, NEGATION)
    assert negation is not None
    if undefined is not None:
        # Monotone: more knowledge about the undefined tests cannot overturn a decided truth.
        assert undefined is negation


@given(st.integers(0, 2**32))
def test_missing_null_and_wrong_are_one(seed):
    rng = Random(seed)
    schema = random_schema(rng)
    condition = random_condition(rng, schema, 2)
    event = random_event(rng, schema, wrong_types=True)
    assert evaluate(condition, event) is evaluate(condition, without_nulls(event))


def without_nulls(event):
    return {
        name: without_nulls(value) if isinstance(value, dict) else value
        for name, value in event.items()
        if value is not None
    }


# ── paths and misuse ────────────────────────────────────────────────────────────────────────


def test_paths_into_what_is_no_struct_are_missing():
    condition = check(parse("geo.lat = 1"), Schema.of("geo.lat DOUBLE"))
    assert evaluate(condition, {"geo": {"lat": 1.0}}) is True
    for event in ({}, {"geo": None}, {"geo": 5}, {"geo": "lat"}, {"geo": []}, {"geo": {"lat": {}}}):
        assert evaluate(condition, event) is None


def test_only_typed_conditions_have_a_meaning():
    with pytest.raises(TamisError, match="a has no type"):
        evaluate(parse("a = 1"), {"a": 1})
    with pytest.raises(TamisError, match="a has no type"):
        evaluate(parse("matches(a, 'x')"), {"a": "x"})
    with pytest.raises(TamisError, match="no answer for the call loc_in"):
        evaluate(parse("loc_in('x')"), {"a": "x"})
    with pytest.raises(TamisError, match=r"\?x has no type"):
        evaluate(parse("?x > 5"), {})


def test_events_may_be_any_mapping():
    class Lazy(dict):
        def get(self, name, default=None):
            return 5 if name == "i" else default

    assert evaluate(typed("i = 5"), Lazy()) is True


def test_a_text_is_analysed_once_for_all_words_of_a_query():
    words = " ".join(f"w{at}" for at in range(50))
    schema = Schema.of("title TEXT, body TEXT")
    for form in ("matches", "matches_any", "matches_at_least", "matches_phrase"):
        k = "20, " if form == "matches_at_least" else ""
        condition = check(parse(f"{form}({k}(title, body), '{words}')"), schema)
        with patch("tamis.logic.evaluate.get_analyser", wraps=get_analyser) as asked:
            assert evaluate(condition, {"title": "", "body": words}) is True
        assert asked.call_count == 2, form
