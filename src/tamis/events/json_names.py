"""The names that an index needs, as arrays for the JSON scanner, and the order of reading."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tamis.events.kernels.json_scan import NameArrays, fill_names
from tamis.index.carriers import frozen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tamis.events.attributes import AttributeTable, NameTree
    from tamis.kernels.arrays import Int32
    from tamis.language.types import Type


class Group(NamedTuple):
    """Attributes of one type in one object: their values are read and reported together."""

    number: int
    type: Type


class JsonNames(NamedTuple):
    """What the JSON reader knows of an `AttributeTable`."""

    arrays: NameArrays
    groups: list[Group]  # object by object, the outer ones first; in each, type by type
    group_numbers: Int32  # [n_attributes]


def make_names(table: AttributeTable) -> JsonNames:
    """The names of a table."""
    nodes = list(_walk(table.tree))
    numbers = {id(tree): number for number, tree in enumerate(nodes)}
    slots = [(tree, slot) for tree in nodes for slot in tree.slots.values()]
    names = [name.encode(errors="surrogatepass") for tree in nodes for name in tree.slots]
    children = [tree.children.get(slot) for tree, slot in slots]
    offsets = np.zeros(len(names) + 1, dtype=np.int64)
    np.cumsum(list(map(len, names)), out=offsets[1:])
    arrays = NameArrays(
        np.empty(1 << (2 * len(names)).bit_length(), dtype=np.int32),
        np.empty(len(names), dtype=np.uint64),
        np.array([numbers[id(tree)] for tree, _ in slots], dtype=np.int32),
        offsets,
        np.frombuffer(b"".join(names), dtype=np.uint8),
        np.array([tree.attributes[slot] for tree, slot in slots], dtype=np.int32),
        np.array([-1 if own is None else numbers[id(own)] for own in children], dtype=np.int32),
    )
    fill_names(arrays)
    return JsonNames(NameArrays(*map(frozen, arrays)), *_make_groups(nodes, table))


def _walk(tree: NameTree) -> Iterator[NameTree]:
    yield tree
    for child in tree.children.values():
        yield from _walk(child)


def _make_groups(nodes: list[NameTree], table: AttributeTable) -> tuple[list[Group], Int32]:
    numbers = np.full(len(table), -1, dtype=np.int32)
    groups: list[Group] = []
    for tree in nodes:
        own = [attribute for attribute in tree.attributes if attribute >= 0]
        for type_number in np.unique(table.type_numbers[own]).tolist():
            numbers[[a for a in own if table.type_numbers[a] == type_number]] = len(groups)
            groups.append(Group(len(groups), table.distinct_types[type_number]))
    return groups, numbers
