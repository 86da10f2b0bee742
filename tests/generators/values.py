"""Values of every type: small pools for equality to hit, and the edges of each type."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from tamis.language.ast import Literal
from tamis.language.types import (
    DATE,
    DOUBLE,
    FLOAT,
    INT64_MAX,
    INT64_MIN,
    INTEGER,
    MAX_DECIMAL_DIGITS,
    STRING,
    TIMESTAMP,
    Type,
    decimal_digits,
    decimal_type,
    round_to_float,
)
from tamis.language.types.addresses import parse_address, print_address

if TYPE_CHECKING:
    from random import Random

DECIMALS: Final = tuple(
    decimal_type(precision, scale)
    for precision, scale in ((5, 2), (10, 0), (18, 4), (20, 10), (38, 0), (38, 18), (2, 2))
)
EDGE_SHARE: Final = 0.25  # how often a value is an edge of its type

COMMON: Final[dict[str, list[Any]]] = {
    "boolean": [True, False],
    "integer": [-1, 0, 1, 2, 3, 4, 5],
    "float": [-1.5, 0.0, 0.1, 0.5, 1.0, 2.0, 3.25],
    "double": [-1.5, 0.0, 0.1, 0.5, 1.0, 2.0, 3.25],
    "number": [-1, 0, 1, 5, 0.5, 1.0, 0.1, Decimal("0.1"), Decimal("3.25"), Decimal(5), -1.5, 2],
    "string": ["", "a", "b", "ab", "abc", "ba", "CA", "ca", "CA "],
    "ip": [
        parse_address(text) for text in ("10.0.0.1", "10.0.0.2", "10.1.0.0", "::1", "2001:db8::")
    ],
    "date": [date(2024, 1, 15), date(2024, 2, 29), date(1970, 1, 1)],
    "timestamp": [
        datetime(2024, 1, 15, tzinfo=UTC),
        datetime(2024, 1, 15, 10, 30, tzinfo=UTC),
        datetime(2024, 1, 15, 10, 30, 0, 1, tzinfo=UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
    ],
}
EDGES: Final[dict[str, list[Any]]] = {
    "boolean": [True, False],
    "integer": [INT64_MIN, INT64_MAX, 2**53 - 1, 2**53, 2**53 + 1, -(2**53) - 1, 2**31, 10**18],
    # 16777217 has no 32-bit float; 0.1 has no float of either width.
    "float": [-0.0, 16777216.0, 1e-45, 3.4028234663852886e38, -3.4028234663852886e38, 0.3, 1e10],
    "double": [
        -0.0,
        5e-324,
        1.7976931348623157e308,
        float(2**53),
        float(2**53 + 2),
        float(2**63),
        -float(2**63),
        0.3,
        0.1 + 0.2,
        round_to_float(0.1),
    ],
    # Several of one double each, integers beyond 64 bits, and more digits than a double has.
    "number": [
        *(2**53, 2**53 + 1, float(2**53), 2**53 + 2, INT64_MIN, INT64_MAX, float(2**63), 2**63),
        *(0.1 + 0.2, 0.3, Decimal("0.3"), Decimal("0.30000000000000001"), Decimal("0.3e-20")),
        *(10**30, Decimal("0.1000000000000000055"), Decimal("0.0999999999999999999"), -0.0),
        *(Decimal("9007199254740992.5"), -(2**63) - 1, Decimal("1e37"), 1e300),
    ],
    "string": [
        *(" ", "  a", "a ", "a\n", "\n", "a\nb", "a\tb", "\x00", "a\x00b", "\x7f"),
        *("%", "_", "\\", "'", '"', "100%", "a_b", "a\\b", "a%b", "it's", "`", "--", ";"),
        *("$", "${x}", "a$", "\\d", "\\%", "(a", "[", ".*", "7", "5.0", "true", "NULL"),
        # Case mappings that change length or depend on context or are not round trips.
        *("İ", "i̇", "I", "i", "ı", "ſ", "s", "S", "ß", "ẞ", "SS", "ss"),
        *("Σ", "σ", "ς", "ΑΣ", "ας", "ασ", "ΑΣΑ", "K", "k", "Å", "å", "ǅ", "ǆ", "ﬀ", "FF"),
        *("é", "e\u0301", "É", "E\u0301", "日本", "日", "\u00a0", "\u200d", "\ufeff"),
        # Above U+FFFF the order of UTF-8 bytes and of UTF-16 units differ.
        *("\ue000", "\uffff", "\U00010000", "\U0001f600", "a\U0001f600b", "\U0010ffff", "𝐀"),
        "x" * 300,
    ],
    "ip": [
        parse_address(text)
        for text in (
            "::",
            f"{'ffff:' * 7}ffff",
            "0.0.0.0",
            "255.255.255.255",
            "::ffff:0:0:0",
            "9.9.9.10",
        )
    ],
    "date": [date(1, 1, 1), date(9999, 12, 31), date(1582, 10, 10), date(1969, 12, 31)],
    "timestamp": [
        datetime(1, 1, 1, tzinfo=UTC),
        datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1582, 10, 10, 12, tzinfo=UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(2024, 3, 31, 1, 30, tzinfo=UTC),
        datetime(1900, 1, 1, 0, 0, 0, 500000, tzinfo=UTC),
    ],
}
# Values that an event may hold and a constant may not.
ONLY_IN_EVENTS: Final = (math.nan, math.inf, -math.inf)


def random_scalar(rng: Random, type_: Type) -> Any:
    """A value of a scalar type that a constant can be written for."""
    if type_.name == "decimal":
        return _random_decimal(rng, type_)
    pool = EDGES if rng.random() < EDGE_SHARE else COMMON
    return rng.choice(pool[type_.name])


def _random_decimal(rng: Random, type_: Type) -> Decimal:
    """A member of the type: a small number, a small number of last digits, or the largest."""
    unit = Decimal(1).scaleb(-type_.scale)
    if rng.random() < EDGE_SHARE:
        # Not by arithmetic, which rounds to 28 digits.
        nines = (9,) * type_.precision
        largest = [Decimal((sign, nines, -type_.scale)) for sign in (0, 1)]
        return rng.choice([*largest, unit, unit.copy_negate(), Decimal(0)])
    if type_.precision > type_.scale and rng.random() < 0.7:  # it has whole numbers
        return Decimal(rng.randint(-1, 5))
    return rng.randint(-2, 5) * unit


# ── constants as the parser makes them ──────────────────────────────────────────────────────


def random_literal(rng: Random, type_: Type) -> Literal:
    """An untyped constant, in one of the spellings that fit an attribute of `type_`."""
    if type_.name == "decimal" and rng.random() < 0.15:
        type_ = rng.choice(DECIMALS)  # more digits than the attribute has, or fewer
    value = random_scalar(rng, type_)
    return rng.choice(_spellings(value, type_))


def _spellings(value: Any, type_: Type) -> list[Literal]:
    match type_.name:
        case "integer":
            half_more = Decimal(value) + Decimal("0.5")
            return [Literal(value, INTEGER)] * 3 + _decimal_literals(half_more)
        case "decimal":
            return _decimal_literals(value) + _whole_literals(value)
        case "number" if not isinstance(value, float):
            exact = Decimal(value)
            return _decimal_literals(exact) + 2 * _whole_literals(exact)
        case "number":
            return _floating_literals(value + 0.0, DOUBLE)
        case "float" | "double":
            return _floating_literals(value + 0.0, type_)
        case "date":
            return [Literal(value, DATE), Literal(value.isoformat(), STRING)]
        case "timestamp":
            return _timestamp_literals(value)
        case "ip":
            return [Literal(print_address(value), STRING)]
        case _:
            return [Literal(value, type_)]


def _decimal_literals(value: Decimal) -> list[Literal]:
    before, after = decimal_digits(value)
    if before + after > MAX_DECIMAL_DIGITS:
        return []
    return [Literal(value or Decimal(0), decimal_type(max(1, before + after), after))]


def _whole_literals(value: Decimal | float) -> list[Literal]:
    is_whole = math.isfinite(value) and value == int(value)
    fits = is_whole and INT64_MIN <= value <= INT64_MAX
    return [Literal(int(value), INTEGER)] if fits else []


def _floating_literals(value: float, type_: Type) -> list[Literal]:
    spellings = _decimal_literals(Decimal(repr(value))) + _whole_literals(value)
    if type_ == DOUBLE:
        spellings.append(Literal(value, DOUBLE))
    rounded = round_to_float(value)
    if math.isfinite(rounded):
        spellings.append(Literal(rounded, FLOAT))
    return spellings


def _timestamp_literals(value: datetime) -> list[Literal]:
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    spellings = [Literal(value, TIMESTAMP), Literal(text, STRING), Literal(text + "Z", STRING)]
    if value.time() == datetime.min.time():
        spellings.append(Literal(value.date(), DATE))
    if value.year not in (1, 9999):
        shifted = (value + timedelta(hours=2)).replace(tzinfo=None).isoformat()
        spellings.append(Literal(f"{shifted}+02:00", STRING))
    return spellings
