"""Who uses an attribute, by the arrays of the index and by the expressions."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tamis
from tamis.index.uses import asked_paths, count_uses, used_paths
from tamis.language.ast import attributes
from tamis.language.lookalikes import Use
from tests.effort import examples

SCHEMA = ", ".join(f"a{number} INT" for number in range(100))
TESTS = ("a{} = 1", "a{} > 2", "NOT a{} = 3", "a{} IS NULL", "a{} IN (1, 5)", "a{} IS NOT NULL")
test = st.builds(str.format, st.sampled_from(TESTS), st.integers(0, 99))
# An attribute once: where tests contradict each other, the attribute may go.
tests = st.lists(test, min_size=1, max_size=4, unique_by=lambda own: re.search(r"a\d+", own)[0])
expression = st.builds(str.join, st.sampled_from([" AND ", " OR "]), tests)


@pytest.mark.parametrize("missing", ["undefined", "satisfies_negation"])
def test_every_kind_of_test_counts(missing):
    index = tamis.build(
        {
            "equal": "a1 = 1 OR a2 = 1",
            "not": "NOT a1 = 1 AND a3 <> 4",
            "pattern": "name LIKE 'a%' OR name RLIKE 'x.*y'",
            "pair": "a4 < a5",
            "words": "matches(body, 'fed')",
            "list": "array_contains(tags, 'x')",
            "null": "a6 IS NULL AND a2 = 4",
            "again": "a6 IS NULL AND a2 = 4",
        },
        SCHEMA + ", name STRING, body STRING, tags ARRAY<STRING>",
        missing=missing,
    )
    assert not index.rejects
    uses = count_uses(index.contents, used_paths(index.contents))
    assert uses == {
        ("a1",): Use(2, "equal"),
        ("a2",): Use(3, "equal"),
        ("a3",): Use(1, "not"),
        ("a4",): Use(1, "pair"),
        ("a5",): Use(1, "pair"),
        ("a6",): Use(2, "null"),
        ("name",): Use(1, "pattern"),
        ("body",): Use(1, "words"),
        ("tags",): Use(1, "list"),
    }
    assert set(uses) - set(asked_paths(index.contents)) == {("a6",)}


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(expression, min_size=1, max_size=30))
def test_uses_are_those_of_the_expressions(expressions):
    index = tamis.build({str(at): text for at, text in enumerate(expressions)}, SCHEMA)
    expected: dict[tuple[str, ...], list[str]] = {}
    constant = {*index.contents.always_true.tolist(), *index.contents.never.tolist()}
    for at, text in enumerate(expressions):
        for path in {own.path for own in attributes(tamis.parse(text, SCHEMA))}:
            if at not in constant:
                expected.setdefault(path, []).append(str(at))
    counted = count_uses(index.contents, [(f"a{number}",) for number in range(100)])
    for path, use in counted.items():
        ids = expected.get(path, [])
        assert use == Use(len(ids), ids[0] if ids else None)


def test_unused_attributes_are_those_of_the_schema_that_nobody_names():
    index = tamis.build({"a": "age > 3"}, "age INT, name STRING, `a b` INT")
    assert index.unused_attributes == ["name", "`a b`"]
    assert tamis.build({"a": "age > 3"}).unused_attributes == []


def test_an_index_of_nothing_uses_nothing():
    index = tamis.build({})
    assert count_uses(index.contents, [("a",)]) == {("a",): Use(0, None)}
    assert asked_paths(index.contents) == []
