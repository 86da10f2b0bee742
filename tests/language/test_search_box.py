"""What people type into a search box becomes an expression."""

from __future__ import annotations

import random
import re

import pytest

import tamis
from tamis import InputError, ParseError, TamisWarning, search_query
from tamis.language import print_for_spark


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("niger", "matches(body, 'niger')"),
        ("niger uranium", "matches(body, 'niger uranium')"),
        ("niger AND uranium", "matches(body, 'niger uranium')"),
        ("+niger +uranium", "matches(body, 'niger uranium')"),
        ("a +b OR +c -d", "matches(body, 'a b') OR matches(body, 'c') AND NOT matches(body, 'd')"),
        (
            '+"a b" +(c OR d)',
            ("matches_phrase(body, 'a b') AND (matches(body, 'c') OR matches(body, 'd'))"),
        ),
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
        ("", "no word to search for"),
        ("  ", "no word to search for"),
        ("+", "no word to search for"),
        ('"" -:', "no word to search for"),
        (": -a", "only excludes words"),
        ("-a", "only excludes words"),
        ("a OR -b", "only excludes words"),
        ("(-a)", "only excludes words"),
        ("(-a -b) AND (NOT c)", "only excludes words"),
        ("a (-b OR c)", "only excludes words"),
        ("a (c OR (-b))", "only excludes words"),
        ('a "b', "1:3: a quote is not closed"),
        ("(a", "a parenthesis is not closed"),
        ("a)", "a parenthesis is closed that was not opened"),
        ("a OR", "1:3: OR joins two words"),
        ("OR a", "1:1: OR joins two words"),
        ("a (OR b)", "1:4: OR joins two words"),
        ("a OR OR b", "1:3: OR joins two words"),
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


@pytest.mark.filterwarnings("ignore::tamis.TamisWarning")
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


# ── what other search boxes mean ────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "place", "message"),
    [
        ("child*", "child*", "wildcards are not supported"),
        ("oil !gas", "!gas", "not an operator"),
        ("oil --gas", "--gas", "not an operator"),
        ("oil ANDNOT gas", "ANDNOT", "not an operator"),
        ("‘oil tanker’ spill", "‘oil tanker’", "a phrase is in double quotes"),
        ("'oil price'", "'oil price'", "a phrase is in double quotes"),
        ("a 'oil price", "'oil", "a phrase is in double quotes"),
        ("a 'don't worry' b", "'don't worry'", "a phrase is in double quotes"),
        ("‘oil tanker’", "‘oil tanker’", "a phrase is in double quotes"),
        ("*itis", "*itis", "wildcards are not supported"),
        ("a wom?n", "wom?n", "wildcards are not supported"),
        ('"back pain*"', '"back pain*"', "wildcards are not supported"),
        ('"a b"~5', "~5", "proximity and fuzzy words are not supported"),
        ("roam~0.8", "roam~0.8", "proximity and fuzzy words are not supported"),
        ("back NEAR/5 pain", "NEAR/5", "proximity and fuzzy words are not supported"),
        ("back ADJ3 pain", "ADJ3", "proximity and fuzzy words are not supported"),
        ("back N3 pain", "N3", "proximity and fuzzy words are not supported"),
        ('"back pain" W10 (leg arm)', "W10", "proximity and fuzzy words are not supported"),
        ("back NEAR3 pain", "NEAR3", "proximity and fuzzy words are not supported"),
        ("back ONEAR/3 pain", "ONEAR/3", "proximity and fuzzy words are not supported"),
        ("back PRE/3 pain", "PRE/3", "proximity and fuzzy words are not supported"),
        ("back /s pain", "/s", "proximity and fuzzy words are not supported"),
        ("election 1990..1995", "1990..1995", "ranges and comparisons are not supported"),
        ("election ..1995", "..1995", "ranges and comparisons are not supported"),
        ("election $10..$20", "$10..$20", "ranges and comparisons are not supported"),
        ("election [1990 TO 1995]", "[1990", "ranges and comparisons are not supported"),
        ("election year>=1990", "year>=1990", "ranges and comparisons are not supported"),
        ("title:fed", "title:fed", "fields are not supported"),
        ('title:"fed rate"', "title:", "fields are not supported"),
        ("title:(fed rate)", "title:", "fields are not supported"),
        ("fed | ecb", "|", "| is not an operator"),
        ("fed||ecb", "fed||ecb", "| is not an operator"),
        ("asthma[tiab]", "asthma[tiab]", "tags of fields are not supported"),
        ("asthma [TIAB]", "[TIAB]", "tags of fields are not supported"),
        ('"back pain"[Mesh]', "[Mesh]", "tags of fields are not supported"),
        ("fed^2 ecb", "fed^2", "weights are not supported"),
    ],
)
def test_what_would_mean_something_else_is_refused(query, place, message):
    with pytest.raises(InputError) as refused:
        search_query(query, "body")
    error = refused.value
    assert error.message == message
    assert query[slice(*error.span)] == place
    assert error.hint


@pytest.mark.parametrize(
    "query",
    [
        *("what is this?", "N95 mask", "[Reuters] story", "10:30 train", "re: hello"),
        *("http://x.org/a", "N3", "N3 road", "road N3", "3M N95 mask", "wait... what"),
        *("I [went TO] school", "and/or 1990-1995"),
    ],
)
def test_plain_writing_is_not_refused(query):
    assert search_query(query, "body") == f"matches(body, '{query}')"


@pytest.mark.parametrize("dash", "‐‑‒–—−")
def test_dashes_of_word_processors_exclude(dash):
    assert search_query(f"oil {dash}gas", "body") == search_query("oil -gas", "body")


def test_curly_quotes_are_quotes():
    assert search_query("“back pain” -«x y»", "body") == search_query('"back pain" -"x y"', "body")


# ── what is looked for otherwise than it seems ──────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("oil or gas", [("or", 5)]),
        ("oil Or gas", [("Or", 5)]),
        ("oil and gas", [("and", 5)]),
        ("oil not gas", [("not", 5)]),
        ("not oil", [("not", 1)]),
        ("oil near gas", [("near", 5)]),
        ("oil XOR gas", [("XOR", 5)]),
        ("oil xor gas", [("xor", 5)]),
        ('"oil" or (gas)', [("or", 7)]),
        ("and or not", [("or", 5)]),
        ("to be or not to be or", [("or", 7), ("not", 10)]),
    ],
)
def test_operators_in_lower_case_are_words_and_reported(query, words):
    with pytest.warns(TamisWarning) as caught:
        expression = search_query(query, "body")
    (warning,) = caught
    message = str(warning.message)
    assert message.startswith(
        f"the query {query!r}: {words[0][0]} at column {words[0][1]} is a word"
    )
    assert re.findall(r"(\w+) at column (\d+)", message) == [(w, str(at)) for w, at in words]
    assert f'and "{words[0][0]}" in quotes the word' in message
    assert warning.filename == __file__
    assert words[0][0].lower() in expression.lower()


def test_the_warning_says_what_to_write():
    with pytest.warns(TamisWarning, match="the operator is OR in capitals"):
        search_query("oil or gas", "body")
    with pytest.warns(TamisWarning, match="for adjacent words write a phrase"):
        search_query("oil near gas", "body")


@pytest.mark.parametrize(
    "query",
    ["oil OR gas", "or gas", "oil or", "oil not", '"oil or gas"', 'oil "or" gas', "oil -or gas"],
)
def test_words_that_are_no_operators_are_not_reported(query):
    search_query(query, "body")


@pytest.mark.parametrize("query", ["back near/5 pain", "back w/3 pain"])
def test_proximity_in_lower_case_is_refused(query):
    with pytest.raises(InputError, match="proximity"):
        search_query(query, "body")


@pytest.mark.parametrize(
    ("query", "typed", "letter", "column"),
    [
        ("C++", "C++", "c", 1),
        ("programming C#", "C#", "c", 13),
        ('java "F# C"', "F#", "f", 7),
        ("java -C++", "C++", "c", 7),
        ("(R&)", "R&", "r", 2),
    ],
)
def test_a_word_of_which_a_letter_is_left_is_reported(query, typed, letter, column):
    message = f"{typed} at column {column} is looked for as the word {letter}; to find it as it is"
    with pytest.warns(TamisWarning, match=re.escape(message)) as caught:
        search_query(query, ("body", "title"))
    assert len(caught) == 1
    assert str(caught[0].message).endswith(f"use the expression contains(body, '{typed}')")


@pytest.mark.parametrize(
    "query",
    ["covid-19", "AT&T", ".net", "a", "a.", "(a)", "x,", "5%", "👍", "e\u0301", "a -", "+ a"],
)
def test_other_words_are_not_reported(query):
    search_query(query, "body")


@pytest.mark.parametrize(
    ("query", "column", "remedy"),
    [
        ("oil - gas", 5, "to exclude what follows, write -gas"),
        ("- gas oil", 1, "to exclude what follows, write -gas"),
        ('oil – "a b"', 5, 'to exclude what follows, write -"a b"'),
        ("oil - (a OR b)", 5, "to exclude the group, write -(…)"),
    ],
)
def test_a_dash_before_a_blank_is_reported(query, column, remedy):
    with pytest.warns(TamisWarning) as caught:
        search_query(query, "body")
    (warning,) = caught
    message = f"- at column {column} excludes nothing, since a blank follows; {remedy}"
    assert str(warning.message) == f"the query {query!r}: {message}"


def test_required_stop_words_are_left_out_as_others_are():
    expression = search_query("+wet +my +pants", "body")
    assert expression == search_query("wet my pants", "body")
    assert tamis.check(expression, "body TEXT(english)") == []


def test_the_hint_for_single_quotes_has_the_phrase():
    with pytest.raises(InputError, match='write "oil price"'):
        search_query("'oil price' rises", "body")


@pytest.mark.parametrize("attributes", ["title, body", "title,body", ["id", "title, body"]])
def test_several_attributes_in_one_text(attributes):
    with pytest.raises(InputError, match="the attributes to search in are one text") as refused:
        search_query("a", attributes)
    assert "write a list of names: ('title', 'body')" in str(refused.value)
    assert search_query("a", "`title, body`") == "matches(`title, body`, 'a')"


# ── missing attributes ──────────────────────────────────────────────────────────────────────

SEARCHES = [
    "a", "a -b", "a -(b c)", 'a -"b c"', "a -(-b)", "a -wi-fi", "a OR (b -c)", "a -(b OR (c -b))",
    'b "a b" -c', "a -(wi-fi c)",
]  # fmt: skip
TEXTS = ["", "a", "b", "a b", "a b c", "b c", "c a", "wi", "fi a", "a wi fi", "a wi"]


@pytest.mark.parametrize("query", SEARCHES)
@pytest.mark.parametrize("fields", [("title", "body"), ("title", "body", "tags")])
def test_a_missing_attribute_of_several_counts_as_empty(query, fields):
    expression = search_query(query, fields)
    plain = search_query(query, fields, missing="undefined")
    rng = random.Random(query)
    for _ in range(60):
        given = {field: rng.choice([None, *TEXTS]) for field in fields}
        filled = {field: text or "" for field, text in given.items()}
        expected = tamis.evaluate(plain, filled)
        assert (tamis.evaluate(expression, given) is True) == (expected is True), given


def test_a_missing_attribute_alone_is_undefined_unless_asked():
    assert search_query("a -b", "body") == "matches(body, 'a') AND NOT matches(body, 'b')"
    expression = search_query("a OR (c -b)", "body", missing="empty")
    assert tamis.evaluate(expression, {"body": "c"}) is True
    with pytest.raises(InputError, match="missing is 'other'; allowed: empty, undefined"):
        search_query("a", "body", missing="other")
