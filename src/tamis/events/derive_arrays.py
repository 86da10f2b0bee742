"""Functions of arrays, for a batch: from the sizes and the elements of the arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tamis.events.pairs import AttributeValues, pick_places
from tamis.index.carriers import carrier_of, from_carrier, to_carrier
from tamis.language.array_keys import ARRAY_KEY, key_of
from tamis.language.ast import Literal
from tamis.language.types import STRING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.events.entries import EventValues
    from tamis.kernels.arrays import Int32, Int64
    from tamis.language.ast import Derived
    from tamis.language.types import Type


class Arrays(NamedTuple):
    """The arrays of one attribute in a batch."""

    rows: Int32  # of each array
    sizes: Int64
    element_rows: Int32  # of each element that is not NULL
    positions: Int64  # of each in its array, from 0
    elements: Any  # in their carrier

    @classmethod
    def of(cls, values: EventValues, attribute: int, type_: Type) -> Arrays:
        """Those of an attribute, by its number."""
        marks = values.marks
        is_own = marks.attributes == attribute
        rows, sizes = marks.rows[is_own], marks.sizes[is_own]
        entries = values.entries.get(carrier_of(type_))
        if entries is None:
            return cls(rows, sizes, rows[:0], sizes[:0], None)
        places = np.flatnonzero(entries.attributes == attribute)
        element_rows = entries.rows[places]
        positions = _count_in_runs(element_rows)
        if entries.nulls_before is not None:
            positions += entries.nulls_before[places]
        return cls(rows, sizes, element_rows, positions, pick_places(entries.values, places))

    def value_at(self, row: int, type_: Type) -> tuple[Any, ...]:
        """The array of a row."""
        found = [None] * int(self.sizes[self.rows == row][0])
        places = np.flatnonzero(self.element_rows == row)
        if len(places):
            own = from_carrier(pick_places(self.elements, places), type_)
            for position, value in zip(self.positions[places].tolist(), own, strict=True):
                found[position] = value
        return tuple(found)

    def values(self, type_: Type | None) -> Iterator[tuple[Any, ...]]:
        """The array of each row."""
        assert type_ is not None
        assert type_.element is not None
        starts = np.zeros(int(self.rows.max(initial=-1)) + 2, dtype=np.int64)
        starts[self.rows + 1] = self.sizes
        starts = np.cumsum(starts)
        found: list[Any] = [None] * int(starts[-1])
        if len(self.element_rows):
            places = starts[self.element_rows] + self.positions
            elements = from_carrier(self.elements, type_.element)
            for place, own in zip(places.tolist(), elements, strict=True):
                found[place] = own
        for row in self.rows.tolist():
            yield tuple(found[starts[row] : starts[row + 1]])


def _count_in_runs(rows: Int32) -> Int64:
    """The position of each row in its run of equal rows."""
    firsts = np.flatnonzero(np.diff(rows, prepend=-1))
    lengths = np.diff(np.append(firsts, len(rows)))
    positions: Int64 = np.arange(len(rows), dtype=np.int64) - np.repeat(firsts, lengths)
    return positions


def compute_array(value: Derived, arrays: Arrays) -> tuple[AttributeValues, Int32]:
    """The results of a function, and the rows of the arrays for which it has none."""
    if value.function == "size":
        return AttributeValues(arrays.rows, arrays.sizes), arrays.rows[:0]
    if value.function == ARRAY_KEY:
        keys = list(map(key_of, arrays.values(value.arguments[0].type)))
        return AttributeValues(arrays.rows, to_carrier(keys, STRING)), arrays.rows[:0]
    _, position = value.arguments
    assert isinstance(position, Literal)
    wanted: int = position.value
    targets = np.full(len(arrays.sizes), wanted - 1) if wanted > 0 else arrays.sizes + wanted
    is_outside = (targets < 0) | (targets >= arrays.sizes)
    by_row = np.full(int(arrays.rows.max(initial=-1)) + 1, -1, dtype=np.int64)
    by_row[arrays.rows] = targets
    places = np.flatnonzero(arrays.positions == by_row[arrays.element_rows])
    found = AttributeValues(arrays.element_rows[places], pick_places(arrays.elements, places))
    return found, arrays.rows[is_outside]
