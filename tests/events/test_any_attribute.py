"""All strings of an event: found in every way in, and tested together."""

from __future__ import annotations

import json
from random import Random

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.language.printer import print_expression, print_for_spark
from tamis.match import elements
from tests.effort import examples

RULES = {
    "a": "any_attribute(v -> v ILIKE '%needle%')",
    "b": "NOT any_attribute(v -> v = 'x')",
    "c": "any_attribute(v -> v LIKE '%é%' AND NOT v LIKE 'x%')",
    "d": "n > 3 AND any_attribute(v -> matches(v, 'needle'))",
    "e": "s = 'x'",
}
VALUES = ("x", "", "a Needle", "xé", "é", "needles", 5, 2.5, True, None, 'q"\\u00e9', "日本😀")
NAMES = ("s", "n", "x", "needle", "é")


def random_value(rng, depth=0):
    draw = rng.random()
    if depth < 3 and draw < 0.2:
        return [random_value(rng, depth + 1) for _ in range(rng.randint(0, 3))]
    if depth < 3 and draw < 0.4:
        return random_object(rng, depth + 1)
    return rng.choice(VALUES)


def random_object(rng, depth=0):
    return {rng.choice(NAMES): random_value(rng, depth) for _ in range(rng.randint(0, 4))}


def expected(events):
    schema = "n NUMBER, s STRING"
    return [
        [name for name, rule in RULES.items() if tamis.evaluate(rule, event, schema=schema)]
        for event in events
    ]


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    path = tmp_path_factory.mktemp("any") / "index"
    tamis.build(RULES, "n NUMBER, s STRING").save(path)
    return tamis.Index.open(path, verify=True)


@pytest.mark.parametrize("seed", range(examples(3)))
def test_dicts_and_json(index, seed):
    rng = Random(seed)
    events = [random_object(rng) for _ in range(100)]
    wanted = expected(events)
    texts = [json.dumps(event, ensure_ascii=rng.random() < 0.5) for event in events]
    for source in (events, texts, pa.array(texts)):
        assert list(map(sorted, index.match_lists(index.encode(source)).to_pylist())) == wanted
    assert [sorted(index.match(event)) for event in events] == wanted
    assert [sorted(index.match(text)) for text in texts] == wanted


def test_rows_that_the_scanner_does_not_accept(index):
    texts = ['{"a": "x", "a": "needle"}', '{"a": "needle", "a": "y"}', "[1]", "{}", '{"a": 1e999}']
    lists = index.match_lists(index.encode(texts)).to_pylist()
    assert lists == [["a", "b"], ["b"], [], ["b"], ["b"]]


def test_columns_of_arrow(index):
    table = pa.table(
        {
            "n": [4, 4, 4, 1, None],
            "text": pa.array(["a needle", None, "x", None, None]).dictionary_encode(),
            "struct": pa.array([None, {"é": "the NEEDLE", "n": 1}, None, None, None]),
            "list": pa.array([["é"], None, [], [None, "x"], None], pa.list_(pa.string())),
            "map": pa.array(
                [None, None, [("needle", "xé")], [("k", None), ("l", "needle")], None],
                pa.map_(pa.string(), pa.string()),
            ),
            "lists": pa.array([None, [[{"a": "x"}]], None, None, None]),
            "binary": pa.array([b"needle"] * 5),
        }
    )
    wanted = [["a", "b", "c", "d"], ["a", "d"], [], ["a"], ["b"]]
    for source in (table, table.to_batches()[0]):
        assert index.match_lists(index.encode(source)).to_pylist() == wanted
    structs = pa.chunked_array([table.slice(0, 2).to_struct_array().chunk(0)] * 2)
    found = index.match_lists(index.encode(pa.table({"e": structs}), column="e")).to_pylist()
    assert found == wanted[:2] * 2
    assert index.match_lists(index.encode(table.slice(3))).to_pylist() == wanted[3:]


def test_files_are_read_with_all_their_columns(index, tmp_path):
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"n": [4, 1], "other": ["needle", "x"]}), tmp_path / "e.parquet")
    assert index.match_lists(tmp_path / "e.parquet").to_pylist() == [["a", "b", "d"], []]
    (tmp_path / "e.csv").write_text("n,other\n4,needle\n1,x\n")
    assert index.match_lists(tmp_path / "e.csv").to_pylist() == [["a", "b", "d"], []]


def test_scalars_of_numpy_and_deep_events(index):
    assert index.match({"a": np.array(["needle"]), "n": np.int64(4)}) == ["a", "b", "d"]
    deep: object = "needle"
    for _ in range(100_000):
        deep = [deep]
    assert index.match({"a": deep}) == ["a", "b"]
    assert index.match({"a": "\ud800"}) == ["b"]


def test_an_index_without_such_tests_reads_no_other_strings():
    index = tamis.build({"e": "s = 'x'"})
    assert index.view.encoder.table.strings is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("any_attribute(v -> w = 'a')", "w is not the element"),
        ("any_attribute(v -> v > 5)", "v is a string, compared with an integer"),
        ("any_attribute('x')", "expected a name and ->"),
        ("any_attribute(v -> any_attribute(w -> w = 'a'))", r"any_attribute\(\) is a condition of"),
        ("any_attribute(v)", "->"),
    ],
)
def test_errors(text, message):
    with pytest.raises(tamis.ExpressionError, match=message):
        tamis.parse(text)


def test_what_is_printed():
    condition = tamis.parse("NOT any_attribute(v -> v = 'a' OR v LIKE 'b%')")
    text = print_expression(condition)
    assert text == "NOT any_attribute(v -> v = 'a' OR v LIKE 'b%')"
    assert tamis.parse(text) == condition
    with pytest.raises(tamis.TamisError, match="Spark SQL has no test of all columns: any_attri"):
        print_for_spark(condition)


def test_explain_shows_the_value(index):
    assert "'a Needle'" in str(index.explain("a", {"k": ["x", "a Needle"]}))
    assert str(index.explain("a", {"k": "x"}))


def test_the_reference_evaluator_reports_nothing(recwarn):
    text = "any_attribute(v -> v ILIKE '%mimikatz%')"
    assert tamis.evaluate(text, {"a": "MIMIKATZ.exe", "b": 3}, "a string, b int") is True
    assert [str(own.message) for own in recwarn] == []


def test_an_index_is_opened_without_trust(tmp_path):
    tamis.build(RULES, "n NUMBER, s STRING").save(tmp_path / "index")
    index = tamis.open(tmp_path / "index", trusted=False)
    assert sorted(index.match({"q": "a needle"})) == ["a", "b"]


@pytest.mark.parametrize("number", [np.float64(1), np.longdouble(1), np.datetime64("2020-01-01")])
def test_numpy_scalars_are_not_strings(index, number):
    for event in ({"n": 9, "q": number}, {"n": 9, "q": [number]}):
        assert sorted(index.match(event)) == ["b"]
        assert index.match_lists([event]).to_pylist() == [["b"]]
    assert sorted(index.match({"q": np.array(["needle", "x"])})) == ["a"]


def test_an_event_that_contains_itself_is_read_once(index):
    event = {"q": ["a needle"]}
    event["q"].append(event["q"])
    event["o"] = event
    assert sorted(index.match(event)) == ["a", "b"]
    assert tamis.evaluate(RULES["a"], event) is True


def test_answers_for_strings_are_remembered_within_bounds(index, monkeypatch):
    monkeypatch.setattr(elements, "_MOST_REMEMBERED", 3)
    monkeypatch.setattr(elements, "_LONGEST_REMEMBERED", 8)
    rng = Random(5)
    events = [random_object(rng) for _ in range(100)] + [{"s": "needle " * 3}] * 2
    wanted = expected(events)
    for _ in range(2):
        assert [sorted(index.match(event)) for event in events] == wanted
