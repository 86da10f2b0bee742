"""The names of attributes in events, used in expressions or not, to find misspelt ones."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from tamis.errors import RowError
from tamis.events.arrow_arrays import is_text
from tamis.events.json_texts import parse_exactly
from tamis.language.limits import MAX_DEPTH
from tamis.language.names import parse_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tamis.language.schema import Path

SAMPLE: Final = 100  # events whose names are read
ELEMENT: Final = "[]"  # the step from a list to the names of its first object
IN_TEXT: Final = "{}"  # the step from a text to the names of the JSON object in it


def find_names(events: Any) -> set[Path]:
    """The paths in some events: all columns of Arrow data, otherwise the names in the first
    events.
    """
    if isinstance(events, pa.Table | pa.RecordBatch):
        return set(_fields(events.schema)).union(*map(_names_in, _first_texts(events)))
    if isinstance(events, pa.Array | pa.ChunkedArray):
        if pa.types.is_struct(events.type):
            return set(_fields(events.type))
        events = events.slice(0, SAMPLE).to_pylist()
    return {path for event in events[:SAMPLE] for path in _names_in(event)}


def _fields(members: Iterable[pa.Field], prefix: Path = ()) -> Iterator[Path]:
    for field in members:
        path = (*prefix, field.name)
        if pa.types.is_struct(field.type):
            yield from _fields(field.type, path)
        else:
            yield path


def _first_texts(table: pa.Table | pa.RecordBatch) -> list[Any]:
    """The first rows of the columns that may contain texts."""
    chosen = [
        at
        for at, field in enumerate(table.schema)
        if is_text(field.type) or pa.types.is_struct(field.type)
    ]
    # Python cannot represent some values of Arrow: years beyond 9999, texts that are not UTF-8.
    with suppress(ValueError, OverflowError, pa.ArrowException):
        return table.slice(0, SAMPLE).select(chosen).to_pylist() if chosen else []
    return []


def _names_in(event: Any) -> Iterator[Path]:
    if isinstance(event, str | bytes):
        with suppress(RowError):
            event = parse_exactly(event)
    if isinstance(event, list):  # the pairs of a map
        yield from (parse_path(key) for key, _ in event if key)
    elif isinstance(event, Mapping):
        yield from _keys(event, ())


def _keys(members: Mapping[Any, Any], prefix: Path) -> Iterator[Path]:
    for name, value in members.items():
        if not isinstance(name, str):
            continue
        path = (*prefix, name)
        if IN_TEXT not in path and (inside := _parse_object(value)) is not None:
            yield from _keys(inside, (*path, IN_TEXT))
        if isinstance(value, Mapping) and len(path) < MAX_DEPTH:
            yield from _keys(value, path)
        else:
            yield path
            if isinstance(value, list) and value and isinstance(value[0], Mapping):
                yield from _keys(value[0], (*path, ELEMENT))


def _parse_object(value: Any) -> Mapping[Any, Any] | None:
    """The JSON object in a text."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        with suppress(RowError):
            return parse_exactly(value)
    return None
