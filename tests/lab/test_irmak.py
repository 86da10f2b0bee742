"""Irmak's algorithms find what sets say, whichever steps are taken."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from tamis.errors import TamisError
from tamis.lab.irmak import CLUSTERINGS, IrmakIndex, IrmakOptions
from tamis.lab.irmak.containment import count_contained
from tamis.lab.workloads.keywords import KeywordParams, Keywords

WAYS = [
    IrmakOptions(split=False, bloom=False),
    *(IrmakOptions(bloom=bloom, n_partitions=n) for bloom, n in product((False, True), (1, 3))),
    *(
        IrmakOptions(bloom=bloom, n_partitions=n, superqueries=method, n_words=n_words)
        for bloom, n, method, n_words in product((False, True), (1, 4), CLUSTERINGS, (1, 2, 3, 4))
    ),
]


def sets_of(starts, terms):
    return [frozenset(own.tolist()) for own in np.split(terms, starts[1:-1])]


def expect(queries, documents):
    wanted, given = sets_of(*queries), sets_of(*documents)
    return {(d, q) for d, own in enumerate(given) for q, need in enumerate(wanted) if need <= own}


@pytest.fixture(scope="module", params=[(400, 30, 40), (300, 4_000, 150), (1, 50, 60)])
def drawn(request):
    n_queries, n_terms, n_drawn = request.param
    workload = Keywords(KeywordParams(n_queries, n_terms, n_drawn=n_drawn, seed=5))
    queries, documents = workload.queries(), workload.documents(25)
    return queries, documents, expect(queries, documents)


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_every_way_finds_the_same(drawn, options):
    queries, documents, expected = drawn
    index = IrmakIndex(*queries, options)
    for _ in range(2):  # nothing is left over from before
        rows, found = index.match(*documents)
        pairs = list(zip(rows.tolist(), found.tolist(), strict=True))
        assert len(pairs) == len(set(pairs))
        assert set(pairs) == expected


def test_work_is_counted(drawn):
    """Postings and accumulators as the lists say; no update is lost in the filter."""
    queries, documents, _ = drawn
    given, wanted = sets_of(*documents), sets_of(*queries)
    plain, split, bloomed, clustered = (
        IrmakIndex(*queries, options)
        for options in (
            IrmakOptions(split=False, bloom=False),
            IrmakOptions(bloom=False),
            IrmakOptions(),
            IrmakOptions(superqueries="overlap"),
        )
    )
    for index in (plain, split, bloomed, clustered):
        index.match(*documents)
    n_postings = sum(len(own & need) for own in given for need in wanted)
    n_reached = sum(bool(own & need) for own in given for need in wanted)
    assert plain.work["postings"] == n_postings
    assert plain.work["accumulators"] == plain.work["tests"] == n_reached
    assert split.work["postings"] == bloomed.work["postings"] == n_postings
    assert split.work["accumulators"] == bloomed.work["accumulators"] <= n_reached
    assert split.work["updates"] == bloomed.work["updates"] <= bloomed.work["passed"]
    assert clustered.work["accumulators"] <= bloomed.work["accumulators"]
    assert clustered.work["tests"] == bloomed.work["accumulators"]
    assert clustered.work["postings"] <= n_postings


def test_large_pools_are_split_into_superqueries():
    """A thousand queries with one least frequent term do not fit into one mask."""
    rng = np.random.default_rng(3)
    sets = {(0, *sorted(rng.choice(np.arange(1, 400), 3, replace=False))) for _ in range(1_000)}
    others = [(term,) for term in range(1, 400) for _ in range(1)] * 4
    queries = [*sorted(sets), *others]
    starts = np.concatenate(([0], np.cumsum([len(own) for own in queries])))
    terms = np.concatenate(queries).astype(np.int32)
    document = np.arange(0, 400, 2, dtype=np.int32)
    expected = {at for at, own in enumerate(queries) if all(term % 2 == 0 for term in own)}
    n_clusters = {}
    for method in CLUSTERINGS:
        index = IrmakIndex(starts, terms, IrmakOptions(superqueries=method))
        rows, found = index.match(np.array([0, 200]), document)
        assert sorted(found.tolist()) == sorted(expected)
        assert not rows.any()
        n_clusters[method] = len(index.partitions[0].queries.starts) - 1
    assert n_clusters["overlap"] <= n_clusters["alphabetical"] <= n_clusters["random"]


def test_documents_without_known_terms():
    index = IrmakIndex(np.array([0, 2]), np.array([0, 1]), IrmakOptions())
    rows, found = index.match(np.array([0, 0, 2, 4]), np.array([7, 9, 0, 1]))
    assert (rows.tolist(), found.tolist()) == ([2], [0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"superqueries": "best"}, "superqueries is 'best'"),
        ({"n_words": 5}, "n_words is 5"),
        ({"n_partitions": 0}, "n_partitions is 0"),
        ({"split": False, "n_partitions": 2}, "neither partitions nor superqueries"),
    ],
)
def test_options_that_make_no_sense(options, message):
    with pytest.raises(TamisError, match=message):
        IrmakOptions(**options)


def test_queries_too_long_for_a_mask():
    terms = np.arange(40)
    with pytest.raises(TamisError, match="a query has 40 terms; a superquery has 33"):
        IrmakIndex(np.array([0, 40]), terms, IrmakOptions(superqueries="overlap"))


def test_contained_queries_are_counted():
    """As the definition has it: all terms in a longer query, and that begins with the same one."""
    starts, terms = Keywords(KeywordParams(400, n_terms=60)).queries()
    queries = [frozenset(own.tolist()) for own in np.split(terms, starts[1:-1])]
    counts = np.bincount(terms)
    # Ties go to the smaller number, as the stable order has it.
    firsts = [min(query, key=lambda term: (counts[term], term)) for query in queries]
    longer = [[other for other in range(400) if queries[at] < queries[other]] for at in range(400)]
    alike = [any(firsts[other] == firsts[at] for other in longer[at]) for at in range(400)]
    assert count_contained(starts, terms) == (sum(map(bool, longer)), sum(alike))
    assert 0 < sum(alike) < sum(map(bool, longer))
