"""How an event's value is read as its attribute's type, or found to be of the wrong one."""

from __future__ import annotations

import math
import struct
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.language.types import (
    ANY,
    BOOLEAN,
    DATE,
    DOUBLE,
    FLOAT,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    STRING,
    TIMESTAMP,
    WrongTypeError,
    array_type,
    decimal_digits,
    decimal_type,
    fits_decimal,
    parse_date,
    parse_timestamp,
    read_value,
    round_to_float,
)

MONEY = decimal_type(5, 2)
NOON = datetime(2024, 1, 15, 12, 0, tzinfo=UTC)

READ = [
    (BOOLEAN, True, True),
    (BOOLEAN, np.bool_(False), False),
    (INTEGER, 5, 5),
    (INTEGER, INT64_MIN, INT64_MIN),
    (INTEGER, INT64_MAX, INT64_MAX),
    (INTEGER, np.int8(5), 5),
    (INTEGER, np.uint64(5), 5),
    (INTEGER, 5.0, 5),
    (INTEGER, -0.0, 0),
    (INTEGER, -(2.0**63), INT64_MIN),
    (INTEGER, np.float64(5), 5),
    (INTEGER, np.float32(5), 5),
    (INTEGER, Decimal("5.00"), 5),
    (INTEGER, Decimal("9223372036854775807.0"), INT64_MAX),
    (DOUBLE, 1.5, 1.5),
    (DOUBLE, 5, 5.0),
    (DOUBLE, 2**53 + 1, float(2**53)),
    (DOUBLE, Decimal("0.1"), 0.1),
    (DOUBLE, math.inf, math.inf),
    (DOUBLE, np.float32(0.5), 0.5),
    (FLOAT, 0.1, 0.10000000149011612),
    (FLOAT, 1e39, math.inf),
    (FLOAT, -1e39, -math.inf),
    (FLOAT, 1e-50, 0.0),
    (FLOAT, 16777217, 16777216.0),
    (MONEY, Decimal("123.45"), Decimal("123.45")),
    (MONEY, Decimal("1.500"), Decimal("1.5")),
    (MONEY, 999, Decimal(999)),
    (MONEY, 0.1, Decimal("0.1")),
    (MONEY, 1.25, Decimal("1.25")),
    (STRING, "x", "x"),
    (STRING, "", ""),
    (STRING, "\U0001f600", "\U0001f600"),
    (STRING, "a\x00b", "a\x00b"),
    (DATE, date(2024, 1, 15), date(2024, 1, 15)),
    (DATE, "2024-01-15", date(2024, 1, 15)),
    (DATE, "0001-01-01", date(1, 1, 1)),
    (TIMESTAMP, NOON, NOON),
    (TIMESTAMP, NOON.replace(tzinfo=None), NOON),
    (TIMESTAMP, NOON.astimezone(timezone(timedelta(hours=2))), NOON),
    (TIMESTAMP, "2024-01-15T12:00:00Z", NOON),
    (TIMESTAMP, "2024-01-15 12:00", NOON),
    (TIMESTAMP, "2024-01-15 14:00:00.000000+02:00", NOON),
    (TIMESTAMP, "2024-01-15 12:00:00 Z", NOON),
    (TIMESTAMP, "2024-01-15 14:00:00 +02:00", NOON),
    (TIMESTAMP, "2024-01-15", datetime(2024, 1, 15, tzinfo=UTC)),
    (TIMESTAMP, date(2024, 1, 15), datetime(2024, 1, 15, tzinfo=UTC)),
    (TIMESTAMP, np.datetime64("2024-01-15"), datetime(2024, 1, 15, tzinfo=UTC)),
    (TIMESTAMP, "2024-01-15T12:00:00.5", NOON + timedelta(microseconds=500000)),
    (array_type(INTEGER), [1, None, 2], (1, None, 2)),
    (array_type(INTEGER), (), ()),
    (array_type(DOUBLE), [1], (1.0,)),
    (array_type(INTEGER), np.array([1, 2]), (1, 2)),
    (array_type(DATE), ["2024-01-15"], (date(2024, 1, 15),)),
    (ANY, b"x", b"x"),
    (ANY, {}, {}),
]


@pytest.mark.parametrize(("type_", "value", "read"), READ, ids=str)
def test_read(type_, value, read):
    found = read_value(value, type_)
    assert found == read
    assert type(found) is type(read)


WRONG_VALUES = {
    BOOLEAN: [1, 0, "true", 1.0, [True]],
    INTEGER: [
        *(True, 5.5, "5", Decimal("5.5"), 2**63, -(2**63) - 1, 10**5000, 2.0**63, math.nan),
        *(math.inf, Decimal("1e400"), Decimal("NaN"), Decimal("sNaN"), Decimal("-Infinity")),
        *(np.float64(5.5), np.uint64(2**63), b"5", [5], {}, object()),
    ],
    DOUBLE: [True, "1.5", 10**400, 10**5000, b"1", [1.0], 1j, Decimal("sNaN")],
    FLOAT: [True, "1.5", 10**400, Decimal("sNaN")],
    MONEY: [
        *(True, "1.5", 1000, 1.255, Decimal("0.001"), math.nan, math.inf, 10**5000),
        *(Decimal("NaN"), Decimal("sNaN"), Decimal("1e400"), Decimal("-1000")),
    ],
    STRING: [5, b"x", ["x"], True, "\ud800", "a\udfffb"],
    DATE: [
        *(NOON, 20240115, "2024-1-15", "2024-01-15T00:00:00", "2024-02-30", "٢٠٢٤-٠١-١٥"),
        *("0000-01-01", "", "2024-01-15 ", "+2024-01-15", "2024-01-15\n"),
    ],
    TIMESTAMP: [
        *(
            "2024-01-15 12:00:00\tZ",
            "2024-01-15 12:00:00  Z",
            "2024-01-15 12:00:00 ",
            1705312800,
            "noon",
            "2024-01-15T25:00",
            "12:00",
            "2024-01-15 12:00 UTC",
        ),
        *("2024-01-15 12:00:00.1234567", "2024-01-15T12:00:00+19:00", "2024-01-15T12:00:00+01:60"),
        # Outside years 1 to 9999 once they are in UTC.
        *("0001-01-01 00:00+02:00", "9999-12-31 23:59-02:00"),
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-2))),
    ],
    array_type(INTEGER): ["12", 5, {1: 2}, [1, "2"], [[1]], [True], {1, 2}],
}


@pytest.mark.parametrize(
    ("type_", "value"),
    [(type_, value) for type_, values in WRONG_VALUES.items() for value in values],
    ids=lambda value: f"{type(value).__name__}",
)
def test_wrong(type_, value):
    with pytest.raises(WrongTypeError) as caught:
        read_value(value, type_)
    assert len(str(caught.value)) < 300


class Hostile:
    """An object that does not even let itself be shown."""

    def __repr__(self):
        raise RuntimeError("no")


@pytest.mark.parametrize(
    "type_",
    [BOOLEAN, INTEGER, FLOAT, DOUBLE, MONEY, STRING, DATE, TIMESTAMP, array_type(DATE)],
    ids=str,
)
def test_hostile_values_are_of_the_wrong_type(type_):
    for value in (Hostile(), object, 1j, range(3), lambda: 5):
        with pytest.raises(WrongTypeError):
            read_value(value, type_)


def test_nan_and_negative_zero():
    assert math.isnan(read_value(math.nan, DOUBLE))
    assert math.isnan(read_value(math.nan, FLOAT))
    assert math.isnan(read_value(Decimal("NaN"), DOUBLE))
    for type_ in (FLOAT, DOUBLE):
        assert math.copysign(1, read_value(-0.0, type_)) == 1
        assert math.copysign(1, read_value(Decimal("-0"), type_)) == 1
    assert math.copysign(1, read_value(-1e-50, FLOAT)) == 1
    assert not read_value(Decimal("-0.00"), MONEY).is_signed()


@given(st.floats(allow_nan=False))
def test_rounding_to_float_is_numpys(value):
    with np.errstate(over="ignore"):
        assert round_to_float(value) == float(np.float32(value))


@given(st.floats(width=32, allow_nan=False))
def test_a_float_is_its_own_rounding(value):
    assert struct.pack("f", round_to_float(value)) == struct.pack("f", value)


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_digits_of_a_decimal(value):
    before, after = decimal_digits(value)
    plain = format(value.copy_abs(), "f")
    whole, _, fraction = plain.partition(".")
    assert before == len(whole.lstrip("0"))
    assert after == len(fraction.rstrip("0"))
    if before + after <= 38:
        type_ = decimal_type(max(1, before + after), after)
        assert fits_decimal(value, type_)
        assert read_value(value, type_) == value


@given(st.dates())
def test_every_date_reads_back(value):
    assert parse_date(value.isoformat()) == value


@given(
    st.datetimes(min_value=datetime(1, 1, 2), max_value=datetime(9999, 12, 30)),
    st.integers(-18, 18),
)
def test_every_timestamp_reads_back(moment, hours):
    zone = timezone(timedelta(hours=hours))
    assert parse_timestamp(moment.replace(tzinfo=zone).isoformat()) == moment.replace(tzinfo=zone)
    assert parse_timestamp(moment.isoformat(sep=" ")) == moment.replace(tzinfo=UTC)
