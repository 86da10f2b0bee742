"""The reference evaluator says what Spark SQL says: the proof that the law is SQL's.

Spark gets the text printed from the typed tree, with the constants as they were written. Where it
would answer otherwise for the text as a whole, the difference is a rule of ours and stands in
`DOCUMENTED_DIFFERENCES`.
"""

from __future__ import annotations

import unicodedata
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException

import tamis
from tamis.errors import TypeCheckError
from tamis.language import Schema, check, parse, print_expression, print_for_spark
from tamis.language.ast import (
    ArraysOverlap,
    AtLeast,
    Attribute,
    Between,
    Comparison,
    Derived,
    ElementTest,
    In,
    InNetwork,
    IsNull,
    Like,
    Not,
    PatternList,
    Rlike,
    Xnor,
    Xor,
    attributes,
    children,
)
from tamis.language.ast import (
    tested_attributes as attributes_of,
)
from tamis.language.comparators import Comparator
from tamis.language.types import BOOLEAN, FLOAT, IP, STRING
from tamis.language.types.structs import paths_in
from tamis.language.value_functions import FUNCTIONS
from tamis.logic.evaluate import attribute_value, evaluate
from tests.effort import examples
from tests.generators import random_condition, random_event, random_schema
from tests.generators.conditions import (
    OPERATORS,
    random_condition_as_written,
    random_leaf_as_written,
)
from tests.generators.values import COMMON, DECIMALS, EDGES, ONLY_IN_EVENTS
from tests.logic.oracle import (
    ROW,
    ask_spark,
    ask_spark_texts,
    events_frame,
    in_spark_sql,
    oracle_settings,
    without_numbers,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from tamis.language.ast import Condition
    from tamis.logic.truth import Truth

# Spark's time goes into reading the conditions; events are cheap.
N_CONDITIONS = 80
N_EVENTS = 100
N_BATCHES = 8  # 64,000 pairs
N_SLOW_BATCHES = 50  # 400,000 pairs more


@pytest.fixture(scope="module")
def oracle(spark: SparkSession) -> Iterator[SparkSession]:
    with oracle_settings(spark):
        yield spark


# ── random conditions and events ────────────────────────────────────────────────────────────


@pytest.mark.parametrize("batch", range(examples(N_BATCHES)))
def test_random_conditions(oracle, seed, batch):
    run_batch(oracle, f"{seed}-{batch}")


@pytest.mark.parametrize("batch", range(examples(2)))
def test_functions_of_values(oracle, seed, batch):
    rng = Random(f"{seed}-functions-{batch}")
    schema = Schema.of("s STRING, t STRING, ts TIMESTAMP, d DATE, n BIGINT")
    leaves: list[Condition] = []
    while len(leaves) < 2 * N_CONDITIONS:
        leaf = random_leaf_as_written(rng, schema)
        if any(isinstance(own, Derived) for own in attributes_of(leaf)):
            leaves.append(leaf)
    events = [random_event(rng, schema) for _ in range(N_EVENTS)]
    assert_agreement(oracle, schema, leaves, events, f"functions {batch}")


@pytest.mark.parametrize("batch", range(examples(4)))
def test_arithmetic(oracle, seed, batch):
    rng = Random(f"{seed}-arithmetic-{batch}")
    wide = rng.sample([str(own) for own in DECIMALS], 2)
    schema = Schema.of(
        {"i": "bigint", "j": "bigint", "x": "double", "f": "float", "m": wide[0], "n": wide[1]}
    )
    leaves: list[Condition] = []
    while len(leaves) < 2 * N_CONDITIONS:
        leaf = random_leaf_as_written(rng, schema)
        if any(isinstance(own, Derived) for own in attributes_of(leaf)):
            leaves.append(leaf)
    events = [random_event(rng, schema) for _ in range(N_EVENTS)]
    assert_agreement(oracle, schema, leaves, events, f"arithmetic {batch}")


EQUAL_ARRAYS = (
    "tags = array('a')",
    "tags <> array('a', NULL)",
    "tags <=> array(NULL)",
    "tags = array()",
    "ns = array(1)",
    "ns IN (array(), array(1), array(NULL))",
    "NOT ns <=> array(NULL, NULL)",
    "xs = array(0.0D, 1)",
    "tags = tags",
)


@pytest.mark.parametrize("batch", range(examples(2)))
def test_arrays(oracle, seed, batch):
    rng = Random(f"{seed}-arrays-{batch}")
    fields = {"a": "bigint", "s": "string", "`in`": "array<string>", "m": str(rng.choice(DECIMALS))}
    struct = ", ".join(f"{name}: {type_}" for name, type_ in fields.items())
    schema = Schema.of(
        {
            "tags": "array<string>",
            "ns": "array<bigint>",
            "xs": "array<double>",
            "ts": "array<timestamp>",
            "items": f"array<struct<{struct}>>",
            "`order lines`": "array<struct<n: bigint>>",
        }
    )
    conditions = [random_condition_as_written(rng, schema, depth=1) for _ in range(N_CONDITIONS)]
    paths = ("items.s", "items.a")
    conditions += map(parse, EQUAL_ARRAYS)
    for path in paths:
        texts = [f"array_contains({path}, {own})" for own in ("'a'", "1")]
        texts += [f"exists({path}, t -> t IS NULL OR t = {own})" for own in ("'a'", "1")]
        for text in (*texts, f"size({path}) > 1", f"{path} IS NULL"):
            with suppress(TypeCheckError):
                check(parse(text), schema)
                conditions.append(parse(text))
    events = [random_event(rng, schema) for _ in range(N_EVENTS)]
    assert_agreement(oracle, schema, conditions, events, f"arrays {batch}")


@pytest.mark.slow
@pytest.mark.parametrize("batch", range(N_SLOW_BATCHES))
def test_more_random_conditions(oracle, seed, batch):
    run_batch(oracle, f"{seed}-slow-{batch}")


def run_batch(oracle: SparkSession, origin: str) -> None:
    rng = Random(origin)
    schema = without_numbers(random_schema(rng))
    conditions = [random_condition_as_written(rng, schema) for _ in range(N_CONDITIONS)]
    events = [random_event(rng, schema) for _ in range(N_EVENTS)]
    assert_agreement(oracle, schema, conditions, events, f'Random("{origin}")')


def assert_agreement(
    oracle: SparkSession,
    schema: Schema,
    conditions: Sequence[Condition],  # untyped
    events: Sequence[Mapping[str, Any]],
    origin: str,
) -> None:
    """Both sides answer alike for every pair; a difference is shown on its smallest subtree."""
    texts = [print_expression(condition) for condition in conditions]
    try:
        answers = ask_spark(oracle, schema, texts, events)
    except PySparkException as error:
        pytest.fail(describe_refusal(oracle, schema, conditions, events, f"{origin}: {error}"))
    typed = [check(parse(text), schema) for text in texts]
    for event, answer in zip(events, answers, strict=True):
        for at, theirs in enumerate(answer):
            if evaluate(typed[at], event) is not theirs:
                pytest.fail(describe_difference(oracle, schema, conditions[at], event, origin))


def describe_refusal(
    oracle: SparkSession,
    schema: Schema,
    conditions: Sequence[Condition],
    events: Sequence[Mapping[str, Any]],
    error: str,
) -> str:
    """The smallest subtree that Spark does not take."""
    subtrees = [subtree for condition in conditions for subtree in all_subtrees(condition)]
    for text in sorted(map(print_expression, subtrees), key=len):
        try:
            ask_spark(oracle, schema, [text], events)
        except PySparkException:
            asked = in_spark_sql(text, schema)
            return f"{error[:300]}\n  refused    {asked}\n  with       {schema}"
    return f"{error}\n  refused only together with others"


def describe_difference(
    oracle: SparkSession,
    schema: Schema,
    condition: Condition,
    event: Mapping[str, Any],
    origin: str,
) -> str:
    """The smallest subtree on which the two differ, its values, and both answers."""
    texts = list(map(print_expression, all_subtrees(condition)))
    answers = ask_spark(oracle, schema, texts, [event])[0]
    differing = [
        (text, theirs)
        for text, theirs in zip(texts, answers, strict=True)
        if evaluate(check(parse(text), schema), event) is not theirs
    ]
    text, theirs = min(
        differing or [(print_expression(condition), "something else when asked with others")],
        key=lambda found: len(found[0]),
    )
    typed = check(parse(text), schema)
    values = {
        print_expression(attribute): (str(attribute.type), attribute_value(attribute, event))
        for attribute in attributes(typed)
    }
    return (
        f"{origin}: ours {evaluate(typed, event)}, Spark {theirs}\n"
        f"  expression {text}\n"
        f"  for Spark  {in_spark_sql(text, schema)}\n"
        f"  values     {values}\n"
        f"  part of    {print_expression(condition)}"
    )


def all_subtrees(condition: Condition) -> Iterator[Condition]:
    yield condition
    for child in children(condition):
        yield from all_subtrees(child)


# ── the text as the user wrote it ───────────────────────────────────────────────────────────


@pytest.mark.parametrize("batch", range(examples(2)))
def test_leaves_as_written(oracle, seed, batch):
    """Untyped text given to Spark as it is; without floats, regular expressions (see below)
    and addresses, which Spark does not have."""
    rng = Random(f"{seed}-written-{batch}")
    everything = without_numbers(random_schema(rng, 16))
    schema = Schema(
        {
            path: everything[path]
            for path in everything
            if not {FLOAT, IP} & set(members(everything[path]))
        }
    )
    leaves = [random_leaf_as_written(rng, schema) for _ in range(150)]
    leaves = [leaf for leaf in leaves if is_as_written(leaf, schema)]
    events = [random_event(rng, schema) for _ in range(N_EVENTS)]
    answers = ask_spark_texts(
        events_frame(oracle, schema, events), [print_expression(leaf) for leaf in leaves]
    )
    assert len(leaves) > 75
    for leaf, *theirs in zip(leaves, *answers, strict=True):
        typed = check(leaf, schema)
        ours = [evaluate(typed, event) for event in events]
        assert ours == theirs, f"{print_expression(leaf)} with {schema}"


def members(type_):
    """The type itself, and those of its elements and of their fields."""
    yield type_
    if type_.element is not None:
        yield from members(type_.element)
    for _, inner in paths_in(type_):
        yield from members(inner)


def may_fail(value: Any) -> bool:
    """Whether Spark ends the query, as written, where the value has no result: an overflow."""
    if not isinstance(value, Derived):
        return False
    return bool(FUNCTIONS[value.function].no_result) or any(map(may_fail, value.arguments))


def is_array(leaf: Condition, schema: Schema) -> bool:
    """Whether a leaf tests a whole array."""
    tested = (own for own in attributes_of(leaf) if not isinstance(own, Derived))
    return any(schema[own.path].element is not None for own in tested)


_NOT_IN_SPARK = (Xor, Xnor, AtLeast, InNetwork)


def is_regex(leaf: Condition) -> bool:
    """Whether a leaf tests regular expressions."""
    return isinstance(leaf, Rlike) or (isinstance(leaf, PatternList) and leaf.word == "RLIKE")


def is_as_written(leaf: Condition, schema: Schema) -> bool:
    """In arrays Spark brings no constant to the type of the elements, as it does elsewhere; it has
    no lists of regular expressions, no XOR, XNOR, at_least and in_network.
    """
    if any(map(may_fail, attributes_of(leaf))):
        return False
    if is_regex(leaf):
        return False
    if isinstance(leaf, Comparison | In) and is_array(leaf, schema):
        return False
    if isinstance(leaf, ElementTest):
        inside = list(all_subtrees(leaf.test.body))
        if any(isinstance(one, _NOT_IN_SPARK) or is_regex(one) for one in inside):
            return False
        tested = (own for one in inside for own in attributes_of(one))
        return not any(map(may_fail, tested)) and "array(" not in print_expression(leaf)
    if not isinstance(leaf, ArraysOverlap):
        return True
    element = schema[leaf.operand.path].element
    return element.name != "decimal" and all(value.type == element for value in leaf.values)


# ── every pair of interesting values ────────────────────────────────────────────────────────

NUMBERS = ("integer", "float", "double", *map(str, DECIMALS))


def pool(type_name: str) -> list[Any]:
    """All values of the pools of a type, and NULL."""
    if type_name.startswith("decimal"):
        type_ = Schema.of({"x": type_name})["x"]
        nines = (9,) * type_.precision
        unit = Decimal(1).scaleb(-type_.scale)
        return [None, Decimal(0), unit, *(Decimal((sign, nines, -type_.scale)) for sign in (0, 1))]
    floating = ONLY_IN_EVENTS if type_name in ("float", "double") else ()
    return [None, *COMMON[type_name], *EDGES[type_name], *floating]


def comparisons(left: str, right: str) -> list[Condition]:
    one, other = Attribute((left,)), Attribute((right,))
    ranges = [Between(one, one, other), Between(one, other, other, True)]
    return [*(Comparison(operator, one, other) for operator in OPERATORS), *ranges]


@pytest.mark.parametrize("type_name", ["boolean", "string", "date", "timestamp", "ip"])
def test_every_pair_of_values_of_one_type(oracle, type_name):
    schema = Schema.of({"left": type_name, "right": type_name})
    conditions = comparisons("left", "right")
    events = [{"left": left, "right": right} for left, right in product(pool(type_name), repeat=2)]
    assert_agreement(oracle, schema, conditions, events, type_name)


@pytest.mark.parametrize("type_name", NUMBERS)
def test_every_pair_of_numbers(oracle, type_name):
    """One type against each other one; several right-hand columns share a row."""
    others = {f"right {other}": other for other in NUMBERS if have_common_type(type_name, other)}
    schema = Schema.of(
        {"left": type_name, **{f"`{name}`": other for name, other in others.items()}}
    )
    conditions = [condition for name in others for condition in comparisons("left", name)]
    pools = {name: pool(other) for name, other in others.items()}
    events = [
        {"left": left, **{name: pool_[row % len(pool_)] for name, pool_ in pools.items()}}
        for left, row in product(pool(type_name), range(max(map(len, pools.values()))))
    ]
    assert_agreement(oracle, schema, conditions, events, type_name)


def have_common_type(one: str, other: str) -> bool:
    """Whether two numbers can be compared exactly: a decimal of 38 digits holds both."""
    digits = []
    for name in (one, other):
        if name in ("float", "double"):
            return True
        type_ = Schema.of({"x": name})["x"]
        digits.append((type_.precision - type_.scale, type_.scale) if type_.precision else (20, 0))
    return sum(map(max, zip(*digits, strict=True))) <= 38


# ── text ────────────────────────────────────────────────────────────────────────────────────


def test_every_string_as_pattern(oracle):
    schema = Schema.of("s STRING")
    strings = pool("string")[1:]
    patterns = ["".join("\\" + c if c in "%_\\" else c for c in text[:20]) for text in strings]
    likes = [
        Like(Attribute(("s",)), pattern, ignores_case=ignores_case)
        for pattern in [*patterns, *(f"%{text}_" for text in ("", "Σ", "i", "\U0001f600"))]
        for ignores_case in (False, True)
    ]
    assert_agreement(oracle, schema, likes, [{"s": text} for text in strings], "LIKE")


def test_lower_case_of_every_character(oracle):
    """What ILIKE rests on, for all characters that this Python's Unicode knows."""
    characters = [
        chr(point)
        for point in range(0x110000)
        if not 0xD800 <= point < 0xE000 and unicodedata.category(chr(point)) != "Cn"
    ]
    # Many to a row, apart: a neighbour could change the case of Σ.
    separator = "\n"
    characters.remove(separator)
    rows = [characters[start : start + 500] for start in range(0, len(characters), 500)]
    table = pa.table({"s": [separator.join(row) for row in rows]})
    answer = oracle.createDataFrame(table).selectExpr("s", "lower(s) AS folded").toArrow()
    folded = {
        character: theirs
        for text, text_folded in zip(*answer.to_pydict().values(), strict=True)
        for character, theirs in zip(
            text.split(separator), text_folded.split(separator), strict=True
        )
    }
    assert len(folded) == len(characters) > 140_000
    assert [character for character in characters if character.lower() != folded[character]] == []


def test_lower_case_of_sigma_in_context(oracle):
    """Σ at the end of a word is ς: what counts as the end must be the same."""
    letters = ("Σ", "Α", "a", "1", ".", "\u0301", "'", "\u00ad", " ", "\U0001d400", "日")
    texts = ["".join(letters_) for n in range(1, 5) for letters_ in product(letters, repeat=n)]
    frame = oracle.createDataFrame(pa.table({"s": texts})).selectExpr("s", "lower(s) AS folded")
    differing = [
        (text, folded)
        for text, folded in zip(*frame.toArrow().to_pydict().values(), strict=True)
        if text.lower() != folded
    ]
    assert differing == []


SPELLED_MOMENTS = (
    *("2024-01-15", "2024-1-5", "2024-01", "2024", "20240115", "2024-02-30", "0000-01-01"),
    *("10000-01-01", "+2024-01-15", "-0044-03-15", " 2024-01-15", "2024-01-15\n", "today", "now"),
    *("epoch", "10:30", "T10:30", "10:30:00Z", "2024-01-15T", "2024-01-15T10", "2024-01-15T10:30"),
    *("2024-01-15 10:30:00", "2024-01-15 10:30:60", "2024-01-15 24:00:00", "2024-01-15  10:30"),
    *("2024-01-15 10:30:00.1", "2024-01-15 10:30:00.123456", "2024-01-15 10:30:00.1234567"),
    *("2024-01-15 10:30:00.", "2024-01-15T10:30:00Z", "2024-01-15T10:30:00 Z", "2024-01-15Z"),
    *("2024-01-15T10:30:00+02:00", "2024-01-15T10:30:00-18:00", "2024-01-15T10:30:00+18:01"),
    *("2024-01-15T10:30:00+2:00", "2024-01-15T10:30:00+02", "2024-01-15T10:30:00 UTC"),
    *("0001-01-01T00:00:00+05:00", "0001-01-01T05:00:00+05:00", "9999-12-31T23:59:59-05:00"),
    *("9999-12-31T23:59:59.999999Z", "٢٠٢٤-01-15", "2024-01-15T10:30:00\u00a0Z", "", " ", "x"),
)


def test_moments_that_are_spelled_in_strings(oracle):
    """A cast reads what an event may have, and no other spelling, in Spark too."""
    schema = Schema.of("s STRING")
    conditions = [
        parse(text)
        for kind in ("DATE", "TIMESTAMP")
        for text in (
            f"cast(s AS {kind}) IS NULL",
            f"cast(s AS {kind}) > DATE '2024-01-14'",
            f"cast(cast(s AS {kind}) AS STRING) LIKE '2024-01-15%'",
        )
    ]
    conditions.append(parse("cast(s AS TIMESTAMP) = TIMESTAMP '2024-01-15 10:30:00'"))
    conditions.append(parse("hour(cast(s AS TIMESTAMP)) IN (0, 8, 10)"))
    events = [{"s": own} for own in SPELLED_MOMENTS] + [{"s": None}]
    assert_agreement(oracle, schema, conditions, events, "spelled moments")


# ── names and columns ───────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_every_keyword_of_spark_is_a_name(oracle):
    words = [row.keyword for row in oracle.sql("SELECT keyword FROM sql_keywords()").collect()]
    assert len(words) > 300
    assert_names_are_read_back(oracle, words)


def test_words_of_sql_are_names(oracle):
    words = "all and array case current_date current_path date distinct end exists from interval"
    words += " in like map not null r select table timestamp true user values when with x xor"
    assert_names_are_read_back(oracle, words.split())


def assert_names_are_read_back(oracle: SparkSession, words: Sequence[str]) -> None:
    """Printed for Spark, a name is read as that name, whatever it means elsewhere in SQL."""
    parser = oracle._jsparkSession.sessionState().sqlParser()

    def read_back(name: str) -> str:
        texts = map(print_for_spark, uses_of_name(name))
        return parser.parseExpression(f"array({', '.join(texts)})").toString()

    plain = read_back("plain_name")
    misread = [word for word in words if read_back(word) != plain.replace("plain_name", word)]
    assert misread == []


def uses_of_name(name: str) -> list[Condition]:
    """The name first, last and alone, in parentheses and as an argument."""
    schema = Schema({(name,): BOOLEAN, ("s", name): STRING})
    attribute, text = Attribute((name,)), Attribute(("s", name))
    one, other = parse("TRUE"), parse("FALSE")
    uses = [attribute, Not(attribute), In(attribute, (one,)), Between(attribute, one, attribute)]
    uses += [Xor((use, other)) for use in uses] + [AtLeast(1, (use,)) for use in uses]
    uses += [IsNull(attribute), Comparison(Comparator.EQUAL, one, attribute)]
    uses += [Like(text, "x", "!"), Comparison(Comparator.BELOW, text, text)]
    return [check(use, schema) for use in uses]


@pytest.mark.parametrize("arrow_type", [pa.int8(), pa.int16(), pa.int32()], ids=str)
def test_narrow_integer_columns(oracle, seed, arrow_type):
    """Our integer stands for all of Spark's: the answers do not depend on the column's width."""
    rng = Random(f"{seed}-{arrow_type}")
    schema = Schema.of("i BIGINT, n BIGINT")
    conditions = [random_condition(rng, schema, depth=1) for _ in range(60)]
    values = [None, -128, -1, 0, 1, 2, 3, 4, 5, 127]
    events = [{"i": i, "n": n} for i, n in product(values, repeat=2)]
    columns = {name: pa.array([event[name] for event in events], arrow_type) for name in "in"}
    frame = oracle.createDataFrame(pa.table({**columns, ROW: range(len(events))}))
    answers = ask_spark_texts(frame, [print_for_spark(condition) for condition in conditions])
    for condition, *theirs in zip(conditions, *answers, strict=True):
        ours = [evaluate(condition, event) for event in events]
        assert ours == theirs, print_for_spark(condition)


def test_timestamps_without_a_zone(oracle, seed):
    """TIMESTAMP_NTZ columns are instants of UTC."""
    rng = Random(f"{seed}-ntz")
    schema = Schema.of("t TIMESTAMP, u TIMESTAMP")
    conditions = [random_condition(rng, schema, depth=1) for _ in range(60)]
    moments = [moment and moment.replace(tzinfo=None) for moment in pool("timestamp")]
    events = [{"t": t, "u": u} for t, u in product(moments, repeat=2)]
    columns = {
        name: pa.array([event[name] for event in events], pa.timestamp("us")) for name in "tu"
    }
    frame = oracle.createDataFrame(pa.table({**columns, ROW: range(len(events))}))
    answers = ask_spark_texts(frame, [print_for_spark(condition) for condition in conditions])
    for condition, *theirs in zip(conditions, *answers, strict=True):
        ours = [evaluate(condition, event) for event in events]
        assert ours == theirs, print_for_spark(condition)


# ── texts that Spark reads as we do ─────────────────────────────────────────────────────────

MOMENT = "2024-01-31T09:00:00Z"
READ_ALIKE = (
    # Strings hold any character but a lone surrogate.
    *(f"s = 'a{c}b'" for c in "\x00\x07\x08\x0b\x0c\x1b\x1f\x7f\x80\x85\x9b"),
    *("s = r'a\x07b'", "s LIKE 'a\x07_'", "s RLIKE 'a\x07b'", "s IN ('\x1b[0m', 'a\x07b')"),
    # Any one character can be that of ESCAPE.
    *("s LIKE 'aAAb' ESCAPE 'A'", "s LIKE 'aA%b' ESCAPE 'A'", "s LIKE 'aAb' ESCAPE 'x'"),
    *("s LIKE 'aé%b' ESCAPE 'é'", "s LIKE 'a1_b' ESCAPE '1'", "s LIKE 'a\t%b' ESCAPE '\t'"),
    *("s NOT LIKE 'aA%b' ESCAPE 'A'", "s ILIKE 'A1%B' ESCAPE '1'", "s LIKE 'AA%' ESCAPE 'A'"),
    # A blank may stand before the zone of a timestamp.
    *(f"t = {word}'2024-01-31 10:00:00 +01:00'" for word in ("", "TIMESTAMP ")),
    *("t = TIMESTAMP '2024-01-31T09:00:00.000 Z'", "t < '2024-01-31 09:00:00.000001 Z'"),
    # A date stands for its midnight, as a constant and in an event.
    *("t > DATE '2024-01-30'", "t < u", "u = DATE '2024-01-31'", "u < t", "u >= '2024-01-31'"),
)


def test_texts_that_spark_reads_as_we_do(oracle):
    schema = Schema.of("s STRING, t TIMESTAMP, u TIMESTAMP")
    strings = [f"a{c}b" for c in "\x00\x07\x08\x0b\x0c\x1b\x1f\x7f\x80\x85\x9b"]
    strings += ["aAb", "a%b", "a_b", "aab", "A", "A%", "a", "\x1b[0m", "", "a\tb", "ab"]
    day = date(2024, 1, 31)
    columns = {
        "s": pa.array(strings),
        "t": pa.array([datetime.fromisoformat(MOMENT)] * len(strings), pa.timestamp("us", "UTC")),
        "u": pa.array([day] * len(strings)),  # a DATE column
        ROW: pa.array(range(len(strings))),
    }
    answers = ask_spark_texts(oracle.createDataFrame(pa.table(columns)), READ_ALIKE)
    table = pa.table({name: own for name, own in columns.items() if name != ROW})
    index = tamis.build({text: text for text in READ_ALIKE}, schema=schema)
    found = index.match_lists(table).to_pylist()
    for row, text in enumerate(strings):
        event = {"s": text, "t": MOMENT, "u": day}
        for at, written in enumerate(READ_ALIKE):
            truth = evaluate(check(parse(written), schema), event)
            assert truth is answers[row][at], (written, text)
            assert (written in found[row]) is (truth is True), (written, text)
        assert index.match(event) == found[row]


# ── where we differ, and why ────────────────────────────────────────────────────────────────


class Difference(NamedTuple):
    """One text that means one thing to us and another to Spark."""

    why: str
    schema: str
    text: str
    event: dict[str, Any]
    ours: Truth
    sparks: Truth


DOCUMENTED_DIFFERENCES = (
    Difference(
        "A constant takes the type of the attribute: 0.1 is the float 0.1. Spark widens the float.",
        *("f FLOAT", "f = 0.1", {"f": 0.1}),
        *(True, False),
    ),
    Difference(
        "The same in a list.",
        *("f FLOAT", "f IN (0.5, 0.1)", {"f": 0.1}),
        *(True, False),
    ),
    Difference(
        "The same for whole numbers that no float is, if they are written as decimals.",
        *("f FLOAT", "f = 16777217.0", {"f": 16777216.0}),
        *(True, False),
    ),
    Difference(
        "Elements of an array are sought by constants of their type, whatever is next to them.",
        *("fs ARRAY<FLOAT>", "arrays_overlap(fs, array(16777217, 0.5F))", {"fs": [16777216.0]}),
        *(True, False),
    ),
    Difference(
        "The same where it rounds down: the float 0.1 is above the decimal 0.1.",
        *("f FLOAT", "f > 0.1", {"f": 0.1}),
        *(False, True),
    ),
    Difference(
        "RE2's $ is the end of the text; Java's is also before a line feed at the end.",
        *("s STRING", "s RLIKE 'a$'", {"s": "a\n"}),
        *(False, True),
    ),
    Difference(
        "RE2's . is any character but the line feed; Java leaves out more line ends.",
        *("s STRING", "s RLIKE '^.$'", {"s": "\r"}),
        *(True, False),
    ),
    Difference(
        "RE2's (?i) knows all letters; Java's only ASCII.",
        *("s STRING", "s RLIKE '(?i)É'", {"s": "é"}),
        *(True, False),
    ),
)


@pytest.mark.parametrize("difference", DOCUMENTED_DIFFERENCES, ids=lambda case: case.text)
def test_documented_difference(oracle, difference):
    schema = Schema.of(difference.schema)
    condition = check(parse(difference.text), schema)
    frame = events_frame(oracle, schema, [difference.event])
    texts = [difference.text, print_for_spark(condition), in_spark_sql(difference.text, schema)]
    written, printed, audited = ask_spark_texts(frame, texts)[0]
    assert evaluate(condition, difference.event) is difference.ours, difference.why
    assert written is difference.sparks, difference.why
    assert printed is difference.ours, "the printed text says to Spark what we mean"
    assert audited is difference.ours, "and so it does with constants as they were written"


REFUSED = (
    ("i = 'x'", "no coercion between numbers and strings; Spark fails at run time"),
    ("i < 9223372036854775808.5", "outside 64 bits; Spark answers TRUE even on NULL"),
    ("i = 9007199254740992D", "no doubles on integers; Spark compares them rounded"),
    ("s = 5", "no coercion between numbers and strings; Spark fails on a bad row"),
    ("b = 1", "no coercion of Booleans; Spark refuses it too"),
    ("dt = '2024-01-15 10:00:00'", "a date is a date; Spark drops the time"),
    ("m IN (0.000000000000000001, 999999999999999999999999999999BD)", "Spark rounds the members"),
    ("0.00000000000000000000000000000000000001 = 0BD", "Spark rounds to 38 digits: TRUE"),
)


@pytest.mark.parametrize(("text", "why"), REFUSED, ids=[text for text, _ in REFUSED])
def test_refused_where_sparks_answer_would_mislead(text, why):
    schema = Schema.of("i BIGINT, s STRING, b BOOLEAN, dt DATE, m DECIMAL(20,0)")
    with pytest.raises(TypeCheckError):
        check(parse(text), schema)
    assert why
