"""What people type into a search box becomes an expression."""

from __future__ import annotations

import random

import pytest

import tamis
from tamis import ParseError, search_query
from tamis.language import print_for_spark


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("niger", "matches(body, 'niger')"),
        ("niger uranium", "matches(body, 'niger uranium')"),
        ("niger AND uranium", "matches(body, 'niger uranium')"),
        ("+niger +uranium", "matches(body, 'niger') AND matches(body, 'uranium')"),
        (
            'niger AND uranium -yellowcake "weapons of mass"',
            (
                "matches(body, 'niger uranium') AND matches_phrase(body, 'weapons of mass') "
                "AND NOT matches(body, 'yellowcake')"
            ),
        ),
        ("a OR b c", "matches(body, 'a') OR matches(body, 'b c')"),
        ("(a OR b) c", "matches(body, 'c') AND (matches(body, 'a') OR matches(body, 'b'))"),
        ("a NOT b", "matches(body, 'a') AND NOT matches(body, 'b')"),
        ('a -"b c"', "matches(body, 'a') AND NOT matches_phrase(body, 'b c')"),
        (
            "a -(b OR c)",
            "matches(body, 'a') AND NOT (matches(body, 'b') OR matches(body, 'c'))",
        ),
        ("rock & roll wi-fi", "matches(body, 'rock & roll wi-fi')"),
        ("and or not", "matches(body, 'and or not')"),
        ("it's", "matches(body, 'it\\'s')"),
    ],
)
def test_queries(query, expression):
    assert search_query(query, "body") == expression
    tamis.parse(expression)


def test_keywords_have_no_spark_form():
    with pytest.raises(tamis.TamisError, match="keywords have no Spark SQL form: matches"):
        print_for_spark(tamis.parse("a = 1 AND matches(body, 'x')"))


def test_several_attributes():
    expression = search_query("niger uranium", attributes=("title", "user-text"))
    assert expression == "matches((title, `user-text`), 'niger uranium')"
    assert tamis.evaluate(expression, {"title": "Niger", "user-text": "uranium"})


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "nothing to look for"),
        ("  ", "nothing to look for"),
        ("-a", "only what to leave out"),
        ("a OR -b", "only what to leave out"),
        ('a "b', "a quote is not closed"),
        ("(a", "a parenthesis is not closed"),
        ("a)", "nothing is open"),
        ("a OR", "nothing to look for"),
        ("AND a", "AND joins two words"),
        ("a AND", "AND joins two words"),
        ("a NOT", "a word is expected after NOT"),
        ("(" * 100 + "a", "nested too deep"),
    ],
)
def test_refusals(query, message):
    with pytest.raises(ParseError, match=message) as refused:
        search_query(query, "body")
    assert refused.value.code == "bad-query"


def test_no_query_is_misread():
    """Whatever is typed is refused, or is an expression."""
    pieces = ("a", "b", "AND", "OR", "NOT", "-", "+", '"', "(", ")", " ", " ", "c'd", "\\", "é")
    for seed in range(500):
        rng = random.Random(seed)
        query = "".join(rng.choices(pieces, k=rng.randint(0, 9)))
        try:
            expression = search_query(query, ("t", "u"))
        except ParseError:
            continue
        # A word of nothing but signs is none.
        assert {problem.reason.code for problem in tamis.check(expression)} <= {"no-words"}, query
