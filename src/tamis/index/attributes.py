"""Details of subscriptions besides the expression: title, level, link and the like.

Each is a JSON object with sorted keys and without NULLs, so that it does not depend on the format
the subscription was read from.
"""

from __future__ import annotations

import json
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import orjson
import pyarrow as pa

from tamis.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

NONE = ""  # of a subscription without attributes


def make_attributes(
    ids: Sequence[str], attributes: Mapping[str, Mapping[str, Any]]
) -> tuple[pa.ChunkedArray | None, tuple[str, ...]]:
    """The attributes of these subscriptions as texts, or None if none has any, and their names."""
    kept = [_read(one, attributes.get(one)) for one in ids] if attributes else []
    names = sorted({name for found in kept if found for name in found})
    if not names:
        return None, ()
    texts = [spell_attributes(found) if found else NONE for found in kept]
    return pa.chunked_array([pa.array(texts, pa.string())]), tuple(names)


def spell_attributes(attributes: Mapping[str, Any]) -> str:
    """The attributes as JSON text."""
    try:
        options = orjson.OPT_SORT_KEYS | orjson.OPT_NON_STR_KEYS
        return orjson.dumps(attributes, default=_plain, option=options).decode()
    except TypeError:  # integers beyond 64 bits, lone surrogates
        return json.dumps(attributes, default=_plain, sort_keys=True, separators=(",", ":"))


def parse_attributes(text: str) -> dict[str, Any]:
    """The attributes of a text that `spell_attributes` wrote."""
    found: dict[str, Any] = json.loads(text) if text else {}
    return found


def _read(subscription_id: str, attributes: Mapping[str, Any] | None) -> Any:
    try:
        return _without_nulls(attributes)
    except RecursionError:
        raise InputError(
            f'the attributes of subscription "{subscription_id}" contain themselves',
            hint="remove the attribute that contains itself",
        ) from None


def _without_nulls(value: Any) -> Any:
    """The value without keys whose value is NULL: a struct always has all keys, a JSON object need
    not.
    """
    if isinstance(value, dict):
        return {str(name): _without_nulls(own) for name, own in value.items() if own is not None}
    return [_without_nulls(own) for own in value] if isinstance(value, list | tuple) else value


def plain_number(value: Decimal) -> float | str:
    """The double with the same value; if there is none, the digits as text."""
    double = float(value)
    return double if not value.is_finite() or Decimal(repr(double)) == value else str(value)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):
        return plain_number(value)
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    return str(value)
