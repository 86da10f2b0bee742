"""Where values stand among the constants of their column: the tables for it, and the codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.events.carriers import (
    DECIMALS,
    FLOATS,
    INTEGERS,
    LARGE_STRING,
    TEXTS,
    carrier_of,
    frozen,
    scale_decimal,
    text_buffers,
    to_carrier,
    to_wides,
)
from tamis.events.kernels.ranks import rank_numbers, rank_texts, rank_wides, write_prefixes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.events.entries import Entries
    from tamis.index.columns import Column
    from tamis.index.layout import Int32, Int64, UInt8


# Tables of constants: those of attribute i are starts[i] to starts[i + 1], rising.


class NumberTable(NamedTuple):
    """Constants as integers or floats."""

    starts: Int64  # [n_attributes + 1]
    values: np.ndarray  # int64 or float64


class DecimalTable(NamedTuple):
    """Constants in units of the last digit of their column.

    A constant may have more digits after the point than that: it is rounded down, which keeps its
    place among the column's values, and marked as equal to none of them.
    """

    starts: Int64
    values: Int64  # [n_constants, 2]
    is_whole: UInt8  # [n_constants]


class TextTable(NamedTuple):
    """Constants as UTF-8, and what tells them apart soonest; see `write_prefixes`."""

    starts: Int64
    offsets: Int64  # [n_constants + 1]
    data: UInt8
    n_shared: Int64  # [n_attributes]
    prefixes: np.ndarray  # uint64[n_constants]


class Ranking:
    """Codes of scalar columns and of the elements of array columns.

    Made once for an index, then only read: threads share it.
    """

    def __init__(self, columns: Sequence[Column | None], first_codes: Int64) -> None:
        """`columns[i]` is the scalar or array column of attribute i, if it has one."""
        self._first_codes = frozen(first_codes)  # [n_attributes]
        self._integers = _make_numbers(columns, INTEGERS)
        self._floats = _make_numbers(columns, FLOATS)
        self._decimals = _make_decimals(columns)
        self._texts = _make_texts(columns)

    def numbers(self, attribute: int) -> memoryview:
        """The constants of one attribute of integers or doubles, which lie side by side: a search
        in them touches less memory than one in a list of objects."""
        for starts, values in (self._integers, self._floats):
            if starts[attribute] < starts[attribute + 1]:
                return values[starts[attribute] : starts[attribute + 1]].data
        return memoryview(b"")

    def rank(self, carrier: str, entries: Entries) -> Int32:
        """The global code of each entry."""
        _, attributes, values = entries
        codes = np.empty(len(attributes), dtype=np.int32)
        first_codes = self._first_codes
        if carrier == INTEGERS:
            starts, constants = self._integers
            rank_numbers(values, attributes, starts, constants, first_codes, codes)
        elif carrier == FLOATS:
            starts, constants = self._floats
            rank_numbers(values, attributes, starts, constants, first_codes, codes)
        elif carrier == DECIMALS:
            starts, constants, is_whole = self._decimals
            rank_wides(values, attributes, starts, constants, is_whole, first_codes, codes)
        elif carrier == TEXTS:
            rank_texts(*text_buffers(values), attributes, self._texts, first_codes, codes)
        else:  # only presence is asked
            codes[:] = first_codes[attributes]
        return codes


def _own(columns: Sequence[Column | None], carrier: str) -> tuple[list[Column], Int64]:
    """The columns of one carrier, and where the constants of each attribute start."""
    own = [c if c is not None and carrier_of(c.type) == carrier else None for c in columns]
    starts = np.zeros(len(columns) + 1, dtype=np.int64)
    np.cumsum([0 if column is None else len(column.constants) for column in own], out=starts[1:])
    return [column for column in own if column is not None and column.constants], frozen(starts)


def _make_numbers(columns: Sequence[Column | None], carrier: str) -> NumberTable:
    own, starts = _own(columns, carrier)
    nothing = np.empty(0, np.int64 if carrier == INTEGERS else np.float64)
    tables = [to_carrier(column.constants, column.type) for column in own]
    return NumberTable(starts, frozen(np.concatenate([nothing, *tables])))


def _make_decimals(columns: Sequence[Column | None]) -> DecimalTable:
    own, starts = _own(columns, DECIMALS)
    scaled = [scale_decimal(value, c.type.scale) for c in own for value in c.constants]
    is_whole = np.array([exact for _, exact in scaled], dtype=np.uint8)
    numbers = to_wides([number for number, _ in scaled])
    return DecimalTable(starts, frozen(numbers), frozen(is_whole))


def _make_texts(columns: Sequence[Column | None]) -> TextTable:
    own, starts = _own(columns, TEXTS)
    texts = pa.array([value for c in own for value in c.constants], LARGE_STRING)
    offsets, data = text_buffers(texts)
    n_shared, prefixes = np.empty(len(columns), np.int64), np.empty(len(texts), np.uint64)
    write_prefixes(offsets, data, starts, n_shared, prefixes)
    return TextTable(starts, offsets, data, frozen(n_shared), frozen(prefixes))
