"""Events as Python mappings, and as JSON texts."""

from __future__ import annotations

import json
from array import array
from functools import partial
from itertools import repeat
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import orjson

from tamis.events.entries import Collector
from tamis.events.python_values import (
    are_not_none,
    as_objects,
    classes_of,
    convert_objects,
    give,
)
from tamis.language.types import Written
from tamis.records import RowError
from tamis.repeated_keys import find_repeated_key, has_plain_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.events.attributes import AttributeTable, NameTree
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.kernels.arrays import Int32

_NOWHERE: Final = repeat(-1)
# Texts of a batch that are searched for repeated keys: those with objects inside are read again.
MOST_SEARCHED: Final = 100


def read_mappings(events: Iterable[Any], table: AttributeTable, rejects: Rejects) -> EventValues:
    """Events as dicts or other mappings; anything else is a row set aside."""
    rows: list[int] = []
    found: list[Mapping[str, Any]] = []
    n_rows = 0
    for row, event in enumerate(events):
        n_rows = row + 1
        if hasattr(event, "get"):
            rows.append(row)
            found.append(event)
        else:
            rejects.add_row(row, event, _tell_no_event(event))
    collector = Collector(table, rejects)
    _collect(found, np.array(rows, dtype=np.int32), table.tree, collector)
    return collector.finish(n_rows)


def _tell_no_event(event: Any) -> str:
    if isinstance(event, RowError):  # it stands for a row of a file
        return event.message
    told = "None" if event is None else type(event).__name__
    return f"an event is a mapping of attributes, not {told}"


def read_json(
    texts: Iterable[str | bytes | RowError | None], table: AttributeTable, rejects: Rejects
) -> EventValues:
    """Events as JSON objects, one in each text; a text that holds none is a row set aside."""
    parse = parse_exactly if table.needs_digits else _parse_quickly
    rows: list[int] = []
    found: list[dict[str, Any]] = []
    n_rows = n_searched = 0
    for row, text in enumerate(texts):
        n_rows = row + 1
        if text is None or isinstance(text, RowError):
            rejects.add_row(row, text, _tell_no_event(text))
            continue
        try:
            event = parse(text)
        except (ValueError, TypeError, RecursionError) as error:
            rejects.add_row(row, _decode(text), f"not JSON: {error}")
            continue
        if type(event) is dict:
            rows.append(row)
            found.append(event)
            if n_searched < MOST_SEARCHED and not has_plain_keys(text, event):
                n_searched += 1
                if (key := find_repeated_key(text)) is not None:
                    rejects.oddities.add_repeated(rejects.first_row + row, key)
        else:
            found_kind = _kind_of(event)
            rejects.add_row(row, _decode(text), f"a JSON object is expected, found {found_kind}")
    collector = Collector(table, rejects)
    _collect(found, np.array(rows, dtype=np.int32), table.tree, collector)
    return collector.finish(n_rows)


def _decode(text: str | bytes) -> str:
    """The text as people read it."""
    return text.decode(errors="replace") if isinstance(text, bytes) else text


# ── JSON ────────────────────────────────────────────────────────────────────────────────────

# A decimal of at most 15 digits is the shortest that reads back as its double: no digit is lost
# on the way through one. With at most 12 of them after the point it is also rounded to the same
# float: it is a tie between two floats, or farther from every tie than from its double. Of longer
# ones, of those with an exponent, and of integers beyond 64 bits, some are changed.
_SHAPES: Final = bytes(
    0x30 if 0x30 <= byte <= 0x39 else 0x65 if byte in b"eE" else byte if byte == 0x2E else 0x20
    for byte in range(256)
)


def _has_long_number(text: bytes) -> bool:
    """Whether a number in the text, or what looks like one, may lose something as a double.

    All digits are made zeros and then looked for: a regular expression takes ten times as long.
    """
    shapes = text.translate(_SHAPES)
    if b"0e" in shapes or b"0" * 20 in shapes:
        return True
    # Of 19 digits all positive integers are read exactly, and negative ones down to -2^63.
    if b"0" * 19 in shapes and b"-9" in text:
        return True
    # Of 14 digits with a point among them, seven stand on one side of it.
    if b".0000000" not in shapes and b"0000000." not in shapes:
        return False
    return b"0" * 14 in shapes.replace(b".", b"")


def _parse_quickly(text: str | bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        # Lone surrogates, NaN and numbers beyond a double are theirs to read or to refuse.
        return json.loads(text, parse_float=Written)


def parse_exactly(text: str | bytes) -> Any:
    """As `_parse_quickly`, without rounding what a decimal attribute may hold in full, or a float
    attribute round in another way."""
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    if _has_long_number(data):
        return json.loads(text, parse_float=Written)
    return _parse_quickly(text)


def _kind_of(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    return json.dumps(value, default=str)[:60]


# ── mappings ────────────────────────────────────────────────────────────────────────────────


def _collect(
    mappings: Sequence[Mapping[str, Any]], rows: Int32, tree: NameTree, collector: Collector
) -> None:
    """Take in the attributes at the names of `tree`, and those inside them."""
    slots, values, sizes = _look_up(mappings, tree)
    entry_slots = np.frombuffer(slots, dtype=np.int32) if slots else np.empty(0, np.int32)
    found = np.flatnonzero(entry_slots >= 0)
    objects = as_objects(values, len(values))[found]
    entry_slots = entry_slots[found]
    entry_rows = np.repeat(rows, sizes)[found]
    attributes = np.array(tree.attributes, dtype=np.int32)[entry_slots]
    _collect_values(objects, entry_rows, attributes, collector)
    for slot, inner in tree.children.items():
        inside = np.flatnonzero(entry_slots == slot)
        is_object = [hasattr(value, "get") for value in objects[inside]]
        inside = inside[np.array(is_object, dtype=np.bool_)]
        _collect(objects[inside].tolist(), entry_rows[inside], inner, collector)


def _look_up(
    mappings: Sequence[Mapping[str, Any]], tree: NameTree
) -> tuple[array[int], list[Any], list[int]]:
    """The slot (or -1) and the value of each item looked at, and how many each mapping has."""
    slots, sizes = array("i"), list[int]()
    values: list[Any] = []
    find, names = tree.slots.get, list(tree.slots)
    every_slot = array("i", range(len(names)))
    for mapping in mappings:
        # An event often has few of very many attributes, or many that no expression names.
        if type(mapping) is dict and len(mapping) <= len(names):
            slots.extend(map(find, mapping, _NOWHERE))
            values.extend(mapping.values())
            sizes.append(len(mapping))
        else:
            slots.extend(every_slot)
            values.extend(map(mapping.get, names))
            sizes.append(len(names))
    return slots, values, sizes


def _collect_values(
    objects: np.ndarray, rows: Int32, attributes: Int32, collector: Collector
) -> None:
    """Take in values, type by type."""
    table = collector.table
    numbers = np.append(table.type_numbers, np.int32(-1))[attributes]
    for number, type_ in enumerate(table.distinct_types):
        places = np.flatnonzero(numbers == number)
        own = objects[places]
        classes = classes_of(own)
        if NoneType in classes:
            is_there = are_not_none(own)
            places, own = places[is_there], own[is_there]
        if len(own):
            converted = convert_objects(own, classes - {NoneType}, type_)
            tell = partial(give, own, type_)
            collector.add(type_, rows[places], attributes[places], converted, tell)
