"""Computes the derived values of a batch: once, however many subscriptions and parts use them."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.events.derive_arrays import Arrays, compute_array
from tamis.events.derive_numbers import compute_numbers, takes_numbers
from tamis.events.entries import Entries, join_nulls
from tamis.events.pairs import (
    AttributeValues,
    pick_attributes,
    pick_places,
    rescale,
    to_doubles,
    to_records,
)
from tamis.events.rejects import Refused, RejectKind
from tamis.index.carriers import DECIMALS, NUMBERS, carrier_of, from_carrier, to_carrier
from tamis.language.ast import Attribute, Derived, Literal, sources
from tamis.language.overloads import Partial
from tamis.language.types.numbers import to_double
from tamis.language.value_functions import FUNCTIONS, overload_of
from tamis.logic.derive import describe_no_result

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.kernels.arrays import Int32
    from tamis.language.overloads import Overload
    from tamis.language.schema import Path
    from tamis.language.types import Type


def derive_values(values: EventValues, table: AttributeTable) -> EventValues:
    """The batch with the derived values of all events that have their arguments."""
    if not table.derived:
        return values
    batch = _Batch(values, table)
    added: dict[str, list[tuple[int, AttributeValues]]] = {}
    for number, derived in enumerate(table.derived, table.n_read):
        found = batch.compute(derived)
        if len(found.rows):
            assert derived.type is not None
            added.setdefault(carrier_of(derived.type), []).append((number, found))
    entries = dict(values.entries)
    for carrier, own in added.items():
        entries[carrier] = _append(entries.get(carrier), own)
    return values._replace(entries=entries)


class _Batch:
    """The arguments of a batch, and the values that have been computed."""

    def __init__(self, values: EventValues, table: AttributeTable) -> None:
        numbers = {path: number for number, path in enumerate(table.paths)}
        wanted = {numbers[own.path] for value in table.derived for own in sources(value)}
        self._picked = pick_attributes(values, wanted, len(table))
        self._numbers = numbers
        self._computed: dict[Path, AttributeValues] = {}
        self._values = values
        self._n_rows = values.n_rows
        self._rejects = values.rejects

    def compute(self, value: Derived) -> AttributeValues:
        """The rows that have the value, and their values."""
        found = self._computed.get(value.path)
        if found is None:
            compute = self._fill if FUNCTIONS[value.function].takes_missing else self._call
            found = self._computed[value.path] = compute(value)
        return found

    def _call(self, value: Derived) -> AttributeValues:
        array = value.arguments[0]
        if array.type is not None and array.type.element is not None:
            assert isinstance(array, Attribute)
            return self._call_array(value, array)
        given = [self._values_of(own) for own in value.arguments if not isinstance(own, Literal)]
        rows, columns = _align(given)
        if not len(rows):
            return AttributeValues(rows, None)
        aligned = iter(columns)
        arguments = [
            own.value if isinstance(own, Literal) else next(aligned) for own in value.arguments
        ]
        overload = overload_of(value)
        if overload.compute_many is not None:
            results = overload.compute_many(*arguments)
        elif takes_numbers(overload):
            results = compute_numbers(value.function, overload, arguments, len(rows))
        else:
            results = compute_each(overload, arguments, len(rows))
        if not isinstance(results, Partial):
            return AttributeValues(rows, results)
        self._report(value, rows, arguments, ~results.is_good)
        places = np.flatnonzero(results.is_good)
        return AttributeValues(rows[places], pick_places(results.values, places))

    def _call_array(self, value: Derived, array: Attribute) -> AttributeValues:
        assert array.type is not None
        arrays = Arrays.of(self._values, self._numbers[array.path], array.type)
        found, lacking = compute_array(value, arrays)
        if len(lacking):
            type_ = array.type.element
            assert type_ is not None
            constants = [own.value for own in value.arguments[1:] if isinstance(own, Literal)]
            self._refuse(value, lacking, lambda row: (arrays.value_at(row, type_), *constants))
        return found

    def _fill(self, value: Derived) -> AttributeValues:
        """The first argument of coalesce() that each event has."""
        assert value.type is not None
        is_open = np.ones(self._n_rows, dtype=np.bool_)
        is_open[self._rejects.bad_rows] = False
        rows, columns = [np.empty(0, dtype=np.int32)], []
        for own in value.arguments:
            if isinstance(own, Literal):
                own_rows = np.flatnonzero(is_open).astype(np.int32)
                converted = to_carrier([_as_result(own.value, value.type)], value.type)
                column = pick_places(converted, np.zeros(len(own_rows), dtype=np.int64))
            else:
                found = self._values_of(own)
                places = np.flatnonzero(is_open[found.rows])
                own_rows = found.rows[places]
                assert own.type is not None
                column = _convert(pick_places(found.values, places), own.type, value.type)
            if len(own_rows):
                is_open[own_rows] = False
                rows.append(own_rows)
                columns.append(column)
        joined = np.concatenate(rows)
        return AttributeValues(joined, _join(columns) if columns else None)

    def _values_of(self, attribute: Attribute) -> AttributeValues:
        if isinstance(attribute, Derived):
            return self.compute(attribute)
        nothing = AttributeValues(np.empty(0, dtype=np.int32), None)
        return self._picked.get(self._numbers[attribute.path], nothing)

    def _report(
        self, value: Derived, rows: Int32, arguments: Sequence[Any], is_wrong: np.ndarray
    ) -> None:
        """Count the events for which a function has no result."""
        places = np.flatnonzero(is_wrong)
        place_of = dict(zip(rows[places].tolist(), places.tolist(), strict=True))

        def arguments_of(row: int) -> tuple[Any, ...]:
            return tuple(
                _value_at(argument, place_of[row], own.type)
                for argument, own in zip(arguments, value.arguments, strict=True)
            )

        self._refuse(value, rows[places], arguments_of)

    def _refuse(
        self, value: Derived, rows: Int32, arguments_of: Callable[[int], tuple[Any, ...]]
    ) -> None:
        refused = Refused(
            rows,
            np.zeros(len(rows), dtype=np.int32),
            np.zeros(len(rows), dtype=np.bool_),
            lambda at: arguments_of(int(rows[at])),
            partial(describe_no_result, value),
            RejectKind.NO_RESULT,
        )
        assert value.type is not None
        self._rejects.add_values(refused, value.type, (value.path,))


def _value_at(argument: Any, place: int, type_: Type | None) -> Any:
    if not isinstance(argument, pa.Array | np.ndarray):
        return argument
    assert type_ is not None
    return from_carrier(argument[place : place + 1], type_)[0]


def compute_each(overload: Overload, arguments: Sequence[Any], n_rows: int) -> Any:
    """The results of a function that is computed value by value, in their carrier."""
    columns = [
        from_carrier(own, type_) if isinstance(own, pa.Array | np.ndarray) else repeat(own, n_rows)
        for own, type_ in zip(arguments, overload.parameters, strict=False)
    ]
    results = list(map(overload.compute, *columns))
    if None not in results:
        return to_carrier(results, overload.result)
    is_good = np.array([own is not None for own in results])
    known = to_carrier([own for own in results if own is not None], overload.result)
    places = np.maximum(np.cumsum(is_good) - 1, 0)
    return Partial(pick_places(known, places) if is_good.any() else known, is_good)


def _as_result(value: Any, type_: Type) -> Any:
    """A constant of coalesce() as a value of its result."""
    if type_.is_floating:
        return to_double(value)
    return Decimal(value) if type_.name == "decimal" else value


def _convert(values: Any, type_: Type, result: Type) -> Any:
    """The values of an argument of coalesce() in the carrier of its result."""
    if values is None or type_ == result:
        return values
    carrier = carrier_of(result)
    if carrier == NUMBERS:
        return to_records(values, type_)
    if carrier == DECIMALS:
        return rescale(values, type_, result.scale)
    return to_doubles(values, type_) if result.is_floating else values


def _align(given: list[AttributeValues]) -> tuple[Int32, list[Any]]:
    """The rows that have all of the attributes, and their values of each."""
    if len(given) == 1:
        return given[0].rows, [given[0].values]
    rows = given[0].rows
    for own in given[1:]:
        rows = np.intersect1d(rows, own.rows)
    columns = []
    for own in given if len(rows) else ():
        order = np.argsort(own.rows)
        places = order[np.searchsorted(own.rows, rows, sorter=order)]
        columns.append(pick_places(own.values, places))
    return rows, columns


def _append(entries: Entries | None, added: list[tuple[int, AttributeValues]]) -> Entries:
    """The entries of a carrier, with those of more attributes, all copied once."""
    pieces = [
        Entries(found.rows, np.full(len(found.rows), attribute, dtype=np.int32), found.values)
        for attribute, found in added
    ]
    if entries is not None:
        pieces.insert(0, entries)
    if len(pieces) == 1:
        return pieces[0]
    rows, attributes, values, nulls = zip(*pieces, strict=True)
    return Entries(
        np.concatenate(rows),
        np.concatenate(attributes),
        _join(values),
        join_nulls(nulls, list(map(len, rows))),
    )


def _join(columns: Sequence[Any]) -> Any:
    """Values of one carrier, one after another."""
    return (
        pa.concat_arrays(columns) if isinstance(columns[0], pa.Array) else np.concatenate(columns)
    )
