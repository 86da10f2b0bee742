"""Numbers near the places where rounding decides: both sides read the texts by themselves.

Spark gets the user's text, and casts the events' texts itself: nothing that we rounded reaches it.
"""

from __future__ import annotations

import json
from decimal import Decimal
from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.errors import TamisError
from tamis.language import Schema, check, parse
from tamis.logic.evaluate import evaluate
from tests.effort import examples
from tests.generators.numbers import (
    SCALARS,
    SCHEMA,
    random_number_event,
    random_number_leaf,
    shared_numbers,
)
from tests.logic.oracle import ROW, ask_spark_texts, in_spark_sql, oracle_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import DataFrame, SparkSession

N_NUMBERS = 40
N_LEAVES = 120
N_EVENTS = 100
TYPES = Schema.of(SCHEMA)


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Iterator[SparkSession]:
    with oracle_settings(spark):
        yield spark


@pytest.mark.parametrize("batch", range(examples(4)))
def test_numbers_as_written(oracle, seed, batch):
    rng = Random(f"{seed}-numbers-{batch}")
    numbers = shared_numbers(rng, N_NUMBERS)
    leaves = [draw_leaf(rng, numbers) for _ in range(N_LEAVES)]
    events = [random_number_event(rng, numbers) for _ in range(N_EVENTS)]
    answers = ask_spark_texts(cast_by_spark(oracle, events), list(map(as_asked, leaves)))
    theirs = np.array([[truth is True for truth in row] for row in answers])
    json_texts = [json_of(event) for event in events]
    typed = [check(parse(text), TYPES) for text in leaves]
    for row, text in enumerate(json_texts):
        event = json.loads(text, parse_float=Decimal)
        ours = [evaluate(condition, event) for condition in typed]
        for at, leaf in enumerate(leaves):
            assert ours[at] is answers[row][at], f"{leaf}\n  {text}\n  asked {as_asked(leaf)}"
    index = tamis.build({str(at): leaf for at, leaf in enumerate(leaves)}, schema=TYPES)
    for how, source in sources(events, json_texts).items():
        found = np.zeros(theirs.shape, dtype=np.bool_)
        for row, ids in enumerate(index.match_lists(source).to_pylist()):
            found[row, [int(one) for one in ids]] = True
        for row, at in zip(*np.nonzero(found != theirs), strict=True):
            pytest.fail(f"{how}: {leaves[at]}\n  {json_texts[row]}\n  Spark {theirs[row, at]}")


def draw_leaf(rng: Random, numbers: list[Decimal]) -> str:
    """A predicate that the types allow."""
    while True:
        text = random_number_leaf(rng, numbers)
        try:
            check(parse(text), TYPES)
        except TamisError:
            continue
        return text


def as_asked(leaf: str) -> str:
    """The text itself, unless a rule of ours says that Spark means something else by it."""
    spelled = in_spark_sql(leaf, TYPES)
    return spelled if "CAST(" in spelled else leaf


def json_of(event: dict[str, str]) -> str:
    return "{" + ", ".join(f'"{name}": {text}' for name, text in event.items()) + "}"


def cast_by_spark(spark: SparkSession, events: list[dict[str, str]]) -> DataFrame:
    """The events' texts, read by Spark alone."""
    columns = {
        name: pa.array([event.get(name) for event in events], pa.string())
        for name in (*SCALARS, "fs")
    }
    casts = [f"CAST({name} AS {TYPES[(name,)]}) AS {name}" for name in SCALARS if name != "i"]
    lists = "CAST(split(substring(fs, 2, length(fs) - 2), ', ') AS ARRAY<FLOAT>) AS fs"
    frame = spark.createDataFrame(pa.table({**columns, ROW: range(len(events))}))
    return frame.selectExpr(f"`{ROW}`", "CAST(i AS BIGINT) AS i", *casts, lists)


def sources(events: list[dict[str, str]], json_texts: list[str]) -> dict[str, object]:
    """The same events in the ways that a text can come to an index."""
    pairs = [list(event.items()) for event in events]
    return {
        "JSON": pa.array(json_texts),
        "map of texts": pa.array(pairs, pa.map_(pa.string(), pa.string())),
        "mappings": [json.loads(text, parse_float=Decimal) for text in json_texts],
    }


# ── one rounding ────────────────────────────────────────────────────────────────────────────

# Just above 1 + 2 ** -24, which is a tie of floats: its double is the tie.
ABOVE_A_TIE = "1.00000005960464477539062500001"
ROUNDED = 1.0000001192092896


@pytest.mark.parametrize("literal", [ABOVE_A_TIE, f"{ABOVE_A_TIE}F", f"{ABOVE_A_TIE}BD"])
def test_a_constant_is_rounded_to_a_float_once(literal):
    assert tamis.evaluate(f"f = {literal}", {"f": ROUNDED}, schema="f FLOAT") is True


@pytest.mark.parametrize(
    ("text", "rounded"),
    [
        (ABOVE_A_TIE, ROUNDED),
        ("1.000000059604644775390625", 1.0),  # the tie itself: to even
        ("9007199791611905", 9007200328482816),  # above a tie; no double is between them
        ("8.587130295723E-8", 8.587129940451632e-08),  # below a tie, though short
        ("7.006492321624086e-46", 1.401298464324817e-45),  # above half of the smallest float
    ],
)
def test_an_event_is_rounded_to_a_float_once(text, rounded):
    """However its text comes."""
    index = tamis.build({"s": f"f = {Decimal(rounded):f}F"}, schema="f FLOAT")
    exact = Decimal(text)
    events = {
        "mapping": [{"f": int(exact) if exact == int(exact) else exact}],
        "JSON": pa.array([f'{{"f": {text}}}']),
        "map": pa.array([[("f", text)]], pa.map_(pa.string(), pa.string())),
        "decimals": pa.table({"f": [exact]}) if "e" not in text else None,
        "integers": pa.table({"f": [int(exact)]}) if exact == int(exact) else None,
    }
    for how, source in events.items():
        if source is not None:
            assert index.match_lists(source).to_pylist() == [["s"]], how
    assert index.match({"f": exact}) == ["s"]


# ── integers on floats ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("text", "is_true"),
    [
        ("f < 16777217", True),
        ("NOT f = 16777217", True),
        ("16777217 > f", True),
        ("f <> 16777217", True),
        ("f = 16777217", False),
        ("f IN (16777217)", False),
        ("f IN (16777217, 16777216)", True),
        ("f BETWEEN 16777217 AND 16777218", False),
        ("f BETWEEN 16777215 AND 16777217", True),
        ("f <=> 16777217", False),
        ("f < 16777217 AND f < 16777218", True),
        ("f = 16777217.0", True),  # a decimal is rounded to the attribute's type
        ("array_contains(fs, 16777217)", True),  # as are constants that are sought in an array
    ],
)
def test_an_integer_meets_a_float_as_a_double(text, is_true):
    schema = "f FLOAT, fs ARRAY<FLOAT>"
    event = {"f": 16777216.0, "fs": [16777216.0]}
    index = tamis.build({"s": text}, schema=schema)
    assert tamis.evaluate(text, event, schema=schema) is is_true
    assert index.match(event) == ["s"] * is_true
    assert index.match_lists([event]).to_pylist() == [["s"] * is_true]
