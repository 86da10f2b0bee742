"""Converts the values that operators return to answers: all feasible bindings, typed, distinct,
ascending.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cmp_to_key
from typing import TYPE_CHECKING, Any

from tamis.language.types import Type, WrongTypeError, read_value, spell_value
from tamis.logic.arithmetic import compare_terms
from tamis.logic.bindings import FALSE_ANSWER, TRUE_ANSWER

if TYPE_CHECKING:
    from tamis.language.signatures import Signature
    from tamis.logic.bindings import Answer


class TooManyBindingsError(ValueError):
    """An operator returned more bindings than the budget allows."""


def read_answer(returned: Any, signature: Signature, most_bindings: int) -> Answer:
    """The answer for a returned value; raises `WrongTypeError` if the value is invalid."""
    if returned is None:
        return None
    types = tuple(signature.parameters[place].type for place in signature.bound)
    if not types:
        return _read_truth(returned, signature)
    rows = returned if _is_many(returned) else [returned]
    found: dict[tuple[Any, ...], None] = {}
    for number, row in enumerate(rows, start=1):
        if number > most_bindings:
            raise TooManyBindingsError(f"more than {most_bindings} bindings")
        found[_read_binding(row, types, signature)] = None
    return tuple(sorted(found, key=_ROW_ORDER)) if len(found) > 1 else tuple(found)


def _read_truth(returned: Any, signature: Signature) -> Answer:
    truth = returned.item() if hasattr(returned, "item") else returned
    if not isinstance(truth, bool):
        raise WrongTypeError(
            f"{signature.name} returned {_shown(returned)}; allowed: True, False or None"
        )
    return TRUE_ANSWER if truth else FALSE_ANSWER


def _is_many(returned: Any) -> bool:
    """Whether this is a collection of bindings, not a single binding."""
    is_one = isinstance(returned, str | bytes | tuple | dict) or not isinstance(returned, Iterable)
    return not is_one


def _read_binding(row: Any, types: tuple[Type, ...], signature: Signature) -> tuple[Any, ...]:
    is_row = isinstance(row, tuple) or (len(types) > 1 and isinstance(row, list))
    values = tuple(row) if is_row else (row,)
    if len(values) != len(types):
        raise WrongTypeError(
            f"{signature} returned {_shown(row)}; a binding has {len(types)} values, and several "
            "bindings make a list"
        )
    return tuple(
        _read_bound(value, type_, signature) for value, type_ in zip(values, types, strict=True)
    )


def _read_bound(value: Any, type_: Type, signature: Signature) -> Any:
    if value is None:
        raise WrongTypeError(f"{signature} returned a binding with None in it")
    try:
        read = read_value(value, type_)
    except WrongTypeError as error:
        raise WrongTypeError(f"{signature} returned a wrong value: {error}") from None
    # One object for all NaN values, so that equal bindings compare equal.
    return math.nan if isinstance(read, float) and math.isnan(read) else read


def _shown(value: Any) -> str:
    return spell_value(value)[:80]


def _compare_rows(left: tuple[Any, ...], right: tuple[Any, ...]) -> int:
    for one, other in zip(left, right, strict=True):
        if order := compare_terms(one, other):
            return order
    return 0


_ROW_ORDER = cmp_to_key(_compare_rows)
