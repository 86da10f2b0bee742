"""Expressions and events of numbers as texts, on and next to the places where rounding decides.

A tie lies halfway between two floats or two doubles. A number that is rounded twice, to a double
and then to a float, goes wrong near the ties of floats; one that is rounded where it should not be,
at integers that no float is.
"""

from __future__ import annotations

import math
import struct
from decimal import Context, Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from tamis.language.types import INT64_MAX, INT64_MIN, MAX_DECIMAL_DIGITS, decimal_digits

if TYPE_CHECKING:
    from random import Random

SCHEMA: Final = "f FLOAT, g FLOAT, d DOUBLE, i BIGINT, m DECIMAL(38,10), fs ARRAY<FLOAT>"
SCALARS: Final = ("f", "g", "d", "i", "m")
_EXACT: Final = Context(prec=400)
_OPERATORS: Final = ("=", "<>", "<", "<=", ">", ">=", "<=>")


def random_number(rng: Random) -> Decimal:
    """A small number, a float, a tie of floats or of doubles, or the next to one of them."""
    draw = rng.random()
    if draw < 0.15:
        return Decimal(rng.choice(("0", "1", "0.1", "0.5", "-1.5", "3", "100", "16777217")))
    exponent = rng.randint(-12, 62)
    n_bits = rng.choice((24, 25, 25, 25, 53, 54))
    number = Fraction(rng.getrandbits(n_bits - 1) | 1 << (n_bits - 1)) * Fraction(2) ** (
        exponent - n_bits
    )
    # Of an odd number of 25 bits the float is a tie, of one of 54 bits the double.
    exact = _EXACT.divide(Decimal(number.numerator), Decimal(number.denominator))
    if rng.random() < 0.5:
        last = Decimal(1).scaleb(rng.choice((0, 0, -3, -9, -12, -15)))
        exact = _EXACT.add(exact, rng.choice((1, -1)) * last)
    n_digits = rng.choice((9, 15, 17, 20, 38, 38))
    rounded = Context(prec=n_digits).plus(exact)
    return -rounded if rng.random() < 0.2 else rounded


def shared_numbers(rng: Random, n_numbers: int) -> list[Decimal]:
    """Numbers that expressions and events both draw from, so that they meet."""
    return [random_number(rng) for _ in range(n_numbers)]


def _float_beside(rng: Random, number: Decimal) -> Decimal:
    """The float that a number is rounded to, or the next one."""
    (bits,) = struct.unpack("<i", struct.pack("<f", float(number)))
    (neighbour,) = struct.unpack("<f", struct.pack("<i", bits + rng.choice((-1, 0, 0, 1))))
    return Decimal(neighbour) if math.isfinite(neighbour) else number


def plain(number: Decimal) -> str:
    """The digits, without an exponent."""
    return format(number, "f")


# ── expressions ─────────────────────────────────────────────────────────────────────────────


def random_constant(rng: Random, numbers: list[Decimal]) -> str:
    """A number as a user may write it."""
    number = rng.choice(numbers)
    if rng.random() < 0.3:
        number = _EXACT.to_integral_value(number)
    text = plain(number)
    is_whole = "." not in text and INT64_MIN <= number <= INT64_MAX
    spellings = [f"{text}F", f"{text}F", f"{text}D", f"{text}e0"]
    if is_whole:
        spellings += [text] * 6 + [f"{text}L"]
    if sum(decimal_digits(number)) <= MAX_DECIMAL_DIGITS:
        # Zeros at its end would count as digits in Spark.
        exact = plain(_EXACT.normalize(number))
        spellings += [exact if "." in exact else f"{exact}BD"] * 4
    return rng.choice(spellings)


def random_number_leaf(rng: Random, numbers: list[Decimal]) -> str:
    """One predicate over the attributes of `SCHEMA`; perhaps one that its types refuse."""
    name = rng.choice(SCALARS)
    constants = [random_constant(rng, numbers) for _ in range(3)]
    is_negated = rng.choice(("", "", "NOT "))
    draw = rng.random()
    if draw < 0.15:
        return f"{name} {is_negated}IN ({', '.join(constants)})"
    if draw < 0.3:
        return f"{name} {is_negated}BETWEEN {constants[0]} AND {constants[1]}"
    if draw < 0.4:
        listed = constants[: rng.randint(1, 3)]
        return f"{is_negated}arrays_overlap(fs, array({', '.join(listed)}))"
    if draw < 0.45:
        return f"{is_negated}array_contains(fs, {constants[0]})"
    if draw < 0.55:
        return f"{name} {rng.choice(_OPERATORS)} {rng.choice(SCALARS)}"
    sides = [name, constants[0]]
    if rng.random() < 0.3:
        sides.reverse()
    return f"{is_negated}{sides[0]} {rng.choice(_OPERATORS)} {sides[1]}"


# ── events ──────────────────────────────────────────────────────────────────────────────────


def random_number_event(rng: Random, numbers: list[Decimal]) -> dict[str, str]:
    """The text of each attribute; some are missing."""
    event = {}
    for name in SCALARS:
        number = rng.choice(numbers)
        if rng.random() < 0.4:
            number = _float_beside(rng, number)
        if name == "i":
            number = _EXACT.to_integral_value(number)
            if not INT64_MIN <= number <= INT64_MAX:
                continue
        if name == "m":
            number = _EXACT.quantize(number, Decimal("1e-10"))
        if rng.random() < 0.95:
            event[name] = plain(number)
    if rng.random() < 0.95:
        event["fs"] = f"[{', '.join(plain(rng.choice(numbers)) for _ in range(rng.randint(1, 2)))}]"
    return event
