"""Rejects are counted exactly and shown by examples; in strict mode they raise errors."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from tamis.errors import InputError
from tamis.events.rejects import EXAMPLES_PER_KIND, MAX_EXAMPLES, RejectKind, Rejects
from tamis.language import parse
from tamis.language.check import check
from tamis.language.schema import Schema
from tests.events.engine import Engine, count_by_attribute

SCHEMA = Schema.of(
    "age INT, name STRING, price DECIMAL(5,2), day DATE, tags ARRAY<INT>, geo.lat DOUBLE, ok BOOL"
)
TEXTS = (
    "age > 3",
    "name = 'a'",
    "price = 1.5",
    "day < DATE '2024-01-01'",
    "array_contains(tags, 1)",
    "geo.lat > 0.5",
    "ok",
)


@pytest.fixture(scope="module")
def engine():
    return Engine(SCHEMA, [check(parse(text), SCHEMA) for text in TEXTS])


def test_counts_are_exact_and_examples_few(engine):
    events = [{"age": "old", "name": 5 if row % 2 else "a"} for row in range(1000)]
    rejects = engine.encoder.encode(events).rejects
    assert len(rejects) == 1500
    assert rejects.counts == {
        ("age", RejectKind.WRONG_TYPE): 1000,
        ("name", RejectKind.WRONG_TYPE): 500,
    }
    assert [(r.row, r.attribute) for r in rejects] == [
        *((0, "age"), (1, "age"), (2, "age"), (1, "name"), (3, "name"), (5, "name")),
    ]
    assert len(rejects.examples) == 2 * EXAMPLES_PER_KIND


def test_a_whole_column_of_another_type_costs_a_count(engine):
    n_rows = 1_000_000
    table = pa.table(
        {"age": pa.nulls(n_rows, pa.string()).fill_null("x"), "name": pa.nulls(n_rows)}
    )
    rejects = engine.encoder.encode(table).rejects
    assert rejects.counts == {("age", RejectKind.WRONG_TYPE): n_rows}
    assert len(rejects.examples) == EXAMPLES_PER_KIND


@pytest.mark.parametrize(
    ("event", "message"),
    [
        ({"age": "old"}, "row 1, attribute age: 'old' is not of type integer; expected: integer"),
        (
            {"age": 2**63},
            f"row 1, attribute age: {2**63} is not of type integer; expected: integer",
        ),
        ({"name": b"x"}, "row 1, attribute name: b'x' is not of type string; expected: string"),
        (
            {"price": Decimal("1.234")},
            ("row 1, attribute price: 1.234 is not of type decimal(5,2); expected: decimal(5,2)"),
        ),
        (
            {"day": "2024-02-30"},
            "row 1, attribute day: '2024-02-30' is not a date of the calendar; expected: date",
        ),
        (
            {"tags": [1, "x"]},
            "row 1, attribute tags: 'x' is not of type integer; expected: array<integer>",
        ),
        (
            {"geo": {"lat": True}},
            "row 1, attribute geo.lat: True is not of type double; expected: double",
        ),
        ("text", "row 1: an event is a mapping of attributes, not str"),
    ],
)
def test_strict_names_row_attribute_value_and_type(engine, event, message):
    with pytest.raises(InputError) as raised:
        engine.encoder.encode([{}, event], strict=True)
    assert str(raised.value) == message
    rejects = engine.encoder.encode([{}, event]).rejects
    assert [str(reject) for reject in rejects] == [message]


@pytest.mark.parametrize("other", [{"age": 5}, 5, [1]])
def test_what_is_no_text_among_json_texts_is_a_rejected_row(engine, other):
    what = type(other).__name__
    encoded = engine.encoder.encode(['{"age": 5}', other, b'{"age": 6}', None])
    assert [str(reject) for reject in encoded.rejects] == [
        f"row 1: the first event is JSON text, this one is not: it is {what}",
        "row 3: an event is a mapping of attributes, not None",
    ]


def test_strict_reports_the_first_row(engine):
    table = pa.table({"age": pa.array([None, None, "x", "y"])})
    with pytest.raises(InputError, match="row 2, attribute age: 'x' is not of type integer"):
        engine.encoder.encode(table, strict=True)


def test_one_event_has_the_same_rejects(engine):
    event = {
        "age": "old",
        "price": 1.234,
        "tags": 5,
        "geo": {"lat": "x"},
        "ok": 1,
        "name": "\ud800",
    }
    one, many = Rejects(), engine.encoder.encode([event]).rejects
    engine.encoder.encode_event(event, one)
    assert one.counts == many.counts
    assert sorted(map(str, one)) == sorted(map(str, many))
    with pytest.raises(InputError):
        engine.encoder.encode_event(event, Rejects(strict=True))
    assert len(engine.encoder.encode_event(event).codes) == 0


@pytest.mark.parametrize(
    ("array", "kind", "reason"),
    [
        (pa.array([2**63], pa.uint64()), "bad-value", f"{2**63} is not of type integer"),
        (pa.array([1.5]), "bad-value", "1.5 is not of type integer"),
        (
            pa.array([date(2024, 1, 15)]),
            "wrong-type",
            "datetime.date(2024, 1, 15) is not of type integer",
        ),
        (pa.array([[1]]), "wrong-type", "[1] is not of type integer"),
        (pa.array(["5"]).dictionary_encode(), "wrong-type", "'5' is not of type integer"),
    ],
)
def test_reasons_of_columns(engine, array, kind, reason):
    (reject,) = engine.encoder.encode(pa.table({"age": array})).rejects
    assert (reject.kind, reject.reason, reject.expected) == (kind, reason, "integer")


def test_reasons_of_what_python_cannot_hold():
    schema = Schema.of("at TIMESTAMP, day DATE, name STRING")
    texts = ("at > TIMESTAMP '2024-01-01'", "day > DATE '2024-01-01'", "name = 'a'")
    engine = Engine(schema, [check(parse(text), schema) for text in texts])
    not_utf8 = pa.array([b"\xff"]).view(pa.string())
    table = pa.table(
        {
            "at": pa.array([1_001], pa.timestamp("ns")),
            "day": pa.array([4_000_000], pa.date32()),
            "name": not_utf8,
        }
    )
    reasons = {r.attribute: (str(r.kind), r.reason) for r in engine.encoder.encode(table).rejects}
    assert reasons["at"][0] == reasons["day"][0] == reasons["name"][0] == "bad-value"
    assert "not a whole number of microseconds" in reasons["at"][1]
    assert reasons["day"][1] == "'12921-08-18' is not a date; write YYYY-MM-DD"
    assert reasons["name"][1] == "b'\\xff' is not of type string"


def test_reasons_of_lists_and_texts_that_python_cannot_hold():
    schema = Schema.of("n INT, s ARRAY<STRING>, d ARRAY<DATE>")
    texts = ("n = 1", "array_contains(s, 'a')", "array_contains(d, DATE '2024-01-01')")
    engine = Engine(schema, [check(parse(text), schema) for text in texts])
    not_utf8 = pa.array([b"\xff", b"a"]).view(pa.string())
    far = pa.array([4_000_000, 0], pa.date32())
    offsets = pa.array([0, 1, 2], pa.int32())
    lists = [pa.ListArray.from_arrays(offsets, own) for own in (not_utf8, far)]
    rejects = engine.encoder.encode(pa.table({"s": lists[0], "d": lists[1]})).rejects
    assert {(r.row, r.attribute, r.kind) for r in rejects} == {
        (0, "s", RejectKind.BAD_VALUE),
        (0, "d", RejectKind.BAD_VALUE),
    }
    keys = pa.array(["n", "s", "n"])
    items = pa.concat_arrays([not_utf8, pa.array(["x"])])
    maps = pa.MapArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), keys, items)
    rejects = engine.encoder.encode(maps).rejects
    assert [(r.row, r.attribute, r.reason) for r in rejects] == [
        (0, "n", "b'\\xff' is not of type integer"),
        (2, "n", "'x' is not of type integer"),
        (1, "s", "'a' is not of type array<string>"),
    ]


def test_bad_rows_are_rows_without_attributes(engine):
    encoded = engine.encoder.encode(['{"age": 5}', "{", "[1]", "null", '{"age": 4}', None])
    assert engine.match_arrays(encoded.arrays) == {(0, 0), (4, 0)}
    assert encoded.rejects.counts == {(None, RejectKind.BAD_ROW): 4}
    assert [reject.row for reject in encoded.rejects] == [1, 2, 3]
    assert encoded.rejects.bad_rows == [1, 2, 3, 5]
    with pytest.raises(InputError, match="row 1: not JSON"):
        engine.encoder.encode(["{}", "{"], strict=True)


def test_merge_and_dictionary(engine):
    merged = Rejects()
    for _ in range(10):
        merged.merge(engine.encoder.encode([{"age": "x"}, {"ok": 1}, 7]).rejects)
    assert len(merged) == 30
    assert len(merged.examples) == 3 * EXAMPLES_PER_KIND
    shown = json.loads(json.dumps(merged.to_dict()))
    assert shown["total"] == 30
    assert {"attribute": "age", "kind": "wrong-type", "count": 10} in shown["counts"]


def test_examples_are_bounded_over_attributes():
    schema = Schema.of({f"a{i}": "integer" for i in range(100)})
    engine = Engine(schema, [check(parse(f"a{i} = 1"), schema) for i in range(100)])
    rejects = engine.encoder.encode([{f"a{i}": "x" for i in range(100)}] * 5).rejects
    assert len(rejects) == 500
    assert len(rejects.examples) == MAX_EXAMPLES


def test_values_that_cannot_be_shown(engine):
    class Odd:
        def __repr__(self) -> str:
            raise RuntimeError

    rejects = engine.encoder.encode([{"age": Odd(), "name": 10**5000, "ok": "x" * 1000}]).rejects
    assert count_by_attribute(rejects) == {"age": 1, "name": 1, "ok": 1}
    assert max(len(reject.value) for reject in rejects) <= 60
