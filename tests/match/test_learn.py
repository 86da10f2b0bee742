"""What a sample of events teaches, and that it changes no answer."""

from __future__ import annotations

import numpy as np
import pytest

import tamis
from tamis.logic.evaluate import Missing
from tamis.match.learn import count_leaves
from tests.match.engines import ENGINES, reopened
from tests.match.examples import RANDOM_EVENTS, draw_example

pytestmark = RANDOM_EVENTS

RARE_AND_FREQUENT = {"both": "often < 5 AND rare > 1", "other": "often < 5 OR rare > 1"}
SCHEMA = "often INT, rare INT"


def sample_of(n: int) -> list[dict[str, int]]:
    """Every event has `often`, one in ten has `rare`."""
    return [{"often": at % 10} | ({"rare": at} if at % 10 == 3 else {}) for at in range(n)]


def test_the_access_child_is_the_one_least_often_true():
    index = tamis.build(RARE_AND_FREQUENT, SCHEMA, sample=sample_of(1_000))
    contents = index.contents
    counts = count_leaves(contents, index.encode(sample_of(1_000)))
    assert sorted(counts[counts > 0].tolist()) == [100, 500]
    ands = np.flatnonzero(contents.nodes.operators == 0)
    first = contents.nodes.children[contents.nodes.child_starts[ands[0]]]
    assert counts[first] == 100
    triggered = contents.triggers.parents[
        contents.triggers.starts[first] : contents.triggers.starts[first + 1]
    ]
    assert ands[0] in triggered


def test_the_sample_is_told_in_the_manifest():
    index = tamis.build(RARE_AND_FREQUENT, SCHEMA, sample=sample_of(1_000))
    with reopened(index) as opened:
        shown = opened.contents.statistics["sample"]
    names = [".".join(column.attributes[0].path) for column in index.contents.columns]
    assert shown["n_events"] == 1_000
    assert dict(zip(names, shown["presence"], strict=True)) == {"often": 1.0, "rare": 0.1}


def test_an_array_is_there_once_however_many_elements_it_has():
    sample = [{"tags": ["a", "b", "c"]}, {"tags": ["a", None]}, {"tags": []}, {}]
    texts = {str(n): f"array_contains(tags, '{tag}')" for n, tag in enumerate("abc")}
    index = tamis.build(texts, "tags ARRAY<STRING>", sample=sample)
    assert index.contents.statistics["sample"]["presence"] == [0.75]


@pytest.mark.parametrize("missing", list(Missing))
def test_answers_stay_the_same(missing):
    for seed in range(20):
        example = draw_example(seed, 12, 40)
        learned = tamis.build(example.texts, example.schema, missing=missing, sample=example.events)
        truth = example.reference(missing)
        for engine in ENGINES[:2]:
            assert np.array_equal(engine.ask(learned, example.events), engine.expected(truth))


def test_an_empty_sample_teaches_nothing_and_breaks_nothing():
    index = tamis.build(RARE_AND_FREQUENT, SCHEMA, sample=[])
    assert index.match({"often": 1, "rare": 2}) == ["both", "other"]
