"""The classifier learns, labels batches, and is the same after it was saved."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tamis.errors import InputError
from tamis.operators.classifier import Classifier

SPORT = ["the team won the match", "a goal in the last minute", "the coach and his team"]
MONEY = ["shares fell on the market", "the bank raised rates", "profit of the bank"]


@pytest.fixture(scope="module")
def topics():
    return Classifier.train(SPORT + MONEY, ["sport"] * 3 + ["money"] * 3)


def test_labels(topics):
    texts = ["Team scores a GOAL", "bank profit", None]
    table = pa.table({"text": texts})
    assert topics.label_batch(table).to_pylist() == ["sport", "money", None]
    assert topics.is_batch(table, "sport").to_pylist() == [True, False, None]
    assert [topics.label({"text": text}) for text in texts] == ["sport", "money", None]
    assert topics.label({}) is None


def test_naive_bayes_by_hand():
    model = Classifier.train(["a a b", "b"], ["x", "y"])
    # Of "a": x has 2 of 3 words, y none of 1; one more of each of the 2 words beforehand.
    x, y = 0.5 * (2 + 1) / (3 + 2), 0.5 * (0 + 1) / (1 + 2)
    assert model.scores(["a"])[0] == pytest.approx([x / (x + y), y / (x + y)])
    assert model.scores(["unheard of"])[0] == pytest.approx([0.5, 0.5])


def test_probabilities_sum_to_one(topics):
    scores = topics.scores([*SPORT, *MONEY, "", "bank " * 5_000])
    assert np.isfinite(scores).all()
    assert scores.sum(axis=1) == pytest.approx(np.ones(8))


def test_empty_batches(topics):
    assert topics.label_batch(pa.table({"text": pa.array([], pa.string())})).to_pylist() == []
    assert topics.label_batch(pa.table({"text": pa.array([None], pa.string())})).to_pylist() == [
        None
    ]


def test_words_that_an_analyser_leaves_out_say_nothing():
    model = Classifier.train(
        ["the the match", "a bank"], ["sport", "money"], analyser="standard_english"
    )
    assert set(model.words) == {"match", "bank"}


def test_saved_and_loaded(topics, tmp_path):
    path = tmp_path / "topics.json"
    topics.save(path)
    loaded = Classifier.load(path)
    texts = [*SPORT, *MONEY]
    assert np.array_equal(loaded.scores(texts), topics.scores(texts))


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"labels": ["a"], "words": ["b", "c"]}'])
def test_other_files_are_refused(content, tmp_path):
    path = tmp_path / "topics.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match="not a valid classifier"):
        Classifier.load(path)


def test_tables_that_do_not_fit_are_refused(topics, tmp_path):
    path = tmp_path / "topics.json"
    topics.save(path)
    path.write_text(path.read_text().replace('"bank",', ""), encoding="utf-8")
    with pytest.raises(InputError, match="do not fit"):
        Classifier.load(path)


def test_mistakes_are_named(topics):
    with pytest.raises(InputError, match='unknown label "art"; allowed: money, sport'):
        topics.is_batch(pa.table({"text": ["x"]}), "art")
    with pytest.raises(InputError, match="2 texts and 1 labels"):
        Classifier.train(["a", "b"], ["x"])
