"""A whole number fits an integer attribute however it is spelled; any other one is a reject."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tamis
from tamis.events.rejects import RejectKind
from tamis.input.event_batches import encode_batches

FITTING = (5, 5.0, -0.0, 2.0**62, -(2.0**63), 3)
REFUSED = (10.5, 2.0**63, -(2.0**63) - 2048, float("nan"), float("inf"), 0.1)
SUBSCRIPTIONS = {
    "five": "n = 5",
    "above": "n > 3",
    "zero": "n = 0",
    "least": "n = -9223372036854775808",
    "there": "n IS NOT NULL",
}


@pytest.fixture(scope="module")
def index():
    return tamis.build(SUBSCRIPTIONS, schema="n BIGINT")


def expected(values):
    """What each value matches, if it is whole."""
    found = []
    for value in values:
        is_whole = np.isfinite(value) and value == int(value) and -(2**63) <= value < 2**63
        names = {"there"} if is_whole else set()
        names |= {"five"} if is_whole and value == 5 else set()
        names |= {"above"} if is_whole and value > 3 else set()
        names |= {"zero"} if is_whole and value == 0 else set()
        found.append(names | ({"least"} if is_whole and value == -(2**63) else set()))
    return found


def assert_matches(index, events, values, **how):
    encoded = index.encode(events, **how)
    assert list(map(set, index.match_lists(encoded).to_pylist())) == expected(values)
    n_refused = sum(names == set() for names in expected(values))
    assert encoded.rejects.counts == ({("n", RejectKind.BAD_VALUE): n_refused} if n_refused else {})


VALUES = [*FITTING, *REFUSED]


def test_mappings(index):
    assert_matches(index, [{"n": value} for value in VALUES], VALUES)
    floats = [float(value) for value in VALUES]
    assert_matches(index, [{"n": value} for value in floats], VALUES)
    for value, names in zip(VALUES, expected(VALUES), strict=True):
        assert set(index.match({"n": value})) == names


def test_exact_numbers(index):
    exact = [Decimal("5.00"), Decimal("5.5"), Decimal(5), Decimal(2) ** 63, Decimal("NaN")]
    values = [5, 5.5, 5, 2.0**63, float("nan")]
    assert_matches(index, [{"n": value} for value in exact], values)


@pytest.mark.parametrize("arrow_type", [pa.float64(), pa.float32()], ids=str)
def test_floating_columns(index, arrow_type):
    table = pa.table({"n": pa.array(map(float, VALUES), arrow_type)})
    assert_matches(index, table, table.column("n").to_pylist())


def test_decimal_columns(index):
    table = pa.table({"n": pa.array([Decimal("5.0"), Decimal("5.5")], pa.decimal128(10, 1))})
    assert_matches(index, table, [5, 5.5])


def test_pandas_column_with_a_missing_value(index):
    frame = pd.DataFrame({"n": [5, None, 3]})
    assert frame["n"].dtype == np.float64
    found = index.match_lists(pa.Table.from_pandas(frame)).to_pylist()
    assert list(map(set, found)) == [{"five", "above", "there"}, set(), {"there"}]


def test_json(index):
    texts = ["5.0", "5", "5e0", "5.5", "9223372036854775807.0", "9223372036854775808.0", "0.1e1"]
    values = [5, 5, 5, 5.5, 4.0, 2.0**63, 1]
    assert_matches(index, [f'{{"n": {text}}}' for text in texts], values)


def test_all_digits_of_json_count():
    index = tamis.build({"odd": "n = 9007199254740993"}, schema="n BIGINT")
    assert index.match_lists(['{"n": 9007199254740993.0}']).to_pylist() == [["odd"]]
    assert index.match_lists(['{"n": 9007199254740992.0}']).to_pylist() == [[]]


def test_csv(index):
    (encoded,) = encode_batches(index.view.encoder, b"n\n5.0\n5\n+5.\n5.5\n", file_format="csv")
    found = [set(names) for names in index.match_lists(encoded).to_pylist()]
    assert found == expected([5, 5, 5, 5.5])
    assert encoded.rejects.counts == {("n", RejectKind.BAD_VALUE): 1}


def test_elements_of_arrays():
    index = tamis.build({"four": "array_contains(levels, 4)"}, schema="levels ARRAY<INT>")
    events = [{"levels": [4.0, 1]}, {"levels": [4.5, 4]}, {"levels": (4,)}]
    encoded = index.encode(events)
    assert index.match_lists(encoded).to_pylist() == [["four"], [], ["four"]]
    assert len(encoded.rejects) == 1
    table = pa.table({"levels": pa.array([[4.0], [4.5]])})
    assert index.match_lists(table).to_pylist() == [["four"], []]


def test_strict_names_the_value(index):
    with pytest.raises(tamis.InputError, match=r"attribute n: 10\.5 is not of type integer"):
        index.encode([{"n": 10.5}], strict=True)
