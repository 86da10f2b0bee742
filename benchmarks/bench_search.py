"""How fast is a search of the archive? Against a plain scan and against tantivy alone.

The documents are abstracts of arXiv and stories of Reuters (`../shared/data`), repeated and varied;
the words are those of web queries. Medians and 99th percentiles are judged. A page has the ten
newest hits with their texts. Tantivy alone has one index of the same analysed words with the stored
texts, and sorts by number; it parses no query, since ours are read before too. What reading costs
has a row. All answers are compared first. `TAMIS_BENCH_SIZE` is `tiny`, `small` (the default) or
`full`: 1 million documents. The targets are for these, and judged there only: of few documents, a
search takes some 25 µs in any case.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from datetime import date
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import tantivy

from benchmarks.search_documents import DATA, read_documents, read_queries, vary
from benchmarks.targets import Target, at_size, chosen_size, make_row
from tamis.archive import Archive, Entry, JsonEvents
from tamis.errors import TamisError
from tamis.language import Schema
from tamis.language.types.moments import to_days
from tamis.search import Asked, Budget, Query, Search, SearchIndexes
from tamis.text import get_analyser

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TITLE = "retrospective search: ms for the ten newest hits; targets are for TAMIS_BENCH_SIZE=full"
SIZES: Final = {"tiny": 2_000, "small": 20_000, "full": 1_000_000}
ANALYSER: Final = "english"
SCHEMA: Final = Schema.of(f"body TEXT({ANALYSER}), day DATE")
AT_ONCE: Final = 5_000
LIMIT: Final = 10
N_QUERIES: Final = 50  # of each kind
N_PASSES: Final = 5  # over the queries
N_SCANNED: Final = 5  # queries of each kind that are answered by a scan too, which is slow
KINDS: Final = ("one word", "three words", "phrase", "word and range", "30 terms, nested")
TARGETS: Final = at_size("full", {kind: Target(2, "ratio", also=("p99 ratio",)) for kind in KINDS})

Row = dict[str, Any]


class Case(NamedTuple):
    """A query in both languages."""

    expression: str
    query: tantivy.Query


def run() -> list[Row]:
    """One row per kind of query, and one for reading queries."""
    chosen = chosen_size()
    if chosen not in SIZES:
        raise TamisError(f"TAMIS_BENCH_SIZE is {chosen!r}; allowed: {', '.join(SIZES)}")
    if not DATA.is_dir():
        return []
    documents = read_documents()
    with tempfile.TemporaryDirectory() as folder, Archive.open(folder) as archive:
        began = time.perf_counter()
        alone = _fill(archive, vary(documents, SIZES[chosen]))
        filled = time.perf_counter()
        indexes = SearchIndexes(archive)
        search = Search(archive, indexes)
        cases = _Cases(documents, alone.schema)
        indexes.look(Query.of(cases.draw("word and range").expression, SCHEMA))
        indexes.build(indexes.plan())
        built = time.perf_counter()
        unindexed = Search(archive, _NoIndexes(archive))
        rows = [_measure(kind, cases, search, unindexed, alone) for kind in KINDS]
    times = {"fill s": round(filled - began, 1), "index s": round(built - filled, 1)}
    return [*rows, _measure_reading(cases) | times]


class _Cases:
    """Random queries of words that people search for and documents have."""

    def __init__(self, documents: list[Row], schema: tantivy.Schema) -> None:
        self._draw = random.Random(3)
        self._documents, self._schema = documents, schema
        self._normalize = get_analyser(ANALYSER).normalize
        some = self._draw.sample(documents, 2_000)
        known = {self._normalize(word) for own in some for word in own["body"].split()}
        known.discard("")  # the form of stop words
        asked = [word for own in read_queries() for word in own.split() if word.isalpha()]
        self._words = [word for word in asked if self._normalize(word) in known]
        self._asked = set(self._words)

    def draw(self, kind: str) -> Case:
        """A query of a kind."""
        match kind:
            case "one word":
                return self._of([self._draw_word()], "matches")
            case "three words":
                return self._of(self._draw_three(), "matches")
            case "phrase":
                return self._of(self._draw_pair(), "matches_phrase")
            case "word and range":
                return self._draw_range()
            case _:
                return self._draw_nested()

    def _draw_word(self) -> str:
        return self._draw.choice(self._words)

    def _draw_three(self) -> list[str]:
        """Three words that a document has: others are seldom found together."""
        while True:
            text = dict.fromkeys(self._draw.choice(self._documents)["body"].split())
            known = [word for word in text if word in self._asked]
            if len(known) >= 3:
                return self._draw.sample(known, 3)

    def _draw_pair(self) -> list[str]:
        """Two words that are side by side in a document."""
        while True:
            text = self._draw.choice(self._documents)["body"].split()
            at = self._draw.randrange(max(1, len(text) - 1))
            pair: list[str] = text[at : at + 2]
            if len(pair) == 2 and all(own.isalpha() and self._normalize(own) for own in pair):
                return pair

    def _of(self, words: list[str], function: str) -> Case:
        own = tantivy.Query
        expression = f"{function}(body, '{' '.join(words)}')"
        forms: list[Any] = [self._normalize(word) for word in words]
        if function == "matches_phrase":
            return Case(expression, own.phrase_query(self._schema, "body", forms))
        occur = tantivy.Occur.Should if function == "matches_any" else tantivy.Occur.Must
        terms = [(occur, own.term_query(self._schema, "body", form, "basic")) for form in forms]
        return Case(expression, terms[0][1] if len(terms) == 1 else own.boolean_query(terms))

    def _draw_range(self) -> Case:
        word, year = self._of([self._draw_word()], "matches"), self._draw.randint(2000, 2015)
        first, last = date(year, 1, 1), date(year, 12, 31)
        days = tantivy.Query.range_query(
            self._schema, "day", tantivy.FieldType.Integer, to_days(first), to_days(last)
        )
        both = [(tantivy.Occur.Must, word.query), (tantivy.Occur.Must, days)]
        between = f"day BETWEEN DATE '{first}' AND DATE '{last}'"
        return Case(f"{word.expression} AND {between}", tantivy.Query.boolean_query(both))

    def _draw_nested(self) -> Case:
        """(10 words OR) AND (10 words OR), or some of 8 words and none of 2."""
        sizes = (10, 10, 8, 2)
        one, other, some, none = (
            self._of([self._draw_word() for _ in range(size)], "matches_any") for size in sizes
        )
        occur, own = tantivy.Occur, tantivy.Query
        both = own.boolean_query([(occur.Must, one.query), (occur.Must, other.query)])
        rest = own.boolean_query([(occur.Must, some.query), (occur.MustNot, none.query)])
        return Case(
            f"({one.expression} AND {other.expression}) OR "
            f"({some.expression} AND NOT {none.expression})",
            own.boolean_query([(occur.Should, both), (occur.Should, rest)]),
        )


def _measure(
    kind: str, cases: _Cases, search: Search, unindexed: Search, alone: tantivy.Index
) -> Row:
    drawn = [cases.draw(kind) for _ in range(N_QUERIES)]
    queries = [Query.of(own.expression, SCHEMA) for own in drawn]
    searcher = alone.searcher()

    def ask_tantivy(at: int) -> list[int]:
        found = searcher.search(drawn[at].query, LIMIT, count=False, order_by_field="number")
        texts = [searcher.doc(place)["text"][0] for _, place in found.hits]
        return [number for (number, _), text in zip(found.hits, texts, strict=True) if text]

    def ask(own: Search, at: int, *, highlights: bool = False) -> list[int]:
        page = own.find(queries[at], Asked(limit=LIMIT, highlights=highlights), Budget())
        return [hit.event.number for hit in page.hits if hit.event.event]

    found = [ask(search, at) for at in range(N_QUERIES)]
    for at, numbers in enumerate(found):
        is_scanned = at < N_SCANNED
        if numbers != ask_tantivy(at) or (is_scanned and numbers != ask(unindexed, at)):
            raise TamisError(f"{drawn[at].expression}: the answers differ")
    ours = _time(lambda at: ask(search, at))
    theirs = _time(ask_tantivy)
    marked = _time(lambda at: ask(search, at, highlights=True))
    scan = _time(lambda at: ask(unindexed, at), n_queries=N_SCANNED)
    more = {
        "p99": ours[1],
        "tantivy p50": theirs[0],
        "tantivy p99": theirs[1],
        "ratio": ours[0] / theirs[0],
        "p99 ratio": ours[1] / theirs[1],
        "with highlights": marked[0],
        "scan": scan[0],
        "hits": sum(map(len, found)) / N_QUERIES,
    }
    return make_row(TARGETS, kind, ours[0], "ms", **more)


def _measure_reading(cases: _Cases) -> Row:
    """What it costs to read an expression; a server remembers the last ones."""
    drawn = [cases.draw(KINDS[-1]).expression for _ in range(N_QUERIES)]
    taken = _time(lambda at: Query.of(drawn[at], SCHEMA))
    return make_row(TARGETS, "read 30 terms", taken[0], "ms", p99=taken[1])


def _time(call: Callable[[int], Any], n_queries: int = N_QUERIES) -> tuple[float, float]:
    """The median and the 99th percentile of all queries, in milliseconds."""
    taken: list[float] = []
    for _ in range(N_PASSES):
        for at in range(n_queries):
            began = time.perf_counter()
            call(at)
            taken.append(1_000 * (time.perf_counter() - began))
    return float(np.percentile(taken, 50)), float(np.percentile(taken, 99))


class _NoIndexes(SearchIndexes):
    """None is used: everything is scanned."""

    def open(self, *_: Any) -> None:
        return None


# ── documents ───────────────────────────────────────────────────────────────────────────────


def _fill(archive: Archive, documents: Iterator[Row]) -> tantivy.Index:
    """Archive the documents, and give them to tantivy."""
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("body", tokenizer_name="whitespace")
    builder.add_bytes_field("text", stored=True, indexed=False)
    builder.add_integer_field("day", fast=True)
    builder.add_integer_field("number", fast=True)
    index = tantivy.Index(builder.build())
    writer = index.writer(128 << 20, 1)
    number = 0
    while part := list(islice(documents, AT_ONCE)):
        texts = [json.dumps(own).encode() for own in part]
        ends = np.cumsum([len(own) + 1 for own in texts]) - 1
        starts = ends - np.array([len(own) for own in texts])
        nobody = np.zeros(len(texts) + 1, np.int64)
        events = JsonEvents(b"\n".join(texts), starts, ends)
        archive.append([Entry(events, 0, 1, nobody, np.zeros(0, np.int64))])
        for own, text in zip(part, texts, strict=True):
            number += 1
            writer.add_document(_make_document(number, own, text))
    writer.commit()
    index.reload()
    archive.seal()
    return index


def _make_document(number: int, own: Row, text: bytes) -> tantivy.Document:
    document = tantivy.Document()
    words = get_analyser(ANALYSER).words(own["body"])
    # Stop words keep their places, so that a phrase does not skip them.
    document.add_text("body", " ".join(word or "-" for word in words))
    document.add_bytes("text", text)
    document.add_integer("day", to_days(date.fromisoformat(own["day"])))
    document.add_integer("number", number)
    return document
