"""Computes the derived values of a batch: once, however many subscriptions and parts use them."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from tamis.events.entries import Entries
from tamis.events.pairs import AttributeValues, pick_attributes, pick_places
from tamis.index.carriers import TEXTS, carrier_of, from_carrier, to_carrier
from tamis.language.ast import Derived, Literal, sources
from tamis.logic.derive import overload_of

if TYPE_CHECKING:
    from tamis.events.attributes import AttributeTable
    from tamis.events.entries import EventValues
    from tamis.kernels.arrays import Int32
    from tamis.language.ast import Attribute
    from tamis.language.schema import Path
    from tamis.language.value_functions import Overload


def derive_values(values: EventValues, table: AttributeTable) -> EventValues:
    """The batch with the derived values of all events that have their arguments."""
    if not table.derived:
        return values
    batch = _Batch(values, table)
    entries = dict(values.entries)
    for number, derived in enumerate(table.derived, table.n_read):
        found = batch.compute(derived)
        if len(found.rows):
            assert derived.type is not None
            carrier = carrier_of(derived.type)
            entries[carrier] = _append(entries.get(carrier), carrier, number, found)
    return values._replace(entries=entries)


class _Batch:
    """The arguments of a batch, and the values that have been computed."""

    def __init__(self, values: EventValues, table: AttributeTable) -> None:
        numbers = {path: number for number, path in enumerate(table.paths)}
        wanted = {numbers[own.path] for value in table.derived for own in sources(value)}
        self._picked = pick_attributes(values, wanted, len(table))
        self._numbers = numbers
        self._computed: dict[Path, AttributeValues] = {}

    def compute(self, value: Derived) -> AttributeValues:
        """The rows that have the value, and their values."""
        found = self._computed.get(value.path)
        if found is None:
            found = self._computed[value.path] = self._call(value)
        return found

    def _call(self, value: Derived) -> AttributeValues:
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
            return AttributeValues(rows, overload.compute_many(*arguments))
        return AttributeValues(rows, _compute_each(overload, arguments, len(rows)))

    def _values_of(self, attribute: Attribute) -> AttributeValues:
        if isinstance(attribute, Derived):
            return self.compute(attribute)
        nothing = AttributeValues(np.empty(0, dtype=np.int32), None)
        return self._picked.get(self._numbers[attribute.path], nothing)


def _compute_each(overload: Overload, arguments: list[Any], n_rows: int) -> Any:
    """The results of a function that is computed value by value, in their carrier."""
    columns = [
        from_carrier(own, type_) if isinstance(own, pa.Array | np.ndarray) else repeat(own, n_rows)
        for own, type_ in zip(arguments, overload.parameters, strict=False)
    ]
    return to_carrier(list(map(overload.compute, *columns)), overload.result)


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


def _append(
    entries: Entries | None, carrier: str, attribute: int, found: AttributeValues
) -> Entries:
    """The entries of a carrier, with those of one more attribute."""
    attributes = np.full(len(found.rows), attribute, dtype=np.int32)
    if entries is None:
        return Entries(found.rows, attributes, found.values)
    joined: Any
    if carrier == TEXTS:
        joined = pa.concat_arrays([entries.values, found.values])
    else:
        joined = np.concatenate([entries.values, found.values])
    return Entries(
        np.concatenate([entries.rows, found.rows]),
        np.concatenate([entries.attributes, attributes]),
        joined,
    )
