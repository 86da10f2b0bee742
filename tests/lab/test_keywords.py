"""The keyword workload: the same for one seed, with the statistics it promises."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis.errors import TamisError
from tamis.lab.irmak import IrmakIndex, IrmakOptions
from tamis.lab.workloads.keywords import KeywordParams, Keywords


def test_the_product_finds_what_the_paper_finds():
    workload = Keywords(KeywordParams(2_000, seed=2))
    index = tamis.build(
        ((str(at), text) for at, text in enumerate(workload.expressions())), workload.schema
    )
    assert index.rejects == []
    paper = IrmakIndex(*workload.queries(), IrmakOptions())
    rows, found = paper.match(*workload.documents(60))
    table = index.match_batch(workload.event_table(60))
    ids = table["subscription_id"].cast("string").to_pylist()
    pairs = set(zip(table["event_row"].to_pylist(), map(int, ids), strict=True))
    assert pairs == set(zip(rows.tolist(), found.tolist(), strict=True))
    assert len(pairs) > 100


def test_queries_are_different_and_about_as_long_as_said():
    starts, terms = Keywords(KeywordParams(20_000)).queries()
    assert len(starts) == 20_001
    queries = {tuple(own) for own in np.split(terms, starts[1:-1])}
    assert len(queries) == 20_000
    assert 3.2 < len(terms) / 20_000 < 3.7
    assert all(list(own) == sorted(set(own)) for own in queries)


def test_queries_contain_others():
    """Table 4.1: a part of the queries is all in another one."""
    starts, terms = Keywords(KeywordParams(3_000)).queries()
    queries = {frozenset(own.tolist()) for own in np.split(terms, starts[1:-1])}
    parts = {query - {term} for query in queries for term in query}
    assert 0.15 < len(parts & queries) / len(queries) < 0.4


def test_one_seed_one_workload():
    one, same, other = (Keywords(KeywordParams(500, seed=seed)) for seed in (1, 1, 2))
    assert one.expressions() == same.expressions() != other.expressions()
    assert one.texts(5) == same.texts(5) != other.texts(5)
    assert one.texts(5)[:2] != one.texts(5)[2:4]


def test_words_are_different():
    words = Keywords(KeywordParams(10, n_terms=200_000)).words()
    assert len(set(words)) == 200_000


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"n_queries": 0}, "n_queries is 0"),
        ({"mean_length": 0.5}, "mean_length is 0.5"),
        ({"n_terms": -1}, "n_terms is -1"),
    ],
)
def test_parameters_that_make_no_sense(params, message):
    with pytest.raises(TamisError, match=message):
        KeywordParams(**params)


def test_too_few_terms_for_so_many_queries():
    with pytest.raises(TamisError, match="3 terms allow only 7 distinct queries"):
        Keywords(KeywordParams(100, n_terms=3)).queries()
