"""Values of every form are read as `read_value` reads them, one by one."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.events.arrow_arrays import plain_array, valid_places
from tamis.events.arrow_values import convert_array
from tamis.events.entries import Converted, ConvertedArrays
from tamis.events.python_values import as_objects, classes_of, convert_objects
from tamis.events.spelled import convert_texts
from tamis.index.carriers import LARGE_STRING, from_wides
from tamis.language.types import (
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INTEGER,
    IP,
    NUMBER,
    STRING,
    TIMESTAMP,
    Type,
    WrongTypeError,
    array_type,
    decimal_type,
    read_text,
    read_value,
)
from tamis.language.types.addresses import print_address
from tests.events.layouts import NONSENSE, spell
from tests.generators.events import WRONG_VALUES, random_value
from tests.generators.schemas import random_type
from tests.generators.values import random_scalar

SCALARS = (
    *(BOOLEAN, INTEGER, FLOAT, DOUBLE, STRING, DATE, TIMESTAMP),
    *(decimal_type(5, 2), decimal_type(38, 18), decimal_type(18, 18), decimal_type(38, 0)),
)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
REFUSED = object()


def carried(value: Any, type_: Type) -> Any:
    """A typed value as its carrier shows it in `to_list`."""
    match type_.name:
        case "boolean":
            return int(value)
        case "date":
            return value.toordinal() - EPOCH.toordinal()
        case "timestamp":
            return (value - EPOCH) // timedelta(microseconds=1)
        case "decimal":
            return int(value * Decimal(10) ** type_.scale) if type_.precision < 28 else value
        case "float" | "double":
            return "nan" if math.isnan(value) else (value, math.copysign(1, value))
        case _:
            return value


def to_list(converted: Converted, type_: Type, length: int) -> list[Any]:
    """The good values of a scalar type, REFUSED in the place of others."""
    is_good = np.ones(length, bool) if converted.is_good is None else converted.is_good
    values = converted.values
    if values is None:
        assert not is_good.any()
        return [REFUSED] * length
    if type_.name == "decimal":
        numbers = from_wides(values)
        if type_.precision >= 28:
            numbers = [
                Decimal((n < 0, tuple(map(int, str(abs(n)))), -type_.scale)) for n in numbers
            ]
        shown: list[Any] = list(numbers)
    elif type_.name in ("float", "double"):
        shown = [carried(float(value), type_) for value in values]
    else:
        shown = values.to_pylist() if isinstance(values, pa.Array) else values.tolist()
    return [value if good else REFUSED for value, good in zip(shown, is_good, strict=True)]


def expected(values: list[Any], type_: Type, read: Any = read_value) -> list[Any]:
    found = []
    for value in values:
        try:
            found.append(carried(read(value, type_), type_))
        except WrongTypeError:
            found.append(REFUSED)
    return found


# ── Python values ───────────────────────────────────────────────────────────────────────────

ODD_VALUES = (
    *WRONG_VALUES,
    *(np.int64(5), np.float32(0.1), np.bool_(True), np.str_("a"), np.datetime64("2024-01-15")),
    *(np.datetime64("2024-01-15T10:30:00.5"), np.array([1, 2]), np.array(["a"]), np.array(7)),
    *(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))), "2024-01-15T10:30:00+02:00"),
    *(datetime(2024, 1, 15, tzinfo=timezone(timedelta(hours=-3))), True, False, -0.0, 2**1024),
    *(-(2**63), 2**63 - 1, 2**53 + 1, 1e300, 3.5e38, 1e-50, Decimal("-0"), Decimal("1E+5"), 0.1),
    *(Decimal("0.10"), Decimal("123456789012345678901234567890.12345678"), "é", "\udc80x", ""),
)


@given(seed=st.integers(0, 2**32))
def test_python_values(seed):
    rng = Random(seed)
    type_ = rng.choice(SCALARS)
    values = [
        rng.choice(ODD_VALUES) if rng.random() < 0.3 else random_value(rng, type_)
        for _ in range(rng.randint(0, 20))
    ]
    values = [value for value in values if value is not None]
    converted = convert_objects(as_objects(values, len(values)), classes_of(values), type_)
    assert isinstance(converted, Converted)
    assert to_list(converted, type_, len(values)) == expected(values, type_)


@given(seed=st.integers(0, 2**32))
def test_python_arrays(seed):
    rng = Random(seed)
    type_ = array_type(rng.choice(SCALARS))
    values = [
        rng.choice(ODD_VALUES) if rng.random() < 0.3 else random_value(rng, type_)
        for _ in range(rng.randint(0, 20))
    ]
    converted = convert_objects(as_objects(values, len(values)), classes_of(values), type_)
    check_arrays(converted, values, type_)


def check_arrays(converted: Any, values: list[Any], type_: Type, read: Any = read_value) -> None:
    assert isinstance(converted, ConvertedArrays)
    element = type_.element
    assert element is not None
    n_known = int(converted.lengths.sum())
    flat = iter(to_list(Converted(converted.values), element, n_known) if n_known else [])
    for at, value in enumerate(values):
        try:
            typed = read(value, type_)
        except WrongTypeError:
            assert converted.is_good is not None
            assert not converted.is_good[at]
            assert converted.lengths[at] == 0
            continue
        known = [carried(own, element) for own in typed if own is not None]
        assert converted.is_good is None or converted.is_good[at]
        assert [next(flat) for _ in range(converted.lengths[at])] == known
        n_nulls = 0 if converted.nulls is None else converted.nulls.counts[at]
        assert n_nulls == typed.count(None)
    assert next(flat, None) is None


# ── Arrow ───────────────────────────────────────────────────────────────────────────────────

ARROW_VALUES: list[pa.Array] = [
    pa.array([True, False, None]),
    *(pa.array([0, 1, 100, None], type_) for type_ in (pa.int8(), pa.uint8(), pa.int16())),
    *(
        pa.array([0, 70_000, None], type_)
        for type_ in (pa.int32(), pa.uint32(), pa.uint16())
        if type_ != pa.uint16()
    ),
    pa.array([-(2**63), 2**63 - 1, 0, None, 2**53 + 1], pa.int64()),
    pa.array([2**64 - 1, 2**63, 2**63 - 1, 0, None], pa.uint64()),
    pa.array([0.5, -0.0, math.nan, math.inf, None], pa.float16()),
    pa.array([0.1, -0.0, math.nan, -math.inf, None], pa.float32()),
    pa.array([0.1, -0.0, math.nan, math.inf, 3.5e38, 1e-50, 12.345, 12.5, None], pa.float64()),
    pa.array([Decimal("1.50"), Decimal("-999.99"), None], pa.decimal128(5, 2)),
    pa.array([Decimal("1.505"), Decimal("1.500"), Decimal("1e20"), None], pa.decimal128(38, 3)),
    pa.array([Decimal("1E+3"), None], pa.decimal128(5, -2)),
    pa.array([Decimal("0.5"), Decimal("-0.25")], pa.decimal32(3, 2)),
    pa.array([Decimal("0.5"), Decimal("123456.25")], pa.decimal64(12, 2)),
    pa.array([Decimal("1" * 60), Decimal("2.5"), None], pa.decimal256(70, 2)),
    pa.array(["", "a", "é", "2024-01-15", "2024-02-30", "2024-01-15 10:30:00.5Z", None]),
    pa.array(["a", None, "x" * 300], pa.large_string()),
    pa.array(["a", None, "x" * 300], pa.string_view()),
    pa.array([b"a", None]),
    pa.array([date(1, 1, 1), date(9999, 12, 31), date(1970, 1, 1), None]),
    pa.array([date(1, 1, 1), date(9999, 12, 31), None], pa.date64()),
    *(
        pa.array(
            [datetime(2024, 1, 15, 10, 30), datetime(1969, 12, 31), None], pa.timestamp(unit, zone)
        )
        for unit in ("s", "ms", "us", "ns")
        for zone in (None, "UTC", "Asia/Tokyo")
    ),
    pa.array([0, None], pa.time32("s")),
    pa.array([0, None], pa.duration("us")),
    pa.array([{"a": 1}, None]),
    pa.nulls(3),
]


@pytest.mark.parametrize("type_", SCALARS, ids=str)
@pytest.mark.parametrize("array", ARROW_VALUES, ids=lambda array: str(array.type))
def test_arrow_values(array, type_):
    wrapped = [array]
    if not pa.types.is_nested(array.type) and not pa.types.is_null(array.type):
        wrapped.append(pa.concat_arrays([array.slice(1), array]).slice(1))
        if array.type not in (pa.string_view(), pa.decimal32(3, 2), pa.decimal64(12, 2)):
            wrapped.append(array.dictionary_encode())
    for own in wrapped:
        plain = plain_array(own)
        places = valid_places(plain)
        values = [_plain(value) for value in own.to_pylist() if value is not None]
        converted = convert_array(plain, places, type_, is_spelled=False)
        assert to_list(converted, type_, len(values)) == expected(values, type_)


def _plain(value: Any) -> Any:
    return value.to_pydatetime() if hasattr(value, "to_pydatetime") else value


@pytest.mark.parametrize("element", SCALARS, ids=str)
@pytest.mark.parametrize("array", ARROW_VALUES, ids=lambda array: str(array.type))
def test_arrow_lists(array, element):
    offsets = pa.array([0, 0, 1, None, len(array) // 2, len(array)], pa.int32())
    lists = pa.ListArray.from_arrays(offsets, array)
    lists = lists.take(pa.array([3, 0, 1, 4, 2, 4])) if array.type != pa.string_view() else lists
    for own in (lists, lists.slice(1), lists.slice(0, 3)):
        values = [
            [_plain(item) for item in own_list]
            for own_list in own.to_pylist()
            if own_list is not None
        ]
        converted = convert_array(own, valid_places(own), array_type(element), is_spelled=False)
        check_arrays(converted, values, array_type(element))


def test_dates_and_instants_that_python_does_not_have():
    days = pa.array([-719_163, -719_162, 2_932_896, 2_932_897, 2**31 - 1, -(2**31)], pa.date32())
    assert convert_array(days, None, DATE, is_spelled=False).is_good.tolist() == [
        *(False, True, True, False, False, False),
    ]
    for unit, ticks in (("s", 10**6), ("ms", 10**3), ("us", 1)):
        first, last = -62_135_596_800_000_000 // ticks, 253_402_300_799_999_999 // ticks
        instants = pa.array([first - 1, first, last, last + 1, 2**63 - 1, -(2**63)], pa.int64())
        array = instants.cast(pa.timestamp(unit))
        assert convert_array(array, None, TIMESTAMP, is_spelled=False).is_good.tolist() == [
            *(False, True, True, False, False, False),
        ]


def test_nanoseconds_must_be_whole_microseconds():
    array = pa.array([1_000, 1_001, -1_000, -999, 0, -(2**63)], pa.timestamp("ns"))
    converted = convert_array(array, None, TIMESTAMP, is_spelled=False)
    assert converted.is_good.tolist() == [True, False, True, False, True, False]
    assert converted.values[converted.is_good].tolist() == [1, -1, 0]


def test_text_that_is_not_utf8():
    data = pa.py_buffer(b"ab\xff\xc3\xa9")
    array = pa.Array.from_buffers(
        pa.string(), 4, [None, pa.py_buffer(np.array([0, 1, 3, 5, 5], np.int32)), data]
    )
    for type_, is_good in ((STRING, [True, False, True, True]), (DATE, [False] * 4)):
        assert convert_array(array, None, type_, is_spelled=False).is_good.tolist() == is_good
    spelled = convert_array(array, None, array_type(STRING), is_spelled=True)
    assert spelled.is_good.tolist() == [False] * 4


# ── texts ───────────────────────────────────────────────────────────────────────────────────

ALPHABET = "0123456789+-.eETZ: \t[]aNfinityt"


def random_text(rng: Random, type_: Type) -> str:
    draw = rng.random()
    if draw < 0.2:
        return rng.choice(NONSENSE)
    if draw < 0.4:
        return "".join(rng.choices(ALPHABET, k=rng.randint(0, 12)))
    text = spell(read_value(random_scalar(rng, type_), type_))
    if draw < 0.7 and text:  # one character off
        at = rng.randrange(len(text))
        return text[:at] + rng.choice((*ALPHABET, "")) + text[at + 1 :]
    return text


@given(seed=st.integers(0, 2**32))
def test_texts(seed):
    rng = Random(seed)
    type_ = rng.choice(SCALARS)
    texts = [random_text(rng, type_) for _ in range(100)]
    converted = convert_texts(pa.array(texts, LARGE_STRING), type_)
    assert to_list(converted, type_, len(texts)) == expected(texts, type_, read_text)


@pytest.mark.parametrize("type_", SCALARS, ids=str)
def test_nonsense(type_):
    texts = list(NONSENSE)
    converted = convert_texts(pa.array(texts, LARGE_STRING), type_)
    assert to_list(converted, type_, len(texts)) == expected(texts, type_, read_text)


@given(seed=st.integers(0, 2**32))
def test_what_is_spelled_reads_back(seed):
    rng = Random(seed)
    type_ = random_type(rng)
    typed = read_value(random_value(rng, type_), type_)
    if (type_.element or type_) == NUMBER:
        typed = read_text(spell(typed), type_)  # a decimal may be a double in text
    elif type_.element is not None and type_.element.name == "struct":
        # Fields of structs get their types where they are tested: a date is still a text.
        typed = read_text(spell(to_written(typed, type_)), type_)
    again = read_text(spell(to_written(typed, type_)), type_)
    assert again == typed or repr(again) == repr(typed)  # NaN


def to_written(typed, type_):
    """The value as people write it: an address is not its digits."""
    if (type_.element or type_) != IP:
        return typed
    if type_ == IP:
        return print_address(typed)
    return [None if own is None else print_address(own) for own in typed]


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("+5", INTEGER, 5),
        ("007", INTEGER, 7),
        ("-0", INTEGER, 0),
        ("9223372036854775807", INTEGER, 2**63 - 1),
        ("9223372036854775808", INTEGER, REFUSED),
        ("5.0", INTEGER, 5),
        ("5.", INTEGER, 5),
        ("5e2", INTEGER, 500),
        ("9223372036854775807.0", INTEGER, 2**63 - 1),
        ("9223372036854775808.0", INTEGER, REFUSED),
        ("1e999999999", INTEGER, REFUSED),
        ("5.5", INTEGER, REFUSED),
        ("NaN", INTEGER, REFUSED),
        (" 5", INTEGER, REFUSED),
        ("٣", INTEGER, REFUSED),
        ("1_000", DOUBLE, REFUSED),
        (".5", DOUBLE, 0.5),
        ("1e400", DOUBLE, math.inf),
        ("-Infinity", DOUBLE, -math.inf),
        ("inf", DOUBLE, REFUSED),
        ("0.1", FLOAT, 0.10000000149011612),
        ("0.100", decimal_type(5, 2), Decimal("0.1")),
        ("0.101", decimal_type(5, 2), REFUSED),
        ("true", BOOLEAN, True),
        ("True", BOOLEAN, True),
        ("FALSE", BOOLEAN, False),
        ("yes", BOOLEAN, REFUSED),
        ("1", BOOLEAN, REFUSED),
        ("2024-02-29", DATE, date(2024, 2, 29)),
        ("2023-02-29", DATE, REFUSED),
        ("2024-01-15T10:30:00.1234567Z", TIMESTAMP, REFUSED),
        ('["a", null]', array_type(STRING), ("a", None)),
        ("[0.10]", array_type(decimal_type(5, 2)), (Decimal("0.10"),)),
        ("a,b", array_type(STRING), REFUSED),
        ("", STRING, ""),
    ],
)
def test_what_texts_spell(text, type_, value):
    if value is REFUSED:
        with pytest.raises(WrongTypeError):
            read_text(text, type_)
    else:
        assert read_text(text, type_) == value
