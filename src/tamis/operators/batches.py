"""Batch operators: an Arrow table of events in, an Arrow array of answers out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tamis.language.names import print_path
from tamis.language.types import WrongTypeError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from tamis.operators.registry import Operator


def call_batch(
    operator: Operator, events: Sequence[Mapping[str, Any]], constants: tuple[Any, ...]
) -> list[Any]:
    """What the operator returns for each event, as Python values."""
    returned = operator.function(_table(operator, events), *constants)
    values = _to_list(operator, returned)
    if len(values) != len(events):
        raise WrongTypeError(
            f"{operator.signature} returned {len(values)} answers for {len(events)} events"
        )
    return [_from_arrow(value) for value in values]


def _table(operator: Operator, events: Sequence[Mapping[str, Any]]) -> pa.Table:
    """The events by attribute: those that the operator reads, or all there are."""
    import pyarrow as pa

    reads = operator.signature.reads
    names = (
        dict.fromkeys(name for event in events for name in event)
        if reads is None
        else dict.fromkeys(path[0] for path in reads)
    )
    columns = {name: _column(operator, name, events) for name in names}
    # A column that nobody asks for, so that a table without others has its rows.
    columns = columns or {"": pa.nulls(len(events))}
    return pa.table(columns)


def _column(operator: Operator, name: str, events: Sequence[Mapping[str, Any]]) -> pa.Array:
    import pyarrow as pa

    values = [event.get(name) for event in events]
    try:
        return pa.array(values)
    except pa.ArrowException as error:
        raise WrongTypeError(
            f"{operator.name} reads {print_path((name,))}, whose values have different types: "
            f"{error}"
        ) from None


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
