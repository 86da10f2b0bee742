"""Converts Python values (of dicts, of JSON) to carriers, many of one type at a time.

The usual classes of a type are converted in bulk; `read_value` decides about each value of another
class, so that no other value is ever accepted.
"""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

from tamis.events.entries import (
    Converted,
    ConvertedArrays,
    Given,
    Nulls,
    find_nulls,
    group_elements,
)
from tamis.events.objects import Objects
from tamis.events.rejects import explain_by, is_wrong_type
from tamis.events.spelled import are_ties, convert_texts, round_to_floats
from tamis.index.carriers import (
    LARGE_STRING,
    NUMBER_RECORD,
    are_within,
    doubles_as_numbers,
    integers_as_numbers,
    to_carrier,
    to_numbers,
)
from tamis.language.types import (
    INT64_MIN,
    KINDS,
    WrongTypeError,
    plain_value,
    read_value,
    round_to_float,
)
from tamis.language.types import is_foreign as is_foreign_to
from tamis.language.types.moments import FIRST_INSTANT, LAST_INSTANT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tamis.language.types import Type

FINER_THAN_MICROSECONDS: Final = "is not a whole number of microseconds"
# The errors of bulk conversion if a value does not fit after all.
_MISFITS: Final = (OverflowError, UnicodeError, ValueError, pa.ArrowException)


def classes_of(values: Iterable[Any]) -> set[type]:
    """The classes of the values."""
    return set(map(type, values))


def as_objects(values: Iterable[Any], length: int) -> np.ndarray:
    """The values as an array of objects; lists are single elements."""
    return np.fromiter(values, dtype=object, count=length)


def give(values: np.ndarray, type_: Type) -> Given:
    """A function that describes the error of some of `values`."""

    def are_wrong_types(places: np.ndarray) -> np.ndarray:
        return np.array([is_wrong_type(value, type_) for value in values[places]], dtype=np.bool_)

    explain = explain_by(read_value, type_, FINER_THAN_MICROSECONDS)
    return Given(lambda at: values[at], are_wrong_types, explain)


def convert_objects(
    values: np.ndarray, classes: set[type], type_: Type
) -> Converted | ConvertedArrays:
    """Objects that are not None, of these classes, as values of `type_`."""
    if type_.name == "any":
        return Converted(None)
    if type_.element is not None:
        return _convert_arrays(values, classes, type_)
    if type_.name == "struct":
        are_objects = np.fromiter((hasattr(own, "get") for own in values), np.bool_, len(values))
        return Converted(Objects.of(values), are_objects)
    if type_.reads:
        return _convert_foreign(values, type_)
    return _convert_scalars(values, classes, type_)


def _convert_foreign(values: np.ndarray, type_: Type) -> Converted:
    """Values of which some may be of another kind that the type reads."""
    typed, is_foreign = values.copy(), np.zeros(len(values), dtype=np.bool_)
    for place, value in enumerate(values):
        if is_foreign_to(plain_value(value), type_):
            try:
                typed[place] = read_value(value, type_)
                is_foreign[place] = True
            except WrongTypeError:  # also raised for the same value below
                pass
    converted = _convert_scalars(typed, classes_of(typed), type_)
    return converted._replace(is_foreign=is_foreign if is_foreign.any() else None)


def _convert_scalars(values: np.ndarray, classes: set[type], type_: Type) -> Converted:
    if type_.name in ("date", "timestamp"):
        return _convert_times(values, classes, type_)
    if type_.name == "integer" and classes == {float}:
        return to_integers(np.array(values.tolist(), dtype=np.float64))
    typed = values.tolist()
    is_good = _read_each(typed, _places_of_others(typed, classes, type_), type_)
    try:
        return Converted(_convert_bulk(typed, type_), is_good)
    except _MISFITS:
        typed = values.tolist()
        is_good = _read_each(typed, range(len(typed)), type_)
        return Converted(to_carrier(typed, type_), is_good)


def _places_of_others(values: list[Any], classes: set[type], type_: Type) -> Sequence[int]:
    """Where the values are not of the type's usual classes."""
    plain = KINDS[type_.name].bulk_classes
    if classes <= plain:
        return ()
    return [place for place, value in enumerate(values) if type(value) not in plain]


def _read_each(values: list[Any], places: Sequence[int], type_: Type) -> np.ndarray | None:
    """Replace some values by the result of `read_value`, or by a filler if it raises an error."""
    if not places:
        return None
    is_good = np.ones(len(values), dtype=np.bool_)
    for place in places:
        try:
            values[place] = read_value(values[place], type_)
        except WrongTypeError:
            values[place] = KINDS[type_.name].filler
            is_good[place] = False
    return is_good


def _convert_bulk(values: list[Any], type_: Type) -> Any:
    """Values of the usual classes of a type; raises one of `_MISFITS` if one does not fit."""
    match type_.name:
        case "float" | "double":
            doubles = np.array(values, dtype=np.float64) + 0.0
            return _round_once(values, doubles) if type_.name == "float" else doubles
        case "decimal":
            # repr is the shortest decimal that reads back as the float: the digits of the JSON
            # text.
            exact = [Decimal(repr(v)) if type(v) is float else v for v in values]
            array = pa.array(exact, pa.decimal128(38, type_.scale))
            wides = np.frombuffer(array.buffers()[1], np.int64, 2 * len(array)).reshape(-1, 2)
            if not are_within(wides, 10**type_.precision).all():
                raise OverflowError
            return wides
        case "number":
            return _convert_numbers(values)
        case "string":
            return pa.array(values, LARGE_STRING)
        case "boolean" | "integer":
            return np.array(values, dtype=np.int64)
        case _:
            return to_carrier(values, type_)


def _convert_numbers(values: list[Any]) -> np.ndarray:
    """Numbers of any kind as records."""
    classes = classes_of(values)
    if classes <= {float}:
        return doubles_as_numbers(np.array(values, dtype=np.float64))
    if classes <= {int}:
        return integers_as_numbers(np.array(values, dtype=np.int64))
    if not classes <= {int, float}:
        return to_numbers(values)
    is_int = np.fromiter((type(value) is int for value in values), np.bool_, len(values))
    objects = as_objects(values, len(values))
    records = np.empty(len(values), NUMBER_RECORD)
    records[is_int] = integers_as_numbers(objects[is_int].astype(np.int64))
    records[~is_int] = doubles_as_numbers(objects[~is_int].astype(np.float64))
    return records


def to_integers(doubles: np.ndarray) -> Converted:
    """The integers of 64 bits among doubles."""
    with np.errstate(invalid="ignore"):
        is_good = (doubles >= INT64_MIN) & (doubles < -float(INT64_MIN))
        is_good &= doubles == np.floor(doubles)
    return Converted(np.where(is_good, doubles, 0.0).astype(np.int64), is_good)


def _round_once(values: list[Any], doubles: np.ndarray) -> np.ndarray:
    """The values as 32-bit floats; `doubles` are the values as doubles."""
    floats = round_to_floats(doubles)
    for place in np.flatnonzero(are_ties(doubles, floats)).tolist():
        floats[place] = round_to_float(values[place])
    return floats


# ── dates and timestamps, which are often strings ───────────────────────────────────────────


def _convert_times(values: np.ndarray, classes: set[type], type_: Type) -> Converted:
    if len(classes) == 1:
        return _convert_alike(values.tolist(), classes, type_)
    numbers = np.zeros(len(values), dtype=np.int64)
    is_good = np.ones(len(values), dtype=np.bool_)
    for own_class in classes:
        places = np.array([type(value) is own_class for value in values], dtype=np.bool_)
        converted = _convert_alike(values[places].tolist(), {own_class}, type_)
        numbers[places] = converted.values
        if converted.is_good is not None:
            is_good[places] = converted.is_good
    return Converted(numbers, is_good)


def _convert_alike(values: list[Any], classes: set[type], type_: Type) -> Converted:
    """Dates or timestamps of one class."""
    try:
        if classes == {str}:
            return convert_texts(pa.array(values, LARGE_STRING), type_)
        if classes == {date} and type_.name == "date":
            return Converted(to_carrier(values, type_))
        if classes == {datetime} and type_.name == "timestamp":
            return Converted(_convert_datetimes(values))
    except _MISFITS:
        pass
    is_good = _read_each(values, range(len(values)), type_)
    return Converted(to_carrier(values, type_), is_good)


def _convert_datetimes(values: list[datetime]) -> np.ndarray:
    """Microseconds since 1970; values without a zone are in UTC."""
    instants = pa.array(values, pa.timestamp("us", "UTC"))
    numbers: np.ndarray = np.frombuffer(instants.buffers()[1], np.int64, len(values))
    # A zone may shift the time out of the years that a datetime supports.
    if ((numbers < FIRST_INSTANT) | (numbers > LAST_INSTANT)).any():
        raise OverflowError
    return numbers


# ── arrays ──────────────────────────────────────────────────────────────────────────────────


def _convert_arrays(values: np.ndarray, classes: set[type], type_: Type) -> ConvertedArrays:
    assert type_.element is not None
    is_one = _find_ones(values) if type_.takes_one else None
    arrays, is_good = _read_arrays(values.tolist(), classes, type_)
    lengths = np.fromiter(map(len, arrays), np.int64, len(arrays))
    elements = as_objects(chain.from_iterable(arrays), int(lengths.sum()))
    parents = np.repeat(np.arange(len(arrays)), lengths)
    nulls: Nulls | None = None
    element_classes = classes_of(elements)
    if NoneType in element_classes:
        is_known = are_not_none(elements)
        nulls = find_nulls(parents, is_known, len(arrays))
        elements, parents = elements[is_known], parents[is_known]
    converted = convert_objects(elements, element_classes - {NoneType}, type_.element)
    assert isinstance(converted, Converted)
    found = group_elements(converted, parents, nulls, is_good)
    return found if is_one is None else found._replace(is_one=is_one & found.is_good)


def _find_ones(values: np.ndarray) -> np.ndarray:
    """Where the values are not arrays."""
    are_arrays = (isinstance(plain_value(own), list | tuple) for own in values)
    return ~np.fromiter(are_arrays, np.bool_, len(values))


def are_not_none(values: np.ndarray) -> np.ndarray:
    """Where the objects are not None."""
    return np.fromiter((value is not None for value in values), np.bool_, len(values))


def _read_arrays(
    arrays: list[Any], classes: set[type], type_: Type
) -> tuple[list[Any], np.ndarray]:
    """Lists and tuples unchanged, other sequences converted, and an empty list for any other
    value.
    """
    is_good = np.ones(len(arrays), dtype=np.bool_)
    for place in _places_of_others(arrays, classes, type_):
        try:
            arrays[place] = read_value(arrays[place], type_)
        except WrongTypeError:
            arrays[place] = ()
            is_good[place] = False
    return arrays, is_good
