"""What an operator is given of an event: the attributes that it reads, as the types it names.

A value that is not of its type is missing, as for any test of an attribute, and what is missing is
not there. What an operator names no type for comes as it is, but for numbers with a fraction: they
are floats, whatever they were read from. So an event is the same to an operator wherever it
comes from: JSON, a table, or Python.
"""

from __future__ import annotations

from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from tamis.language.types import MAX_DECIMAL_DIGITS, Type, WrongTypeError, read_value

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from tamis.language.signatures import Path, Read
    from tamis.operators.registry import Operator

# The types of attributes by name, None where none is given; of structs, those inside.
Reading: TypeAlias = "Type | dict[str, Reading] | None"
_WIDE: Final = Context(prec=2 * MAX_DECIMAL_DIGITS)


class MissingAttributeError(KeyError):
    """An operator asked for an attribute that it reads, and that the event does not have."""


class View(dict[str, Any]):
    """The attributes that an operator reads of one event."""

    __slots__ = ("_reading",)

    def __init__(self, reading: Mapping[str, Reading]) -> None:
        super().__init__()
        self._reading = reading

    def __missing__(self, name: str) -> Any:
        # A name that the operator has not declared is a mistake in it.
        raise (MissingAttributeError if name in self._reading else KeyError)(name)


def reading_of(reads: tuple[Read, ...]) -> dict[str, Reading]:
    """Attributes by name; a struct that is read as a whole is not read in parts as well."""
    found: dict[str, Reading] = {}
    for path, type_ in sorted(reads, key=lambda read: len(read.path)):
        inner = found
        for name in path[:-1]:
            below = inner.setdefault(name, {})
            if not isinstance(below, dict):
                break
            inner = below
        else:
            inner.setdefault(path[-1], type_)
    return found


def value_at(event: Mapping[str, Any], path: Path) -> Any:
    """The attribute of that path, or None."""
    value: Any = event
    for name in path:
        value = value.get(name) if hasattr(value, "get") else None
    return value


class Views:
    """One event, as each operator sees it."""

    __slots__ = ("_keys", "_seen", "event")

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.event = event
        self._seen: dict[str, Mapping[str, Any]] = {}
        self._keys: dict[str, Hashable | None] = {}

    def of(self, operator: Operator) -> Mapping[str, Any]:
        """What the operator is given. Each has its own, whatever another does to it."""
        name = operator.name
        if name not in self._seen:
            reading = operator.reading
            self._seen[name] = _whole(self.event) if reading is None else _view(self.event, reading)
        return self._seen[name]

    def key(self, operator: Operator) -> Hashable | None:
        """The same for events that are the same to the operator; None where that is not known."""
        name = operator.name
        if name not in self._keys:
            known = operator.is_pure and operator.reading is not None
            self._keys[name] = _key(self.of(operator)) if known else None
        return self._keys[name]


def _view(event: Mapping[str, Any], reading: Mapping[str, Reading]) -> View:
    view = View(reading)
    for name, own in reading.items():
        value = event.get(name)
        if value is None:
            continue
        if isinstance(own, dict):
            value = _view(value, own) if hasattr(value, "get") else None
        else:
            value = _plain(value) if own is None else _typed(value, own)
        if value is not None:
            view[name] = value
    return view


def _whole(event: Mapping[str, Any]) -> Mapping[str, Any]:
    if not hasattr(event, "items"):
        return event
    return {name: _plain(value) for name, value in event.items() if value is not None}


def _typed(value: Any, type_: Type) -> Any:
    try:
        read = read_value(value, type_)
    except WrongTypeError:
        return None
    if isinstance(read, Decimal):
        # As Spark's, which have all their digits.
        return read.quantize(Decimal(1).scaleb(-type_.scale), context=_WIDE)
    return list(read) if isinstance(read, tuple) else read


def _plain(value: Any) -> Any:
    """A value of its own, which an operator may change."""
    if isinstance(value, Decimal):
        return float(value)
    if type(value) in (list, tuple):
        return type(value)(map(_plain, value))
    if isinstance(value, dict):
        return {name: _plain(own) for name, own in value.items()}
    return value


def _key(view: Mapping[str, Any]) -> Hashable | None:
    key: Hashable = _frozen(view)
    try:
        hash(key)
    except TypeError:
        return None
    return key


def _frozen(value: Any) -> Any:
    """Equal for values that are the same to any operator: 1, 1.0 and True are not, nor 0.0 and
    -0.0."""
    if isinstance(value, str | int | bytes) or value is None:
        return type(value), value
    if isinstance(value, dict):
        return tuple((name, _frozen(own)) for name, own in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_frozen, value))
    # Times of one instant in several zones are equal as well.
    return (float, repr(value)) if type(value) is float else (type(value), value, repr(value))
