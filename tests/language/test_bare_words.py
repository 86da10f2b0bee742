"""A word without quotes that is read as an attribute is reported where that can be known."""

from __future__ import annotations

import pytest

import tamis
from tamis.input.subscription_rows import SubscriptionRow
from tamis.language.schema import Schema
from tamis.validate import check_subscriptions


def find_bare(expressions: list[str], schema: str | None = None) -> list[tuple[str, str]]:
    rows = [SubscriptionRow(n, n, str(n), text) for n, text in enumerate(expressions, start=1)]
    known = None if schema is None else Schema.of(schema)
    return [
        (checked.row.text, checked.row.text[slice(*problem.reason.span)])
        for checked in check_subscriptions(rows, known)
        for problem in checked.problems
        if problem.reason.code == "bare-word"
    ]


@pytest.mark.parametrize(
    ("expressions", "words"),
    [
        (["user = 'root'", "user = admin"], [("user = admin", "admin")]),
        (["user = 'a'", "level = 1 AND user <> admin"], [("level = 1 AND user <> admin", "admin")]),
        (["user = 'a'", "user = 'b'", "user = c OR user = c"], [("user = c OR user = c", "c")] * 2),
        # An attribute that is tested elsewhere, of another type, ordered, nested, or as usual.
        (["user = 'root'", "user = admin", "admin = 'x'"], []),
        (["user = 'root'", "user = admin", "admin IS NULL"], []),
        (["price = 5", "price = budget"], []),
        (["user = 'root'", "user < admin"], []),
        (["user = 'root'", "user = other.name"], []),
        (["src LIKE '10.%'", "src = dst", "src = dst AND level = 1"], []),
    ],
)
def test_words_without_quotes(expressions, words):
    assert find_bare(expressions) == words


def test_a_schema_says_what_is_an_attribute():
    expressions = ["user = 'root'", "user = admin"]
    assert find_bare(expressions, "user STRING, admin STRING") == []


def test_the_hint_is_the_text():
    rows = [SubscriptionRow(n, n, str(n), f"user = {x}") for n, x in enumerate(["'a'", "b"])]
    (problem,) = list(check_subscriptions(rows))[1].problems
    assert problem.severity == "warning"
    assert problem.reason.hint.startswith("write a string in quotes: 'b'")


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        (
            "user = admin",
            (
                "if admin is a text, write 'admin'; otherwise declare them in a schema, such as "
                "'user STRING, admin STRING'"
            ),
        ),
        ("user = `x y`", "declare them in a schema, such as 'user STRING, `x y` STRING'"),
        ("user IN (root, admin)", "write a string in quotes: 'root'"),
        ("user LIKE root", "write a string in quotes: 'root'"),
    ],
)
def test_where_it_is_an_error_the_hint_names_the_quotes(text, hint):
    with pytest.raises(tamis.ExpressionError) as raised:
        tamis.parse(text)
    assert raised.value.hint == hint
