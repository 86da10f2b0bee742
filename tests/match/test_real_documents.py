"""Real documents and real queries: every form and every engine as the reference evaluator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tamis.errors import TamisWarning, TypeCheckError
from tamis.language import Schema, check, parse, search_query
from tamis.logic.evaluate import Missing
from tamis.match.build import build
from tests.match.engines import ENGINES, reopened
from tests.match.examples import Example

REAL = Path(__file__).parent / "real"
FORMS = (
    "matches(abstract, {0})",
    "matches_any(abstract, {0})",
    "matches_at_least(2, abstract, {0})",
    "matches_phrase(abstract, {1})",
    "matches((title, abstract), {1})",
    "matches_any(title, {0}) AND NOT matches(abstract, {1})",
    "matches(abstract, {1}) AND created >= DATE '2015-01-01' OR category = 'cs.DB'",
)


def read_documents():
    lines = (REAL / "arxiv.jsonl").read_text(encoding="utf-8").splitlines()
    return [*map(json.loads, lines), {"title": "", "abstract": None}, {"category": "cs.DB"}]


def quote(words):
    return "'" + " ".join(words).replace("\\", "").replace("'", "''") + "'"


def of_documents(documents):
    """Queries that are pieces of the documents, so that they match."""
    for at, document in enumerate(documents):
        words = (document.get("abstract") or "").split()
        if len(words) > 40:
            first = 7 * at % 30
            yield FORMS[at % len(FORMS)].format(quote(words[first : first + 4]), quote(words[5:9]))


@pytest.mark.parametrize("analyser", ["standard", "simple", "english"])
def test_queries_on_abstracts(analyser):
    schema = Schema.of(
        f"title TEXT({analyser}), abstract TEXT({analyser}), created DATE, category STRING"
    )
    documents = read_documents()
    typed = (REAL / "excite.txt").read_text(encoding="utf-8").splitlines()
    with pytest.warns(TamisWarning, match="blaze com or net': or at column 13") as caught:
        searches = [search_query(one, attributes=("title", "abstract")) for one in typed]
    assert len(caught) == 1  # of the others, none looks for something else than it seems
    queries = [*of_documents(documents), *searches]
    conditions, refused = {}, []
    for at, text in enumerate(queries):
        try:
            conditions[str(at)] = check(parse(text), schema)
        except TypeCheckError as error:  # somebody searched for +at
            refused.append((str(at), error.code))
    example = Example(0, schema, conditions, documents)
    truth = example.reference(Missing.UNDEFINED)
    assert 30 < truth.sum() < truth.size / 2
    index = build({str(at): text for at, text in enumerate(queries)}, schema)
    assert [(one.subscription_id, one.code) for one in index.rejects] == refused
    assert {code for _, code in refused} <= {"no-words"}
    assert len(refused) < 5
    for engine in ENGINES:
        found = engine.ask(index, documents)
        assert (found == engine.expected(truth)).all(), engine.name
    with reopened(index) as opened:
        found = ENGINES[0].ask(opened, documents)
        assert (found == ENGINES[0].expected(truth)).all()
