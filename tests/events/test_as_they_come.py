"""Values of other kinds that a schema allows: read in every way in, and counted."""

from __future__ import annotations

import json
import warnings
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.errors import IndexFormatError, SchemaError
from tamis.events.attributes import AttributeTable
from tamis.language import Schema

SCHEMA = "status INT FROM STRING, code STRING FROM NUMBER OR BOOLEAN, request STRING FROM OBJECT"
RULES = {
    "failed": "status >= 500",
    "not_found": "code = '404'",
    "true": "code = 'true'",
    "bucket": """request LIKE '%"bucket":"b"%'""",
}
EVENTS = [
    {"status": "503", "code": 404, "request": {"bucket": "b"}},
    {"status": 503, "code": "404", "request": '{"bucket":"b"}'},
    {"status": "x", "code": True, "request": ["b"]},
]
MATCHES = [["failed", "not_found", "bucket"], ["failed", "not_found", "bucket"], ["true"]]


def warned(call):
    """The result of a call, and its warnings but for those of rejects."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = call()
    notes = [own for own in caught if not issubclass(own.category, tamis.RejectWarning)]
    return result, [str(own.message) for own in notes]


def test_events_as_dicts_and_as_json():
    index = tamis.build(RULES, SCHEMA)
    for events in (EVENTS, [tamis_json(event) for event in EVENTS]):
        lists, (note,) = warned(lambda events=events: index.match_lists(events).to_pylist())
        assert list(map(set, lists)) == list(map(set, MATCHES))
        assert note == (
            "5 values were read from another kind of value, as the schema allows: status (1 as "
            "integer from string; row 0: '503'); code (2 as string from number or boolean; row 0: "
            "404); request (2 as string from object; row 0: {'bucket': 'b'}). To reject such "
            "values, declare the type without FROM"
        )
        singles, _ = warned(lambda events=events: [index.match(event) for event in events])
        assert list(map(set, singles)) == list(map(set, MATCHES))


def tamis_json(event):
    import json

    return json.dumps(event, indent=1)


def test_single_events_are_counted():
    index = tamis.build(RULES, SCHEMA)
    rejects = index.encode(EVENTS[:1]).rejects
    assert {name: own.n_values for name, own in rejects.oddities.foreign.items()} == {
        "status": 1,
        "code": 1,
        "request": 1,
    }
    assert not len(rejects)


def test_columns_of_arrow():
    index = tamis.build(RULES, SCHEMA)
    table = pa.table(
        {
            "status": pa.array(["503", "7", None, "x"]).dictionary_encode(),
            "code": pa.array([404, 4, 404, None], pa.int16()),
            "request": pa.array(
                [{"bucket": "b", "n": None}, {"bucket": "c", "n": 1}, None, {"bucket": "b", "n": 1}]
            ),
        }
    )
    batch = index.encode(table)
    assert [own.n_values for own in batch.rejects.oddities.foreign.values()] == [2, 3, 3]
    assert index.match_lists(batch).to_pylist() == [
        ["failed", "not_found", "bucket"],
        [],
        ["not_found"],
        ["bucket"],
    ]
    assert dict(batch.rejects.counts) == {("status", "bad-value"): 1}


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (pa.array([5, -1], pa.int8()), ["5", "-1"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([0.1, 5.0], pa.float32()), ["0.1", "5.0"]),
        (pa.array([0.1, 1e22], pa.float64()), ["0.1", "1e+22"]),
        (pa.array([Decimal("1.50"), Decimal("5.00")], pa.decimal128(5, 2)), ["1.50", "5.00"]),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([{"a": 1, "b": None}]), ['{"a":1}']),
        (pa.array([[("k", 1), ("l", None)]], pa.map_(pa.string(), pa.int64())), ['{"k":1}']),
        (pa.array([[1, None]]), ["[1,null]"]),
    ],
    ids=lambda given: str(getattr(given, "type", "")),
)
def test_texts_of_arrow_values(array, texts):
    schema = "x STRING FROM NUMBER OR BOOLEAN OR OBJECT"
    index = tamis.build(
        {text: f"x = {tamis.language.types.print_string(text)}" for text in texts}, schema
    )
    batch = index.encode(pa.table({"x": array}))
    assert index.match_lists(batch).to_pylist() == [[text] for text in texts]


def test_scalars_of_numpy():
    index = tamis.build({"a": "x = '0.1'"}, "x STRING FROM NUMBER")
    events = [{"x": np.float32(0.1)}, {"x": np.float64(0.1)}]
    assert index.match_lists(index.encode(events)).to_pylist() == [["a"], ["a"]]
    assert [index.match(event) for event in events] == [["a"], ["a"]]


def test_values_in_csv_are_texts_anyway(tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("status,code\n503,404\n")
    lists, notes = warned(lambda: tamis.build(RULES, SCHEMA).match_lists(path).to_pylist())
    assert lists == [["failed", "not_found"]]
    assert not any("another kind" in note for note in notes)


def test_a_saved_index_reads_them(tmp_path):
    tamis.build(RULES, SCHEMA).save(tmp_path / "index")
    index = tamis.Index.open(tmp_path / "index")
    lists, _ = warned(lambda: index.match_lists(EVENTS).to_pylist())
    assert list(map(set, lists)) == list(map(set, MATCHES))


def test_deep_objects_and_strange_values_are_rejected():
    index = tamis.build({"a": "x = '{}'"}, "x STRING FROM OBJECT OR NUMBER")
    deep: dict = {}
    for _ in range(100_000):
        deep = {"a": deep}
    batch = index.encode([{"x": deep}, {"x": {"a": 1j}}, {"x": 10**5000}, {"x": {}}])
    assert index.match_lists(batch).to_pylist() == [[], [], [], ["a"]]
    assert batch.rejects.counts.total() == 3


def test_parts_that_read_differently_are_refused():
    attributes = [
        tamis.build({"a": "x = 1"}, own).contents.columns for own in ("x INT", "x INT FROM STRING")
    ]
    with pytest.raises(IndexFormatError, match="integer from string in another"):
        AttributeTable.of([column for columns in attributes for column in columns])


@pytest.mark.parametrize(
    ("declared", "spelled"),
    [
        ("x INT FROM STRING", "integer from string"),
        ("x text(english) from number", "text(english) from number"),
        ("x STRING FROM object or NUMBER", "string from number or object"),
        ("x ARRAY<DOUBLE FROM STRING>", "array<double from string>"),
        ("x DECIMAL(5, 2) FROM STRING NOT NULL", "decimal(5,2) from string"),
    ],
)
def test_schemas(declared, spelled):
    schema = Schema.of(declared)
    assert schema.to_json() == {"x": spelled}
    assert Schema.of(schema.to_json()) == schema == Schema.of(schema.to_ddl())


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ("x INT FROM NUMBER", "integer from number; allowed: integer from string"),
        ("x STRING FROM STRING", "allowed: string from number or boolean or object"),
        ("x STRING FROM NUMBER, BOOLEAN", "' BOOLEAN' does not declare an attribute"),
        ("x STRING FROM NUMBER AND OBJECT", "string from number and object; allowed"),
        ("x DATE FROM STRING", "date is read from strings anyway"),
        ("x ARRAY<INT> FROM STRING", "unknown type"),
        ("x ANY FROM STRING", "any is not allowed"),
    ],
)
def test_wrong_schemas(declared, message):
    with pytest.raises(SchemaError, match=message):
        Schema.of(declared)


def test_a_cast_has_no_other_kinds():
    with pytest.raises(tamis.ExpressionError):
        tamis.parse("cast(a AS INT FROM STRING) = 1")


@pytest.mark.parametrize(
    "types",
    ["om ONE_OR_MANY<STRING>, ss ARRAY<STRING>", "ss ARRAY<STRING>, om ONE_OR_MANY<STRING>"],
)
@pytest.mark.parametrize("other", ["array_contains(ss, 'q')", "any_attribute(v -> v = 'q')"])
def test_one_or_many_is_told_from_an_array_of_the_same_elements(types, other):
    index = tamis.build(
        {"om": "array_contains(om, 'a')", "ss": "array_contains(ss, 'a')", "o": other}, types
    )
    events = [{"om": "a", "ss": "a"}, {"om": ["a"], "ss": ["a"]}, {"om": "b", "ss": "a"}]
    wanted = [sorted(index.match(event)) for event in events]
    assert wanted == [["om"], ["om", "ss"], []]
    with pytest.warns(tamis.TamisWarning):
        assert [sorted(own) for own in index.match_lists(events).to_pylist()] == wanted
    texts = [json.dumps(event) for event in events]
    with pytest.warns(tamis.TamisWarning):
        assert [sorted(own) for own in index.match_lists(texts).to_pylist()] == wanted


def test_fields_of_structs_keep_one_or_many_apart():
    index = tamis.build(
        {
            "a": "exists(i, x -> array_contains(x.a, '1'))",
            "b": "exists(i, x -> array_contains(x.b, '1'))",
        },
        "i ARRAY<STRUCT<a: ARRAY<STRING>, b: ONE_OR_MANY<STRING>>>",
    )
    events = [{"i": [{"a": "1"}]}, {"i": [{"b": "1"}]}, {"i": [{"a": ["1"]}]}]
    with pytest.warns(tamis.TamisWarning, match="arrays of one element"):
        assert index.match_lists(events).to_pylist() == [[], ["b"], ["a"]]


def test_a_struct_with_views_of_strings_is_read_as_its_text():
    views = pa.array(["a", None, "b"], pa.string_view())
    mask = pa.array([False, False, True])
    array = pa.StructArray.from_arrays([views], ["x"], mask=mask)
    index = tamis.build({"a": """request LIKE '%"x":"a"%'"""}, SCHEMA)
    with pytest.warns(tamis.TamisWarning, match="request"):
        assert index.match_lists(pa.table({"request": array})).to_pylist() == [["a"], [], []]
