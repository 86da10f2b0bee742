"""How large an expression may be: just at each limit, and one beyond."""

from __future__ import annotations

import pickle

import pytest

from tamis.errors import LimitError, TamisError
from tamis.language import Limits, Schema, check, infer_schema, parse, print_expression
from tamis.language.limits import MAX_DEPTH
from tamis.logic.evaluate import evaluate


def refused_code(text, limits, schema=None):
    """The code of the limit that the text exceeds, or None."""
    try:
        condition = parse(text, limits)
        if schema:
            check(condition, Schema.of(schema), limits)
    except LimitError as error:
        return error.code
    return None


@pytest.mark.parametrize(
    ("fits", "exceeds", "limits", "code"),
    [
        ("a = 10", "a = 100", Limits(text_length=6), "text-too-long"),
        ("((a))", "(((a)))", Limits(depth=2), "too-deep"),
        ("NOT NOT a", "NOT NOT NOT a", Limits(depth=2), "too-deep"),
        ("a OR b AND c", "a OR b XOR c AND d", Limits(depth=2), "too-deep"),
        ("(a AND b) OR c", "((a AND b) OR c) AND a", Limits(depth=2), "too-deep"),
        ("at_least(1, a)", "at_least(1, at_least(1, a))", Limits(depth=1), "too-deep"),
        ("1 + 1 > 2", "1 + 1 + 1 > 2", Limits(depth=2), "too-deep"),
        ("a.b = 1", "a.b.c = 1", Limits(depth=2), "too-deep"),
        ("a AND b = 1", "a AND b = 1 AND c", Limits(predicates=2), "too-many-predicates"),
        ("a IN (1, 2)", "a IN (1, 2, 3)", Limits(in_list=2), "list-too-long"),
        (
            "arrays_overlap(a, array(1, 2))",
            "arrays_overlap(a, array(1, 2, 3))",
            Limits(in_list=2),
            "list-too-long",
        ),
        ("a LIKE ANY ('x')", "a LIKE ANY ('x', 'y')", Limits(in_list=1), "list-too-long"),
        ("a XOR b", "a XOR b XOR c", Limits(xor_operands=2), "too-many-operands"),
        ("xnor(a, b)", "xnor(a, b, c)", Limits(xor_operands=2), "too-many-operands"),
    ],
)
def test_limit(fits, exceeds, limits, code):
    assert refused_code(fits, limits) is None
    assert refused_code(exceeds, limits) == code


@pytest.mark.parametrize("word", ["OR", "AND"])
@pytest.mark.parametrize("pattern", ["({}) {} a = {}", "({} {} a = {})"])
def test_a_chain_that_grows_to_the_left_is_one_level(word, pattern):
    text = "a = 0"
    for number in range(1, 100):
        text = pattern.format(text, word, number)
    plain = parse(f" {word} ".join(f"a = {number}" for number in range(100)))
    assert parse(text, Limits(depth=2)) == plain


def test_a_chain_of_both_connectives_has_as_many_levels_as_it_alternates():
    text = "a = 0"
    for number in range(1, 5):
        text = f"(({text}) AND a = {number}) OR b = {number}"
    assert refused_code(text, Limits(depth=9)) is None
    assert refused_code(text, Limits(depth=8)) == "too-deep"


def test_a_long_list_of_patterns_is_one_predicate():
    limits = Limits(predicates=1, depth=1)
    patterns = ", ".join(f"'%{number}%'" for number in range(10_000))
    assert refused_code(f"a LIKE ANY ({patterns})", limits) is None


def test_a_long_text_says_how_to_write_it():
    with pytest.raises(LimitError) as caught:
        parse(" OR ".join(["a = 'xxxxxxxxxx'"] * 60_000))
    assert caught.value.code == "text-too-long"
    assert "LIKE ANY" in caught.value.hint
    assert "--limit-text-length" in caught.value.hint


def test_regex_length():
    limits = Limits(regex_length=3)
    assert refused_code("s RLIKE 'abc'", limits, "s STRING") is None
    assert refused_code("s RLIKE 'abcd'", limits, "s STRING") == "regex-too-long"


def test_limits_are_at_least_one():
    with pytest.raises(TamisError, match="limit predicates is 0; at least 1"):
        Limits(predicates=0)


def test_depth_has_an_upper_bound():
    with pytest.raises(TamisError, match=f"at most {MAX_DEPTH}"):
        Limits(depth=MAX_DEPTH + 1)


def grow(pattern, core, limits):
    """The largest text that `pattern` makes of itself within the limits."""
    text = core
    while refused_code(larger := pattern.format(text), limits) is None:
        text = larger
    return text


@pytest.mark.parametrize(
    "pattern",
    [
        "({})",
        "NOT {}",
        "at_least(1, {})",
        "xor(b, {})",
        "(b = {})",
        "b AND ({})",
        "({}) AND b",
        "({}) AND b XOR c OR b",
        "b OR c XOR b AND ({})",
        "at_least(1, b OR c XOR b AND {})",
        "at_least(1, ({}) AND b XOR c OR b)",
        "xor(b, {}) = c",
    ],
)
def test_nothing_overflows_at_the_deepest(pattern):
    """At the highest depth one may ask for, all that walks a tree still has stack to spare."""
    # Chains of AND and OR are limited only by their number of predicates.
    limits = Limits(depth=MAX_DEPTH, predicates=400)
    condition = parse(grow(pattern, "(a = 1)", limits), limits)
    assert deep_inside(200, lambda: walk(condition, limits)) is None


def walk(condition, limits):
    """All the walks over a tree; undefined without any attribute."""
    assert print_expression(condition).count("a = 1") == 1
    assert pickle.loads(pickle.dumps(condition)) == condition
    assert hash(condition) == hash(pickle.loads(pickle.dumps(condition)))
    assert repr(condition)
    return evaluate(check(condition, infer_schema([condition]), limits), {})


def deep_inside(n_frames, call):
    """The call's result, made as many frames down as a server or a test runner needs."""
    return call() if n_frames == 0 else deep_inside(n_frames - 1, call)
