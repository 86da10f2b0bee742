"""Batch operators: they take an Arrow table of events and return an Arrow array of answers."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from tamis.language.names import print_path
from tamis.language.types import WrongTypeError
from tamis.operators.faults import describe_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from tamis.operators.registry import Operator
    from tamis.operators.views import Reading


def call_batch(operator: Operator, table: pa.Table, constants: tuple[Any, ...]) -> list[Any]:
    """The values that the operator returns for each event, as Python values."""
    values = _to_list(operator, operator.function(table, *constants))
    if len(values) != table.num_rows:
        raise WrongTypeError(
            f"{operator.signature} returned {len(values)} answers for {table.num_rows} events"
        )
    return [_from_arrow(value) for value in values]


def tables_of(
    operator: Operator, events: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[list[int], pa.Table | WrongTypeError]]:
    """The events as tables, with their positions; an event that cannot be converted has an error.

    There is one table if every attribute that the operator reads has a declared type. Otherwise
    there is one table for each combination of value types, so that the form in which the operator
    gets an event does not depend on the other events.
    """
    reading = operator.reading
    untyped = None
    if reading is not None:
        untyped = [name for name, own in reading.items() if _arrow_type(own) is None]
    groups: dict[Any, list[int]] = {}
    for place, event in enumerate(events):
        names = event if untyped is None else untyped
        shape = tuple((name, _shape(event[name])) for name in names if name in event)
        groups.setdefault(shape, []).append(place)
    for group in groups.values():
        table = _table(operator, [events[place] for place in group])
        if isinstance(table, WrongTypeError) and len(group) > 1:
            yield from (([place], _table(operator, [events[place]])) for place in group)
        else:
            yield group, table


def _shape(value: Any) -> Any:
    """The types of a value and of all values inside it."""
    if isinstance(value, dict):
        return tuple((name, _shape(own)) for name, own in value.items())
    if isinstance(value, list | tuple):
        return list, frozenset(map(_shape, value))
    return (type(value), str(value.tzinfo)) if isinstance(value, datetime) else type(value)


def _table(operator: Operator, events: Sequence[Mapping[str, Any]]) -> pa.Table | WrongTypeError:
    """The events as columns: the attributes that the operator reads, or all of them."""
    import pyarrow as pa

    reading = operator.reading
    if reading is None:
        reading = dict.fromkeys(name for event in events for name in event)
    columns: dict[str, pa.Array] = {}
    for name, own in reading.items():
        values = [event.get(name) for event in events]
        try:
            columns[str(name)] = pa.array(values, _arrow_type(own))
        except Exception as error:  # Arrow's errors, and those of values that misreport their type
            read = (
                f"{operator.name} reads {print_path((str(name),))}, which cannot be converted to "
                "an Arrow column"
            )
            return WrongTypeError(f"{read}: {describe_error(error)}")
    # An unused column, so that a table without other columns has rows.
    return pa.table(columns or {"": pa.nulls(len(events))})


def _arrow_type(reading: Reading) -> pa.DataType | None:
    """The type of a column; None to infer it from the values."""
    import pyarrow as pa

    from tamis.language.arrow_types import arrow_type

    if isinstance(reading, dict):
        inside = {name: _arrow_type(own) for name, own in reading.items()}
        return None if None in inside.values() else pa.struct(list(inside.items()))
    is_open = reading is None or (reading.element or reading).name in ("any", "number")
    return None if reading is None or is_open else arrow_type(reading)


def _to_list(operator: Operator, returned: Any) -> list[Any]:
    if not hasattr(returned, "to_pylist"):
        raise WrongTypeError(
            f"{operator.signature} returned {type(returned).__name__}; a batch operator returns "
            "an Arrow array"
        )
    return list(returned.to_pylist())


def _from_arrow(value: Any) -> Any:
    """The returned values; structs are bindings of several values."""
    if isinstance(value, dict):
        return tuple(value.values())
    if isinstance(value, list):
        return [_from_arrow(one) for one in value]
    return value
