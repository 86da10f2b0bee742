"""The constants of a number column, in one order by which values of every kind are coded.

There are two kinds of numbers (see `logic.comparing`). Integers and decimals are exact, and are
compared exactly with exact constants; if the value or the constant is a double, both are compared
as doubles. So a constant is an *entry* with a key, the double that it rounds to, and the entries of
a column are sorted by key. Exact constants with the same key are in ascending order.

Usually each key has one entry, and nothing else is needed: a double is ranked by its key, an exact
value by its own double and, if that is the key of an entry, by an exact comparison. A constant of
at most 15 digits has a key that no other such constant has.

If several constants have the same key, a double is equal to all of them. It has one code, that of
the *pivot*: the decimal that the double prints as. Below the pivot, an exact constant `c` is used
as a bound only in `x < c`, above it only in `x <= c` (`logic.leaves.bound` rewrites the others), so
that each bound still tests whether the code is at most some number: below the pivot, `x < c`
excludes the double; above it, `x <= c` includes it. `x = c` is true for the code of `c` and that of
the pivot, which directly follows a constant that is the same decimal. A constant that is itself a
double, with exact constants of its key, is equal to all codes from its FIRST entry to its LAST one.
"""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.language.types import INT64_MAX, INT64_MIN
from tamis.language.types.numbers import to_double

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.kernels.arrays import Float64, Int64, UInt8

# Kinds of entries.
ENTRY_WHOLE: Final = 0  # an exact constant, a whole number of 64 bits
ENTRY_SHORT: Final = 1  # another one of at most 15 digits: the decimal that its key prints as
ENTRY_LONG: Final = 2  # another exact constant of more digits, stored as text
ENTRY_UNDER: Final = 3  # the same, below all integers of 64 bits
ENTRY_DOUBLE: Final = 4  # a double without exact constants of its key
ENTRY_FIRST: Final = 5  # before the entries that are equal to a double
ENTRY_LAST: Final = 6  # after them
ENTRY_PIVOT: Final = 7  # not a constant: the position of doubles with that key
ENTRY_PIVOT_UNDER: Final = 8  # the same, below all integers of 64 bits
N_ENTRY_KINDS: Final = 9
# Equal to no exact value.
PSEUDO: Final = frozenset((ENTRY_FIRST, ENTRY_LAST, ENTRY_PIVOT, ENTRY_PIVOT_UNDER))

_EXACT_DOUBLES: Final = 2.0**53


class Entries(NamedTuple):
    """The entries of one column."""

    keys: Float64
    kinds: UInt8
    wholes: Int64  # exact constants rounded down; those beyond 64 bits, to the last integer within
    is_pivot: UInt8  # whether doubles with the key have the code of this entry
    texts: list[str]  # of LONG and UNDER entries; empty for others


class EqualCodes(NamedTuple):
    """The codes equal to a constant, counted from the column's first one."""

    first: int
    last: int
    of_doubles: int  # one more code, or -1


def short_entries(keys: Float64) -> Entries:
    """Entries of exact constants of at most 15 digits, given their doubles, ascending."""
    wholes = np.floor(np.clip(keys, INT64_MIN, 2.0**63 - 1024)).astype(np.int64)
    is_whole = keys == np.floor(keys)
    # Beyond 2**53, a double and the decimal that it prints as may be two different integers.
    for at in np.flatnonzero(np.abs(keys) > _EXACT_DOUBLES).tolist():
        exact = int(Decimal(repr(float(keys[at]))))
        is_whole[at] = INT64_MIN <= exact <= INT64_MAX
        wholes[at] = min(max(exact, INT64_MIN), INT64_MAX)
    kinds = np.where(is_whole, ENTRY_WHOLE, ENTRY_SHORT).astype(np.uint8)
    return Entries(keys, kinds, wholes, np.ones(len(keys), np.uint8), [""] * len(keys))


def lay_out(constants: Sequence[Any]) -> tuple[Entries, list[EqualCodes]]:
    """The entries of distinct constants, in which floats are doubles, and the position of each
    constant.
    """
    rows: list[_Row] = []
    places: dict[int, EqualCodes] = {}
    keys = [to_double(constant) for constant in constants]
    for key, group in groupby(sorted(range(len(keys)), key=keys.__getitem__), keys.__getitem__):
        members = list(group)
        doubles = [at for at in members if isinstance(constants[at], float)]
        exact = sorted({*members} - {*doubles}, key=constants.__getitem__)
        first = len(rows)
        if not exact:
            rows.append(_Row(key, ENTRY_DOUBLE, is_pivot=True))
            places[doubles[0]] = EqualCodes(2 * first + 1, 2 * first + 1, -1)
            continue
        if doubles:
            rows.append(_Row(key, ENTRY_FIRST))
        own = _add_exact(rows, key, [constants[at] for at in exact])
        places.update(zip(exact, own, strict=True))
        if doubles:
            rows.append(_Row(key, ENTRY_LAST))
            places[doubles[0]] = EqualCodes(2 * first + 1, 2 * len(rows) - 1, -1)
    return _to_arrays(rows), [places[at] for at in range(len(constants))]


class _Row(NamedTuple):
    key: float
    kind: int
    whole: int = 0
    text: str = ""
    is_pivot: bool = False


def _add_exact(rows: list[_Row], key: float, exact: list[Any]) -> list[EqualCodes]:
    """Add the sorted exact constants of one key; returns the position of each."""
    if len(exact) == 1:
        # The only constant of its key: a double with this key equals it, so it is the pivot.
        rows.append(_make_row(exact[0], key)._replace(is_pivot=True))
        code = 2 * len(rows) - 1
        return [EqualCodes(code, code, -1)]
    pivot = Decimal(repr(key))
    n_below = sum(value < pivot for value in exact)
    is_constant = n_below < len(exact) and exact[n_below] == pivot
    # After a constant that is the pivot itself: the double also equals the others.
    after = n_below + is_constant
    numbers = [len(rows) + at + (at >= after) for at in range(len(exact))]
    rows.extend(_make_row(value, key) for value in exact[:after])
    kind = ENTRY_PIVOT_UNDER if pivot < INT64_MIN else ENTRY_PIVOT
    rows.append(_make_row(pivot, key)._replace(kind=kind, text="", is_pivot=True))
    rows.extend(_make_row(value, key) for value in exact[after:])
    of_doubles = 2 * (numbers[0] + after) + 1 if after else 2 * numbers[0] - 1
    return [
        EqualCodes(2 * number + 1, of_doubles, -1)
        if is_constant and at == n_below
        else EqualCodes(2 * number + 1, 2 * number + 1, of_doubles)
        for at, number in enumerate(numbers)
    ]


def _to_arrays(rows: list[_Row]) -> Entries:
    keys, kinds, wholes, texts, is_pivot = (list(own) for own in zip(*rows, strict=True))
    return Entries(
        np.array(keys, np.float64),
        np.array(kinds, np.uint8),
        np.array(wholes, np.int64),
        np.array(is_pivot, np.uint8),
        texts,
    )


def _make_row(value: Any, key: float) -> _Row:
    """An exact constant, rounded down to 64 bits, with its digits if needed."""
    if value < INT64_MIN:
        return _Row(key, ENTRY_UNDER, INT64_MIN, format(Decimal(value), "f"))
    if value > INT64_MAX:
        return _Row(key, ENTRY_LONG, INT64_MAX, format(Decimal(value), "f"))
    whole = math.floor(value)
    if whole == value:
        return _Row(key, ENTRY_WHOLE, whole)
    if Decimal(repr(key)) == value:
        return _Row(key, ENTRY_SHORT, whole)
    return _Row(key, ENTRY_LONG, whole, format(value, "f"))


def decode(key: float, kind: int, whole: int, text: str) -> Any:
    """The value of an entry: an int, a Decimal or, for a double, a float."""
    if text:
        return Decimal(text)
    if kind == ENTRY_WHOLE:
        return whole
    return Decimal(repr(key)) if kind in (ENTRY_SHORT, ENTRY_PIVOT, ENTRY_PIVOT_UNDER) else key
