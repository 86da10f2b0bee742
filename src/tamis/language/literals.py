"""Converts constants in the text to values: strings with escapes, numbers, dates."""

from __future__ import annotations

import math
import re
from decimal import Context, Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from tamis.errors import ParseError
from tamis.language.ast import Literal, Span
from tamis.language.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    MAX_DECIMAL_DIGITS,
    TIMESTAMP,
    WrongTypeError,
    decimal_digits,
    decimal_type,
    parse_date,
    parse_timestamp,
    read_float,
)

if TYPE_CHECKING:
    from tamis.language.types import Type

_DECIMALS: Final = Context(prec=MAX_DECIMAL_DIGITS)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)|''", re.DOTALL)
_PLAIN_ESCAPES: Final = {
    "\\": "\\",
    "'": "'",
    '"': '"',
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "b": "\b",
    "0": "\0",
    # Kept with their backslash, as in Spark: LIKE reads them as literal characters.
    "%": "\\%",
    "_": "\\_",
}


def read_string(token: str, start: int) -> str:
    """The value of a quoted string token that begins at `start`."""
    body = token[1:-1]
    if "\\" not in body and "'" not in body:
        return body
    pieces: list[str] = []
    position = 0
    for found in _ESCAPE.finditer(body):
        pieces.append(body[position : found.start()])
        pieces.append(_unescape(found, start + 1))
        position = found.end()
    pieces.append(body[position:])
    return "".join(pieces)


def _unescape(found: re.Match[str], offset: int) -> str:
    escape = found[1]
    if escape is None:
        return "'"
    plain = _PLAIN_ESCAPES.get(escape)
    if plain is not None:
        return plain
    if len(escape) > 1:
        code_point = int(escape[1:], 16)
        is_surrogate = 0xD800 <= code_point < 0xE000
        if code_point < 0x110000 and not is_surrogate:
            return chr(code_point)
        problem = "is not a character"
    else:
        problem = "is not an escape"
    raise ParseError(
        "bad-escape",
        f"'\\{escape}' {problem}",
        span=(found.start() + offset, found.end() + offset),
        hint="write a backslash as \\\\; in r'…' it needs no doubling; escapes: \\\\ \\' \\\" "
        "\\n \\r \\t \\b \\0 \\% \\_ \\uXXXX \\UXXXXXXXX",
    )


def read_number(token: str, span: Span, *, is_negative: bool = False) -> Literal:
    """The literal of a number token: integer, exact decimal, double or float."""
    digits = "-" + token if is_negative else token
    if token.isdigit():
        return _integer(digits, span)
    suffix = token[-1].upper()
    if token.endswith("BD"):
        return _decimal(digits[:-2], span)
    if suffix == "L":
        if not token[:-1].isdigit():
            raise ParseError("bad-number", f"{token} is not an integer", span=span)
        return _integer(digits[:-1], span)
    if suffix == "F":
        return _floating(digits[:-1], FLOAT, span)
    if suffix == "D":
        return _floating(digits[:-1], DOUBLE, span)
    if "e" in token or "E" in token:
        return _floating(digits, DOUBLE, span)
    return _decimal(digits, span)


def _integer(digits: str, span: Span) -> Literal:
    if len(digits) <= 18:
        return Literal(int(digits), INTEGER, span)
    # Without leading zeros, and short: int() has its own limit of 4,300 digits.
    sign, significant = ("-" if digits[0] == "-" else ""), digits.lstrip("-").lstrip("0") or "0"
    if len(significant) <= 19 and INT64_MIN <= int(sign + significant) <= INT64_MAX:
        return Literal(int(sign + significant), INTEGER, span)
    raise ParseError(
        "bad-number",
        f"{_shorten(digits)} does not fit in 64 bits",
        span=span,
        hint=f"integers go from {INT64_MIN} to {INT64_MAX}; on a double, write larger ones as 1e30",
    )


@lru_cache
def _decimal_type(precision: int, scale: int) -> Type:
    return decimal_type(precision, scale)


def _decimal(digits: str, span: Span) -> Literal:
    if len(digits) <= 16 and "e" not in digits and "E" not in digits:
        whole, _, fraction = digits.partition(".")
        fraction = fraction.rstrip("0")  # trailing zeros count as digits in Spark
        before, after = len(whole.lstrip("-0")), len(fraction)
        value = Decimal(f"{whole or 0}.{fraction}") or Decimal(0)
        return Literal(value, _decimal_type(max(1, before + after), after), span)
    try:
        value = Decimal(digits)
        before, after = decimal_digits(value)
    except InvalidOperation:  # an exponent of more than 18 digits
        before, after = MAX_DECIMAL_DIGITS, MAX_DECIMAL_DIGITS
    if before + after > MAX_DECIMAL_DIGITS:
        raise ParseError(
            "bad-number",
            f"{_shorten(digits)} has more than {MAX_DECIMAL_DIGITS} digits",
            span=span,
            hint=f"decimals have at most {MAX_DECIMAL_DIGITS}; write a double as 1.5e0 or 1.5D",
        )
    # Without trailing zeros, which count as digits in Spark.
    shortest = _DECIMALS.normalize(value) or Decimal(0)
    return Literal(shortest, decimal_type(max(1, before + after), after), span)


def _floating(digits: str, type_: Type, span: Span) -> Literal:
    value = read_float(digits) if type_ == FLOAT else float(digits)
    if math.isinf(value):
        raise ParseError("bad-number", f"{_shorten(digits)} is too large for {type_}", span=span)
    return Literal(value + 0.0, type_, span)


def _shorten(digits: str) -> str:
    return digits if len(digits) <= 48 else digits[:45] + "…"


def read_moment(keyword: str, text: str, span: Span) -> Literal:
    """The literal of DATE '…' or TIMESTAMP '…'."""
    try:
        if keyword == "DATE":
            return Literal(parse_date(text), DATE, span)
        return Literal(parse_timestamp(text), TIMESTAMP, span)
    except WrongTypeError as error:
        raise ParseError("bad-literal", str(error), span=span) from None
