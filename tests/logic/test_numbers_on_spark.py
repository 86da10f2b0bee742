"""A number of each kind, compared as Spark compares a column of that type with the user's text.

One column type at a time: the attribute is declared NUMBER, the column is what it is, and Spark is
asked the text as it is written.
"""

from __future__ import annotations

from decimal import Context, Decimal
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import tamis
from tamis.language import Schema, check, parse, print_for_spark
from tamis.language.types import decimal_digits, fits_decimal
from tamis.logic.evaluate import evaluate
from tests.effort import examples
from tests.generators.numbers import random_constant, random_number
from tests.logic.oracle import ROW, ask_spark_texts, oracle_settings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

SCHEMA = Schema.of("x NUMBER, y NUMBER, xs ARRAY<NUMBER>")
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
N_LEAVES = 100
COLUMNS = {
    "INT": pa.int32(),
    "BIGINT": pa.int64(),
    "DOUBLE": pa.float64(),
    "DECIMAL(10,2)": pa.decimal128(10, 2),
    "DECIMAL(20,0)": pa.decimal128(20, 0),
    "DECIMAL(30,12)": pa.decimal128(30, 12),
}
WIDE = Context(prec=80)


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Iterator[SparkSession]:
    with oracle_settings(spark):
        yield spark


def as_column_value(number: Decimal, arrow_type: pa.DataType) -> Any:
    """The number as a value of the column, or None where it is too large."""
    if pa.types.is_integer(arrow_type):
        whole = int(number)
        limit = 2 ** (arrow_type.bit_width - 1)
        return whole if -limit <= whole < limit else None
    if pa.types.is_floating(arrow_type):
        return float(number)
    scaled = number.quantize(Decimal(1).scaleb(-arrow_type.scale), context=WIDE)
    declared = Schema.of({"m": f"decimal({arrow_type.precision},{arrow_type.scale})"})["m"]
    return scaled if fits_decimal(scaled, declared) else None


def crowd(rng: Random, n_places: int) -> list[Decimal]:
    """Numbers on and next to ties, and their neighbours by a few last digits."""
    found = [Decimal(text) for text in ("0", "10", "10.1", "0.1", "10.5", "9007199254740993")]
    for _ in range(n_places):
        number = random_number(rng)
        near = WIDE.add(number, Decimal(rng.randint(-3, 3)).scaleb(rng.choice((0, -2, -9, -12))))
        found += [number, Decimal(repr(float(number))), near]
    return [number for number in found if sum(decimal_digits(number)) <= 38]


def has_room(text: str, arrow_type: pa.DataType) -> bool:
    """Whether 38 digits hold the constants of the text and the column: else Spark rounds one."""
    if pa.types.is_floating(arrow_type):
        return True
    digits = [(20, 0)]
    if pa.types.is_decimal(arrow_type):
        digits = [(arrow_type.precision - arrow_type.scale, arrow_type.scale)]
    for word in text.replace(",", " ").replace("(", " ").replace(")", " ").split():
        if word[-1:] in "FDLe" or "e" in word or not word.lstrip("-")[:1].isdigit():
            continue
        number = Decimal(word.removesuffix("BD"))
        digits.append(decimal_digits(number))
        if arrow_type != pa.float64() and "." not in word:
            digits.append((20, 0))
        if number != number.normalize(WIDE) or "." in word:  # trailing zeros count in Spark
            digits.append((0, len(word.partition(".")[2].removesuffix("BD"))))
    return sum(map(max, zip(*digits, strict=True))) <= 38


def is_exactly_ours(text: str, arrow_type: pa.DataType) -> bool:
    """Without what is known to differ: float constants, and integers beyond a column's 64 bits,
    which Spark decides without looking, on NULL too."""
    words = text.replace(",", " ").replace("(", " ").replace(")", " ").split()
    numbers = [word for word in words if word.lstrip("-")[:1].isdigit()]
    if any(word.endswith("F") for word in numbers):
        return False
    if pa.types.is_integer(arrow_type):
        limit = 2 ** (arrow_type.bit_width - 1)
        plain_numbers = [Decimal(w.rstrip("DBL").removesuffix("e0")) for w in numbers]
        return all(-limit <= number < limit for number in plain_numbers)
    return True


def random_leaf(rng: Random, numbers: list[Decimal]) -> str:
    constants = [random_constant(rng, numbers) for _ in range(rng.randint(1, 3))]
    negated = rng.choice(("", "", "NOT "))
    draw = rng.random()
    if draw < 0.2:
        return f"x {negated}IN ({', '.join(constants)})"
    if draw < 0.35:
        return f"x {negated}BETWEEN {constants[0]} AND {constants[-1]}"
    if draw < 0.4:
        return f"{negated}x {rng.choice(OPERATORS)} y"
    return f"{negated}x {rng.choice(OPERATORS)} {constants[0]}"


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("batch", range(examples(1)))
def test_each_column_type(oracle, seed, column, batch):
    arrow_type = COLUMNS[column]
    rng = Random(f"{seed}-{column}-{batch}")
    numbers = crowd(rng, 14)
    values = [as_column_value(number, arrow_type) for number in numbers]
    values = [None, *(value for value in values if value is not None)]
    if arrow_type == pa.float64():
        values += [float("nan"), float("inf"), -float("inf"), -0.0]
        values += [float(np.nextafter(value, 9e99)) for value in values[1:20]]
    texts: list[str] = []
    while len(texts) < N_LEAVES:
        text = random_leaf(rng, numbers)
        if has_room(text, arrow_type) and is_exactly_ours(text, arrow_type):
            texts.append(text)
    other = [rng.choice(values) for _ in values]
    columns = {"x": pa.array(values, arrow_type), "y": pa.array(other, arrow_type)}
    frame = oracle.createDataFrame(pa.table({**columns, ROW: range(len(values))}))
    answers = ask_spark_texts(frame, texts)
    typed = [check(parse(text), SCHEMA) for text in texts]
    index = tamis.build({str(at): text for at, text in enumerate(texts)}, schema=SCHEMA)
    found = index.match_lists(pa.table(columns)).to_pylist()
    for row, (x, y) in enumerate(zip(values, other, strict=True)):
        for at, text in enumerate(texts):
            ours = evaluate(typed[at], {"x": x, "y": y})
            assert ours is answers[row][at], f"{column}: {text} for {x!r}, {y!r}"
            assert (str(at) in found[row]) is (ours is True), f"{column}: {text} for {x!r}, {y!r}"


# ── functions of numbers ────────────────────────────────────────────────────────────────────

FUNCTIONS = (
    *("x + y", "x - y", "x * y", "x / y", "x % y", "abs(x)", "-x", "round(x)", "round(x, 1)"),
    *("floor(x)", "ceil(x)", "x * 2.5", "x / 4", "x % 3", "7 - x", "coalesce(x, 0)"),
    *("coalesce(x, y) + 1", "abs(x - y) * 2", "cast(x AS DOUBLE)"),
)


@pytest.mark.parametrize("column", ["INT", "BIGINT", "DOUBLE", "DECIMAL(10,2)"])
@pytest.mark.filterwarnings("ignore::tamis.RejectWarning")
def test_functions_of_each_column_type(oracle, seed, column):
    """Without numbers so large that the column overflows: on Spark that is an error."""
    arrow_type = COLUMNS[column]
    rng = Random(f"{seed}-functions-{column}")
    numbers = [Decimal(rng.randint(-300, 300)) / rng.choice((1, 4, 10, 100)) for _ in range(60)]
    values = [None, *(as_column_value(number, arrow_type) for number in [Decimal(0), *numbers])]
    if arrow_type == pa.float64():
        values += [float("nan"), -0.0, 1e-300, 1e15]
    others = [rng.choice(values) for _ in values]
    constants = ("0", "1", "-2", "2.5", "0.25", "2.5D", "100")
    texts = [
        f"{function} {rng.choice(OPERATORS)} {constant}"
        for function in FUNCTIONS
        for constant in rng.sample(constants, 4)
    ]
    columns = {"x": pa.array(values, arrow_type), "y": pa.array(others, arrow_type)}
    frame = oracle.createDataFrame(pa.table({**columns, ROW: range(len(values))}))
    typed = [check(parse(text), SCHEMA) for text in texts]
    asked = [print_for_spark(own, text) for own, text in zip(typed, texts, strict=True)]
    answers = ask_spark_texts(frame, asked)
    index = tamis.build({text: text for text in texts}, schema=SCHEMA)
    found = index.match_lists(pa.table(columns)).to_pylist()
    for row, (x, y) in enumerate(zip(values, others, strict=True)):
        for at, text in enumerate(texts):
            ours = evaluate(typed[at], {"x": x, "y": y})
            assert ours is answers[row][at], f"{column}: {asked[at]} for {x!r}, {y!r}"
            assert (text in found[row]) is (ours is True), f"{column}: {text} for {x!r}, {y!r}"


# ── floats of 32 bits ───────────────────────────────────────────────────────────────────────


def test_whole_constants_on_float_columns(oracle):
    """With whole numbers a FLOAT column is compared as Spark does; see the next test for others."""
    floats = [10.0, 10.1, 0.1, 16777216.0, 16777218.0, 1073741824.0, -0.5, float("nan"), 8388608.5]
    texts = [
        f"x {operator} {constant}"
        for operator in OPERATORS
        for constant in ("10", "0", "16777217", "16777216", "1073741824", "-1", "10.0", "1e1")
    ]
    column = pa.array(floats, pa.float32())
    frame = oracle.createDataFrame(pa.table({"x": column, ROW: range(len(floats))}))
    answers = ask_spark_texts(frame, texts)
    index = tamis.build({text: text for text in texts}, schema="x NUMBER")
    found = index.match_lists(pa.table({"x": column})).to_pylist()
    for row, value in enumerate(np.array(floats, np.float32)):
        for at, text in enumerate(texts):
            assert evaluate(check(parse(text), SCHEMA), {"x": value}) is answers[row][at], text
            assert (text in found[row]) is (answers[row][at] is True), (text, value)


@pytest.mark.parametrize(
    "text", ["x = 10.1", "x = 10.1F", "x = 1.01E1", "x <= 10.1", "x IN (10.1)"]
)
def test_a_float_is_the_number_that_it_prints_as(oracle, text):
    """Spark widens the float bit by bit, so 10.1 is not 10.1 there; a rule of ours."""
    column = pa.array([10.1], pa.float32())
    index = tamis.build({"a": text}, schema="x NUMBER")
    assert index.match_lists(pa.table({"x": column})).to_pylist() == [["a"]]
    assert evaluate(check(parse(text), SCHEMA), {"x": np.float32(10.1)}) is True
    frame = oracle.createDataFrame(pa.table({"x": column, ROW: [0]}))
    assert ask_spark_texts(frame, [text]) == [[text == "x = 10.1F"]]


def test_digits_that_spark_rounds_away(oracle):
    """Where 38 digits do not hold column and constant, Spark rounds: 10 is 10.1 there."""
    column = pa.array([Decimal(10)], pa.decimal128(38, 0))
    frame = oracle.createDataFrame(pa.table({"x": column, ROW: [0]}))
    assert ask_spark_texts(frame, ["x = 10.1"]) == [[True]]
    assert evaluate(check(parse("x = 10.1"), SCHEMA), {"x": Decimal(10)}) is False


# ── numbers of several kinds in one column ──────────────────────────────────────────────────


def test_numbers_split_into_parts(oracle, seed):
    """What an audit asks Spark: each event's number in the part of its kind."""
    rng = Random(f"{seed}-parts")
    numbers = [number for number in crowd(rng, 10) if sum(decimal_digits(number)) <= 18]
    texts = [text for _ in range(80) if has_room(text := random_leaf(rng, numbers), pa.int64())]
    texts += [f"array_contains(xs, {random_constant(rng, numbers)})" for _ in range(10)]
    texts += ["x IS NULL", "x IS NOT NULL", "x <=> y", "x BETWEEN y AND 10"]
    texts = [text for text in texts if "F" not in text]
    events = []
    for number in numbers:
        kinds = (int(number), float(number), number, None)
        elements = [rng.choice(kinds), rng.choice(kinds)]
        events.append({"x": rng.choice(kinds), "y": rng.choice(kinds), "xs": elements})
    from tamis.spark.plain_events import fits_spark, typed_rows

    paths = list(SCHEMA)
    events = [event for event in events if fits_spark(event, SCHEMA, paths)]
    assert len(events) > 10
    table = typed_rows(iter(events), SCHEMA, paths).append_column(ROW, pa.array(range(len(events))))
    typed = [check(parse(text), SCHEMA) for text in texts]
    asked = [
        print_for_spark(own, text, splits_numbers=True)
        for own, text in zip(typed, texts, strict=True)
    ]
    answers = ask_spark_texts(oracle.createDataFrame(table), asked)
    for event, answer in zip(events, answers, strict=True):
        for at, text in enumerate(texts):
            assert evaluate(typed[at], event) is answer[at], f"{text}\n  {event}\n  {asked[at]}"
