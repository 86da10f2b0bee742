"""Random events for a schema."""

from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any, Final

from tamis.language.types import ANY, IP, NUMBER
from tamis.language.types.addresses import print_address
from tests.generators.values import ONLY_IN_EVENTS, random_scalar

if TYPE_CHECKING:
    from random import Random

    from tamis.language.schema import Path, Schema
    from tamis.language.types import Type

NULL_SHARE: Final = 0.15
MISSING_SHARE: Final = 0.15
WRONG_SHARE: Final = 0.2

WRONG_VALUES: Final = (
    *(True, 5, 2**63, -(2**200), 10**5000, 1.5, float("nan"), "5", "text", "\ud800", "2024-02-30"),
    *(Decimal("1.5"), Decimal("1e400"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity")),
    *(date(2024, 1, 15), datetime(2024, 1, 15), b"bytes", 1j, object(), (), [], {}),
    *([1, "a"], [None], [[1]], {"b": 1}, {"geo": {"lat": 1}}, float),
)


def random_event(rng: Random, schema: Schema, *, wrong_types: bool = False) -> dict[str, Any]:
    """An event with many NULLs and missing keys and, when asked for, values of wrong types."""
    event: dict[str, Any] = {}
    for path in schema:
        draw = rng.random()
        if draw < MISSING_SHARE:
            continue
        if draw < MISSING_SHARE + NULL_SHARE:
            _put(event, path, None)
        elif wrong_types and rng.random() < WRONG_SHARE:
            _put(event, path, rng.choice(WRONG_VALUES))
        else:
            _put(event, path, random_value(rng, schema[path]))
    _blank_structs(rng, event, schema)
    return event


def random_value(rng: Random, type_: Type) -> Any:
    """A value that an event may hold for an attribute of `type_`, in one of its spellings."""
    if type_.element is not None:
        element = type_.element
        return [
            None if rng.random() < 0.2 else random_value(rng, element)
            for _ in range(rng.choice((0, 1, 1, 2, 3)))
        ]
    if type_.name == "struct":
        fields = rng.sample(type_.fields, rng.randint(0, len(type_.fields)))
        return {
            name: None if rng.random() < NULL_SHARE else random_value(rng, own)
            for name, own in fields
        }
    if (type_.is_floating or type_ == NUMBER) and rng.random() < 0.1:
        return rng.choice(ONLY_IN_EVENTS)
    if type_ == ANY:
        return rng.choice(([], {}, *WRONG_VALUES))
    value = random_scalar(rng, type_)
    if type_ == IP:
        value = print_address(value)
    return _respell(rng, value, type_) if rng.random() < 0.2 else value


def _respell(rng: Random, value: Any, type_: Type) -> Any:
    """The same value as JSON or another library would hand it over."""
    match type_.name:
        case "date":
            return value.isoformat()
        case "ip":
            address = ip_address(value)
            mapped = (f"::ffff:{value}",) if address.version == 4 else ()
            return rng.choice((value.upper(), address.exploded, address, *mapped))
        case "timestamp":
            zoned = value.isoformat()
            return rng.choice((zoned, value.replace(tzinfo=None), zoned.replace("+00:00", "Z")))
        case "float" | "double" | "decimal" if value == int(value) and abs(value) < 2**53:
            return int(value)
        case _:
            return value


def _put(event: dict[str, Any], path: Path, value: Any) -> None:
    for name in path[:-1]:
        event = event.setdefault(name, {})
        if not isinstance(event, dict):  # a wrong value stands there already
            return
    event[path[-1]] = value


def _blank_structs(rng: Random, event: dict[str, Any], schema: Schema) -> None:
    """Now and then a whole struct is NULL."""
    # In the schema's order: a set's would change from run to run.
    for name in dict.fromkeys(path[0] for path in schema if len(path) > 1):
        if rng.random() < 0.1:
            event[name] = None
