"""Events as Python mappings."""

from __future__ import annotations

from array import array
from functools import partial
from itertools import repeat
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tamis.errors import RowError
from tamis.events.entries import Collector
from tamis.events.event_strings import collect_mappings
from tamis.events.python_values import (
    are_not_none,
    as_objects,
    classes_of,
    convert_objects,
    give,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tamis.events.attributes import AttributeTable, NameTree
    from tamis.events.entries import EventValues
    from tamis.events.rejects import Rejects
    from tamis.kernels.arrays import Int32

_NOWHERE: Final = repeat(-1)


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
            rejects.add_row(row, event, refuse_event(event))
    collector = Collector(table, rejects)
    _collect(found, np.array(rows, dtype=np.int32), table.tree, collector)
    collect_mappings(found, np.array(rows, dtype=np.int32), collector)
    return collector.finish(n_rows)


def refuse_event(event: Any) -> RowError:
    """The error of a value that is not an event."""
    if isinstance(event, RowError):  # it stands for a row of a file
        return event
    given = "None" if event is None else type(event).__name__
    return RowError("bad-row", f"an event is a mapping of attributes, not {given}")


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
            give_values = partial(give, own, type_)
            collector.add(type_, rows[places], attributes[places], converted, give_values)
