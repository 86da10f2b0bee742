"""What is odd about events that are read all the same, and reported."""

from __future__ import annotations

import re
import warnings

import pyarrow as pa
import pytest

import tamis

RULES = {"private": "workclass = 'Private'", "any": "workclass IS NOT NULL"}
PADDED = [" Private", " State-gov", " ?"]


def warned(call):
    """The warnings of a call, which must be ours and point here."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(issubclass(one.category, tamis.TamisWarning) for one in caught)
    assert all(one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


def rows(values):
    return [{"workclass": value} for value in values]


def test_blanks_around_most_values_are_reported_once():
    index = tamis.build(RULES)
    (note,) = warned(lambda: index.match_batch(rows(PADDED)))
    assert note == (
        "values of an attribute have a blank before or after them, so that tests on them fail: "
        "workclass (3 of 3 values; row 0: ' Private', which is not 'Private'). Remove the blanks "
        "from the events, unless they are intended"
    )


@pytest.mark.parametrize("layout", ["json", "table", "csv"])
def test_blanks_are_reported_from_every_way_in(layout, tmp_path):
    events = {
        "json": ['{"workclass": " Private"}'],
        "table": pa.table({"workclass": [" Private"]}),
        "csv": tmp_path / "adult.csv",
    }
    (tmp_path / "adult.csv").write_text("age,workclass\n39, Private\n")
    (note,) = warned(lambda: tamis.build(RULES).match_lists(events[layout]))
    assert "workclass (1 of 1 values; row 0: ' Private'" in note


@pytest.mark.parametrize("pattern", ["workclass LIKE 'Priv%'", "startswith(workclass, 'Priv')"])
def test_blanks_are_reported_where_a_pattern_misses(pattern):
    (note,) = warned(lambda: tamis.build({"a": pattern}).match_lists(rows(PADDED)))
    assert "row 0: ' Private', which is not 'Private'" in note


@pytest.mark.parametrize(
    ("expression", "values"),
    [
        ("workclass = 'Private'", ["Private", " Private", "x"]),  # some values only
        ("workclass = 'Public'", PADDED),  # would not match either
        ("workclass IN ('Private', ' Private')", PADDED),  # meant
        ("workclass LIKE '%Private'", PADDED),
        ("workclass = 'Private'", ["", "Private", None]),
    ],
)
def test_blanks_that_change_nothing_are_not_reported(expression, values):
    index = tamis.build({"a": expression})
    assert warned(lambda: index.match_lists(rows(values))) == []


def test_many_batches_are_counted_together(tmp_path):
    path = tmp_path / "events.jsonl"
    path.write_text('{"workclass": " Private"}\n' * 50_000)
    (note,) = warned(lambda: tamis.build(RULES).count_by_subscription(path))
    n_padded, n_values = re.findall(r"workclass \(([\d,]+) of ([\d,]+) values", note)[0]
    assert n_padded == n_values
    assert int(n_values.replace(",", "")) >= 1_000


# ── keys that come twice ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ('{"level": 1, "level": 9}', "level"),
        ('{"level" : 1 , "level" : 9}', "level"),
        ('{"level": 9, "user": {"name": "a", "name": "b"}}', "name"),
        ('{"level": 9, "list": [{"x": 1, "x": 2}]}', "x"),
    ],
)
@pytest.mark.parametrize("kind", [str, str.encode])
def test_a_key_twice_is_reported_and_the_last_value_counts(text, key, kind):
    index = tamis.build({"high": "level > 5"})
    found = []
    (note,) = warned(lambda: found.append(index.match_lists(['{"level": 7}', kind(text)])))
    assert found[0].to_pylist() == [["high"], ["high"]]
    assert note == (
        f'1 event has a key twice, such as "{key}" in row 1; the last value counts. '
        "Write each key once"
    )
    (note,) = warned(lambda: found.append(index.match(kind(text))))
    assert (note, found[1]) == (
        f'the event has the key "{key}" twice; the last value counts',
        ["high"],
    )


@pytest.mark.parametrize(
    "text", ['{"level": 9, "text": "\\"level\\": 1"}', '{"level": 9, "a": {"level": 1}}', "{}"]
)
def test_other_keys_are_not_reported(text):
    index = tamis.build({"high": "level > 5"})
    assert warned(lambda: index.match_lists([text])) == []
    assert warned(lambda: index.match(text)) == []


def test_a_subscription_with_a_key_twice_is_a_reject(tmp_path):
    path = tmp_path / "subs.jsonl"
    path.write_text(
        '{"id": "a", "expression": "x = 1", "expression": "x = 2"}\n'
        '{"id": "b", "expression": "x = 1", "more": {"id": 3}}\n'
    )
    index = []
    with pytest.warns(tamis.RejectWarning, match="has the key"):
        index.append(tamis.build(path))
    (reject,) = index[0].rejects
    assert reject.code == "repeated-key"
    assert reject.message.endswith('line 1: the row has the key "expression" twice')
    assert list(index[0]) == ["b"]
