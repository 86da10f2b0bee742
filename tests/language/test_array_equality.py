"""Arrays compared as a whole: their keys, what is refused, and the texts of the trees."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product

import pytest

import tamis
from tamis.errors import TamisError
from tamis.language import Schema, check, parse, print_expression
from tamis.language.array_keys import elements_of, key_of
from tamis.language.types import BOOLEAN, DATE, DOUBLE, INTEGER, STRING, TIMESTAMP, decimal_type
from tamis.logic.comparing import compare

SCHEMA = Schema.of(
    "tags ARRAY<STRING>, other ARRAY<STRING>, ns ARRAY<BIGINT>, xs ARRAY<DOUBLE>, "
    "ms ARRAY<DECIMAL(5,2)>, any_ns ARRAY<NUMBER>, items ARRAY<STRUCT<a: INT>>, s STRING"
)
VALUES = {
    STRING: ("", "a", ",", '"', "]", "null", "é", "\n"),
    INTEGER: (0, 1, -1, 10, 2**63 - 1),
    DOUBLE: (0.0, 0.1, -1e300, 5e-324, float("inf"), float("nan"), 1.0),
    BOOLEAN: (True, False),
    decimal_type(38, 3): (Decimal(0), Decimal("1.5"), Decimal("1.50"), Decimal("9" * 35 + ".123")),
    DATE: (date(1, 1, 1), date(2024, 1, 31)),
    TIMESTAMP: (
        datetime(2024, 1, 31, tzinfo=UTC),
        datetime(2024, 1, 31, 1, 2, 3, 4, tzinfo=UTC),
    ),
}


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_keys_are_equal_where_the_elements_are(type_):
    members = (None, *VALUES[type_])
    arrays = [(), *product(members), *product(members, repeat=2)]
    for one, other in product(arrays, repeat=2):
        are_equal = len(one) == len(other) and all(
            left is right if left is None or right is None else compare(left, right, type_) == 0
            for left, right in zip(one, other, strict=True)
        )
        assert (key_of(one) == key_of(other)) == are_equal, (one, other)


@pytest.mark.parametrize("type_", VALUES, ids=str)
def test_elements_of_a_key(type_):
    for value in VALUES[type_]:
        (found, missing) = elements_of(key_of((value, None)), type_)
        assert missing is None
        assert compare(found.value, value, type_) == 0


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("tags = array( 'a',null )", "tags = array('a', NULL)"),
        ("array() <> tags", "array() <> tags"),
        ("tags <=> other", "tags <=> other"),
        ("tags NOT IN (array('a'), ARRAY())", "tags NOT IN (array('a'), array())"),
        ("ns = array(1, -2)", "ns = array(1, -2)"),
        ("ms = array(1.5)", "ms = array(1.5)"),
    ],
)
def test_printed_text_is_read_back(text, canonical):
    typed = check(parse(text), SCHEMA)
    assert print_expression(typed) == canonical
    assert check(parse(canonical), SCHEMA) == typed
    assert check(parse(print_expression(parse(text))), SCHEMA) == typed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tags < other", "arrays have no order"),
        ("tags >= array('a')", "arrays have no order"),
        ("tags = array(1)", "1 is not of the type of the elements of tags, string"),
        ("ns = array(1.5)", "1.5 is not of the type of the elements of ns"),
        ("ms = array(1.234)", "1.234 is not of the type of the elements of ms"),
        ("ns = xs", "ns is an array<integer> and xs an array<double>: they cannot be compared"),
        ("any_ns = array(1)", "such arrays are not compared"),
        ("items = items", "such arrays are not compared"),
        ("s = array('a')", "an array is compared with an array"),
        ("array('a') = array('a')", "one side of a comparison of arrays must be an attribute"),
        ("tags IN (array('a'), 'b')", "compared with a string"),
        ("array_contains(tags, array('a'))", "an array is compared with an array"),
        ("tags = array(other)", "expected a constant in the array"),
        ("tags = array('a',)", "found ')'"),
    ],
)
def test_what_is_refused(text, message):
    with pytest.raises(TamisError) as caught:
        check(parse(text), SCHEMA)
    assert message in caught.value.message


def test_types_are_inferred():
    index = tamis.build({"1": "a = array('x', NULL)", "2": "a = b", "3": "c = array(TRUE)"})
    assert index.rejects == []
    assert index.match({"a": ["x", None], "b": ["x", None], "c": [True]}) == ["1", "2", "3"]


def test_a_saved_index_is_checked_and_explains(tmp_path):
    index = tamis.build({"1": "tags = array('a')", "2": "tags <=> other"}, SCHEMA)
    index.save(tmp_path / "index")
    opened = tamis.open(tmp_path / "index", trusted=False)
    assert opened.match({"tags": ["a"]}) == ["1"]
    assert opened.match('{"tags": ["b"], "other": ["b"]}') == ["2"]
    shown = str(opened.explain("1", {"tags": ["b", None]}))
    assert "tags = array('a')" in shown
    assert "('b', None)" in shown
    assert "key" not in shown
