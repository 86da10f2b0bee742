"""Ranks values among the constants of their column: the tables, and the codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.events.kernels.ranks import (
    rank_numbers,
    rank_records,
    rank_texts,
    rank_wides,
    write_prefixes,
)
from tamis.index.carriers import (
    DECIMALS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    TEXTS,
    carrier_of,
    frozen,
    text_buffers,
    to_numbers,
)
from tamis.index.numbers import ENTRY_DOUBLE, ENTRY_FIRST, ENTRY_LAST, PSEUDO
from tamis.language.types.numbers import to_double

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.events.entries import Entries
    from tamis.index.columns import Column
    from tamis.index.constants import ConstantArrays
    from tamis.kernels.arrays import Float64, Int32, Int64, Int64Rows, UInt8


class TextTable(NamedTuple):
    """Constants as UTF-8, with their distinguishing bytes; see `write_prefixes`."""

    begins: Int64  # [n_attributes], start of the constants of each attribute
    ends: Int64  # [n_attributes]
    offsets: Int64  # [n_constants + 1]
    data: UInt8
    n_shared: Int64  # [n_attributes]
    prefixes: np.ndarray  # uint64[n_constants]


class NumberTable(NamedTuple):
    """The entries of number columns; see `index.numbers`."""

    keys: Float64
    kinds: UInt8
    wholes: Int64
    is_pivot: UInt8


class RankArrays(NamedTuple):
    """All that a rank depends on."""

    first_codes: Int64  # [n_attributes], as the next two
    begins: Int64
    ends: Int64
    texts: TextTable
    integers: Int64
    floats: Float64
    decimals: Int64Rows
    decimal_is_whole: UInt8
    entries: NumberTable


class Ranking:
    """Codes of scalar columns and of the elements of array columns.

    Immutable, one per index: threads share it.
    """

    def __init__(
        self, columns: Sequence[Column | None], first_codes: Int64, constants: ConstantArrays
    ) -> None:
        """`columns[i]` is the scalar or array column of attribute i, if it has one."""
        self._first_codes = frozen(first_codes)  # [n_attributes]
        self._constants = constants
        # The positions of each attribute's constants among those of its carrier.
        runs = [
            (0, 0)
            if column is None or column.constants is None
            else (column.constants.begin, column.constants.end)
            for column in columns
        ]
        self._begins, self._ends = (
            frozen(np.array([run[side] for run in runs], dtype=np.int64)) for side in (0, 1)
        )
        self._texts = self._make_texts(columns)
        self._columns = columns
        self._numbers = NumberTable(
            constants.number_keys,
            constants.number_kinds,
            constants.number_wholes,
            constants.number_is_pivot,
        )

    def _make_texts(self, columns: Sequence[Column | None]) -> TextTable:
        offsets, data = self._constants.text_offsets, self._constants.text_data
        are_texts = [c is not None and carrier_of(c.type) == TEXTS for c in columns]
        begins, ends = (frozen(np.where(are_texts, each, 0)) for each in (self._begins, self._ends))
        n_shared = np.empty(len(columns), np.int64)
        prefixes = np.empty(len(offsets) - 1, np.uint64)
        write_prefixes(offsets, data, begins, ends, n_shared, prefixes)
        return TextTable(begins, ends, offsets, data, frozen(n_shared), frozen(prefixes))

    def has_texts(self, attribute: int) -> bool:
        """Whether texts of this attribute are compared with constants."""
        return bool(self._texts.ends[attribute] > self._texts.begins[attribute])

    def first_code(self, attribute: int) -> int:
        """The code before the first constant of an attribute."""
        return int(self._first_codes[attribute])

    def rank_arrays(self) -> RankArrays:
        """The arrays that rank values of single events."""
        constants = self._constants
        return RankArrays(
            self._first_codes,
            self._begins,
            self._ends,
            self._texts,
            constants.integers,
            constants.floats,
            constants.decimals,
            constants.decimal_is_whole,
            self._numbers,
        )

    def rank_number(self, attribute: int, value: Any) -> int:
        """The global code of one number."""
        one = np.array([attribute], dtype=np.int32)
        return int(self._rank_numbers(one, to_numbers([value]))[0])

    def _rank_numbers(self, attributes: Int32, values: np.ndarray) -> Int32:
        codes = np.empty(len(attributes), dtype=np.int32)
        unknown = np.empty(len(attributes), dtype=np.int64)
        doubles, wholes, kinds = (
            np.ascontiguousarray(values[name]) for name in ("double", "whole", "kind")
        )
        runs = (self._begins, self._ends)
        table, firsts = self._numbers, self._first_codes
        n_unknown = rank_records(
            doubles, wholes, kinds, attributes, *runs, table, firsts, codes, unknown
        )
        known: dict[tuple[int, Any], int] = {}
        for at in unknown[:n_unknown].tolist():
            key = (int(attributes[at]), values["exact"][at])
            if key not in known:
                known[key] = self._rank_exact(*key)
            codes[at] = known[key]
        return codes

    def _rank_exact(self, attribute: int, value: Any) -> int:
        """The code of an exact number that is not an integer of 64 bits."""
        column = self._columns[attribute]
        assert column is not None
        assert column.constants is not None
        begin, end = int(self._begins[attribute]), int(self._ends[attribute])
        keys, kinds = self._numbers.keys[begin:end], self._numbers.kinds[begin:end]
        low, high = (
            int(np.searchsorted(keys, to_double(value), side)) for side in ("left", "right")
        )
        is_equal = False
        while low < high and not is_equal:
            middle = (low + high) // 2
            kind, constant = int(kinds[middle]), column.constants[middle]
            if kind == ENTRY_DOUBLE or (kind not in PSEUDO and constant == value):
                low, is_equal = middle, True
            elif kind == ENTRY_FIRST or (kind != ENTRY_LAST and constant < value):
                low = middle + 1
            else:
                high = middle
        return int(self._first_codes[attribute]) + 2 * low + is_equal

    def rank(self, carrier: str, entries: Entries) -> Int32:
        """The global code of each entry."""
        _, attributes, values, _ = entries
        codes = np.empty(len(attributes), dtype=np.int32)
        first_codes, constants = self._first_codes, self._constants
        runs = (self._begins, self._ends)
        if carrier == INTEGERS:
            rank_numbers(values, attributes, *runs, constants.integers, first_codes, codes)
        elif carrier == FLOATS:
            rank_numbers(values, attributes, *runs, constants.floats, first_codes, codes)
        elif carrier == DECIMALS:
            units, is_whole = constants.decimals, constants.decimal_is_whole
            rank_wides(values, attributes, *runs, units, is_whole, first_codes, codes)
        elif carrier == NUMBERS:
            codes = self._rank_numbers(attributes, values)
        elif carrier == TEXTS:
            rank_texts(*text_buffers(values), attributes, self._texts, first_codes, codes)
        else:  # only presence is tested
            codes[:] = first_codes[attributes]
        return codes
