"""Compares two attributes for all events of a batch at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.events.kernels.ranks import compare_texts, compare_wides
from tamis.events.objects import Objects
from tamis.index.carriers import (
    DECIMALS,
    INTEGERS,
    KIND_DOUBLE,
    KIND_WHOLE,
    NUMBERS,
    TEXTS,
    carrier_of,
    doubles_as_numbers,
    from_carrier,
    from_wides,
    frozen,
    integers_as_numbers,
    text_buffers,
    to_numbers,
    to_wides,
    widen,
)
from tamis.language.types import NUMBER
from tamis.logic.comparing import compare

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tamis.events.entries import Entries, EventValues
    from tamis.kernels.arrays import Int32, Int64
    from tamis.language.types import Type


class AttributeValues(NamedTuple):
    """One attribute of a batch."""

    rows: Int32
    values: Any  # in the attribute's carrier


class AttributePlaces(NamedTuple):
    """Where one attribute of a batch is."""

    entries: Entries  # of its carrier
    places: Int64  # in the entries


def find_attributes(
    values: EventValues, wanted: Iterable[int], n_attributes: int
) -> dict[int, AttributePlaces]:
    """Where the values of some attributes are, separately; no value is copied."""
    is_wanted = np.zeros(n_attributes, dtype=np.bool_)
    is_wanted[list(wanted)] = True
    found: dict[int, AttributePlaces] = {}
    for entries in values.entries.values():
        places = np.flatnonzero(is_wanted[entries.attributes])
        places = places[np.argsort(entries.attributes[places], kind="stable")]
        numbers, starts = np.unique(entries.attributes[places], return_index=True)
        for number, own in zip(numbers.tolist(), np.split(places, starts[1:]), strict=False):
            found[number] = AttributePlaces(entries, own)
    return found


def pick_attributes(
    values: EventValues, wanted: Iterable[int], n_attributes: int
) -> dict[int, AttributeValues]:
    """The values of some attributes, separately."""
    return {
        number: AttributeValues(entries.rows[places], pick_places(entries.values, places))
        for number, (entries, places) in find_attributes(values, wanted, n_attributes).items()
    }


def pick_places(values: Any, places: np.ndarray) -> Any:
    """The values at some places, in the same carrier."""
    if isinstance(values, pa.Array):
        return values.take(pa.array(places))
    if isinstance(values, Objects):
        return values.pick(places)
    return None if values is None else values[places]


def compare_attributes(
    left: AttributeValues, left_type: Type, right: AttributeValues, right_type: Type, n_rows: int
) -> tuple[Int32, Int32]:
    """The rows that have both attributes, and 0, 1 or 2 as the left one is below, equal to or above
    the right one.
    """
    places = np.full(n_rows, -1, dtype=np.int64)
    places[right.rows] = np.arange(len(right.rows))
    right_places = places[left.rows]
    left_places = np.flatnonzero(right_places >= 0)
    right_places = right_places[left_places]
    codes = np.empty(len(left_places), dtype=np.int32)
    if carrier_of(left_type) == TEXTS:
        texts = pa.concat_arrays([left.values, right.values])
        compare_texts(*text_buffers(texts), left_places, len(left.values) + right_places, codes)
    else:
        one, other = left.values[left_places], right.values[right_places]
        _compare_numbers(one, left_type, other, right_type, codes)
    return left.rows[left_places], codes


def _compare_numbers(
    left: np.ndarray, left_type: Type, right: np.ndarray, right_type: Type, codes: Int32
) -> None:
    if NUMBER in (left_type, right_type):
        codes[:] = _order_numbers(to_records(left, left_type), to_records(right, right_type))
    elif left_type.is_floating or right_type.is_floating:
        # As in Spark, a float or double on either side makes both doubles.
        codes[:] = _order_doubles(to_doubles(left, left_type), to_doubles(right, right_type))
    elif "decimal" in (left_type.name, right_type.name):
        scale = max(left_type.scale, right_type.scale)
        compare_wides(rescale(left, left_type, scale), rescale(right, right_type, scale), codes)
    else:
        codes[:] = 1 + (left > right).astype(np.int32) - (left < right)


def _order_doubles(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Comparison by the total order: NaN equals itself and is above all other values."""
    left_nan, right_nan = np.isnan(left), np.isnan(right)
    is_above = (left > right) | (left_nan & ~right_nan)
    is_below = (left < right) | (right_nan & ~left_nan)
    order: np.ndarray = 1 + is_above.astype(np.int32) - is_below
    return order


def _order_numbers(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Comparison as doubles; exact if both are exact and their doubles do not decide."""
    order = _order_doubles(left["double"], right["double"])
    is_open = (left["kind"] != KIND_DOUBLE) & (right["kind"] != KIND_DOUBLE) & (order == 1)
    are_whole = is_open & (left["kind"] == KIND_WHOLE) & (right["kind"] == KIND_WHOLE)
    one, other = left["whole"][are_whole], right["whole"][are_whole]
    order[are_whole] = 1 + (one > other).astype(np.int32) - (one < other)
    for at in np.flatnonzero(is_open & ~are_whole).tolist():
        order[at] = 1 + compare(_exact_of(left[at]), _exact_of(right[at]), NUMBER)
    return order


def _exact_of(record: np.void) -> Any:
    return int(record["whole"]) if record["kind"] == KIND_WHOLE else record["exact"]


def to_records(values: np.ndarray, type_: Type) -> np.ndarray:
    """Numbers of any type as records."""
    carrier = carrier_of(type_)
    if carrier == NUMBERS:
        return values
    if carrier == INTEGERS:
        return integers_as_numbers(values)
    if carrier != DECIMALS:
        return doubles_as_numbers(values)
    return to_numbers(from_carrier(values, type_))


def to_doubles(values: np.ndarray, type_: Type) -> np.ndarray:
    """Numbers of any type but NUMBER as doubles."""
    if carrier_of(type_) != DECIMALS:
        return values.astype(np.float64)
    # Reading a decimal text rounds once; dividing a double by a power of ten rounds twice.
    rounded = [float(f"{number}e-{type_.scale}") for number in from_wides(values)]
    return np.array(rounded, dtype=np.float64)


def rescale(values: np.ndarray, type_: Type, scale: int) -> Int64:
    """128-bit integers in units of 10 ** -scale."""
    wides = widen(values) if carrier_of(type_) == INTEGERS else values
    if type_.scale == scale:
        return frozen(np.ascontiguousarray(wides))
    factor = 10 ** (scale - type_.scale)
    return to_wides([number * factor for number in from_wides(wides)])
