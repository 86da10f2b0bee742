"""Constants in the text: strings and their escapes, numbers and their suffixes, moments."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.errors import ParseError
from tamis.language import parse
from tamis.language.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    TIMESTAMP,
    decimal_type,
    print_string,
    round_to_float,
)


def literal(text):
    return parse(f"x = {text}").right


@pytest.mark.parametrize(
    ("text", "value", "type_"),
    [
        ("0", 0, INTEGER),
        ("007", 7, INTEGER),
        ("-5", -5, INTEGER),
        ("- 5", -5, INTEGER),
        ("5L", 5, INTEGER),
        ("-5l", -5, INTEGER),
        (str(INT64_MAX), INT64_MAX, INTEGER),
        (str(INT64_MIN), INT64_MIN, INTEGER),
        ("0" * 30 + "1", 1, INTEGER),
        ("1.5", Decimal("1.5"), decimal_type(2, 1)),
        ("-1.50", Decimal("-1.5"), decimal_type(2, 1)),
        ("1.", Decimal(1), decimal_type(1, 0)),
        (".5", Decimal("0.5"), decimal_type(1, 1)),
        ("0.0", Decimal(0), decimal_type(1, 0)),
        ("-0.0", Decimal(0), decimal_type(1, 0)),
        ("5BD", Decimal(5), decimal_type(1, 0)),
        ("1e2BD", Decimal(100), decimal_type(3, 0)),
        ("1." + "0" * 50, Decimal(1), decimal_type(1, 0)),
        ("9" * 38 + "BD", Decimal("9" * 38), decimal_type(38, 0)),
        ("0." + "0" * 37 + "1", Decimal("1e-38"), decimal_type(38, 38)),
        ("1e3", 1000.0, DOUBLE),
        ("1E-3", 0.001, DOUBLE),
        ("5.e3", 5000.0, DOUBLE),
        ("2D", 2.0, DOUBLE),
        ("-0.0D", 0.0, DOUBLE),
        ("1e-400", 0.0, DOUBLE),
        ("0.1F", round_to_float(0.1), FLOAT),
        ("1e2f", 100.0, FLOAT),
        ("DATE '2024-02-29'", date(2024, 2, 29), DATE),
        ("date'2024-02-29'", date(2024, 2, 29), DATE),
        ("TIMESTAMP '2024-02-29'", datetime(2024, 2, 29, tzinfo=UTC), TIMESTAMP),
        (
            "timestamp '2024-02-29 12:00:00.5-01:00'",
            datetime(2024, 2, 29, 13, 0, 0, 500000, tzinfo=UTC),
            TIMESTAMP,
        ),
    ],
)
def test_constant(text, value, type_):
    found = literal(text)
    assert (found.value, found.type) == (value, type_)
    assert type(found.value) is type(value)
    if value == 0:
        assert math.copysign(1, found.value) == 1


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("9223372036854775808", "bad-number"),
        ("-9223372036854775809", "bad-number"),
        ("9223372036854775808L", "bad-number"),
        ("1.5L", "bad-number"),
        ("9" * 39 + "BD", "bad-number"),
        ("1e39BD", "bad-number"),
        ("0." + "0" * 38 + "1", "bad-number"),
        ("1e400", "bad-number"),
        ("1e39F", "bad-number"),
        ("1e", "bad-number"),
        ("1x", "bad-number"),
        ("0x10", "bad-number"),
        ("1_000", "bad-number"),
        ("1.5.2", "bad-number"),
        ("1bd", "bad-number"),
        ("--5", "unsupported-syntax"),
        ("+5", "unexpected-token"),
        ("DATE '2023-02-29'", "bad-literal"),
        ("DATE '2024'", "bad-literal"),
        ("TIMESTAMP '2024-02-29 24:00:00'", "bad-literal"),
        ("TIMESTAMP 'now'", "bad-literal"),
    ],
)
def test_refused_constant(text, code):
    with pytest.raises(ParseError) as caught:
        literal(text)
    assert caught.value.code == code
    assert caught.value.span[0] == 4


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("''", ""),
        ("''''", "'"),
        ("'it''s'", "it's"),
        (r"'it\'s'", "it's"),
        (r"'a\"b'", 'a"b'),
        ("'a\"b'", 'a"b'),
        (r"'a\\b'", "a\\b"),
        (r"'\n\r\t\b\0'", "\n\r\t\b\0"),
        (r"'\u00e9\U0001F600'", "é\U0001f600"),
        (r"'\%\_'", r"\%\_"),
        ("'a\nb\tc'", "a\nb\tc"),
        ("'--'", "--"),
        ("'/*;*/'", "/*;*/"),
        ("'${x}'", "${x}"),
        ("'\"‘’'", '"‘’'),
        (r"r'\d\'", "\\d\\"),
        (r"R'a\nb'", "a\\nb"),
        ("r''", ""),
    ],
)
def test_string(text, value):
    assert literal(text).value == value


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (r"'\d'", r"\d"),
        (r"'ab\x'", r"\x"),
        (r"'\u12'", r"\u"),
        (r"'\ud800'", r"\ud800"),
        (r"'\U00110000'", r"\U00110000"),
        ("'\\\n'", "\\\n"),
    ],
)
def test_refused_escape(text, wrong):
    with pytest.raises(ParseError) as caught:
        literal(text)
    start, end = caught.value.span
    assert caught.value.code == "bad-escape"
    assert f"x = {text}"[start:end] == wrong


@given(st.text())
def test_every_text_reads_back(text):
    assert literal(print_string(text)).value == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_double_reads_back(value):
    assert literal(f"{value!r}D").value == value


@given(st.integers(INT64_MIN, INT64_MAX))
def test_every_integer_reads_back(value):
    assert literal(str(value)).value == value
