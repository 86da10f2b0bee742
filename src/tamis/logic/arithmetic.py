"""Arithmetic in constraints: exact on integers and decimals, in doubles if an operand is a
double.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

from tamis.language.number_functions import double_remainder
from tamis.language.types import DOUBLE
from tamis.language.types.numbers import to_double
from tamis.logic.comparing import compare


def calculate(operator: str, left: Any, right: Any) -> Any:
    """The sum, difference, product, quotient or remainder; None if an operand is missing or the
    divisor is 0.
    """
    if left is None or right is None:
        return None
    if isinstance(left, float) or isinstance(right, float):
        left, right = to_double(left), to_double(right)
    else:
        left, right = Fraction(left), Fraction(right)
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "%" if isinstance(left, float):
            return double_remainder(left, right)
        case "%":
            return None if right == 0 else left - right * int(left / right)
        case _:
            return None if right == 0 else left / right


def compare_terms(left: Any, right: Any) -> int:
    """-1, 0 or 1: compared as doubles if one of the numbers is a double, else exactly."""
    if isinstance(left, float) or isinstance(right, float):
        return compare(to_double(left), to_double(right), DOUBLE)
    return compare(_exact(left), _exact(right), None)


def _exact(value: Any) -> Any:
    return Fraction(value) if isinstance(value, Decimal) else value
