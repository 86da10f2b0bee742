"""The JSON text of an Arrow row matches what the row matches."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from random import Random

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from tamis.archive import Archive, ArrowEvents
from tamis.archive.texts import count_not_finite, to_json
from tamis.logic.evaluate import Missing
from tests.archive.places import with_events
from tests.events.engine import Engine
from tests.events.layouts import arrow_array, typed_at
from tests.generators import random_condition, random_event, random_schema

# The exceptions: in a text, a number with a point is a double.
DIFFERENT = {
    "double": (pa.types.is_float32,),
    "number": (pa.types.is_decimal, pa.types.is_float16),
}


def is_different(arrow_type: pa.DataType, type_) -> bool:
    is_wrapped = type_.element or pa.types.is_dictionary(arrow_type)
    element = arrow_type.value_type if is_wrapped else arrow_type
    name = (type_.element or type_).name
    return any(test(element) for test in DIFFERENT.get(name, ()))


@given(seed=st.integers(0, 2**32))
def test_texts_match_what_rows_match(seed):
    rng = Random(seed)
    schema = random_schema(rng, rng.choice((1, 3, 8)))
    conditions = [random_condition(rng, schema, depth=rng.choice((0, 0, 1, 2))) for _ in range(20)]
    events = [random_event(rng, schema) for _ in range(30)]
    engine = Engine(schema, conditions, rng.choice(list(Missing)))
    tree: dict = {}
    for path in schema:
        array = None
        while array is None or is_different(array.type, schema[path]):
            values = [typed_at(event, path, schema[path]) for event in events]
            array = arrow_array(rng, values, schema[path])
        inner = tree
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = array
    batch = pa.RecordBatch.from_struct_array(make_struct(tree))
    texts = to_json(batch)
    by_row = engine.match_arrays(engine.encoder.encode(batch).arrays)
    by_text = engine.match_arrays(engine.encoder.encode(texts).arrays)
    assert by_text == by_row, texts


def make_struct(tree: dict) -> pa.StructArray:
    fields = {
        name: make_struct(own) if isinstance(own, dict) else own for name, own in tree.items()
    }
    return pa.StructArray.from_arrays(list(fields.values()), list(fields))


@pytest.mark.parametrize(
    ("array", "texts"),
    [
        (pa.array([2**63 - 1, -(2**63), None]), ["9223372036854775807", "-9223372036854775808"]),
        (pa.array([2**64 - 1], pa.uint64()), ["18446744073709551615"]),
        (pa.array([0.1, 1.0, 1e300, -0.0]), ["0.1", "1.0", "1e+300", "-0.0"]),
        (pa.array([float("nan"), float("inf"), -float("inf")]), ["NaN", "Infinity", "-Infinity"]),
        (pa.array([0.1, float("nan")], pa.float32()), ["0.1", "NaN"]),
        (pa.array(np.array([0.1, np.inf], np.float16)), ["0.0999755859375", "Infinity"]),
        (pa.array([Decimal("1.50"), Decimal("-0.01")]), ["1.50", "-0.01"]),
        (pa.array([Decimal("9" * 50)], pa.decimal256(60, 0)), ["9" * 50]),
        (pa.array([Decimal("1.5")], pa.decimal32(3, 1)), ["1.5"]),
        (pa.array(['a"\n\u2028é', ""]), ['"a\\"\\n\u2028é"', '""']),
        (pa.array(["x"], pa.string_view()), ['"x"']),
        (pa.array(["x", "y", "x"]).dictionary_encode(), ['"x"', '"y"', '"x"']),
        (pa.array([True, False]), ["true", "false"]),
        (pa.array([date(1, 1, 1), date(9999, 12, 31)]), ['"0001-01-01"', '"9999-12-31"']),
        (pa.array([date(2024, 2, 29)], pa.date64()), ['"2024-02-29"']),
        (pa.array([datetime(2024, 1, 2, 3, 4, 5, 60)]), ['"2024-01-02T03:04:05.000060"']),
        (pa.array([-1500], pa.timestamp("ms", "Asia/Tokyo")), ['"1969-12-31T23:59:58.500Z"']),
        (pa.array([1000, 1], pa.timestamp("ns")), ['"1970-01-01T00:00:00.000001"', None]),
        (pa.array([2**62], pa.timestamp("s")), ['"4611686018427387904 s after 1970"']),
        (pa.array([b"ab", b""]), ['"YWI="', '""']),
        (pa.array([b"ab"], pa.binary(2)), ['"YWI="']),
        (pa.array([[1, None], [], None]), ["[1,null]", "[]"]),
        (pa.array([[1, 2]], pa.list_(pa.int8(), 2)), ["[1,2]"]),
        (pa.array([{"a": 1, "b": None}, {"a": None, "b": "x"}]), ['{"a":1}', '{"b":"x"}']),
        (
            pa.array([[("k", 1), ("z", 2), ("k", None)]], pa.map_(pa.string(), pa.int8())),
            ['{"z":2}'],
        ),
        (pa.array([[(1, 2)]], pa.map_(pa.int8(), pa.int8())), ['{"1":2}']),
        (pa.array([5], pa.time64("us")), ['"00:00:00.000005"']),
        (pa.nulls(2), []),
    ],
    ids=lambda own: str(own.type) if isinstance(own, pa.Array) else "",
)
def test_values(array, texts):
    batch = pa.record_batch({"v": array})
    found = to_json(batch)
    expected = [f'{{"v":{text}}}'.encode() if text else None for text in texts]
    expected += [b"{}"] * (len(found) - len(texts))
    for one, other in zip(found, expected, strict=True):
        assert other is None or one == other
    for at in range(len(batch)):  # a slice has an offset
        assert to_json(batch.slice(at, 1)) == [found[at]]


def test_a_string_that_is_not_utf8_is_missing():
    offsets = pa.py_buffer(np.array([0, 1, 2], np.int32))
    array = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"\xffa")])
    assert to_json(pa.record_batch({"s": array})) == [b"{}", b'{"s":"a"}']


def test_rows_without_columns():
    batch = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert to_json(batch) == [b"{}", b"{}"]


def test_values_that_are_not_finite_are_counted(folder):
    batch = pa.record_batch(
        {"d": [float("nan"), 1.0, None], "f": pa.array([float("inf")] * 3, pa.float32())}
    )
    assert count_not_finite(batch) == 4
    with Archive.open(folder) as archive:
        archive.append([with_events(ArrowEvents(batch), [[], [], []], 0, 1, None)])
        assert archive.stats()["not_finite_values"] == 4
        texts = archive.get_events([1])
        archive.seal()
        assert archive.get_events([1]) == texts == {1: b'{"d":NaN,"f":Infinity}'}
