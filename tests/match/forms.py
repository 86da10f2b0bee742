"""Events of Python in other forms: as JSON texts and as Arrow columns.

A form has an event only if it means the same in it. What a form cannot carry is listed here.

JSON texts:
- dates, timestamps and addresses where the attribute is of another type: there they are texts;
- doubles of `decimal` attributes: JSON writes their digits, which are then a decimal number;
- decimal numbers if the index keeps no digits, without a point (which are integers in JSON), not
  finite or very long; and of `number` attributes those that are a double when read from JSON;
- doubles and decimal numbers of attributes that are read from values of another type;
- bytes, tuples, sets, complex numbers, NumPy's values, objects, keys that are no texts, and
  mappings other than dicts;
- respelled values (dates, timestamps, addresses) if operators get the event as it is.

Arrow columns, of one type each (a value of a wrong type is NULL: both count as missing):
- lone surrogates, and numbers beyond the type of the column;
- for `number` all but integers and doubles, and both in one column, arrays of numbers included;
- arrays of elements of any type, and of objects among which are other values;
- conditions on all strings of an event, and operators, which get the event as it is;
- an attribute that has a value and attributes inside it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.language.types import reads_foreign
from tests.events.layouts import typed_at, value_at

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tamis.language.schema import Path
    from tamis.language.types import Type
    from tamis.match.index import Index

Event = dict[str, Any]
MOST_DIGITS = 40  # of a decimal number


class NotCarriedError(Exception):
    """The form does not have this value."""


class Formed(NamedTuple):
    """Some of the events in another form."""

    rows: np.ndarray  # of the events that the form carries
    source: Any


# ── JSON ────────────────────────────────────────────────────────────────────────────────────


def to_texts(index: Index, events: Sequence[Event]) -> Formed:
    """The JSON text of each event that has one."""
    speller = Speller(index)
    spelled = [speller.spell_event(event) for event in events]
    rows = [row for row, text in enumerate(spelled) if text is not None]
    return Formed(np.array(rows, dtype=np.int64), [spelled[row] for row in rows])


class Speller:
    """Writes events as JSON that an index reads as the same events."""

    def __init__(self, index: Index) -> None:
        table = index.view.encoder.table
        self._types = table.by_path
        self._keeps_digits = table.needs_digits
        self._respells = not len(index.operators)

    def spell_event(self, event: Event) -> str | None:
        """The JSON text of an event; None if it has none."""
        if type(event) is not dict:
            return None
        try:
            return self._spell_object(event, (), None)
        except NotCarriedError:
            return None

    def _spell_object(self, value: Any, path: Path, type_: Type | None) -> str:
        fields = dict(type_.fields) if type_ is not None and type_.fields else {}
        members = []
        for name, own in value.items():
            if type(name) is not str:
                raise NotCarriedError
            inner = (*path, name)
            text = self._spell(own, inner, fields.get(name) or self._types.get(inner))
            members.append(f"{json.dumps(name)}: {text}")
        return "{" + ", ".join(members) + "}"

    def _spell(self, value: Any, path: Path, type_: Type | None) -> str:
        name = None if type_ is None else type_.name
        kind = type(value)
        if value is None or kind in (bool, str):
            return json.dumps(value)
        if kind is dict:
            return self._spell_object(value, path, type_)
        if kind is list:
            element = None if type_ is None else type_.element
            return "[" + ", ".join(self._spell(own, (), element) for own in value) + "]"
        if kind is int and abs(value) < 10**4000:
            return json.dumps(value)
        is_foreign = type_ is not None and reads_foreign(type_)
        if kind is float and name != "decimal" and not is_foreign:
            return json.dumps(value)
        if kind is Decimal and self._keeps_digits and _has_point(value) and not is_foreign:
            text = format(value, "f")
            if name != "number" or Decimal(repr(float(text))) != value:
                return text
        is_respelled = (kind, name) in (
            (date, "date"),
            (IPv4Address, "ip"),
            (IPv6Address, "ip"),
        ) or (kind is datetime and name == "timestamp")
        if is_respelled and self._respells:
            shown = str(value) if name == "ip" else value.isoformat()
            return json.dumps(shown)
        raise NotCarriedError


def _has_point(value: Decimal) -> bool:
    if not value.is_finite():
        return False
    _, digits, exponent = value.as_tuple()
    return isinstance(exponent, int) and -MOST_DIGITS < exponent < 0 and len(digits) < MOST_DIGITS


# ── Arrow ───────────────────────────────────────────────────────────────────────────────────

PLAIN_TYPES = {
    "boolean": pa.bool_(),
    "integer": pa.int64(),
    "float": pa.float64(),
    "double": pa.float64(),
    "string": pa.string(),
    "ip": pa.string(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "any": pa.null(),  # of elements: no column has values of several types
}


def to_columns(index: Index, events: Sequence[Event]) -> Formed:
    """A table with a column, nested in structs, for each attribute of the index."""
    types = index.view.encoder.table.by_path
    is_possible = index.view.encoder.table.strings is None and not len(index.operators)
    if not is_possible or any(path[:at] in types for path in types for at in range(1, len(path))):
        return Formed(np.empty(0, dtype=np.int64), pa.table({}))
    is_carried = np.ones(len(events), dtype=bool)
    columns = {path: make_column(events, path, type_, is_carried) for path, type_ in types.items()}
    rows = np.flatnonzero(is_carried)
    tree: dict[str, Any] = {"nobody asks for this": pa.nulls(len(events))}
    for path, column in columns.items():
        inner = tree
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = column
    return Formed(rows, pa.table(_nest(tree, len(events))).take(pa.array(rows)))


def _nest(tree: Mapping[str, Any], n_events: int) -> dict[str, pa.Array]:
    """The columns at the top, with structs of those below."""
    return {
        name: _make_struct(_nest(own, n_events)) if isinstance(own, dict) else own
        for name, own in tree.items()
    }


def _make_struct(fields: Mapping[str, pa.Array]) -> pa.StructArray:
    return pa.StructArray.from_arrays(list(fields.values()), list(fields))


def make_column(
    events: Sequence[Event], path: Path, type_: Type, is_carried: np.ndarray
) -> pa.Array:
    """The values of an attribute; unmarks the rows whose value the column does not have."""
    if type_.name == "any":
        is_there = [value_at(event, path) is not None for event in events]
        return pa.array([True if own else None for own in is_there], pa.bool_())
    values = [typed_at(event, path, type_) for event in events]
    column_type = arrow_type(type_, values)
    kept: list[Any] = []
    for row, value in enumerate(values):
        own = _plain(value)
        if not _fits(own, column_type):
            is_carried[row], own = False, None
        kept.append(own)
    return pa.array(kept, column_type)


def arrow_type(type_: Type, values: Sequence[Any]) -> pa.DataType:
    """The type of a column for these values."""
    if type_.element is not None:
        inner = [own for value in values if value is not None for own in value]
        return pa.list_(arrow_type(type_.element, inner))
    if type_.fields:
        fields = []
        for name, own in type_.fields:
            inner = [value.get(name) for value in values if isinstance(value, dict)]
            fields.append((name, arrow_type(own, inner)))
        return pa.struct(fields)
    if type_.name == "decimal":
        return pa.decimal128(type_.precision, type_.scale)
    if type_.name == "number":
        first = next((value for value in values if value is not None), 0)
        return pa.float64() if isinstance(first, float) else pa.int64()
    return PLAIN_TYPES[type_.name]


def _plain(value: Any) -> Any:
    return [_plain(own) for own in value] if isinstance(value, tuple | list) else value


def _fits(value: Any, type_: pa.DataType) -> bool:
    """Whether a column of the type has this value, and not a similar one."""
    if value is None:
        return True
    if pa.types.is_list(type_):
        return all(_fits(own, type_.value_type) for own in value)
    if pa.types.is_struct(type_):
        is_object = isinstance(value, dict)
        return is_object and all(_fits(value.get(field.name), field.type) for field in type_)
    if pa.types.is_floating(type_) is not isinstance(value, float):
        return False
    try:
        found = pa.scalar(value, type_).as_py()
    except (pa.ArrowException, OverflowError, ValueError, TypeError):
        return False
    return found == value or (isinstance(value, float) and math.isnan(value))
