"""The constants of an index as flat arrays, and those of one column as a sequence of values.

A file stores the arrays unchanged, and ranking reads them unchanged; a value becomes a Python
object only on access.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np
import pyarrow as pa

from tamis.index.carriers import (
    CARRIAGES,
    DECIMALS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    TEXTS,
    carrier_of,
    scale_decimal,
    text_buffers,
    texts_of,
    to_wides,
)
from tamis.index.layout import freeze
from tamis.index.numbers import Entries, decode, short_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.kernels.arrays import Float64, Int64, Int64Rows, UInt8
    from tamis.language.types import Type


class ConstantArrays(NamedTuple):
    """The constants of all columns by carrier; those of a column are contiguous, sorted,
    distinct.
    """

    integers: Int64
    floats: Float64
    # Decimals in units of the last digit of their column. A constant may have more digits after the
    # point: it is rounded down, which keeps its rank among the column's values, and is marked as
    # equal to none of them.
    decimals: Int64Rows  # [n, 2]
    decimal_is_whole: UInt8  # [n]
    decimal_offsets: Int64  # [n + 1], of the decimals as written
    decimal_data: UInt8
    # The entries of number columns; see `index.numbers`.
    number_keys: Float64
    number_kinds: UInt8
    number_wholes: Int64
    number_is_pivot: UInt8
    number_offsets: Int64  # [n + 1], of the digits of long numbers
    number_data: UInt8
    text_offsets: Int64  # [n + 1]
    text_data: UInt8

    def count(self, carrier: str) -> int:
        """The number of constants of the carrier."""
        match carrier:
            case "integers":
                return len(self.integers)
            case "floats":
                return len(self.floats)
            case "decimals":
                return len(self.decimals)
            case "numbers":
                return len(self.number_keys)
            case "texts":
                return len(self.text_offsets) - 1
            case _:
                return 0


def make_constants(
    integers: np.ndarray,
    floats: np.ndarray,
    decimals: Sequence[tuple[str, int]],
    numbers: Sequence[Entries],
    texts: pa.Array,
) -> ConstantArrays:
    """The arrays of constants that are grouped by carrier; decimals are texts and scales, numbers
    are grouped by column."""
    scaled = [scale_decimal(Decimal(text), scale) for text, scale in decimals]
    spelled = pa.array([text for text, _ in decimals], pa.large_string())
    return freeze(
        ConstantArrays(
            integers,
            floats,
            to_wides([units for units, _ in scaled]).copy(),
            np.array([is_whole for _, is_whole in scaled], dtype=np.uint8),
            *map(np.array, text_buffers(spelled)),
            *_join_numbers(numbers),
            *map(np.array, text_buffers(texts)),
        )
    )


def _join_numbers(numbers: Sequence[Entries]) -> Iterator[np.ndarray]:
    none = short_entries(np.empty(0, np.float64))
    keys, kinds, wholes, is_pivot, texts = zip(none, *numbers, strict=True)
    yield from map(np.concatenate, (keys, kinds, wholes, is_pivot))
    spelled = pa.array(list(chain.from_iterable(texts)), pa.large_string())
    yield from map(np.array, text_buffers(spelled))


class Constants(Sequence[Any]):
    """The constants of one column: a slice of the arrays."""

    def __init__(self, arrays: ConstantArrays, type_: Type, begin: int, end: int) -> None:
        self.arrays = arrays
        self.type = type_
        self.begin = begin
        self.end = end

    def __len__(self) -> int:
        return self.end - self.begin

    def __repr__(self) -> str:
        return repr(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.values)

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        if isinstance(at, slice):
            return self.values[at]
        if not 0 <= at < len(self):
            raise IndexError(at)
        return self._decode(self.begin + at, self.begin + at + 1)[0]

    @cached_property
    def values(self) -> list[Any]:
        """All constants as the values that events are compared with."""
        return self._decode(self.begin, self.end)

    def _decode(self, begin: int, end: int) -> list[Any]:
        arrays = self.arrays
        carriage = CARRIAGES[(self.type.element or self.type).name]
        match carriage.carrier:
            case "integers":
                return list(map(carriage.from_number, arrays.integers[begin:end].tolist()))
            case "floats":
                return list(arrays.floats[begin:end].tolist())
            case "decimals":
                spelled = texts_of(arrays.decimal_offsets[begin : end + 1], arrays.decimal_data)
                return list(map(Decimal, spelled.to_pylist()))
            case "numbers":
                spelled = texts_of(arrays.number_offsets[begin : end + 1], arrays.number_data)
                run = slice(begin, end)
                columns = (arrays.number_keys, arrays.number_kinds, arrays.number_wholes)
                rows = zip(
                    *(own[run].tolist() for own in columns), spelled.to_pylist(), strict=True
                )
                return [decode(*row) for row in rows]
            case "texts":
                texts = texts_of(arrays.text_offsets[begin : end + 1], arrays.text_data)
                return list(texts.to_pylist())
            case _:
                return []


def split_constants(
    arrays: ConstantArrays, types: Sequence[Type], counts: Sequence[int]
) -> list[Constants]:
    """The constants of each column, given the number of each."""
    used = dict.fromkeys((INTEGERS, FLOATS, DECIMALS, NUMBERS, TEXTS), 0)
    found = []
    for type_, count in zip(types, counts, strict=True):
        carrier = carrier_of(type_)
        begin = used.get(carrier, 0)
        used[carrier] = begin + count
        found.append(Constants(arrays, type_, begin, begin + count))
    return found
