"""What people type into a search box becomes an expression."""

from __future__ import annotations

import random
import re

import pytest

import tamis
from tamis import InputError, ParseError, search_query
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
        ("a AND (NOT b)", "matches(body, 'a') AND NOT matches(body, 'b')"),
        ("((-b)) a", "matches(body, 'a') AND NOT matches(body, 'b')"),
        (
            "(-b -c) a",
            "matches(body, 'a') AND (NOT matches(body, 'b') AND NOT matches(body, 'c'))",
        ),
        ("a -(-b)", "matches(body, 'a') AND NOT NOT matches(body, 'b')"),
        ("rock & roll wi-fi", "matches(body, 'rock & roll wi-fi')"),
        ("and or not", "matches(body, 'and or not')"),
        ("it's", "matches(body, 'it\\'s')"),
        ('b ""a', "matches(body, 'b a')"),
        ('b "+ -" -":"', "matches(body, 'b')"),
        ("a NOT :", "matches(body, 'a')"),
        ("a OR + OR (: OR ?)", "matches(body, 'a')"),
        ("a -(: OR b)", "matches(body, 'a') AND NOT matches(body, 'b')"),
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
        ("+", "nothing to look for"),
        ('"" -:', "nothing to look for"),
        (": -a", "only what to leave out"),
        ("-a", "only what to leave out"),
        ("a OR -b", "only what to leave out"),
        ("(-a)", "only what to leave out"),
        ("(-a -b) AND (NOT c)", "only what to leave out"),
        ("a (-b OR c)", "only what to leave out"),
        ("a (c OR (-b))", "only what to leave out"),
        ('a "b', "1:3: a quote is not closed"),
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
    assert isinstance(refused.value, InputError)
    assert "hint: words" in str(refused.value)
    assert query[:50] in str(refused.value)


@pytest.mark.parametrize("query", [None, 5, b"a", ["a"]])
def test_query_that_is_no_text(query):
    with pytest.raises(InputError, match=re.escape(f"the query is {query!r}; a string is")):
        search_query(query, "body")


@pytest.mark.parametrize("attributes", ["", [], (), None, 5, b"body", ["body", None], ["body", ""]])
def test_attributes_that_are_no_names(attributes):
    with pytest.raises(InputError, match=re.escape(f"are {attributes!r}")) as refused:
        search_query("a", attributes)
    assert "a list of names" in str(refused.value)


@pytest.mark.parametrize(
    ("query", "message"),
    [("a" * 70_000, "makes no expression"), ("a \ud800", "makes no expression")],
)
def test_queries_beyond_the_language(query, message):
    with pytest.raises(InputError, match=message):
        search_query(query, "body")


def test_no_query_is_misread():
    """Whatever is typed is refused, or is an expression."""
    words = ("a", "b", "c'd", "é", "\u0301", "👍", "\ud800", "\0", "\\", ":", "?", "'", "\n")
    pieces = (*words, "AND", "OR", "NOT", "-", "+", '"', '""', "(", ")", " ", " ", " ")
    n_read = 0
    for seed in range(2_000):
        rng = random.Random(seed)
        query = "".join(rng.choices(pieces, k=rng.randint(0, 9)))
        try:
            expression = search_query(query, ("t", "u"))
        except InputError:
            continue
        n_read += 1
        tamis.parse(expression)
        severities = {problem.severity for problem in tamis.check(expression)}
        assert severities <= {"warning"}, query
    assert n_read > 200
