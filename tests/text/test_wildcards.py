"""Wildcards: where they are in a query, what they stand for, which are too short."""

from __future__ import annotations

import random
import re

import pytest

import tamis
from tamis.errors import ExpressionError
from tamis.text import get_analyser
from tamis.text.queries import analyse_query
from tamis.text.wildcards import find_bad_wildcard, fits, split_query
from tests.effort import examples


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("child* asthma", ["child*", "asthma"]),
        ("wom?n WOM*N", ["wom?n", "wom*n"]),
        ("*itis *cyt*", ["*itis", "*cyt*"]),
        ("covid-19*", ["covid", "19*"]),
        ("what is this?", ["what", "is", "this"]),
        ("¿qué? ?*itis? child*?", ["que", "*itis", "child*"]),
        ("child?* child*?*", ["child?*", "child?*"]),
        ("ab*?*?cd", ["ab??*cd"]),
        ("a * b", ["a", "b"]),
        ("** ? *", []),
        ("NAÏ*E Stra?e", ["nai*e", "stra?e"]),
        ("http://a.example/search?q=ab*", ["http", "a.example", "search", "q", "ab"]),
        ("don't* e.g.*", ["don't*", "e.g"]),
        ("日本*", ["日", "本*"]),
    ],
)
def test_words_of_a_query(query, words):
    assert [word.form for word in split_query("standard", query)] == words


def test_what_is_written():
    found = split_query("english", "The Chil?ren* ran")
    assert found == [("The", ""), ("Chil?ren*", "chil?ren*"), ("ran", "ran")]
    assert analyse_query("english", "the studies* of") == ("studies*",)
    assert split_query("keyword", "a* ?") == [("a* ?", "a* ?")]


@pytest.mark.parametrize(
    ("pattern", "word", "is_fit"),
    [
        ("child*", "child", True),
        ("child*", "children", True),
        ("child*", "chil", False),
        ("wom?n", "women", True),
        ("wom?n", "womn", False),
        ("*itis", "itis", True),
        ("*itis", "arthritis", True),
        ("*itis", "arthritic", False),
        ("a*a*b", "aaaaab", True),
        ("a*a*b", "aaaaa", False),
        ("??*", "a", False),
        ("na?ve", "naïve", True),
        ("*", "", False),
    ],
)
def test_fits(pattern, word, is_fit):
    assert fits(pattern, word) is is_fit


def test_fits_as_a_regular_expression(seed):
    rng = random.Random(seed)
    for _ in range(examples(500)):
        pattern = "".join(rng.choices("aab*?é", k=rng.randint(1, 6)))
        word = "".join(rng.choices("abé", k=rng.randint(1, 7)))
        regex = pattern.replace("*", ".*").replace("?", ".")
        assert fits(pattern, word) is (re.fullmatch(regex, word) is not None), (pattern, word)


@pytest.mark.parametrize(
    ("query", "written"),
    [("C*-algebra", "C*"), ("x ?a* y", "a*"), ("ab* c*", "c*"), ("a?b", None), ("19*", None)],
)
def test_wildcards_that_are_too_short(query, written):
    assert find_bad_wildcard("standard", query) == written


@pytest.mark.parametrize("test", ["matches(body, 'C* x')", "occurrences(body, 'C*') > 1"])
def test_the_error_shows_the_word(test):
    with pytest.raises(ExpressionError, match=r"'C\*' is too short") as caught:
        tamis.evaluate(test, {"body": ""})
    assert caught.value.code == "bad-wildcard"
    assert "child*" in caught.value.hint


def test_a_stemming_analyser_keeps_both_forms():
    text = get_analyser("english").read("The studies of naïve Houses")
    assert text.words == ["", "studi", "", "naiv", "hous"]
    assert text.folded == ["", "studies", "", "naive", "houses"]
