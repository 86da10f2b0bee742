"""An index answers exactly as the reference evaluator, also without a look at the events."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from tamis.errors import ExpressionError, RowError
from tamis.events.json_texts import parse_event
from tamis.language import check, parse, print_expression
from tamis.logic.evaluate import Missing, evaluate
from tamis.search import Query
from tamis.search import searching as module
from tamis.search.relaxing import list_sources
from tests.archive.places import make_entry
from tests.effort import SEED, examples
from tests.events.layouts import to_json
from tests.match.examples import RANDOM_EVENTS, draw_example
from tests.search.places import SCHEMA, Documents, draw_document, draw_expression

pytestmark = RANDOM_EVENTS
# Texts that parsers may read differently, and some that are no events.
ODD = (
    '{"body": "oil \\ud800"}',
    '{"body": "oil", "price": NaN}',
    '{"body": "oil", "price": 3.0}',
    '{"body": "oil", "price": 12345678901234567890123}',
    '{"body": "gas", "body": "oil"}',
    '{"body": "oil", "deep": ' + "[" * 300 + "]" * 300 + "}",
    '{"body": "oil", "tag": "' + "long " * 60 + '"}',
    '{"body": "ura' + "n" * 200 + ' oil", "title": null}',
    "[1]",
    '{"body": "oil"',
)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts are small, so that their edges are met."""
    monkeypatch.setattr(module, "LEAST_CANDIDATES", 3)
    monkeypatch.setattr(module, "MOST_CANDIDATES", 11)


def add_texts(documents: Documents, texts: list[str]) -> None:
    encoded = [own.encode(errors="surrogatepass") for own in texts]
    documents.archive.append([make_entry(encoded, [[] for _ in texts])])
    documents.texts += encoded


def judge(documents: Documents, condition: Any, missing: Missing) -> list[int]:
    """The numbers of the events for which a condition is TRUE, the newest first."""
    found = []
    for number, text in enumerate(documents.texts, start=1):
        with suppress(RowError):
            if evaluate(condition, parse_event(text), missing) is True:
                found.append(number)
    return found[::-1]


def compare(documents: Documents, queries: dict[str, tuple[Query, Any]], missing: Missing) -> int:
    """Ask with all that the queries want in the index; returns how many it decided alone."""
    for query, _ in queries.values():
        documents.indexes.look(query)
    documents.build()
    n_exact = 0
    for text, (query, condition) in queries.items():
        assert documents.find(query, limit=7) == judge(documents, condition, missing), text
        for segment in documents.archive.segments():
            index = documents.indexes.open(segment, query)
            if index is not None and list(list_sources(query.relaxed)):
                n_exact += query.prepare(index).narrowed.is_exact
    return n_exact


@pytest.mark.parametrize("missing", Missing)
def test_all_types_are_compared_as_the_reference_evaluator_does(tmp_path, missing):
    n_exact = 0
    for at in range(examples(8)):
        example = draw_example(SEED + at, n_subscriptions=12, n_events=30)
        documents = Documents(tmp_path / str(at))
        texts = [to_json(event) for event in example.events]
        for part in (texts[::2], texts[1::2]):
            add_texts(documents, part)
            documents.archive.seal()
        queries = {}
        for condition in example.conditions.values():
            text = print_expression(condition)
            checked = check(parse(text), example.schema)
            queries[text] = Query.of(text, example.schema, missing), checked
        n_exact += compare(documents, queries, missing)
        documents.archive.close()
    assert n_exact > 5


@pytest.mark.parametrize("missing", Missing)
def test_odd_texts_are_read_as_the_reference_evaluator_does(folder, missing):
    draw = random.Random(SEED)
    documents = Documents(folder)
    for _ in range(2):
        documents.add([draw_document(draw) for _ in range(20)])
        add_texts(documents, list(ODD))
        documents.archive.seal()
    queries = {}
    while len(queries) < examples(60):
        text = draw_expression(draw)
        with suppress(ExpressionError):
            queries[text] = Query.of(text, SCHEMA, missing), check(parse(text), SCHEMA)
    for text in ("matches(body, 'ura*')", "matches(body, 'ura?ium')", "NOT matches(tag, 'oil')"):
        queries[text] = Query.of(text, SCHEMA, missing), check(parse(text), SCHEMA)
    assert compare(documents, queries, missing) > 20
