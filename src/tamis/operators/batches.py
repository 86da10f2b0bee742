"""Batch operators: an Arrow table of events in, an Arrow array of answers out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.names import print_path
from tamis.language.types import WrongTypeError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

    from tamis.operators.registry import Operator
    from tamis.operators.views import Reading


def call_batch(operator: Operator, table: pa.Table, constants: tuple[Any, ...]) -> list[Any]:
    """What the operator returns for each event, as Python values."""
    values = _to_list(operator, operator.function(table, *constants))
    if len(values) != table.num_rows:
        raise WrongTypeError(
            f"{operator.signature} returned {len(values)} answers for {table.num_rows} events"
        )
    return [_from_arrow(value) for value in values]


def tables_of(
    operator: Operator, events: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[list[int], pa.Table | WrongTypeError]]:
    """The events as a table, with their places. Where an attribute without a type has values of
    several, there is a table for each; an event that makes none has an error."""
    places = list(range(len(events)))
    table = _table(operator, events)
    if not isinstance(table, WrongTypeError):
        yield places, table
        return
    groups: dict[Any, list[int]] = {}
    for place in places:
        groups.setdefault(_shape(events[place]), []).append(place)
    for group in groups.values():
        table = _table(operator, [events[place] for place in group])
        if not isinstance(table, WrongTypeError):
            yield group, table
        else:
            yield from (([place], _table(operator, [events[place]])) for place in group)


def _shape(value: Any) -> Any:
    """The types of a value; integers and floats make one column."""
    if isinstance(value, dict):
        return tuple((name, _shape(own)) for name, own in value.items())
    if isinstance(value, list | tuple):
        return list, frozenset(map(_shape, value))
    return float if type(value) is int else type(value)


def _table(operator: Operator, events: Sequence[Mapping[str, Any]]) -> pa.Table | WrongTypeError:
    """The events by attribute: those that the operator reads, or all there are."""
    import pyarrow as pa

    reading = operator.reading
    if reading is None:
        reading = dict.fromkeys(name for event in events for name in event)
    columns = {}
    for name, own in reading.items():
        values = [event.get(name) for event in events]
        try:
            columns[name] = pa.array(values, _arrow_type(own))
        except (pa.ArrowException, OverflowError) as error:
            read = f"{operator.name} reads {print_path((name,))}, whose values are of several types"
            return WrongTypeError(f"{read}: {error}")
    # A column that nobody asks for, so that a table without others has its rows.
    return pa.table(columns or {"": pa.nulls(len(events))})


def _arrow_type(reading: Reading) -> pa.DataType | None:
    """The type of a column; None to take it from the values."""
    import pyarrow as pa

    from tamis.language.arrow_types import arrow_type

    if isinstance(reading, dict):
        inside = {name: _arrow_type(own) for name, own in reading.items()}
        return None if None in inside.values() else pa.struct(list(inside.items()))
    return None if reading is None or reading.name == "any" else arrow_type(reading)


def _to_list(operator: Operator, returned: Any) -> list[Any]:
    if not hasattr(returned, "to_pylist"):
        raise WrongTypeError(
            f"{operator.signature} returned {type(returned).__name__}; a batch operator returns "
            "an Arrow array"
        )
    return list(returned.to_pylist())


def _from_arrow(value: Any) -> Any:
    """Structs are bindings of several values."""
    if isinstance(value, dict):
        return tuple(value.values())
    if isinstance(value, list):
        return [_from_arrow(one) for one in value]
    return value
