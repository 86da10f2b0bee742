"""Numbers of every kind next to constants of every kind: an index answers as the reference does.

The constants lie on and next to places where rounding decides, and many of them share a double:
there a double is equal to constants that are different to an exact number.
"""

from __future__ import annotations

from decimal import Context, Decimal
from random import Random

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tamis
from tamis.errors import TamisError
from tamis.index.dag_builder import DagBuilder
from tamis.index.pattern_tests import PatternTests
from tamis.index.reader import Reader
from tamis.input.event_batches import encode_batches
from tamis.language import Schema, check, parse
from tamis.language.infer import SchemaVotes
from tamis.language.limits import Limits
from tamis.language.types import INT64_MAX, INT64_MIN, decimal_digits
from tamis.logic.evaluate import Missing, evaluate
from tests.effort import examples
from tests.generators.numbers import plain, random_constant, random_number
from tests.leaves import describe_leaf

SCHEMA = Schema.of(
    "x NUMBER, y NUMBER, i BIGINT, d DOUBLE, f FLOAT, m DECIMAL(38,10), xs ARRAY<NUMBER>"
)
OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>")
N_LEAVES = 120
_WIDE = Context(prec=80)
N_EVENTS = 150
SPECIAL = (
    float("nan"),
    float("inf"),
    -float("inf"),
    -0.0,
    0,
    Decimal("-0"),
    10**40,
    Decimal("1e-40"),
)


def crowded_numbers(rng, n_places):
    """Numbers of which several share a double, and their neighbours."""
    found = []
    for _ in range(n_places):
        number = random_number(rng)
        found.append(number)
        double = Decimal(float(number))
        found.append(Decimal(repr(float(number))))
        for _ in range(3):
            digits = rng.choice((17, 20, 30, 38))
            unit = Decimal(1).scaleb(double.adjusted() - rng.choice((15, 16, 17, 18, 25)))
            near = Context(prec=digits).plus(double + rng.randint(-5, 5) * unit)
            found.append(near)
    found += [
        Decimal(INT64_MAX),
        Decimal(INT64_MIN),
        Decimal(INT64_MAX) + 1,
        Decimal(INT64_MIN) - 1,
    ]
    found += [
        Decimal(INT64_MIN) - 500,
        Decimal(INT64_MAX) + 500,
        Decimal(2**53),
        Decimal(2**53 + 1),
    ]
    return [number for number in found if sum(decimal_digits(number)) <= 38]


def random_leaf(rng, numbers):
    draw = rng.random()
    name = rng.choice(("x", "x", "x", "y"))
    constants = [random_constant(rng, numbers) for _ in range(rng.randint(1, 4))]
    negated = rng.choice(("", "", "NOT "))
    if draw < 0.2:
        return f"{name} {negated}IN ({', '.join(constants)})"
    if draw < 0.3:
        return f"{name} {negated}BETWEEN {constants[0]} AND {constants[-1]}"
    if draw < 0.4:
        return f"{negated}arrays_overlap(xs, array({', '.join(constants)}))"
    if draw < 0.45:
        return f"{negated}array_contains(xs, {constants[0]})"
    if draw < 0.6:
        return f"{negated}x {rng.choice(OPERATORS)} {rng.choice(('y', 'i', 'd', 'f', 'm'))}"
    if draw < 0.65:
        return f"{name} IS {negated}NULL"
    return f"{negated}{name} {rng.choice(OPERATORS)} {constants[0]}"


def draw_texts(rng, numbers, n_texts):
    texts = []
    while len(texts) < n_texts:
        parts = [random_leaf(rng, numbers) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
        text = f" {rng.choice(('AND', 'OR', 'XOR'))} ".join(f"({part})" for part in parts)
        try:
            check(parse(text), SCHEMA)
        except TamisError:
            continue
        texts.append(text)
    return texts


def random_value(rng, numbers):
    """A number of any kind."""
    number = rng.choice(numbers)
    draw = rng.random()
    if draw < 0.05:
        return rng.choice(SPECIAL)
    if draw < 0.35:
        return int(number)
    if draw < 0.65:
        double = float(number)
        return float(np.nextafter(double, rng.choice((-np.inf, np.inf)))) if draw < 0.4 else double
    if draw < 0.72:
        return np.float32(float(number))
    return number


def random_event(rng, numbers):
    event = {}
    for name in ("x", "y"):
        if rng.random() < 0.9:
            event[name] = random_value(rng, numbers)
    number = rng.choice(numbers)
    if INT64_MIN <= int(number) <= INT64_MAX:
        event["i"] = int(number)
    event |= {"d": float(number), "f": float(number)}
    if abs(number) < 10**27:
        event["m"] = Decimal(plain(number.quantize(Decimal("1e-10"), context=_WIDE)))
    if rng.random() < 0.9:
        event["xs"] = [
            None if rng.random() < 0.1 else random_value(rng, numbers)
            for _ in range(rng.randint(0, 3))
        ]
    return event


def as_sets(lists):
    return [set(own) for own in lists.to_pylist()]


@pytest.mark.parametrize("missing", list(Missing))
@pytest.mark.parametrize("batch", range(examples(6)))
def test_every_kind_of_number(seed, batch, missing, tmp_path):
    rng = Random(f"{seed}-kinds-{batch}")
    numbers = crowded_numbers(rng, 8)
    texts = draw_texts(rng, numbers, N_LEAVES)
    events = [random_event(rng, numbers) for _ in range(N_EVENTS)]
    typed = [check(parse(text), SCHEMA) for text in texts]
    expected = [
        {str(at) for at, own in enumerate(typed) if evaluate(own, event, missing) is True}
        for event in events
    ]
    index = tamis.build(
        dict(zip(map(str, range(N_LEAVES)), texts, strict=True)), SCHEMA, missing=missing
    )
    index.save(tmp_path / "index")
    opened = tamis.open(tmp_path / "index", trusted=False)
    found = as_sets(index.match_lists(events))
    for row, event in enumerate(events):
        for at in map(int, found[row] ^ expected[row]):
            pytest.fail(f"batch: {texts[at]}\n  {event}\n  index {str(at) in found[row]}")
        for at in map(int, set(index.match(event)) ^ expected[row]):
            pytest.fail(
                f"one event: {texts[at]}\n  {event}\n  index {str(at) not in expected[row]}"
            )
    assert as_sets(opened.match_lists(events)) == expected


# ── every way in ────────────────────────────────────────────────────────────────────────────

PRICES = {
    "above": "price > 10",
    "equal": "price = 10.1",
    "listed": "price IN (10, 10.5)",
    "double": "price = 1.01E1",
    "between": "price BETWEEN 10.1 AND 11",
}
NAMES = {
    "10.1": {"above", "equal", "double", "between"},
    "10.5": {"above", "listed", "between"},
    "10": {"listed"},
}


@pytest.fixture(scope="module")
def prices():
    return tamis.build(PRICES)


def test_a_bare_number_infers_number(prices):
    assert prices.contents.schema.to_json() == {"price": "number"}
    assert tamis.build({"a": "age > 3"}).match({"age": 5.0}) == ["a"]


@pytest.mark.parametrize("text", NAMES)
def test_one_number_however_it_comes(prices, text):
    values = [float(text), Decimal(text), np.float64(text), np.float32(text), np.float16(text)]
    values += [Decimal(text + "0" if "." in text else text), int(text) if text == "10" else 10.0]
    values = [value for value in values if float(text) == 10 or value != 10.0]
    for value in values:
        if isinstance(value, np.float16) and text == "10.1":
            assert set(prices.match({"price": value})) == NAMES[text]
        assert set(prices.match({"price": value})) == NAMES[text], repr(value)
    assert as_sets(prices.match_lists([{"price": value} for value in values])) == [
        NAMES[text]
    ] * len(values)


@pytest.mark.parametrize(
    "arrow_type",
    [pa.float64(), pa.float32(), pa.float16(), pa.decimal128(10, 1), pa.decimal256(50, 20)],
    ids=str,
)
def test_columns(prices, arrow_type):
    is_decimal = pa.types.is_decimal(arrow_type)
    values = [Decimal(text) if is_decimal else float(text) for text in NAMES]
    narrow = np.array(values, np.float16) if pa.types.is_float16(arrow_type) else values
    table = pa.table({"price": pa.array(narrow, arrow_type)})
    assert as_sets(prices.match_lists(table)) == list(NAMES.values())


def test_json(prices):
    texts = [*NAMES, "10.10", "1010e-2", "10.0", "10.100000000000000000001", "1" + "0" * 30]
    found = as_sets(prices.match_lists([f'{{"price": {text}}}' for text in texts]))
    same = [NAMES["10.1"], NAMES["10.1"], NAMES["10"]]
    many_digits = {"above", "double", "between"}  # a decimal, and its double is that of 10.1
    assert found == [*NAMES.values(), *same, many_digits, {"above"}]


def test_csv(prices):
    texts = [*NAMES, "10.10", "1010e-2", "+10.", "10.100000000000000000001", "NaN", "ten"]
    data = "price\n" + "".join(f"{text}\n" for text in texts)
    (encoded,) = encode_batches(prices.view.encoder, data.encode(), file_format="csv")
    same = [NAMES["10.1"], NAMES["10.1"], NAMES["10"], {"above", "double", "between"}, {"above"}]
    assert as_sets(prices.match_lists(encoded)) == [*NAMES.values(), *same, set()]
    assert len(encoded.rejects) == 1


def test_pandas_column_with_a_missing_value():
    index = tamis.build({"a": "age > 3", "b": "age = 5"})
    frame = pd.DataFrame({"age": [5, None, 3]})
    assert index.match_lists(pa.Table.from_pandas(frame)).to_pylist() == [["a", "b"], [], []]


def test_plain_expressions_are_read_fast():
    """Inferred numbers are read, placed and folded by kernels alone."""
    texts = ["x > 10 AND x < 20.5", "x IN (1, 2.5)", "x BETWEEN 1 AND 2 OR y = 0.1"]
    reader, builder = Reader(Limits()), DagBuilder(is_signed=False)
    chunk = reader.read(texts)
    votes = SchemaVotes()
    reader.vote(chunk, votes)
    programs = reader.programs(
        chunk, votes.elect(), builder, PatternTests(votes.elect(), builder, Limits())
    )
    assert not programs.is_left.any()


def test_both_readers_share_leaves():
    """The same constant is one code, however it is spelled and whoever reads it."""
    index = tamis.build({"a": "x > 10", "b": "x > 10.0", "c": "x > 10.00BD", "d": "(x) > 10L"})
    assert index.contents.constants.number_keys.tolist() == [10.0]
    assert len(index.contents.roots.nodes) == 1


def test_constants_that_share_a_double_are_described(prices):
    texts = ["x <= 9007199254740993", "x = 9007199254740993", "x < 9007199254740992"]
    texts += ["x = 9007199254740992D", "x < 9007199254740992D", "x <= 9007199254740992D"]
    index = tamis.build(dict(enumerate_ids(texts)), schema="x NUMBER")
    shown = {describe_leaf(index.contents, leaf) for leaf in range(index.contents.n_leaves)}
    assert {"x = 9007199254740993", "x = 9007199254740992.0D"} <= shown
    assert {"x <= 9007199254740992.0D", "x < 9007199254740992.0D"} <= shown


def enumerate_ids(texts):
    return ((str(at), text) for at, text in enumerate(texts))
