"""A corpus on Spark: the same pairs as in-process, and word frequencies for the next build."""

from __future__ import annotations

import pytest

import tamis
import tamis.spark as ts
import tamis.versions as tv
from tamis.lab.workloads.keywords import KeywordParams, Keywords
from tests.leaves import describe_leaf

WORKLOAD = Keywords(KeywordParams(300, n_drawn=60, seed=4))
QUERIES = {
    **{f"q{at}": text for at, text in enumerate(WORKLOAD.expressions())},
    "mixed": "matches_any(body, 'baba bebe') AND day >= 3",
    "phrase": "matches_phrase(body, 'vascular diseases')",
    "wrong": "matches(body, '!?')",
}
DOCUMENTS = [
    *((at, at % 7, text) for at, text in enumerate(WORKLOAD.texts(80))),
    (80, 3, "Vascular DISEASES, 血管 👍🏽"),
    (81, 4, ""),
    (82, 5, None),
]
SCHEMA = "body TEXT(english), day INT"


@pytest.fixture(scope="module")
def corpus(spark):
    columns = "document int, day int, body string"
    return spark.createDataFrame(DOCUMENTS, columns).repartition(3).persist()


@pytest.fixture(scope="module")
def store(spark, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("keywords") / "index")
    report = ts.build(queries_frame(spark, QUERIES), path, parts=2, schema=SCHEMA)
    assert report.n_rejects == 1
    return path


def queries_frame(spark, queries):
    return spark.createDataFrame(list(queries.items()), "subscription_id string, expression string")


def in_process():
    index = tamis.build(QUERIES, SCHEMA)
    events = [{"day": day, "body": body} for _, day, body in DOCUMENTS]
    lists = index.match_lists(events).to_pylist()
    return index, events, {(at, one) for at, own in enumerate(lists) for one in own}


@pytest.mark.parametrize("spread", ["replicate", "split"])
def test_a_corpus_gives_the_same_pairs(corpus, store, spread):
    found = ts.match(corpus, store, event_id="document", spread=spread, groups=2)
    pairs = [(row["event_id"], row["subscription_id"]) for row in found.collect()]
    _, _, expected = in_process()
    assert len(pairs) == len(set(pairs)) == len(expected) > 100
    assert set(pairs) == expected


def test_words_are_counted_once_whatever_the_parts(corpus, store):
    index, events, _ = in_process()
    shares = index.term_frequencies(events)["body"]
    for spread in ("replicate", "split"):
        counted = {
            (row["attribute"], row["term"]): row["n"]
            for row in ts.count_terms(corpus, store, spread=spread, groups=2).collect()
        }
        assert counted == {
            ("body", term): round(share * len(DOCUMENTS)) for term, share in shares.items()
        }


def test_the_next_build_puts_words_in_order_by_them(spark, tmp_path):
    path = tmp_path / "index"
    queries = {"a": "matches(body, 'common rare')", "b": "matches(body, 'common')"}
    ts.build(queries_frame(spark, queries), path, schema="body TEXT")
    texts = [("rare",)] * 5 + [("rare common",)] + [(None,)]
    documents = spark.createDataFrame(texts, "body string")
    version = ts.save_statistics(documents, path)
    assert "terms" in version.statistics
    # `new` was counted by nobody, and changes nothing for the others.
    ts.build(
        queries_frame(spark, {**queries, "c": "matches(body, 'new')"}), path, schema="body TEXT"
    )
    index = tv.open_version(path).open()
    contents = index.contents
    leaves = [describe_leaf(contents, leaf) for leaf in contents.nodes.children]
    assert leaves == ["matches(body, 'common')", "matches(body, 'rare')"]
    assert sorted(index.match({"body": "rare common new"})) == ["a", "b", "c"]
