"""A schema where none was declared: every use is a vote, and the minority gets the error."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tamis
from tamis.errors import ExpressionError
from tamis.index.build import collect_votes
from tamis.language import (
    Schema,
    check,
    infer_schema,
    infer_schema_from_events,
    parse,
    parse_many,
)
from tamis.language.array_keys import ARRAY_KEY
from tamis.language.ast import Derived, ElementTest, attributes
from tamis.language.ast import tested_attributes as attributes_of
from tamis.language.infer import is_only_text
from tests.generators import (
    random_condition,
    random_event,
    random_schema,
    random_untyped_condition,
)


def inferred(*texts):
    return infer_schema(map(parse, texts)).to_ddl()


@pytest.mark.parametrize(
    ("texts", "ddl"),
    [
        (["a = 1"], "a number"),
        (["a = 1.5"], "a number"),
        (["a = 1", "a < 1.5"], "a number"),
        (["a = 1e3"], "a number"),
        (["a = 'x'"], "a string"),
        (["1 < a"], "a number"),
        (["a IN (1, 2.5)"], "a number"),
        (["a BETWEEN 1 AND 2"], "a number"),
        (["1 BETWEEN a AND b"], "a number, b number"),
        (["a"], "a boolean"),
        (["NOT a AND b = TRUE"], "a boolean, b boolean"),
        (["a LIKE 'x'"], "a string"),
        (["a RLIKE 'x' OR startswith(b, 'x')"], "a string, b string"),
        (["array_contains(a, 1)"], "a array<number>"),
        (["arrays_overlap(a, array(1, 2.5))"], "a array<number>"),
        (["arrays_overlap(a, array('x'))"], "a array<string>"),
        (["a IS NULL"], "a any"),
        (["a IS NULL", "a = 1"], "a number"),
        (["a >= DATE '2024-01-15'"], "a date"),
        (["a >= DATE '2024-01-15'", "a < '2024-02-01'"], "a date"),
        (["a < '2024-02-01'", "a > '2024-01-01'", "a = DATE '2024-01-15'"], "a date"),
        (["a >= DATE '2024-01-15'", "a < TIMESTAMP '2024-02-01'"], "a timestamp"),
        (["a = '2024-01-15'"], "a string"),
        (["a.b = 1 AND `a.b` = 'x'"], "a.b number, `a.b` string"),
        # Attributes compared with each other take the other's type.
        (["a = b", "b = 1"], "a number, b number"),
        (["a = b", "a IS NULL", "b = 1"], "a number, b number"),
        (["a = b AND b = c AND c < 1.5"], "c number, a number, b number"),
        (["a BETWEEN b AND c", "a = 'x'"], "a string, b string, c string"),
        (["a = b"], "a any, b any"),
        # A string constant that may spell an address votes for neither.
        (["in_network(a, '10.0.0.0/8')", "a = '10.0.0.1'", "a = '::1'"], "a ip"),
        (["in_network(a, '10.0.0.0/8')", "a = 'host1'"], "a ip"),
        (["in_network(a, '10.0.0.0/8')", "a IN ('host1', 'face')"], "a string"),
        (["startswith(a, '10.1')", "in_network(a, '10.0.0.0/8')", "a LIKE '1%'"], "a string"),
        (["a = DATE '2024-01-15'", "a > 'monday'", "matches(a, '2024')"], "a string"),
        (["a = b", "in_network(b, '::/0')", "b LIKE '1%'", "b LIKE '2%'"], "a string, b string"),
        # The majority wins; a tie goes to the one seen first.
        (["a = 1", "a = 2", "a = 'x'"], "a number"),
        (["a = 'x'", "a = 1", "a = 2"], "a number"),
        (["a = 'x'", "a = 1"], "a string"),
        (["a", "a = 1", "a = 1.5"], "a number"),
        (["a.b = 1", "a.b = 2", "a = 3"], "a.b number"),
        (["a.b = 1", "a = 3"], "a number"),
        # What has no meaning yet is declared all the same.
        (["matches(a, 'x')"], "a string"),
        (["loc_in(a, 5)"], "a any"),
        (["a + b > 5"], "a number, b number"),
        (["abs(a) = b"], "a number, b number"),
        (["cast(a AS INT) > 5 AND cast(b AS DATE) = c"], "a string, b timestamp, c date"),
        (["coalesce(a, 'x') LIKE 'b'"], "a string"),
        (["coalesce(a, 0) = b"], "a number, b number"),
        (["coalesce(a, b) = 'x'"], "a string, b string"),
        (["coalesce(a, b) IS NULL AND a = 5"], "a number, b number"),
        (
            ["date_trunc('day', a) = b AND date_diff(c, DATE '2024-01-01') > 0"],
            "a timestamp, b timestamp, c timestamp",
        ),
        ([], ""),
    ],
    ids=str,
)
def test_from_expressions(texts, ddl):
    assert Schema.of(inferred(*texts)) == Schema.of(ddl)


def test_comparing_attributes_of_unknown_type_says_how_to_declare_them():
    condition = parse("price > budget")
    with pytest.raises(ExpressionError) as caught:
        check(condition, infer_schema([condition]))
    assert caught.value.message == "the type of price is not known"
    assert "declare it in a schema" in caught.value.hint


def test_the_minority_row_gets_the_error():
    rows = [(f"s{n}", f"level >= {n}") for n in range(50)]
    rows.insert(7, ("odd", "level = 'high' AND a = 1"))
    parsed = parse_many(rows)
    refused = [row for row in parsed if row.error]
    assert [row.subscription_id for row in refused] == ["odd"]
    assert refused[0].error.code == "type-mismatch"
    assert refused[0].error.subscription_id == "odd"
    assert str(refused[0].error).startswith('subscription "odd", 1:9: level is a number')


def find_error(condition, schema) -> ExpressionError | None:
    try:
        check(condition, schema)
    except ExpressionError as error:
        return error
    return None


def check_code(condition, schema) -> str | None:
    error = find_error(condition, schema)
    return error and error.code


@given(st.integers(0, 2**32))
def test_no_expression_breaks_inference(seed):
    rng = Random(seed)
    conditions = [random_untyped_condition(rng, 2) for _ in range(8)]
    schema = infer_schema(conditions)
    codes = {check_code(condition, schema) for condition in conditions}
    later = {"unknown-function", "unknown-definition", "unbound-variable"}
    assert (
        codes
        <= {None, "type-mismatch", "unknown-attribute", "bad-pattern", "no-words", "bad-count"}
        | later
    )


@given(st.integers(0, 2**32))
def test_one_leaf_speaks_for_its_own_type(seed):
    """Only a comparison of two attributes, IN with numbers too long for any type, a cast that
    several types have, a test that there is an element, or the key of an array says none. Texts
    have no keys: there, an array is compared with constants, which say the type.
    """
    rng = Random(seed)
    condition = random_condition(rng, random_schema(rng, 1), depth=0)
    tested = condition.test.body if isinstance(condition, ElementTest) else condition
    mentioned = len(list(attributes(tested)))
    error = find_error(condition, infer_schema([condition]))
    is_cast = error is not None and "has no known type" in error.message
    are_elements = any(map(_is_element, attributes_of(tested)))
    assert error is None or mentioned > 1 or is_cast or are_elements


def _is_element(value):
    if not isinstance(value, Derived):
        return False
    return value.function in ("element_at", ARRAY_KEY) or any(map(_is_element, value.arguments))


def test_a_cast_of_what_may_have_any_type():
    condition = parse("cast(a AS STRING) = '2'")
    error = find_error(condition, infer_schema([condition]))
    assert error is not None
    assert "what is cast to string has no known type" in error.message
    assert error.hint == "declare its type in a schema"


# ── from events ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("values", "type_name"),
    [
        ([True, False], "boolean"),
        ([1, 2], "integer"),
        ([1, 2.5], "double"),
        ([2**63], "double"),
        ([math.nan], "double"),
        (["x"], "string"),
        (["x", 1, 2], "integer"),
        ([None, 1], "integer"),
        ([None], "any"),
        ([Decimal("1.50"), Decimal("22")], "decimal(3,1)"),
        ([Decimal("0.05"), 1], "decimal(22,2)"),
        ([Decimal("NaN")], "any"),
        ([Decimal("1" * 38)], "decimal(38,0)"),
        ([Decimal("1" * 30 + "." + "1" * 8)], "decimal(38,8)"),
        ([Decimal("1" * 39)], "double"),
        ([Decimal(1).scaleb(-30), Decimal(10) ** 20], "double"),
        ([date(2024, 1, 15)], "date"),
        ([datetime(2024, 1, 15, tzinfo=UTC)], "timestamp"),
        ([date(2024, 1, 15), datetime(2024, 1, 15, tzinfo=UTC)], "timestamp"),
        ([["x"], [], [None]], "array<string>"),
        ([[1, 2.5]], "array<double>"),
        ([(1, 2)], "array<integer>"),
        ([[[1]], [{}]], "any"),
        ([b"x"], "any"),
        ([np.int32(5), np.float32(0.5)], "double"),
        ([np.bool_(True)], "boolean"),
        ([np.array([1, 2])], "array<integer>"),
        ([np.str_("x")], "string"),
    ],
    ids=repr,
)
def test_from_values(values, type_name):
    schema = infer_schema_from_events({"x": value} for value in values)
    assert schema == Schema.of({"x": type_name})


def test_from_nested_events():
    events = [{"geo": {"lat": 1.5}}, {"geo": {"lat": 2, "by": {"id": 5}}, "a.b": "x"}, {}]
    schema = infer_schema_from_events(events)
    assert schema == Schema.of("geo.lat DOUBLE, geo.by.id BIGINT, `a.b` STRING")


def test_a_value_and_a_struct_of_one_name():
    events = [{"a": 1}, {"a": {"b": 2}}, {"a": {"b": 3}}]
    assert infer_schema_from_events(events) == Schema.of("a.b BIGINT")


def test_deep_events_do_no_harm():
    event, nested_list = {}, []
    for _ in range(3000):
        event, nested_list = {"a": event, "list": nested_list, "x": 1}, [nested_list]
    schema = infer_schema_from_events([event])
    assert schema["x"] == Schema.of("x BIGINT")["x"]


@given(st.integers(0, 2**32))
def test_no_event_breaks_inference(seed):
    rng = Random(seed)
    schema = random_schema(rng)
    events = [random_event(rng, schema, wrong_types=True) for _ in range(5)]
    assert len(infer_schema_from_events(events)) >= 0


@pytest.mark.parametrize(
    "text",
    ["", "host1", "face", "10.0.0.1", "::1", "fe80::1", "2024-01-31 10:00Z", "10 apples", "é", ":é",
     "10.0.0.0/8", "ab:cd", "1é", "-1", "12"],
)  # fmt: skip
def test_both_readers_count_the_same_strings_as_only_strings(text):
    contested = [f"a = '{text}'", f"a = '{text}'", "in_network(a, '10.0.0.0/8')"]
    expected = infer_schema(map(parse, contested))
    assert collect_votes(contested).elect() == expected
    assert str(expected[("a",)]) == ("string" if is_only_text(text) else "ip")


def test_one_network_does_not_reject_other_uses():
    rules = {f"e{n}": f"startswith(ip, '10.{n}')" for n in range(50)}
    with pytest.warns(UserWarning, match="1 subscription was rejected"):
        index = tamis.build(rules | {"n": "in_network(ip, '10.0.0.0/8')"})
    (reject,) = index.rejects
    assert reject.subscription_id == "n"
    assert reject.hint == (
        "declare it as one: ip IP; the type of ip is inferred as string: 50 subscriptions agree "
        'with it, such as "e0"'
    )


def test_a_rejected_constant_names_a_subscription_that_decided():
    with pytest.warns(UserWarning, match="1 subscription was rejected"):
        index = tamis.build({"n": "in_network(ip, '::/0')", "s": "x = 1 AND ip = 'host1'"})
    (reject,) = index.rejects
    assert 'inferred as ip: 1 subscription agrees with it, such as "n"' in reject.hint
