"""The view of an event that an operator gets: the attributes that it reads, in their declared
types.

A value that is not of the declared type is missing, as in any test of an attribute, and a missing
attribute is absent from the view. An attribute without a declared type is passed unchanged, except
that numbers with a fraction become floats, whatever they were read from. So an operator sees the
same event whether it comes from JSON, a table, or Python.
"""

from __future__ import annotations

import math
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tamis.errors import SchemaError
from tamis.language.names import print_path
from tamis.language.spelled import SpelledEvent
from tamis.language.types import (
    KINDS,
    MAX_DECIMAL_DIGITS,
    Type,
    WrongTypeError,
    read_text,
    read_value,
)

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    import pyarrow as pa

    from tamis.language.signatures import Path, Signature
    from tamis.operators.registry import Operator

# The types of attributes by name, None if undeclared; for structs, the types inside.
Reading: TypeAlias = "Type | dict[str, Reading] | None"
_WIDE: Final = Context(prec=2 * MAX_DECIMAL_DIGITS)


class MissingAttributeError(KeyError):
    """An operator accessed an attribute that it reads and that the event does not have."""


class EventView(dict[str, Any]):
    """The attributes that an operator reads of one event."""

    __slots__ = ("_reading",)

    def __init__(self, reading: Mapping[str, Reading] | None) -> None:
        super().__init__()
        self._reading = reading

    def __missing__(self, name: str) -> Any:
        # Access to a name that the operator did not declare is a bug in the operator.
        is_read = self._reading is None or name in self._reading
        raise (MissingAttributeError if is_read else KeyError)(name)


def reading_of(signature: Signature) -> dict[str, Reading] | None:
    """The attributes that an operator reads, by name; None for the whole event."""
    if signature.reads is None:
        return None
    found: dict[str, Reading] = {}
    for path, type_ in signature.reads:
        inner = found
        for name in path[:-1]:
            below = inner.setdefault(name, {})
            if not isinstance(below, dict):
                raise _reads_twice(signature, path)
            inner = below
        if path[-1] in inner:
            raise _reads_twice(signature, path)
        inner[path[-1]] = type_
    return found


def _reads_twice(signature: Signature, path: Path) -> SchemaError:
    return SchemaError(
        (
            f"operator {signature.name} reads {print_path(path)} twice, or reads an attribute "
            "that contains it"
        ),
        hint=f"it reads {', '.join(map(str, signature.reads or ()))}",
    )


def column_at(events: pa.Table, path: Path) -> pa.ChunkedArray:
    """The attribute of that path, for all events."""
    import pyarrow.compute as pc

    column = events.column(path[0])
    return pc.struct_field(column, list(path[1:])) if len(path) > 1 else column


class Views:
    """One event, as seen by each operator."""

    __slots__ = ("_event", "_is_spelled", "_keys")

    def __init__(self, event: Mapping[str, Any]) -> None:
        # If attributes were given as strings, the operator gets the strings.
        self._event = event.texts if isinstance(event, SpelledEvent) else event
        self._is_spelled = isinstance(event, SpelledEvent)
        self._keys: dict[str, Hashable | None] = {}

    def of(self, operator: Operator) -> Mapping[str, Any]:
        """The operator's view of the event, a new one for each call: the operator may change it."""
        if operator.reading is not None:
            return _view(self._event, operator.reading, is_spelled=self._is_spelled)
        return _whole(self._event) if hasattr(self._event, "items") else self._event

    def key(self, operator: Operator) -> Hashable | None:
        """A key that is equal for events which look the same to the operator; None if unknown."""
        name = operator.name
        if name not in self._keys:
            known = operator.is_pure and operator.reading is not None
            self._keys[name] = _key(self.of(operator)) if known else None
        return self._keys[name]


def _whole(event: Mapping[str, Any]) -> EventView:
    view = EventView(None)
    view.update((name, _plain(own)) for name, own in event.items() if own is not None)
    return view


def _view(
    event: Mapping[str, Any], reading: Mapping[str, Reading], *, is_spelled: bool
) -> EventView:
    view = EventView(reading)
    for name, own in reading.items():
        value = event.get(name)
        if value is None:
            continue
        if isinstance(own, dict):
            value = _view(value, own, is_spelled=is_spelled) if hasattr(value, "get") else None
        else:
            value = _plain(value) if own is None else _typed(value, own, is_spelled=is_spelled)
        if value is not None:
            view[name] = value
    return view


def _typed(value: Any, type_: Type, *, is_spelled: bool) -> Any:
    try:
        is_text = is_spelled and isinstance(value, str)
        read = read_text(value, type_) if is_text else read_value(value, type_)
    except WrongTypeError:
        return None
    if (type_.element or type_).name == "number":
        return list(map(_plain, read)) if isinstance(read, tuple) else _plain(read)
    show = KINDS[(type_.element or type_).name].show
    if show is not None:
        read = tuple(map(show, read)) if isinstance(read, tuple) else show(read)
    if isinstance(read, Decimal):
        # Decimals, as in Spark, which have all their digits.
        return read.quantize(Decimal(1).scaleb(-type_.scale), context=_WIDE)
    return list(read) if isinstance(read, tuple) else read


def _plain(value: Any) -> Any:
    """A copy that an operator may change; objects of other classes are shared with the event."""
    if getattr(getattr(value, "dtype", None), "kind", None) == "f" and value.ndim == 0:
        return value.item()
    if isinstance(value, Decimal):
        return math.nan if value.is_nan() else float(value)
    if type(value) in (list, tuple, set):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {name: _plain(own) for name, own in value.items()}
    return value


def _key(view: Mapping[str, Any]) -> Hashable | None:
    key: Hashable = frozen(view)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def frozen(value: Any) -> Any:
    """A key that is equal for values which no operator can distinguish: 1, 1.0 and True differ, and
    so do 0.0 and -0.0.
    """
    if isinstance(value, str | int | bytes) or value is None:
        return type(value), value
    if isinstance(value, dict):
        return tuple((name, frozen(own)) for name, own in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(map(frozen, value))
    if isinstance(value, set | frozenset):
        return type(value), frozenset(map(frozen, value))
    # Times of the same instant in different zones also compare equal.
    return (float, repr(value)) if type(value) is float else (type(value), value, repr(value))
