"""Whatever the arguments of a function are, an expression is refused with an error or has a value.

An expression that passes the check must not fail on any event, and one that does not pass must not
end the build of others.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import product

import pytest

import tamis
from tamis.language import Schema, check, parse
from tamis.language.ast import Condition
from tamis.language.types.addresses import parse_address
from tamis.language.value_functions import FUNCTIONS, takes
from tamis.logic.evaluate import evaluate

CONSTANTS = [
    *("0", "1", "-1", "2", "38", "39", "9999999999", "1.5", "1D", "1e400", "TRUE", "NULL"),
    *("''", "'1'", "'a'", "'YEAR'", "'a+'", "'('", "'INT'", "array(1)", "x"),
    *("DATE'2020-01-01'", "TIMESTAMP'2020-01-01 00:00:00'", "ip'1.1.1.1'"),
]
VALUES = {
    "INT": [0, -1, 2**63 - 1],
    "NUMBER": [1.25, 2.5, -0.0, 7],
    "DOUBLE": [1.25, float("nan"), float("inf")],
    "DECIMAL(5, 2)": [Decimal("1.25"), Decimal("999.99")],
    "STRING": ["", "a", "1.5", "x,y"],
    "TIMESTAMP": [datetime(2020, 2, 29, 23, 59, 59, tzinfo=UTC)],
    "DATE": [date(2020, 2, 29)],
    "ARRAY<STRING>": [(), ("a", None)],
    "BOOLEAN": [True],
    "IP": [parse_address("10.0.0.1")],
}
SCHEMAS = {type_: Schema.of(f"v {type_}, x {type_}") for type_ in VALUES}
NAMES = sorted(name for name in FUNCTIONS if name.isidentifier())


def list_calls(name: str) -> list[str]:
    """Calls of a function with as many arguments as it takes, one of them the attribute v."""
    if name == "cast":
        return [f"cast({own} AS {type_})" for own in ["v", *CONSTANTS] for type_ in VALUES]
    calls = [f"{name}(v)"]
    if takes(name, 2):
        calls += [
            f"{name}({left}, {right})"
            for own in CONSTANTS
            for left, right in (("v", own), (own, "v"))
        ]
    if takes(name, 3):
        calls += [f"{name}(v, {one}, {two})" for one, two in product(CONSTANTS, repeat=2)]
    return calls


def check_all(text: str) -> Iterator[tuple[str, Condition]]:
    """The condition for each type of its attributes that it allows."""
    try:
        parsed = parse(text)
    except tamis.TamisError:
        return
    for type_, schema in SCHEMAS.items():
        with suppress(tamis.TamisError):
            yield type_, check(parsed, schema)


@pytest.mark.parametrize("name", NAMES)
def test_an_expression_is_refused_or_has_a_value(name):
    n_values = 0
    for call in list_calls(name):
        for text in (f"{call} > 1", f"{call} = 'a'", f"{call} = v"):
            for type_, condition in check_all(text):
                for value in VALUES[type_]:
                    assert evaluate(condition, {"v": value, "x": value}) in (True, False, None)
                    n_values += 1
    assert n_values


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("round(x, 1.5) = 1", "1.5 is a decimal(2,1); round() takes an integer there"),
        ("round(x, '1') = 1", "'1' is a string; round() takes an integer there"),
        ("round(x, 1D) = 1", "1.0D is a double; round() takes an integer there"),
        ("date_trunc(5, s) = s", "5 is an integer; date_trunc() takes a string there"),
        (
            "element_at(tags, 1.5) = 'a'",
            "1.5 is a decimal(2,1); element_at() takes an integer there",
        ),
        ("split_part(s, 1, 1) = 'a'", "1 is an integer; split_part() takes a string there"),
    ],
)
def test_a_constant_of_a_wrong_type(text, message):
    with pytest.raises(tamis.TamisError) as caught:
        tamis.parse(text)
    assert str(caught.value).partition("\n")[0].endswith(message)


def test_a_wrong_constant_fails_no_other_subscription():
    index = tamis.build(
        {"good": "x > 1", "bad": "round(x, '1') > 1", "unit": "date_trunc(5, s) = s"}
    )
    assert index.match({"x": 1.25}) == ["good"]
    assert sorted(own.subscription_id for own in index.rejects) == ["bad", "unit"]
    assert "subscription" not in index.rejects[0].hint  # those who use x are not the reason


def test_a_function_of_the_elements_of_an_array():
    with pytest.raises(tamis.TamisError) as caught:
        tamis.parse("lower(tags) = 'a'", "tags ARRAY<STRING>")
    assert "write exists(tags, e -> lower(e) = …)" in str(caught.value)
    assert tamis.evaluate("exists(tags, e -> lower(e) = 'a')", {"tags": ["A"]})
