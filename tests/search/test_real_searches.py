"""Real queries over all real documents, those without a body or a day too: a search finds what a
standing query matches, and the reference evaluator says the same of a sample. `make test` takes
some queries and documents, `make check` all of them. The data are beside the project; without them,
the tests are left out.
"""

from __future__ import annotations

import random
import re
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

import tamis
from benchmarks.search_documents import (
    DATA,
    read_all_documents,
    read_excite_queries,
    read_queries,
)
from tamis.errors import ExpressionError, InputError, TamisWarning
from tamis.language import Schema, check, parse
from tamis.logic.evaluate import evaluate
from tamis.search import Asked, Budget, Query
from tests.effort import EFFORT, SEED
from tests.search.places import Documents

SCHEMA = "title TEXT(english), body TEXT(english), tags ARRAY<STRING>, day DATE, kind STRING"
TEXTS = ("title", "body")
TAGGED = 50  # of the queries are also asked over tags, which scans all documents
AT_ONCE = 5_000
MOST_REFUSED = 0.02  # of the queries: syntax that is not supported, or stop words only
SEARCHED = 1_000  # queries of all; each of them with TAMIS_EFFORT
SOME_QUERIES, SOME_DOCUMENTS = 300, 5_000
JUDGED = 100  # queries that the reference evaluator judges too
JUDGED_OF_EACH = 20  # documents that matched, and as many others
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the real documents are not here")


def read_expressions(queries: Sequence[str]) -> tuple[dict[str, str], int]:
    """The distinct expressions of queries by id, and how many queries were refused."""
    found: dict[str, None] = {}
    n_refused = 0
    step = max(1, len(queries) // TAGGED)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TamisWarning)
        for at, query in enumerate(queries):
            arrays = ("tags",) if at % step == 0 else ()
            try:
                found[tamis.search_query(query, attributes=TEXTS, arrays=arrays)] = None
            except InputError:
                n_refused += 1
    return {str(at): expression for at, expression in enumerate(found)}, n_refused


def compare(
    folder: Path, queries: Sequence[str], contents: Sequence[dict[str, Any]], n_searched: int | None
) -> None:
    """Search for some of the queries, or for all, and expect what the standing ones match."""
    expressions, n_refused = read_expressions(queries)
    index = tamis.build(expressions, SCHEMA)
    n_refused += len(index.rejects)
    assert n_refused < MOST_REFUSED * len(expressions)
    refused = {own.subscription_id for own in index.rejects}

    documents = Documents(folder)
    matched: dict[str, list[int]] = defaultdict(list)
    for begin in range(0, len(contents), AT_ONCE):
        part = contents[begin : begin + AT_ONCE]
        documents.add(part)
        table = index.match_batch([orjson.dumps(own) for own in part])
        rows = table["event_row"].to_pylist()
        for row, name in zip(rows, table["subscription_id"].to_pylist(), strict=True):
            matched[name].append(begin + row + 1)
        documents.archive.seal()

    wanted = [own for own in expressions if own not in refused]
    step = 1 if n_searched is None else max(1, len(wanted) // n_searched)
    schema = Schema.of(SCHEMA)
    documents.indexes.look(Query.of(expressions[wanted[0]], schema))
    documents.build()
    n_found = n_scanned = 0
    for name in wanted[::step]:
        try:
            query = Query.of(expressions[name], schema)
        except ExpressionError as error:
            raise AssertionError(f"{expressions[name]} was built, and is refused now") from error
        expected = matched[name]
        forward = documents.search.find_forward(query, 0, len(contents))
        assert [own for _, found in forward for own in found] == expected, expressions[name]
        page = documents.search.find(query, Asked(limit=20), Budget())
        assert [hit.event.number for hit in page.hits] == expected[:-21:-1], expressions[name]
        n_found += len(expected)
        n_scanned += page.n_scanned
    assert n_found > 0
    print(f"{len(wanted):,} queries, {n_refused:,} refused")
    print(f"{n_found:,} hits, {n_scanned:,} events were scanned")
    judge({name: expressions[name] for name in wanted}, contents, matched)


def judge(
    expressions: dict[str, str],
    contents: Sequence[dict[str, Any]],
    matched: dict[str, list[int]],
) -> None:
    """Ask the reference evaluator about some of the queries, half of which match something."""
    draw = random.Random(SEED)
    schema = Schema.of(SCHEMA)
    found = draw.sample(sorted(matched), min(JUDGED // 2, len(matched)))
    names = [*found, *draw.sample(list(expressions), min(JUDGED // 2, len(expressions)))]
    for name in names:
        condition = check(parse(expressions[name]), schema)
        numbers = matched.get(name, [])
        some = draw.sample(numbers, min(JUDGED_OF_EACH, len(numbers)))
        others = draw.choices(range(1, len(contents) + 1), k=JUDGED_OF_EACH)
        for number in {*some, *others}:
            is_match = evaluate(condition, contents[number - 1]) is True
            assert is_match is (number in numbers), (expressions[name], contents[number - 1])


def test_queries_and_documents_are_whole():
    queries = read_queries()
    assert len(queries) > 120_000
    assert not [own for own in queries if re.match(r"\d+:", own)]
    contents = list(read_all_documents())
    kinds: dict[str, int] = defaultdict(int)
    for own in contents:
        kinds["reuters" if own["kind"] == "reuters" else "feed" if "tags" in own else "arxiv"] += 1
    assert kinds["reuters"] == 21_578
    assert sum(own["kind"] == "reuters" and "body" not in own for own in contents) == 2_535
    assert kinds["feed"] > 2_000
    assert kinds["arxiv"] > 25_000


def test_some_searches_find_what_standing_queries_match(tmp_path: Path):
    draw = random.Random(SEED)
    queries = draw.sample([*read_queries(), *read_excite_queries()], SOME_QUERIES)
    contents = draw.sample(list(read_all_documents()), SOME_DOCUMENTS)
    compare(tmp_path / "archive", queries, contents, None)


@pytest.mark.slow
def test_searches_find_what_standing_queries_match(tmp_path: Path):
    queries = [*read_queries(), *read_excite_queries()]
    contents = list(read_all_documents())
    random.Random(SEED).shuffle(contents)  # so that each part has documents of all kinds
    compare(tmp_path / "archive", queries, contents, None if EFFORT > 1 else SEARCHED)
