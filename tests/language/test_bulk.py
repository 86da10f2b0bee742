"""Many expressions at once: a value or an error for each, never an exception for one."""

from __future__ import annotations

import gc
import os
from random import Random

import pytest

from tamis.errors import TamisError
from tamis.language import Limits, Schema, check, parse, parse_many, print_expression
from tamis.language.bulk import CHUNK
from tamis.language.processes import map_chunks
from tests.generators import random_condition, random_schema

SCHEMA = Schema.of("a BIGINT, s STRING, b BOOLEAN")


def test_values_and_errors_in_order():
    rows = [
        ("1", "a = 1"),
        ("2", "a = = 1"),
        ("3", "s = 5"),
        ("4", None),
        ("5", 5),
        ("6", b"a = 1"),
        ("7", ""),
        ("8", "zzz = 1"),
        ("9", "b"),
    ]
    parsed = parse_many(rows, SCHEMA)
    assert [(row.subscription_id, row.text) for row in parsed] == rows
    codes = [row.error and row.error.code for row in parsed]
    wrong = ["unexpected-token", "type-mismatch", "not-text", "not-text", "not-text", "empty"]
    assert codes == [None, *wrong, "unknown-attribute", None]
    assert all((row.condition is None) is (row.error is not None) for row in parsed)
    assert all(row.error.subscription_id == row.subscription_id for row in parsed if row.error)
    assert parsed[0].condition == check(parse("a = 1"), SCHEMA)


def test_schema_is_inferred_from_all_rows():
    parsed = parse_many([("1", "a = b"), ("2", "a = = 1"), ("3", "b < 1.5")])
    assert [row.error is None for row in parsed] == [True, False, True]
    assert str(parsed[0].condition.left.type) == "number"


def test_limits_hold_for_each_row():
    parsed = parse_many([("1", "a = 1"), ("2", "a = 1 AND a = 2")], SCHEMA, Limits(predicates=1))
    assert [row.error and row.error.code for row in parsed] == [None, "too-many-predicates"]


def test_no_rows():
    assert parse_many([]) == []
    assert parse_many(iter([]), SCHEMA) == []


@pytest.mark.parametrize("is_declared", [True, False], ids=["declared", "inferred"])
def test_two_processes_give_the_same(seed, is_declared):
    rng = Random(seed)
    schema = random_schema(rng, 10)
    texts = [print_expression(random_condition(rng, schema, 1)) for _ in range(300)]
    wrong = ["a = = 1", "", None, "x LIKE", "`a` = 'x' AND `a` = 5"]
    n_rows = CHUNK + 100  # more than one chunk
    rows = [(str(n), rng.choice(texts if n % 20 else wrong)) for n in range(n_rows)]
    declared = schema if is_declared else None
    alone, together = parse_many(rows, declared), parse_many(rows, declared, processes=2)
    assert [row.condition for row in together] == [row.condition for row in alone]
    assert [row.text for row in together] == [row.text for row in alone]
    assert [error_of(row) for row in together] == [error_of(row) for row in alone]
    assert sum(row.error is not None for row in alone) >= n_rows // 20


def error_of(row):
    return row.error and (type(row.error), str(row.error), row.error.to_dict())


def test_garbage_collection_is_left_as_it_was():
    assert gc.isenabled()
    parse_many([("1", "a = 1")], SCHEMA)
    assert gc.isenabled()
    gc.disable()
    try:
        parse_many([("1", "a = 1")], SCHEMA)
        assert not gc.isenabled()
    finally:
        gc.enable()


def end_at_three(chunk):
    if chunk == 3:
        os._exit(1)
    return chunk + 100


def test_chunks_come_back_in_order():
    for processes in (1, 2):
        results = map_chunks(end_at_three, iter([9, 1, 5] * 20), processes)
        assert list(results) == [109, 101, 105] * 20


def test_a_process_that_ends_is_an_error_of_ours():
    with pytest.raises(TamisError, match="ended unexpectedly") as caught:
        list(map_chunks(end_at_three, [1, 2, 3, 4], 2))
    assert "fewer processes" in str(caught.value.hint)
