"""The search box over texts and arrays of texts, against a naive reading of its queries."""

from __future__ import annotations

import random

import orjson
import pyarrow as pa
import pytest

import tamis
from tamis import InputError, search_query
from tests.effort import SEED, examples

SCHEMA = "title TEXT(standard_english), body TEXT(standard_english), tags ARRAY<STRING>"
WORDS = ["oil", "price", "crude", "opec", "sport"]
FIELDS = ("title", "body")


@pytest.mark.parametrize(
    ("query", "expression"),
    [
        ("oil", "matches((title, body), 'oil') OR exists(tags, x -> matches(x, 'oil'))"),
        ("tags:opec", "exists(tags, x -> matches(x, 'opec'))"),
        ("title:opec", "matches(title, 'opec')"),
        (
            "rise of oil",
            (
                "(matches((title, body), 'rise') OR exists(tags, x -> matches(x, 'rise'))) AND "
                "(matches((title, body), 'of oil') OR exists(tags, x -> matches(x, 'of oil')))"
            ),
        ),
        (
            "oil the",
            "matches((title, body), 'oil the') OR exists(tags, x -> matches(x, 'oil the'))",
        ),
        (
            "back NEAR/3 pain",
            ("near((title, body), 'back pain', 3) OR exists(tags, x -> near(x, 'back pain', 3))"),
        ),
        (
            "title:a -opec",
            (
                "matches(title, 'a') AND (title IS NULL OR NOT matches(title, 'opec')) AND "
                "(body IS NULL OR NOT matches(body, 'opec')) AND (tags IS NULL OR NOT "
                "exists(tags, x -> NOT x IS NULL AND matches(x, 'opec')))"
            ),
        ),
    ],
)
def test_queries(query, expression):
    assert search_query(query, FIELDS, arrays="tags") == expression


def test_arrays_alone():
    assert search_query("oil -gas", (), arrays=["tags"], missing="undefined") == (
        "exists(tags, x -> matches(x, 'oil')) AND NOT exists(tags, x -> matches(x, 'gas'))"
    )


@pytest.mark.parametrize("arrays", ["title", ["tags", "title"]])
def test_a_name_in_both_lists_is_refused(arrays):
    with pytest.raises(InputError, match="title is both in attributes and in arrays"):
        search_query("oil", FIELDS, arrays=arrays)


@pytest.mark.parametrize("arrays", [None, 3, [""], [3], "tags, categories"])
def test_arrays_that_are_no_names_are_refused(arrays):
    with pytest.raises(InputError, match="attributes to search in"):
        search_query("oil", FIELDS, arrays=arrays)


def test_matches_of_an_array_says_what_to_write():
    (problem,) = tamis.check("matches((title, tags), 'oil')", SCHEMA)
    assert "exists(tags, x -> matches(x, …))" in problem.reason.hint


# ── against a naive reading ─────────────────────────────────────────────────────────────────


def draw_query(draw: random.Random) -> tuple[str, list[tuple[bool, list[str]]]]:
    """A query, and its parts: whether a list of words is wanted; a longer one is a phrase."""
    wanted: list[tuple[bool, list[str]]] = [(True, [draw.choice(WORDS)])]
    for _ in range(draw.randint(0, 3)):
        is_wanted = draw.random() < 0.6
        wanted.append((is_wanted, draw.sample(WORDS, draw.choice([1, 1, 2]))))
    written = []
    for is_wanted, words in wanted:
        text = words[0] if len(words) == 1 else f'"{" ".join(words)}"'
        written.append(text if is_wanted else f"-{text}")
    return " ".join(written), wanted


def draw_text(draw: random.Random) -> str | None:
    return draw.choice([None, " ".join(draw.choices(WORDS, k=draw.randint(0, 3)))])


def draw_event(draw: random.Random) -> dict:
    event = {"title": draw_text(draw), "body": draw_text(draw)}
    event["tags"] = draw.choice([None, [draw_text(draw) for _ in range(draw.randint(0, 3))]])
    return event


def is_wanted_event(event: dict, wanted: list[tuple[bool, list[str]]]) -> bool:
    texts = [event["title"], event["body"], *(event["tags"] or ())]
    places = [f" {own} " for own in texts if own is not None]
    return all(
        any(f" {' '.join(words)} " in place for place in places) == is_wanted
        for is_wanted, words in wanted
    )


def test_the_same_events_as_a_naive_reading():
    draw = random.Random(SEED)
    queries = [draw_query(draw) for _ in range(examples(60))]
    events = [draw_event(draw) for _ in range(200)]
    expressions = {
        str(at): search_query(query, FIELDS, arrays="tags") for at, (query, _) in enumerate(queries)
    }
    index = tamis.build(expressions, SCHEMA)
    expected = [
        {str(at) for at, (_, wanted) in enumerate(queries) if is_wanted_event(event, wanted)}
        for event in events
    ]
    assert 0 < sum(map(len, expected)) < len(queries) * len(events)
    arrow = pa.Table.from_pylist(
        events,
        pa.schema({"title": pa.string(), "body": pa.string(), "tags": pa.list_(pa.string())}),
    )
    lines = [orjson.dumps(event) for event in events]
    assert [set(own) for own in index.match_lists(events).to_pylist()] == expected
    assert [set(own) for own in index.match_lists(arrow).to_pylist()] == expected
    assert [set(own) for own in index.match_lists(lines).to_pylist()] == expected
    assert [set(index.match(event)) for event in events] == expected
    for event, found in zip(events[:40], expected, strict=False):
        told = {own for own, text in expressions.items() if tamis.evaluate(text, event, SCHEMA)}
        assert told == found
