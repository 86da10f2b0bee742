"""Functions of numbers of several kinds, for a batch.

Numbers that are all integers of 64 bits, or one of which is a double, are computed at once by the
overloads for integers and doubles. What has no result there, and exact numbers of other kinds, are
computed one by one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.events.pairs import to_records
from tamis.index.carriers import (
    KIND_DOUBLE,
    KIND_WHOLE,
    NUMBER_RECORD,
    doubles_as_numbers,
    from_carrier,
    integers_as_numbers,
    to_numbers,
)
from tamis.language.overloads import Partial
from tamis.language.types import DOUBLE, INTEGER, NUMBER
from tamis.language.value_functions import FUNCTIONS, find_overload

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tamis.language.overloads import Overload
    from tamis.language.types import Type


def takes_numbers(overload: Overload) -> bool:
    """Whether a function takes numbers of several kinds and returns one."""
    return overload.result == NUMBER and NUMBER in overload.parameters


def compute_numbers(
    name: str, overload: Overload, arguments: Sequence[Any], n_rows: int
) -> np.ndarray | Partial:
    """The results of a function, as records."""
    # Constants that choose what is computed, such as the digits of round(), are the last.
    n_numbers = len(arguments) - sum(at < len(arguments) for at in FUNCTIONS[name].constants)
    given = arguments[:n_numbers]
    settings = tuple(arguments[n_numbers:])
    types = overload.parameters[:n_numbers]
    records = [_as_records(own, type_, n_rows) for own, type_ in zip(given, types, strict=True)]
    are_whole = np.logical_and.reduce([own["kind"] == KIND_WHOLE for own in records])
    have_double = np.logical_or.reduce([own["kind"] == KIND_DOUBLE for own in records])
    results = np.empty(n_rows, NUMBER_RECORD)
    is_done = np.zeros(n_rows, dtype=np.bool_)
    for is_own, field, type_ in ((are_whole, "whole", INTEGER), (have_double, "double", DOUBLE)):
        places = np.flatnonzero(is_own)
        if len(places):
            columns = [own[field][places] for own in records]
            found = _compute_plain(name, type_, columns, settings)
            results[places] = found.values
            is_done[places] = found.is_good
    return _compute_rest(overload, records, settings, results, is_done)


def _as_records(argument: Any, type_: Type, n_rows: int) -> np.ndarray:
    if isinstance(argument, np.ndarray):
        return to_records(argument, type_)
    return np.repeat(to_numbers([argument]), n_rows)


def _compute_plain(
    name: str, type_: Type, columns: list[np.ndarray], settings: tuple[Any, ...]
) -> Partial:
    """The results of numbers of one kind, as records."""
    types = (type_,) * len(columns) + (INTEGER,) * len(settings)
    overload = find_overload(name, types, (None,) * len(columns) + settings)
    assert overload is not None
    assert overload.compute_many is not None
    found = overload.compute_many(*columns, *settings)
    is_good = np.ones(len(columns[0]), dtype=np.bool_)
    values, is_good = found if isinstance(found, Partial) else (found, is_good)
    convert = integers_as_numbers if overload.result == INTEGER else doubles_as_numbers
    return Partial(convert(values), is_good)


def _compute_rest(
    overload: Overload,
    records: list[np.ndarray],
    settings: tuple[Any, ...],
    results: np.ndarray,
    is_done: np.ndarray,
) -> np.ndarray | Partial:
    """The results with those that are computed one by one."""
    places = np.flatnonzero(~is_done)
    if not len(places):
        return results
    columns = [from_carrier(own[places], NUMBER) for own in records]
    found = [overload.compute(*own, *settings) for own in zip(*columns, strict=True)]
    is_good = is_done.copy()
    for at, value in zip(places.tolist(), found, strict=True):
        if value is not None:
            results[at] = to_numbers([value])[0]
            is_good[at] = True
    return results if is_good.all() else Partial(results, is_good)
