"""Events as Python mappings, and as JSON texts."""

from __future__ import annotations

from array import array
from functools import partial
from itertools import islice, repeat
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.errors import RowError
from tamis.events.entries import Collector
from tamis.events.json_texts import parse_exactly, parse_quickly
from tamis.events.python_values import (
    are_not_none,
    as_objects,
    classes_of,
    convert_objects,
    give,
)
from tamis.events.repeated_keys import find_repeated_key, has_plain_keys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.events.attributes import AttributeTable, NameTree
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.kernels.arrays import Int32

_NOWHERE: Final = repeat(-1)
# Texts of a batch that are searched for repeated keys: those with nested objects are parsed again.
MOST_SEARCHED: Final = 100


def read_mappings(events: Iterable[Any], table: AttributeTable, rejects: Rejects) -> EventValues:
    """Events as dicts or other mappings; any other value is a rejected row."""
    rows: list[int] = []
    found: list[Mapping[str, Any]] = []
    n_rows = 0
    for row, event in enumerate(events):
        n_rows = row + 1
        if hasattr(event, "get"):
            rows.append(row)
            found.append(event)
        else:
            rejects.add_row(row, event, _refuse_event(event))
    collector = Collector(table, rejects)
    _collect(found, np.array(rows, dtype=np.int32), table.tree, collector)
    return collector.finish(n_rows)


def _refuse_event(event: Any) -> RowError:
    if isinstance(event, RowError):  # it stands for a row of a file
        return event
    told = "None" if event is None else type(event).__name__
    return RowError("bad-row", f"an event is a mapping of attributes, not {told}")


def _refuse_text(given: Any) -> RowError:
    """The error of an event among JSON texts that is not a text."""
    if given is None or isinstance(given, RowError):
        return _refuse_event(given)
    what = type(given).__name__
    return RowError("bad-row", f"the first event is JSON text, this one is not: it is {what}")


def read_json(texts: Iterable[Any], table: AttributeTable, rejects: Rejects) -> EventValues:
    """Events as JSON objects, one in each text (`str` or `bytes`); anything else is a rejected
    row.
    """
    parse = parse_exactly if table.needs_digits else parse_quickly
    rows: list[int] = []
    found: list[dict[str, Any]] = []
    n_rows = n_searched = 0
    for row, text in enumerate(texts):
        n_rows = row + 1
        if not isinstance(text, str | bytes):
            rejects.add_row(row, text, _refuse_text(text))
            continue
        try:
            event = parse(text)
        except RowError as error:
            rejects.add_row(row, _decode(text), error)
            continue
        rows.append(row)
        found.append(event)
        if n_searched < MOST_SEARCHED and not has_plain_keys(text, event):
            n_searched += 1
            if (key := find_repeated_key(text)) is not None:
                rejects.oddities.add_repeated(rejects.first_row + row, key)
    collector = Collector(table, rejects)
    _collect(found, np.array(rows, dtype=np.int32), table.tree, collector)
    return collector.finish(n_rows)


def note_repeated_keys(texts: Sequence[Any], events: Sequence[Any], rejects: Rejects) -> None:
    """Count JSON texts with a repeated key among those that were parsed as `events`."""
    odd = (
        (row, text)
        for row, (text, event) in enumerate(zip(texts, events, strict=True))
        if isinstance(event, dict) and not has_plain_keys(text, event)
    )
    for row, text in islice(odd, MOST_SEARCHED):
        if (key := find_repeated_key(text)) is not None:
            rejects.oddities.add_repeated(rejects.first_row + row, key)


def _decode(text: str | bytes) -> str:
    """The text as shown to people."""
    return text.decode(errors="replace") if isinstance(text, bytes) else text


# ── mappings ────────────────────────────────────────────────────────────────────────────────


def _collect(
    mappings: Sequence[Mapping[str, Any]], rows: Int32, tree: NameTree, collector: Collector
) -> None:
    """Add the attributes at the names of `tree`, and those inside them."""
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
    """The slot (or -1) and the value of each item read, and the number of items of each mapping."""
    slots, sizes = array("i"), list[int]()
    values: list[Any] = []
    find, names = tree.slots.get, list(tree.slots)
    every_slot = array("i", range(len(names)))
    for mapping in mappings:
        # An event often has few of very many attributes, or many that no expression uses.
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
    """Add values, type by type."""
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
