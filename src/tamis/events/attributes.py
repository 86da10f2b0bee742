"""The attributes that an index needs: numbered, typed, and found by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from tamis.errors import IndexFormatError
from tamis.events.kernels.single import AS_DOUBLE, AS_NOTHING, AS_NUMBER, AS_TEXT, AS_WIDE, AS_WORD
from tamis.index.carriers import (
    DECIMALS,
    FLOATS,
    INTEGERS,
    NUMBERS,
    OBJECTS,
    OTHERS,
    TEXTS,
    carrier_of,
)
from tamis.language.ast import EVENT, Derived
from tamis.language.names import parse_path, print_path
from tamis.language.types import ANY, reads_foreign

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tamis.events.json_names import JsonNames
    from tamis.index.columns import Column
    from tamis.kernels.arrays import Int32, UInt8
    from tamis.language.ast import Attribute
    from tamis.language.schema import Path
    from tamis.language.types import Type


_WITH_DIGITS: Final = ("integer", "float", "decimal", "number", "struct")
_FORMS: Final = {
    INTEGERS: AS_WORD,
    FLOATS: AS_DOUBLE,
    DECIMALS: AS_WIDE,
    NUMBERS: AS_NUMBER,
    TEXTS: AS_TEXT,
    OBJECTS: AS_NOTHING,
    OTHERS: AS_NOTHING,
}


@dataclass(slots=True)
class NameTree:
    """The needed names in one object: of the event, or of a struct in it."""

    slots: dict[str, int] = field(default_factory=dict)  # name to slot, from 0
    attributes: list[int] = field(default_factory=list)  # the attribute at each slot, or -1
    children: dict[int, NameTree] = field(default_factory=dict)  # the names inside a slot

    def add(self, path: Path, attribute: int) -> None:
        """Add `attribute` at `path`."""
        slot = self.slots.setdefault(path[0], len(self.slots))
        if slot == len(self.attributes):
            self.attributes.append(-1)
        if len(path) == 1:
            self.attributes[slot] = attribute
        else:
            self.children.setdefault(slot, NameTree()).add(path[1:], attribute)


class AttributeTable:
    """All attributes by number. Other attributes of an event are never read."""

    def __init__(self, types: Mapping[Path, Type], derived: Iterable[Derived] = ()) -> None:
        """`types` are of the attributes that are read, `derived` is computed from them."""
        self.derived = tuple(derived)
        # Attributes that are read come first, then derived values.
        self.n_read = len(types)
        self.paths: tuple[Path, ...] = (*types, *(own.path for own in self.derived))
        own_types = [own.type for own in self.derived if own.type is not None]
        self.types: tuple[Type, ...] = (*types.values(), *own_types)
        # Values are read type by type: an index has many attributes, but few types.
        distinct = {_reading(type_): type_ for type_ in self.types}
        self.distinct_types: tuple[Type, ...] = tuple(distinct.values())
        numbers = {reading: number for number, reading in enumerate(distinct)}
        own_numbers = [numbers[_reading(type_)] for type_ in self.types]
        self.type_numbers: Int32 = np.array(own_numbers, dtype=np.int32)
        self.by_path = dict(types)
        self.tree = NameTree()
        # The attribute that stands for all strings of an event, if it is needed.
        self.strings: int | None = None
        for attribute, path in enumerate(types):
            if path == EVENT:
                self.strings = attribute
            else:
                self.tree.add(path, attribute)
        self.spellings = _spell(types)
        # Types for which a double instead of a number's text may lose or change digits.
        self.needs_digits = any(
            (t.element or t).name in _WITH_DIGITS or reads_foreign(t) for t in self.types
        )

    @classmethod
    def of(cls, columns: Iterable[Column]) -> AttributeTable:
        """The attributes of an index's columns, which may be those of several parts.

        A part that only tests whether an attribute is present has it with the type `any`; the type
        that another part gives it holds for both.
        """
        types: dict[Path, Type] = {}
        derived: dict[Path, Derived] = {}
        for column in columns:
            derived |= {own.path: own for own in column.attributes if isinstance(own, Derived)}
            cls._add(types, column.sources)
        return cls(types, derived.values())

    @staticmethod
    def _add(types: dict[Path, Type], attributes: Iterable[Attribute]) -> None:
        for attribute in attributes:
            if attribute.type is None:
                continue
            known = types.setdefault(attribute.path, attribute.type)
            if known == ANY:
                types[attribute.path] = attribute.type
            elif attribute.type != ANY and _reading(attribute.type) != _reading(known):
                raise IndexFormatError(
                    f"attribute {print_path(attribute.path)} has the type {known} in one part of "
                    f"the index, and {attribute.type} in another",
                    hint="build the parts with one schema",
                )

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def forms(self) -> UInt8:
        """How the value of each attribute is passed to the kernels of single events."""
        return np.array([_FORMS[carrier_of(type_)] for type_ in self.types], dtype=np.uint8)

    @cached_property
    def json_names(self) -> JsonNames:
        """The names as the JSON reader looks them up."""
        from tamis.events.json_names import make_names

        return make_names(self)

    def covers(self, columns: Iterable[Column]) -> bool:
        """Whether it has all attributes and derived values of these columns, with their types."""
        return all(
            all(map(self._has, column.sources))
            and all(a.path in self._derived for a in column.attributes if isinstance(a, Derived))
            for column in columns
        )

    def _has(self, attribute: Attribute) -> bool:
        known, own = self.by_path.get(attribute.path), attribute.type
        if known is None or own is None or own == ANY:
            return own is None or known is not None
        return _reading(own) == _reading(known)

    @cached_property
    def _derived(self) -> frozenset[Path]:
        return frozenset(own.path for own in self.derived)

    def only(self, columns: Iterable[Column]) -> AttributeTable:
        """The attributes and derived values of these columns, with their types here."""
        paths: dict[Path, Type] = {}
        derived: dict[Path, Derived] = {}
        for column in columns:
            paths |= {own.path: self.by_path[own.path] for own in column.sources}
            derived |= {own.path: own for own in column.attributes if isinstance(own, Derived)}
        return AttributeTable(paths, derived.values())

    def numbers_in(self, other: AttributeTable) -> Int32 | None:
        """The number in another table of each attribute, one more than its last if it lacks the
        attribute; None if all have the same number in both.
        """
        if self.paths == other.paths:
            return None
        numbers = {path: number for number, path in enumerate(other.paths)}
        return np.array([numbers.get(path, len(other)) for path in self.paths], dtype=np.int32)


def _reading(type_: Type) -> tuple[Type, bool, tuple[str, ...]]:
    """What distinguishes types whose values are read in different ways."""
    return type_, type_.takes_one, (type_.element or type_).reads


def _spell(paths: Iterable[Path]) -> dict[str, int]:
    """The attribute of a key of a flat event (a map, a CSV header).

    The key is spelled as in an expression; also unquoted, `user-id`, if that is the same path.
    """
    spellings: dict[str, int] = {}
    for attribute, path in enumerate(paths):
        if path == EVENT:
            continue
        plain = ".".join(path)
        if plain and parse_path(plain) == path:
            spellings[plain] = attribute
        spellings[print_path(path)] = attribute
    return spellings
