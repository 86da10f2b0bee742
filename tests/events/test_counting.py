"""Occurrences of words: batches count as single texts do, and what cannot be counted is refused."""

from __future__ import annotations

import gc

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.language import counting
from tamis.language.types import STRING, text_type
from tamis.language.value_functions import find_overload

WORDS = ("oil", "Oil", "gas", "the", "of", "é", "E", "!", "x-y")
texts = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=1)
QUERIES = ("oil", "gas", "E", "x", "oil the gas", "oi*", "g?s oil", "*il*")
queries = st.lists(st.sampled_from(QUERIES), min_size=1, max_size=3)


@given(texts, queries.map(" ".join), st.sampled_from(("standard", "english", "keyword", "simple")))
def test_many_texts_as_one_by_one(found, query, analyser):
    types = (text_type(analyser), STRING)
    overload = find_overload("occurrences", types, (None, query), analyser)
    array = pa.array(found, pa.large_string())
    counts = [overload.compute(text, query) for text in found]
    assert overload.compute_many(array, query).tolist() == counts
    assert overload.compute_many(array, query).tolist() == counts


def test_texts_are_split_once_and_then_forgotten(monkeypatch):
    made = []

    class Counted(counting._Texts):
        def __init__(self, own, analyser):
            made.append(analyser)
            super().__init__(own, analyser)

    monkeypatch.setattr(counting, "_Texts", Counted)
    words = ("oil", "gas", "coal", "peat")
    index = tamis.build({word: f"occurrences(body, '{word}') >= 2" for word in words})
    events = [{"body": "oil gas oil"}, {"body": "peat, peat and coal"}]
    assert index.match_lists(events).to_pylist() == [["oil"], ["peat"]]
    assert made == ["standard"]
    gc.collect()
    assert counting._LAST.found is None


def test_the_analyser_of_each_attribute_is_used(tmp_path):
    schema = "a TEXT(english), b STRING"
    rules = {"a": "occurrences(a, 'weapons') = 2", "b": "occurrences(b, 'weapons') = 1"}
    tamis.build(rules, schema).save(tmp_path / "index")
    index = tamis.Index.open(tmp_path / "index")
    event = {"a": "a weapon, weapons", "b": "a weapon, weapons"}
    assert index.match(event) == ["a", "b"]
    assert index.match_lists([event]).to_pylist() == [["a", "b"]]


@pytest.mark.parametrize(
    ("expression", "code", "message"),
    [
        ("occurrences(a, '...') = 1", "no-words", "has no word to search for"),
        ("occurrences(a, b) = 1", "type-mismatch", "b must be a constant"),
        ("occurrences(n, 'x') = 1", "type-mismatch", "n is an integer; occurrences"),
        ("occurrences(a) = 1", "wrong-arity", "does not take 1 argument"),
        ("regexp_count(a, '(') = 1", "bad-pattern", "not an RE2 regular expression"),
        ("regexp_count(a, 'x*') = 1", "bad-pattern", "matches an empty text"),
        ("regexp_count(a, '<.+?>') = 1", "bad-pattern", "longest repetitions"),
        ("regexp_count(a, '(?U)x+') = 1", "bad-pattern", "longest repetitions"),
        (f"regexp_count(a, '{'x' * 1025}') = 1", "regex-too-long", "1025 characters"),
        ("regexp_count(n, 'x') = 1", "type-mismatch", "n is an integer; regexp_count"),
    ],
)
def test_what_cannot_be_counted(expression, code, message):
    with pytest.raises(tamis.ExpressionError, match=message) as raised:
        tamis.parse(expression, schema="a STRING, b STRING, n INT")
    assert raised.value.code == code


def test_words_have_no_spark_form():
    from tamis.language.printer import print_for_spark

    with pytest.raises(tamis.TamisError, match=r"no Spark SQL form: occurrences\(a, 'x'\)"):
        print_for_spark(tamis.parse("occurrences(a, 'x') = 1"))
    assert print_for_spark(tamis.parse(r"regexp_count(a, r'\d') = 1")) == (
        "regexp_count(a, '[0-9]') = 1"
    )
