"""Where values stand among the constants of their column: the tables for it, and the codes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.events.kernels.ranks import rank_numbers, rank_texts, rank_wides, write_prefixes
from tamis.index.carriers import DECIMALS, FLOATS, INTEGERS, TEXTS, carrier_of, frozen, text_buffers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.events.entries import Entries
    from tamis.index.columns import Column
    from tamis.index.constants import ConstantArrays
    from tamis.kernels.arrays import Int32, Int64, UInt8


class TextTable(NamedTuple):
    """Constants as UTF-8, and what tells them apart soonest; see `write_prefixes`."""

    begins: Int64  # [n_attributes], where the constants of each attribute begin
    ends: Int64  # [n_attributes]
    offsets: Int64  # [n_constants + 1]
    data: UInt8
    n_shared: Int64  # [n_attributes]
    prefixes: np.ndarray  # uint64[n_constants]


class Ranking:
    """Codes of scalar columns and of the elements of array columns.

    Made once for an index, then only read: threads share it.
    """

    def __init__(
        self, columns: Sequence[Column | None], first_codes: Int64, constants: ConstantArrays
    ) -> None:
        """`columns[i]` is the scalar or array column of attribute i, if it has one."""
        self._first_codes = frozen(first_codes)  # [n_attributes]
        self._constants = constants
        # Where the constants of each attribute are among those of its carrier.
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

    def _make_texts(self, columns: Sequence[Column | None]) -> TextTable:
        offsets, data = self._constants.text_offsets, self._constants.text_data
        are_texts = [c is not None and carrier_of(c.type) == TEXTS for c in columns]
        begins, ends = (frozen(np.where(are_texts, each, 0)) for each in (self._begins, self._ends))
        n_shared = np.empty(len(columns), np.int64)
        prefixes = np.empty(len(offsets) - 1, np.uint64)
        write_prefixes(offsets, data, begins, ends, n_shared, prefixes)
        return TextTable(begins, ends, offsets, data, frozen(n_shared), frozen(prefixes))

    def numbers(self, attribute: int, *, is_floating: bool) -> memoryview:
        """The constants of one attribute of integers or doubles, which lie side by side: a search
        in them touches less memory than one in a list of objects."""
        values = self._constants.floats if is_floating else self._constants.integers
        return values[self._begins[attribute] : self._ends[attribute]].data

    def rank(self, carrier: str, entries: Entries) -> Int32:
        """The global code of each entry."""
        _, attributes, values = entries
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
        elif carrier == TEXTS:
            rank_texts(*text_buffers(values), attributes, self._texts, first_codes, codes)
        else:  # only presence is asked
            codes[:] = first_codes[attributes]
        return codes
