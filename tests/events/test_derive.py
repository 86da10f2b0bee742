"""Derived values: many at once as one by one, and what an index says about their arguments."""

from __future__ import annotations

from datetime import UTC
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import IndexFormatError, SchemaError
from tamis.events.encoder import EventEncoder
from tamis.index.carriers import LARGE_STRING, to_carrier
from tamis.language import Schema
from tamis.language.derived import read_derived
from tamis.language.types import DATE, STRING, TIMESTAMP
from tamis.language.value_functions import FUNCTIONS

VALUES = {
    STRING: st.text(st.sampled_from(" aBß\tÉİΣσςǅŉ日😀"), max_size=6),
    TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    DATE: st.dates(),
}
BULK = [
    (name, overload)
    for name, function in FUNCTIONS.items()
    for overload in function.overloads
    if overload.compute_many is not None
]


@pytest.mark.parametrize(("name", "overload"), BULK, ids=lambda own: str(own)[:30])
@given(data=st.data())
def test_many_values_at_once_as_one_by_one(name, overload, data):
    rows = data.draw(st.lists(st.tuples(*(VALUES[type_] for type_ in overload.parameters))))
    columns = [[row[at] for row in rows] for at in range(len(overload.parameters))]
    carried = [
        to_carrier(own, type_) for own, type_ in zip(columns, overload.parameters, strict=True)
    ]
    found = overload.compute_many(*carried)
    assert found.tolist() == [overload.compute(*row) for row in rows]
    assert found.type == LARGE_STRING if overload.result == STRING else found.dtype == "int64"


def test_a_derived_value_is_one_column_for_all_its_tests():
    index = tamis.build(
        {
            "a": "lower(name) = 'x'",
            "b": "LOWER(name) IN ('y', 'z')",
            "c": "lower( name ) > 'k' AND lcase(`name`) < 'm'",
        }
    )
    (contents,) = index.parts
    assert [column.attributes[0].path for column in contents.columns] == [("\0lower(name)",)]
    table = EventEncoder(contents).table
    assert table.paths == (("name",), ("\0lower(name)",))
    assert list(table.by_path) == [("name",)]


def test_an_event_cannot_give_a_derived_value():
    index = tamis.build({"a": "lower(name) = 'x'"})
    assert index.match({"\0lower(name)": "x", "lower(name)": "x"}) == []
    found = index.match_batch([{"\0lower(name)": "x"}, {"name": "X"}])
    assert found["event_row"].to_pylist() == [1]


def test_an_unseen_argument_is_named():
    index = tamis.build({"a": "lower(name) = 'x' OR b = 1"})
    with pytest.warns(UserWarning, match="name") as warned:
        index.match_batch([{"b": 1, "nam": "x"}] * 200)
    assert not any("lower" in str(one.message) for one in warned)


def test_a_value_of_the_wrong_type_is_reported_for_the_argument():
    index = tamis.build({"a": "lower(name) = 'x'"}, "name STRING")
    (reject,) = index.encode([{"name": 5}, {"name": "X"}]).rejects
    assert reject.attribute == "name"


@pytest.mark.parametrize("text", ["name", "lower(", "lower(nam)", "lower(name) = 'x' OR a"])
def test_a_stored_text_that_is_no_derived_value(text):
    with pytest.raises(IndexFormatError, match="the index has a column of"):
        read_derived(text, Schema.of("name STRING, a BOOLEAN"))


@pytest.mark.parametrize("name", ["lower", "Len", "ucase"])
def test_an_operator_cannot_have_the_name_of_a_function(name):
    with pytest.raises(SchemaError):
        Schema.of(f"{name}(STRING) OPERATOR")


def test_a_saved_index_derives_the_same(tmp_path):
    rng = Random(5)
    one = tamis.build({f"a{n}": f"length(s) = {n}" for n in range(5)}, "s STRING")
    one.save(tmp_path / "one")
    opened = tamis.open(tmp_path / "one")
    events = [{"s": "x" * rng.randrange(6)} for _ in range(20)]
    found = opened.match_batch(events).to_pydict()
    wanted = [(row, f"a{len(event['s'])}") for row, event in enumerate(events)]
    wanted = [(row, name) for row, name in wanted if name != "a5"]
    assert list(zip(found["event_row"], found["subscription_id"], strict=True)) == wanted
