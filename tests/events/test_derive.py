"""Derived values: many at once as one by one, and what an index says about their arguments."""

from __future__ import annotations

import itertools
from datetime import UTC
from decimal import Decimal
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import IndexFormatError, InputError, SchemaError, TypeCheckError
from tamis.events.encoder import EventEncoder
from tamis.events.rejects import RejectKind, Rejects
from tamis.index.carriers import LARGE_STRING, to_carrier
from tamis.language import Schema, check, parse
from tamis.language.derived import read_derived
from tamis.language.moment_functions import UNITS
from tamis.language.overloads import Partial
from tamis.language.types import (
    DATE,
    DOUBLE,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    NUMBER,
    STRING,
    TIMESTAMP,
)
from tamis.language.value_functions import FUNCTIONS, find_overload
from tamis.logic.evaluate import evaluate
from tamis.match.elements import ElementMatcher

VALUES = {
    STRING: st.text(st.sampled_from(" aBß\tÉİΣσςǅŉ日😀"), max_size=6),
    TIMESTAMP: st.datetimes(timezones=st.just(UTC)),
    DATE: st.dates(),
    INTEGER: st.one_of(
        st.integers(-10, 10),
        st.integers(INT64_MIN, INT64_MAX),
        st.sampled_from((INT64_MIN, INT64_MAX, 2**31, -(2**31), 2**62)),
    ),
    DOUBLE: st.one_of(
        st.floats().map(lambda own: own + 0.0), st.integers(-9, 9).map(lambda n: n / 2)
    ),
}
CONSTANTS = {"date_trunc": st.sampled_from(sorted(UNITS)), "round": st.integers(0, 4)}


def bulk_overloads():
    for name, function in FUNCTIONS.items():
        for overload in function.overloads:
            own = overload
            for type_ in (INTEGER, DOUBLE):
                if function.resolve is not None and NUMBER in overload.parameters:
                    types = tuple(type_ if own == NUMBER else own for own in overload.parameters)
                    own = find_overload(name, types, (None,) * len(types))
                    yield name, own
            if function.resolve is None and own.compute_many is not None:
                yield name, own


BULK = list(bulk_overloads())


@pytest.mark.parametrize(("name", "overload"), BULK, ids=lambda own: str(own)[:30])
@given(data=st.data())
def test_many_values_at_once_as_one_by_one(name, overload, data):
    fixed = [at for at in FUNCTIONS[name].constants if at < len(overload.parameters)]
    constant = data.draw(CONSTANTS[name]) if fixed else None
    drawn = [
        st.just(constant) if at in fixed else VALUES[type_]
        for at, type_ in enumerate(overload.parameters)
    ]
    rows = data.draw(st.lists(st.tuples(*drawn), min_size=1))
    carried = [
        constant if at in fixed else to_carrier([row[at] for row in rows], type_)
        for at, type_ in enumerate(overload.parameters)
    ]
    found = overload.compute_many(*carried)
    is_good = [True] * len(rows)
    if isinstance(found, Partial):
        found, is_good = found.values, found.is_good.tolist()
    results = [overload.compute(*row) for row in rows]
    assert is_good == [own is not None for own in results]
    good = [
        (one, other)
        for one, other in zip(found.tolist(), results, strict=True)
        if other is not None
    ]
    wanted = to_carrier([other for _, other in good], overload.result).tolist()
    assert list(map(repr, (one for one, _ in good))) == list(map(repr, wanted))
    if overload.result == STRING:
        assert found.type == LARGE_STRING
    else:
        assert found.dtype == ("float64" if overload.result == DOUBLE else "int64")


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
    table = EventEncoder(contents, match_elements=ElementMatcher).table
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


# ── numbers of several kinds, decimals, and functions without a result ──────────────────────

KINDS_OF_NUMBERS = (
    *(0, 1, -3, 7, 2**62, INT64_MAX, INT64_MIN, 2**70, 10**30, 10**400, 0.5, 0.0, -2.5, 1e308),
    *(float("nan"), float("inf"), Decimal("0.1"), Decimal("-12.345"), Decimal("1e-30"), None),
)
NUMBER_TEXTS = (
    *("a + b", "a - b", "a * b", "a / b", "a % b", "abs(a)", "-a", "round(a)", "round(a, 2)"),
    *("floor(a)", "ceil(a)", "a * 2.5", "2 - a", "a % 3", "coalesce(a, b)", "coalesce(a + b, 0)"),
    *("cast(a AS DOUBLE)", "abs(a - b) * 2 + coalesce(a, 1)"),
)


@pytest.mark.parametrize("text", NUMBER_TEXTS)
@pytest.mark.parametrize("types", ["NUMBER", "DECIMAL(20,6)", "BIGINT", "DOUBLE"])
@pytest.mark.filterwarnings("ignore::tamis.RejectWarning")
def test_numbers_of_all_kinds_in_a_batch_as_one_by_one(text, types):
    schema = Schema.of(f"a {types}, b {types}")
    try:
        check(parse(f"{text} IS NULL"), schema)
    except TypeCheckError:
        assert types.startswith("DECIMAL")
        assert "a / b" in text or "a * b" in text
        return
    constants = ("-3", "0", "0.5", "1", "7", "9223372036854775808BD", "1e300")
    texts = [f"{text} {test}" for test in ("IS NULL", "> 0", "<= 1", "= 0")]
    texts += [f"{text} = {own}" for own in constants[1:] if types == "NUMBER" or own in "071"]
    texts = list(dict.fromkeys(texts))
    index = tamis.build({own: own for own in texts}, schema)
    pairs = itertools.product(KINDS_OF_NUMBERS, repeat=2)
    events = [{"a": a, "b": b} for a, b in pairs]
    found = index.match_lists(events).to_pylist()
    typed = {own: check(parse(own), schema) for own in texts}
    for event, own in zip(events, found, strict=True):
        wanted = [text for text in texts if evaluate(typed[text], event)]
        assert sorted(own) == sorted(wanted), event
        assert sorted(index.match(event)) == sorted(wanted), event


def test_functions_without_a_result_are_counted():
    index = tamis.build(
        {"a": "(n / m) + 1 > 0", "b": "n / m = 5", "c": "n * n = 1", "d": "cast(s AS INT) = 1"},
        "n BIGINT, m BIGINT, s STRING",
    )
    events = [{"n": 1, "m": 0, "s": "x"}, {"n": 2**62, "m": 1}, {"n": 1, "m": 2, "s": "1"}]
    rejects = index.encode(events).rejects
    kind = RejectKind.NO_RESULT
    assert rejects.counts == {
        ("n / m", kind): 1,
        ("n * n", kind): 1,
        ("cast(s AS integer)", kind): 1,
    }
    assert sorted(map(str, rejects)) == [
        "row 0: division by zero: n / m for 1, 0",
        "row 0: not a value of the type: cast(s AS integer) for 'x', 'integer'",
        f"row 1: overflow: n * n for {2**62}, {2**62}",
    ]
    one_by_one = Rejects()
    for event in events:
        EventEncoder(*index.parts, match_elements=ElementMatcher).encode_event(event, one_by_one)
    assert one_by_one.counts == rejects.counts
    with pytest.raises(InputError, match="division by zero"):
        EventEncoder(*index.parts, match_elements=ElementMatcher).encode(events, strict=True)


def test_a_row_without_an_event_has_no_coalesced_value():
    index = tamis.build({"a": "coalesce(n, 0) = 0"})
    with pytest.warns(tamis.RejectWarning):
        found = index.match_batch(['{"n": 0}', "no event", "{}", '{"n": 1}'])
    assert found["event_row"].to_pylist() == [0, 2]


def test_a_single_event_warns_once_about_a_function_without_a_result():
    index = tamis.build({"a": "n / m > 1"})
    with pytest.warns(tamis.RejectWarning, match="n / m has no result"):
        index.match({"n": 1, "m": 0})
    assert index.match({"n": 2, "m": 0}) == []


def test_explain_says_why_there_is_no_result():
    index = tamis.build({"a": "n / m > 1"})
    assert "division by zero: n / m for 1, 0" in str(index.explain("a", {"n": 1, "m": 0}))
