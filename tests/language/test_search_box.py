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
        ("AT&T wi-fi", "matches(body, 'AT&T wi-fi')"),
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


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("child* wom?n *itis", "matches(body, 'child* wom?n *itis')"),
        (
            '"back pain*" -ache*',
            "matches_phrase(body, 'back pain*') AND NOT matches(body, 'ache*')",
        ),
        ('"back pain"~3', "near(body, 'back pain', 3)"),
        ('"back pain"~0', "matches_phrase(body, 'back pain')"),
        ("back NEAR/3 pain", "near(body, 'back pain', 3)"),
        ("back ONEAR/3 pain", "near_in_order(body, 'back pain', 3)"),
        ("old back NEAR/3 pain", "matches(body, 'old') AND near(body, 'back pain', 3)"),
        ("back -leg NEAR/0 pain", "matches(body, 'back') AND NOT near(body, 'leg pain', 0)"),
        ("a covid-19 NEAR/2 vaccin*", "matches(body, 'a') AND near(body, 'covid-19 vaccin*', 2)"),
        ('"back" NEAR/3 pain', "near(body, 'back pain', 3)"),
        (
            "(back | leg) NEAR/3 (pain OR ache*)",
            (
                "near(body, 'back pain', 3) OR near(body, 'back ache*', 3) OR "
                "near(body, 'leg pain', 3) OR near(body, 'leg ache*', 3)"
            ),
        ),
        (
            "(pain OR back) NEAR/3 (pain OR leg)",
            "near(body, 'pain leg', 3) OR near(body, 'back pain', 3) OR near(body, 'back leg', 3)",
        ),
        ("pain ONEAR/3 pain", "near_in_order(body, 'pain pain', 3)"),
        ("fed | ecb", "matches(body, 'fed') OR matches(body, 'ecb')"),
        ("fed||ecb rate", "matches(body, 'fed') OR matches(body, 'ecb rate')"),
        ("body:fed rate", "matches(body, 'rate') AND matches(body, 'fed')"),
        ("http://x.example/a?b what?", "matches(body, 'http://x.example/a?b what?')"),
    ],
)
def test_wildcards_proximity_and_alternatives(query, expression):
    assert search_query(query, "body") == expression
    tamis.parse(expression)


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("title:fed rate", "matches((title, body.text), 'rate') AND matches(title, 'fed')"),
        ("Title:fed", "matches(title, 'fed')"),
        ('body.text:"fed rate"', "matches_phrase(body.text, 'fed rate')"),
        ("title:(fed OR ecb*)", "matches(title, 'fed') OR matches(title, 'ecb*')"),
        (
            "rate -title:fed",
            "matches((title, body.text), 'rate') AND (title IS NULL OR NOT matches(title, 'fed'))",
        ),
        ("title:(fed NEAR/2 rate)", "near(title, 'fed rate', 2)"),
        ('title:"fed rate"~2', "near(title, 'fed rate', 2)"),
        (
            "rate -(fed NEAR/2 hike)",
            (
                "matches((title, body.text), 'rate') AND "
                "(title IS NULL OR NOT near(title, 'fed hike', 2)) AND "
                "(body.text IS NULL OR NOT near(body.text, 'fed hike', 2))"
            ),
        ),
    ],
)
def test_fields(query, expression):
    assert search_query(query, ("title", "body.text")) == expression
    tamis.parse(expression)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("title:-fed", "a word is expected after title:"),
        ("titl:fed", "titl is not a field of this search"),
        ("title:fed NEAR/3 rate", "both sides of NEAR/3 must be in one field"),
        ("NEAR/3 rate", "NEAR/3 joins two words"),
        ("fed NEAR/3", "a word is expected after NEAR/3"),
        ("fed NEAR/3 OR rate", "a word is expected after NEAR/3"),
        ("fed |", "1:5: | joins two words"),
        ("| fed", "1:1: | joins two words"),
    ],
)
def test_refused_fields_and_proximity(query, message):
    with pytest.raises(InputError, match=re.escape(message)):
        search_query(query, ("title", "body"))


def test_the_hint_names_the_fields():
    with pytest.raises(InputError, match="the fields are title, body; in quotes"):
        search_query("mesh:asthma", ("title", "body"))


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
    [("a" * 1_100_000, "makes no expression"), ("a \ud800", "makes no expression")],
)
def test_queries_beyond_the_language(query, message):
    with pytest.raises(InputError, match=message):
        search_query(query, "body")


@pytest.mark.filterwarnings("ignore::tamis.TamisWarning")
def test_no_query_is_misread():
    """Whatever is typed is refused, or is an expression."""
    words = ("a", "b", "c'd", "é", "\u0301", "👍", "\ud800", "\0", "\\", ":", "?", "'", "\n")
    operators = ("AND", "OR", "NOT", "-", "+", "|", " NEAR/2 ", " ONEAR/1 ", "~2", "t:", "*", "ab*")
    pieces = (*words, *operators, '"', '""', "(", ")", " ", " ", " ")
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
        ("oil !gas", "!gas", "not an operator"),
        ("oil --gas", "--gas", "not an operator"),
        ("oil ANDNOT gas", "ANDNOT", "not an operator"),
        ("‘oil tanker’ spill", "‘oil tanker’", "a phrase is in double quotes"),
        ("'oil price'", "'oil price'", "a phrase is in double quotes"),
        ("a 'oil price", "'oil", "a phrase is in double quotes"),
        ("a 'don't worry' b", "'don't worry'", "a phrase is in double quotes"),
        ("‘oil tanker’", "‘oil tanker’", "a phrase is in double quotes"),
        ('"a b"~', "~", "this form of proximity is not supported"),
        ('"a b"~0.5', "~0.5", "this form of proximity is not supported"),
        ("roam~0.8", "roam~0.8", "fuzzy words are not supported"),
        ("back NEAR pain", "NEAR", "this form of proximity is not supported"),
        ("back NEAR/x pain", "NEAR/x", "this form of proximity is not supported"),
        ("back w/3 pain", "w/3", "this form of proximity is not supported"),
        ("child$ asthma", "child$", "$ is not a wildcard"),
        ('"child"* asthma', "*", "a wildcard is a part of a word"),
        ("C* algebra", "C*", "'C*' is too short: a word with * or ? needs 2 letters"),
        ('"a b*"', '"a b*"', "'b*' is too short: a word with * or ? needs 2 letters"),
        ("pain NEAR/3 pain", "NEAR/3", "NEAR/3 joins two different words"),
        ("a NEAR/3 (b c)", "(", "NEAR joins words, or groups of words with OR between them"),
        ('"a b" NEAR/3 c', '"a b"', "NEAR joins words, or groups of words with OR between them"),
        ("a NEAR/3 (b OR -c)", "-c", "the query only excludes words"),
        ("a NEAR/3 b NEAR/3 c", "NEAR/3", "NEAR joins two words"),
        ("a NEAR/1001 b", "NEAR/1001", "1001 words between are too many"),
        ('"a b"~9999', '"a b"~9999', "9999 words between are too many"),
        ('"a A"~3', '"a A"~3', "two words or more can be near each other"),
        ("back ADJ3 pain", "ADJ3", "this form of proximity is not supported"),
        ("back N3 pain", "N3", "this form of proximity is not supported"),
        ("N3 pain", "N3", "this form of proximity is not supported"),
        ("back adj3 pain", "adj3", "this form of proximity is not supported"),
        ("fed && ecb", "&&", "not an operator"),
        ("fed & ecb", "&", "not an operator"),
        ("TS=(fed)", "TS=", "fields in this form are not supported"),
        ('ti="fed"', "ti=", "fields in this form are not supported"),
        ("title=fed", "title=fed", "fields in this form are not supported"),
        ("foo.ab.", "foo.ab.", "fields in this form are not supported"),
        ("(foo OR bar).ti,ab.", ".ti,ab.", "fields in this form are not supported"),
        ("exp Neoplasms/", "Neoplasms/", "subject headings are not supported"),
        ("(exp Neoplasms/) AND a", "Neoplasms/", "subject headings are not supported"),
        ("/fe[dt]/", "/fe[dt]/", "regular expressions are not supported"),
        ('"back pain" W10 (leg arm)', "W10", "this form of proximity is not supported"),
        ("back NEAR3 pain", "NEAR3", "this form of proximity is not supported"),
        ("back PRE/3 pain", "PRE/3", "this form of proximity is not supported"),
        ("back /s pain", "/s", "this form of proximity is not supported"),
        ("election 1990..1995", "1990..1995", "ranges and comparisons are not supported"),
        ("election ..1995", "..1995", "ranges and comparisons are not supported"),
        ("election $10..$20", "$10..$20", "ranges and comparisons are not supported"),
        ("election [1990 TO 1995]", "[1990", "ranges and comparisons are not supported"),
        ("election year>=1990", "year>=1990", "ranges and comparisons are not supported"),
        ("title:fed", "title:fed", "title is not a field of this search"),
        ('title:"fed rate"', "title:", "title is not a field of this search"),
        ("title:(fed rate)", "title:", "title is not a field of this search"),
        ("asthma[tiab]", "asthma[tiab]", "tags of fields are not supported"),
        ("asthma [TIAB]", "[TIAB]", "tags of fields are not supported"),
        ('"back pain"[Mesh]', "[Mesh]", "tags of fields are not supported"),
        ("fed^2 ecb", "fed^2", "weights are not supported"),
        ("wom#n", "wom#n", "# is not a wildcard"),
        ("health (WOM#N OR colo#r)", "WOM#N", "# is not a wildcard"),
        ("body:organi#ation*", "organi#ation*", "# is not a wildcard"),
        ("post-wom#n", "post-wom#n", "# is not a wildcard"),
        ("gas body : oil", "body :", "a field is directly before its word"),
        ("Body :oil", "Body :", "a field is directly before its word"),
        ('body : "crude oil"', "body :", "a field is directly before its word"),
        ("-body : (fed OR ecb)", "body :", "a field is directly before its word"),
        ("body: oil", "body:", "a field is directly before its word"),
        ('Body: "crude oil"', "Body:", "a field is directly before its word"),
        ("body: (fed OR ecb)", "body:", "a field is directly before its word"),
        ("oil,-gas", "oil,-gas", "a dash inside a word excludes nothing"),
        ('"crude oil",-gas', ",-gas", "a dash inside a word excludes nothing"),
        ("election year > 1990", ">", "ranges and comparisons are not supported"),
        ('"oil * gas"', '"oil * gas"', "a wildcard is a part of a word"),
        ("oil AROUND(3) gas", "AROUND", "this form of proximity is not supported"),
    ],
)
def test_what_would_mean_something_else_is_refused(query, place, message):
    with pytest.raises(InputError) as refused:
        search_query(query, "body")
    error = refused.value
    assert error.message == message
    begin, end = error.span
    assert query[begin:end] == place
    assert error.hint


@pytest.mark.parametrize(
    "query",
    [
        *("what is this?", "N95 mask", "[Reuters] story", "10:30 train", "re: hello"),
        *(
            "http://x.org/a",
            "N3",
            "road N3",
            "and/or",
            "a.b.",
            "u.s.",
            "adj",
            "e=f",
            "http://x.org/a/",
            "3M N95 mask",
            "wait... what",
        ),
        *("I [went TO] school", "and/or 1990-1995"),
        *("R#D", "#metoo", "issue #5", "issue#5", "http://x.org/a#part", "wars : a new hope"),
    ],
)
def test_plain_writing_is_not_refused(query):
    assert search_query(query, "body") == f"matches(body, '{query}')"


@pytest.mark.filterwarnings("ignore:the query:tamis.TamisWarning")
@pytest.mark.parametrize(
    "query", ["C# book", "csharp C#7", '"wom#n"', '"body" : oil', "oil body :"]
)
def test_names_and_quoted_words_are_not_refused(query):
    assert search_query(query, "body")


def test_what_would_be_an_operator_before_a_word_is_a_word_before_others():
    assert search_query("N3 OR W5", "body") == "matches(body, 'N3') OR matches(body, 'W5')"


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


def test_proximity_in_lower_case():
    assert search_query("back near/5 pain", "body") == "near(body, 'back pain', 5)"
    with pytest.raises(InputError, match="proximity"):
        search_query("back w/3 pain", "body")


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
    'b "a b" -c', "a -(wi-fi c)", "a -wi*", 'a -"b c"~2', "a -(b NEAR/1 c)", "a -title:b", "a -*fi",
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
