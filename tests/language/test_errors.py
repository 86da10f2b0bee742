"""How an error is shown: the place, the picture, the suggestion, and the plain dictionary."""

from __future__ import annotations

import json
import pickle

import pytest

from tamis.errors import ExpressionError, LimitError, ParseError, TamisError, suggest
from tamis.language import Schema, check, parse


def refusal(text, schema=None):
    with pytest.raises(ExpressionError) as caught:
        check(parse(text), Schema.of(schema or {}), text=text)
    return caught.value


def test_picture():
    assert str(refusal("a = 1 ANDD b = 2")) == (
        "1:7: expected AND, OR or the end, found 'ANDD'; did you mean AND?\n"
        "  a = 1 ANDD b = 2\n"
        "        ^^^^"
    )


def test_picture_with_hint_and_subscription():
    error = refusal("contry = 'FR'", "country STRING")
    assert str(error) == (
        '1:1: unknown attribute "contry"; did you mean "country"?\n  contry = \'FR\'\n  ^^^^^^'
    )
    error.subscription_id = "s17"
    assert str(error).startswith('subscription "s17", 1:1: unknown attribute')
    error = refusal("level = 'high'", "level BIGINT")
    assert str(error).endswith("          ^^^^^^\n  hint: numbers are written without quotes")


def test_picture_shows_the_wrong_line():
    error = refusal("a = 1\nAND\n\tb == = 2\nAND c")
    assert (error.line, error.column) == (3, 7)
    assert error.picture() == "   b == = 2\n        ^"


def test_picture_at_the_end():
    error = refusal("a = 1 AND")
    assert (error.line, error.column, error.span) == (1, 10, (9, 10))
    assert error.picture() == "  a = 1 AND\n           ^"
    error = refusal("a = 1 AND\n ")
    assert "^" in error.picture()


def test_picture_of_a_long_line_is_cut():
    text = " OR ".join(["a = 1"] * 100) + " OR a = = 2 OR " + " OR ".join(["a = 1"] * 100)
    shown, carets = refusal(text).picture().split("\n")
    assert shown.startswith("  …")
    assert shown.endswith("…")
    assert len(shown) < 110
    assert shown[carets.index("^")] == "="
    assert shown[carets.index("^") - 4 :].startswith("a = = 2")


def test_picture_of_a_long_span_is_cut():
    lines = refusal("'" + "x" * 500).picture().split("\n")
    assert max(map(len, lines)) < 110


def test_picture_keeps_columns_with_control_characters():
    shown, carets = refusal("a\t= '\x07'\x07").picture().split("\n")
    assert shown == "  a = '�'�"
    assert carets == "         ^"


def test_long_names_are_shortened_in_messages():
    error = refusal("`" + "x" * 5000 + "` = 1", "a BIGINT")
    assert len(error.message) < 500
    assert error.message.startswith('unknown attribute "xxx')
    assert " … " in error.message


def test_to_dict_is_json():
    error = refusal("a = 1\nANDD b")
    error.subscription_id = "s1"
    assert json.loads(json.dumps(error.to_dict())) == {
        "code": "unexpected-token",
        "line": 2,
        "column": 1,
        "span": [6, 10],
        "message": "expected AND, OR or the end, found 'ANDD'; did you mean AND?",
        "hint": None,
        "subscription_id": "s1",
    }


def test_errors_travel_between_processes():
    error = refusal("a = 1 ANDD b = 2")
    error.subscription_id = "s1"
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is ParseError
    assert str(copy) == str(error)


def test_error_without_text():
    error = LimitError("too-deep", "too deep", span=(4, 5))
    assert str(error) == "1:5: too deep"
    assert error.picture() == ""


def test_every_error_is_ours():
    assert issubclass(ExpressionError, TamisError)
    assert str(TamisError("wrong", hint="do so")) == "wrong\n  hint: do so"


@pytest.mark.parametrize(
    ("word", "candidates", "found"),
    [
        ("contry", ["country", "county"], "country"),
        ("COUNTRY", ["country"], "country"),
        ("ANDD", ["AND", "OR"], "AND"),
        ("level", ["age"], None),
        ("a", ["b", "a1"], None),
        ("", ["a"], None),
        ("x", [], None),
    ],
)
def test_suggestion(word, candidates, found):
    assert suggest(word, candidates) == found


def test_known_attributes_are_listed_where_they_are_few():
    assert refusal("zzz = 1", "a BIGINT, `b c` BIGINT").hint == "known: `b c`, a"
    many = ", ".join(f"column_{n} BIGINT" for n in range(50))
    assert refusal("zzz = 1", many).hint is None
