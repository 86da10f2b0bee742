"""A search finds exactly what the standing query would have matched."""

from __future__ import annotations

import random
import sys
from contextlib import suppress
from pathlib import Path

import orjson
import pytest

from tamis.archive import Archive
from tamis.errors import ExpressionError, InputError, TamisWarning
from tamis.events.json_texts import parse_event
from tamis.language import Schema, check, parse, search_query
from tamis.logic.evaluate import Missing, evaluate
from tamis.match.build import build
from tamis.operators.registry import Registry, operator
from tamis.search import (
    Asked,
    Budget,
    Indexer,
    Order,
    Query,
    Search,
    SearchIndexes,
    indexer,
    library,
    segment_writer,
)
from tamis.search import searching as module
from tamis.search.fields import Field
from tamis.search.highlights import Marker
from tests.effort import SEED, examples
from tests.match.examples import RANDOM_EVENTS
from tests.match.test_real_documents import of_documents, read_documents
from tests.search.places import SCHEMA, Documents, draw_document, draw_expression
from tests.waiting import wait_until

pytestmark = RANDOM_EVENTS
REAL = Path(__file__).parents[1] / "match" / "real"


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """Parts are small, so that their edges are met."""
    monkeypatch.setattr(module, "AT_ONCE", 7)
    monkeypatch.setattr(module, "LEAST_CANDIDATES", 3)
    monkeypatch.setattr(module, "MOST_CANDIDATES", 11)


def read_query(draw: random.Random, missing: Missing) -> tuple[str, Query]:
    """A random expression that is valid."""
    while True:
        expression = draw_expression(draw)
        try:
            return expression, Query.of(expression, SCHEMA, missing)
        except ExpressionError:
            continue


@pytest.mark.parametrize("is_indexed", [False, True], ids=["scanned", "indexed"])
@pytest.mark.parametrize("missing", Missing)
def test_a_search_finds_what_the_reference_evaluator_does(folder, missing, is_indexed):
    draw = random.Random(SEED)
    documents = Documents(folder)
    for at in range(4):
        documents.add([draw_document(draw) for _ in range(30)])
        if at < 3:
            documents.archive.seal()
    if is_indexed:
        everything = " OR ".join(f"matches({own}, 'oil')" for own in ("title", "body", "tag"))
        everything += " OR matches((`a.b`, note.text), 'oil')"
        documents.find(Query.of(everything, SCHEMA))
        documents.build()
    n_candidates = 0
    for _ in range(examples(40)):
        expression, query = read_query(draw, missing)
        expected = documents.judge(expression, missing)
        asked = {"limit": draw.choice([1, 3, 10, 200])}
        if draw.random() < 0.5:
            asked |= {"after": draw.randint(0, 120), "up_to": draw.randint(0, 130)}
            expected = [n for n in expected if asked["after"] < n <= asked["up_to"]]
        assert documents.find(query, **asked) == expected[::-1], expression
        bounds = {"after": asked.get("after", 0), "up_to": asked.get("up_to", 120)}
        steps = list(documents.search.find_forward(query, **bounds))
        assert [number for _, found in steps for number in found] == expected, expression
        assert [looked for looked, _ in steps] == sorted(looked for looked, _ in steps)
        if not query.scored:  # words with wildcards, and values, have no relevance
            with pytest.raises(InputError, match="no words to rank by"):
                documents.find(query, Order.RELEVANCE, **asked)
        else:
            ranked = documents.find(query, Order.RELEVANCE, **asked)
            assert sorted(ranked) == expected, expression
            assert len(ranked) == len(set(ranked))
        page = documents.search.find(query, Asked(limit=200), Budget())
        n_candidates += page.n_scanned < page.n_events
    assert (n_candidates > 5) == is_indexed


@pytest.mark.parametrize("analyser", ["standard", "english"])
def test_real_queries_over_real_documents(folder, analyser):
    schema = Schema.of(
        f"title TEXT({analyser}), abstract TEXT({analyser}), created DATE, category STRING"
    )
    contents = read_documents()
    documents = Documents(folder)
    for part in (contents[::2], contents[1::2]):
        documents.add(part)
        documents.archive.seal()
    expressions = list(of_documents(contents))
    for line in (REAL / "excite.txt").read_text(encoding="utf-8").splitlines():
        with suppress(InputError, TamisWarning):
            expressions.append(search_query(line, attributes=("title", "abstract")))
    queries = {}
    for expression in expressions:
        with suppress(ExpressionError):
            queries[expression] = Query.of(expression, schema)
    found = {own: documents.find(query) for own, query in queries.items()}
    documents.build()
    for expression, query in queries.items():
        condition = check(parse(expression), schema)
        expected = [
            number
            for number, text in enumerate(documents.texts, start=1)
            if evaluate(condition, parse_event(text)) is True
        ]
        assert found[expression] == documents.find(query) == expected[::-1], expression
    assert len(queries) > 50
    assert sum(map(len, found.values())) > 20


def test_patterns_that_tantivy_refuses_are_compared_all_the_same(folder):
    patterns = ("*a???????b", "ab*" * 400, "é?" * 60 + "b", "cd" * 500 + "*")
    texts = [own.replace("*", "x").replace("?", "y") for own in patterns]
    documents = Documents(folder)
    documents.add([{"body": f"{text} oil"} for text in texts] + [{"body": "oil"}])
    documents.archive.seal()
    documents.indexes.look(Query.of("matches(body, 'oil ura*')", SCHEMA))
    documents.build()
    for number, pattern in enumerate(patterns, 1):
        query = Query.of(f"matches(body, 'oil {pattern}')", SCHEMA)
        assert documents.find(query) == [number]
        # The index answers for the other word.
        assert documents.search.find(query, Asked(), Budget()).n_scanned == 0


def test_words_are_highlighted_where_they_are(folder):
    documents = Documents(folder)
    body = "The <b>weapons</b> with mass: Weapon of masses, oils"
    documents.add([{"title": "Oil & łódź oil", "body": body, "price": 1}])
    query = Query.of(
        "matches((title, `a.b`), 'lodz oil') AND (matches_phrase(body, 'weapons of mass') OR "
        "matches(body, 'oil')) AND NOT matches(body, 'gas')",
        SCHEMA,
    )
    (hit,) = documents.search.find(query, Asked(), Budget()).hits
    shown = {
        name: [orjson.loads(documents.texts[0])[name][begin:end] for begin, end in spans]
        for name, spans in hit.highlights.items()
    }
    assert shown == {"title": ["Oil", "łódź", "oil"], "body": ["Weapon of masses", "oils"]}
    (hit,) = documents.search.find(query, Asked(highlights=False), Budget()).hits
    assert hit.highlights == {}


@pytest.mark.parametrize("suffix", ["", " é"], ids=["ASCII", "other"])
def test_phrases_are_highlighted_over_any_word(suffix):
    query = Query.of("matches_phrase(body, 'war of oil oil') OR matches(tag, 'war')", SCHEMA)
    body = f"war_ war, the oil oil; War in oil oil{suffix}"
    text = orjson.dumps({"body": body, "tag": "war"})
    found = Marker(query.words).find(text)
    assert found.pop("tag") == [(0, 3)]
    ((_, places),) = found.items()
    assert [body[begin:end] for begin, end in places] == ["war, the oil oil", "War in oil oil"]


def test_a_limit_ends_a_page_and_the_next_one_goes_on(folder):
    documents = Documents(folder)
    documents.add([{"title": "oil", "price": at} for at in range(50)])
    query = Query.of("price = 3 OR price = 30", SCHEMA)
    pages = documents.pages(query, Asked(), Budget(n_events=1))
    assert len(pages) > 3
    assert [own.is_complete for own in pages] == [False] * (len(pages) - 1) + [True]
    assert [hit.event.number for own in pages for hit in own.hits] == [31, 4]
    late = Budget(seconds=5, timer=iter(range(0, 10**6, 4)).__next__)
    assert len(documents.pages(query, Asked(), late)) > 1
    query = Query.of("matches(title, 'oil')", SCHEMA)
    page = documents.search.find(
        query, Asked(order=Order.RELEVANCE), Budget(is_cancelled=lambda: True)
    )
    assert (page.is_complete, page.place) == (False, None)


def test_the_most_relevant_comes_first(folder):
    documents = Documents(folder)
    rare, often = {"title": "oil uranium"}, {"title": "oil oil and more and more of other words"}
    documents.add([*[often] * 20, rare, *[often] * 20])
    documents.archive.seal()
    query = Query.of("matches_any(title, 'oil uranium')", SCHEMA)
    assert documents.find(query, Order.RELEVANCE)[0] == 21
    documents.build()
    assert documents.find(query, Order.RELEVANCE)[0] == 21
    documents.add([*[often] * 20, rare])
    assert set(documents.find(query, Order.RELEVANCE)[:2]) == {21, 62}


def test_scores_fit_together_before_an_index_was_used(folder):
    """The first search of a new reader, of an index that it has not opened yet."""
    documents = Documents(folder)
    documents.add([{"title": "oil"}] * 30 + [{"title": "gas"}])
    documents.archive.seal()
    query = Query.of("matches(title, 'oil')", SCHEMA)
    documents.find(query)
    documents.build()
    documents.add([{"title": "oil"}])
    reader = Search(documents.archive, SearchIndexes(documents.archive))
    page = reader.find(query, Asked(order=Order.RELEVANCE, limit=100), Budget())
    scores = {hit.event.number: hit.score for hit in page.hits}
    assert scores[32] == pytest.approx(scores[1], rel=0.2)


def test_a_ranking_needs_words_and_ends(folder):
    documents = Documents(folder)
    for expression in ("price > 1", "matches(title, 'ura*')", "matches_phrase(title, 'oi* ga*')"):
        query = Query.of(expression, SCHEMA)
        with pytest.raises(InputError, match="no word"):
            documents.search.find(query, Asked(order=Order.RELEVANCE), Budget())
    query = Query.of("matches(title, 'oil')", SCHEMA)
    with pytest.raises(InputError, match="10,000"):
        documents.search.find(query, Asked(order=Order.RELEVANCE, limit=10_001), Budget())


def test_operators_are_not_called():
    registry = Registry()
    operator("is_good(string)", registry=registry)(lambda event, text: True)
    index = build({"q": "is_good('x')"}, SCHEMA, operators=registry)
    assert index.rejects == []
    with pytest.raises(InputError, match="does not call operators"):
        Query.make(index, parse("TRUE"), Missing.UNDEFINED)


def test_what_an_index_knows_is_not_looked_at(folder, monkeypatch):
    documents = Documents(folder)
    documents.add([{"title": "oil", "tag": "x", "price": at} for at in range(50)])
    documents.archive.seal()
    expression = "matches(title, 'oi*') AND tag IN ('x', 'y') AND price BETWEEN 3 AND 7"
    query = Query.of(f"{expression} AND NOT matches(body, 'gas') OR price = 40", SCHEMA)
    assert documents.find(query) == [41]
    query = Query.of(f"{expression} AND NOT matches(title, 'gas') OR price = 40", SCHEMA)
    found = documents.find(query)
    documents.build()
    monkeypatch.setattr(Query, "decide", None)
    assert documents.find(query) == found == [41, 8, 7, 6, 5, 4]
    assert next(documents.search.find_forward(query, 5, 50)) == (41, found[3::-1])


# ── indexes ─────────────────────────────────────────────────────────────────────────────────


def oil(documents: Documents) -> int:
    """How many events are scanned to find the oil."""
    query = Query.of("matches(title, 'oil')", SCHEMA)
    page = documents.search.find(query, Asked(limit=100), Budget())
    assert len(page.hits) == len(documents.texts)
    return page.n_scanned


def fill(documents: Documents, n_segments: int) -> None:
    for _ in range(n_segments):
        documents.add([{"title": "oil", "body": "gas"}] * 5)
        documents.archive.seal()


def test_indexes_are_built_for_what_was_searched(folder):
    documents = Documents(folder)
    fill(documents, 2)
    assert documents.indexes.plan() == []
    assert oil(documents) == 10
    assert len(documents.indexes.plan()) == 2
    documents.build()
    assert (documents.indexes.plan(), oil(documents)) == ([], 0)
    fill(documents, 1)
    assert oil(documents) == 5
    documents.build()
    assert oil(documents) == 0
    documents.find(Query.of("matches(body, 'gas')", SCHEMA))
    assert len(documents.indexes.plan()) == 3
    documents.build()
    assert len(list(documents.indexes.root.iterdir())) == 3
    assert (documents.indexes.plan(), oil(documents)) == ([], 0)


def test_indexes_are_found_again_and_removed_with_their_segments(folder):
    documents = Documents(folder)
    fill(documents, 2)
    oil(documents)
    other = Archive.open(folder, read_only=True)
    reader = Search(other, SearchIndexes(other))
    query = Query.of("matches(title, 'oil')", SCHEMA)
    assert reader.find(query, Asked(), Budget()).n_scanned == 10
    documents.build()
    assert reader.find(query, Asked(), Budget()).n_scanned == 0
    documents.archive.prune(before=6)
    documents.texts = documents.texts[5:]
    assert oil(documents) == 0
    documents.indexes.tidy()
    assert len(list(documents.indexes.root.iterdir())) == 1
    again = SearchIndexes(documents.archive)
    assert again.plan() == []


@pytest.mark.parametrize("damage", ["cut", "changed", "facts", "lost"])
def test_a_damaged_index_is_not_used_and_is_rebuilt(folder, damage):
    documents = Documents(folder)
    fill(documents, 1)
    oil(documents)
    documents.build()
    (place,) = documents.indexes.root.iterdir()
    file = max(place.glob("*.store"), key=lambda own: own.stat().st_size)
    if damage == "facts":
        file = place / segment_writer.FACTS
    content = file.read_bytes()
    match damage:
        case "cut":
            file.write_bytes(content[:-1])
        case "lost":
            file.unlink()
        case _:
            file.write_bytes(bytes([content[0] ^ 1]) + content[1:])
    documents.indexes = SearchIndexes(documents.archive)
    documents.search = Search(documents.archive, documents.indexes)
    assert oil(documents) == 5
    documents.build()
    assert (documents.indexes.plan(), oil(documents)) == ([], 0)


def test_an_index_with_other_versions_is_not_used(folder, monkeypatch):
    documents = Documents(folder)
    fill(documents, 1)
    oil(documents)
    documents.build()
    monkeypatch.setattr(Field, "versions", lambda self: {"Unicode": "99"})
    documents.indexes = SearchIndexes(documents.archive)
    documents.search = Search(documents.archive, documents.indexes)
    assert oil(documents) == 5
    documents.build()
    assert oil(documents) == 0
    assert len(list(documents.indexes.root.iterdir())) == 1


@pytest.mark.parametrize("small", [0, 500], ids=["in-a-process", "here"])
def test_indexes_are_built_in_the_background(folder, monkeypatch, small):
    monkeypatch.setattr(indexer, "SMALL", small)
    monkeypatch.setattr(indexer, "INTERVAL", 0.01)
    documents = Documents(folder)
    fill(documents, 1)
    working = Indexer(documents.archive, documents.indexes)
    working.start()
    try:
        wait_until(lambda: oil(documents) == 0, "the index is used")
        assert working.error is None
    finally:
        working.close()


def test_without_tantivy_everything_is_scanned(folder, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "tantivy", None)
    library.load_tantivy.cache_clear()
    try:
        documents = Documents(folder)
        fill(documents, 1)
        assert (oil(documents), oil(documents)) == (5, 5)
        assert documents.indexes.plan() == []
        assert caplog.text.count("tantivy is not installed") == 1
    finally:
        library.load_tantivy.cache_clear()


def test_words_with_wildcards_and_near_words_are_highlighted():
    query = Query.of("matches(title, 'chil* gas') AND near(body, 'oil gas', 1)", SCHEMA)
    text = b'{"title": "Gas for Children", "body": "oil and gas, oil"}'
    assert Marker(query.words).find(text) == {
        "title": [(0, 3), (8, 16)],
        "body": [(0, 3), (8, 11), (13, 16)],
    }
