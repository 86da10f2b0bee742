"""Words near each other: any order or the given one, and how many other words may be between."""

from __future__ import annotations

from itertools import combinations, product
from random import Random

import pytest

import tamis
from tamis.errors import ExpressionError
from tamis.text import get_analyser
from tamis.text.proximity import has_chain, has_near
from tests.effort import examples


def read(text):
    return get_analyser("standard").read(text)


@pytest.mark.parametrize(
    ("text", "distance", "is_near", "is_chain"),
    [
        ("back pain", 0, True, True),
        ("pain back", 0, True, False),
        ("back of pain", 0, False, False),
        ("back of pain", 1, True, True),
        ("pain in the back", 1, False, False),
        ("pain in the back", 2, True, False),
        ("pain x x x x back x pain", 1, True, True),
        ("back", 5, False, False),
        ("", 5, False, False),
    ],
)
def test_two_words(text, distance, is_near, is_chain):
    assert has_near(read(text), ("back", "pain"), distance) is is_near
    assert has_chain(read(text), ("back", "pain"), distance) is is_chain


def test_as_every_choice_of_places(seed):
    """The definition, by brute force over the places of the words."""
    rng = Random(seed)
    for _ in range(examples(300)):
        words = rng.choices("abcx", k=rng.randint(0, 9))
        text = read(" ".join(words))
        wanted = rng.choices("abc", k=rng.randint(2, 3))
        distance = rng.randint(0, 4)
        window = len(wanted) + distance
        runs = [
            run for run in combinations(range(len(words)), len(wanted)) if _spread(run) < window
        ]
        is_chain = any([words[at] for at in run] == wanted for run in runs)
        assert has_chain(text, wanted, distance) is is_chain
        distinct = sorted(set(wanted))
        window = len(distinct) + distance
        places = [[at for at, own in enumerate(words) if own == word] for word in distinct]
        is_near = any(_spread(choice) < window for choice in product(*places))
        assert has_near(text, distinct, distance) is is_near


def _spread(places):
    return max(places) - min(places)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("near(body, 'pain', 3)", "bad-count", "of one word"),
        ("near(body, 'pain Pain', 3)", "bad-count", "of one word"),
        ("near(body, '...', 3)", "no-words", "no word to search for"),
        ("near(body, 'back pain', -1)", "bad-count", "is 0 to 1000"),
        ("near(body, 'back pain', 1001)", "bad-count", "is 0 to 1000"),
        ("near(body, 'back pain', 1.5)", "bad-count", "a whole number"),
        ("near(body, 'back pain')", "unexpected-token", "expected"),
        ("near(body, 'b* pain', 2)", "bad-wildcard", "too short"),
        ("near(n, 'back pain', 3) AND n = 1", "type-mismatch", r"near\(\) searches strings"),
    ],
)
def test_errors(text, code, message):
    with pytest.raises(ExpressionError, match=message) as caught:
        tamis.evaluate(text, {}, "body STRING, n INT")
    assert caught.value.code == code


def test_the_same_word_twice_in_order():
    assert tamis.evaluate("near_in_order(body, 'new york new', 2)", {"body": "new york, new"})
    assert not tamis.evaluate("near_in_order(body, 'new new', 9)", {"body": "new york"})


def test_one_word_of_a_text_may_be_two_of_the_query_unless_they_are_in_order():
    assert tamis.evaluate("near(body, 'child* children', 2)", {"body": "children"})
    assert not tamis.evaluate("near_in_order(body, 'child* children', 2)", {"body": "children"})


def test_a_word_that_a_text_has_very_often():
    """Comparing all places with each other would take minutes."""
    assert not tamis.evaluate("near(body, 'aa bb', 3)", {"body": "aa " * 20_000 + "x " * 9 + "bb"})


def test_explanations():
    index = tamis.build({"q": "near(body, 'back pain', 1)"})
    shown = str(index.explain("q", {"body": "pain in the back"}))
    assert "the words occur, but not as near each other" in shown
    assert "not found: back" in str(index.explain("q", {"body": "pain"}))
