"""Reads one event with little overhead: the values that an index needs, as words for the kernels.

They are the same for all parts of an index. See `kernels.single` for the words.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tamis.events.attributes import NameTree
from tamis.events.kernels.json_single import (
    READ_BOOLEAN,
    READ_DOUBLE,
    READ_FOLDED,
    READ_INTEGER,
    READ_NOTHING,
    READ_NUMBER,
    READ_OTHER,
    READ_TEXT,
)
from tamis.events.kernels.single import (
    AS_DOUBLE,
    AS_NOTHING,
    AS_TEXT,
    AS_WIDE,
    AS_WORD,
    TAG_DOUBLE,
    TAG_FOLDED,
    TAG_MARK,
    TAG_MARK_NULL,
    TAG_SHIFT,
)
from tamis.events.oddities import Foreign
from tamis.events.rejects import show
from tamis.events.single_space import EventBuffer, JsonBuffer
from tamis.index.carriers import CARRIAGES, scale_decimal
from tamis.language.ast import EVENT, sources
from tamis.language.names import print_path
from tamis.language.types import (
    INT64_MAX,
    INT64_MIN,
    STRINGS,
    WrongTypeError,
    holds_foreign,
    plain_value,
    read_value,
    reads_foreign,
)
from tamis.logic.derive import compute_derived, describe_no_result, find_needed
from tamis.logic.event_strings import strings_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tamis.events.attributes import AttributeTable
    from tamis.events.rejects import Rejects
    from tamis.language.ast import Derived
    from tamis.language.schema import Path
    from tamis.language.types import Type

# Types whose values, if of one class, need no conversion.
_PLAIN_CLASSES: Final[dict[str, type]] = {
    "boolean": bool,
    "integer": int,
    "double": float,
    "string": str,
}
# How the values of plain types are read from JSON.
_READINGS: Final = {
    "boolean": READ_BOOLEAN,
    "integer": READ_INTEGER,
    "double": READ_DOUBLE,
    "number": READ_NUMBER,
    "string": READ_TEXT,
}
_EITHER: Final = object()  # instead of a class: int and float, the classes of numbers
_EXACT_DOUBLES: Final = 2**53
_DOUBLE, _FOLDED, _MARK, _MARK_NULL = (
    tag << TAG_SHIFT for tag in (TAG_DOUBLE, TAG_FOLDED, TAG_MARK, TAG_MARK_NULL)
)
_LOW_WORD: Final = (1 << 64) - 1


class Slot:
    """What the index needs of the value at one name."""

    __slots__ = ("attribute", "inner", "plain_class")

    def __init__(self, plain_class: Any, attribute: int, inner: dict[str, Slot]) -> None:
        self.plain_class = plain_class  # values of exactly this class are read at once
        self.attribute = attribute  # or -1
        self.inner = inner  # the slots of the values inside


class ReadValues:
    """The values of one event."""

    # Both are replaced when the first value is added: most events have none.
    typed: Mapping[int, Any] = MappingProxyType({})  # that terms, pairs or derived values need
    exact: Sequence[tuple[int, Any]] = ()  # attributes and numbers that no kernel ranks

    def __init__(self) -> None:
        self.words: list[int] = []
        self.texts: list[str] = []
        self.doubles: list[float] = []


class Needs(NamedTuple):
    """Attributes by number among those of all parts."""

    used: frozenset[int]
    kept: frozenset[int]  # whose values are needed by more than their own columns and patterns
    folded: frozenset[int]  # whose lower case is needed too


class EventReader:
    """Reads one event at a time for the parts of an index. Immutable: threads share it."""

    def __init__(self, table: AttributeTable, needs: Needs) -> None:
        """`table` may also have attributes that are not needed, which are not read."""
        self.needs = needs
        self._table = table
        numbers = {path: number for number, path in enumerate(table.paths)}
        self._numbers = numbers
        used = needs.used
        self._derived = [
            (own, numbers[own.path]) for own in table.derived if numbers[own.path] in used
        ]
        self._arguments = {
            source.path: numbers[source.path] for own, _ in self._derived for source in sources(own)
        }
        self._derived_of = self._group_derived()
        self._kept = needs.kept.union(self._arguments.values())
        self._folded = needs.folded
        self._strings = table.strings if table.strings in used else None
        self._forms: list[int] = table.forms.tolist()
        tree = NameTree()
        for attribute in sorted(used):
            if attribute < table.n_read and table.paths[attribute] != EVENT:
                tree.add(table.paths[attribute], attribute)
        self._slots = self._make_slots(tree)
        self._readings = np.array(
            [self._choose_reading(own, own in used) for own in range(table.n_read)], np.uint8
        )
        self._buffers: list[EventBuffer] = []
        self._json_buffers: list[JsonBuffer] = []

    def _group_derived(self) -> dict[int, list[int]]:
        """The places of derived values, by an attribute that each needs; -1: without one. An event
        has few of the attributes, and most derived values need not be looked at.
        """
        found: dict[int, list[int]] = {-1: []}
        for place, (own, _) in enumerate(self._derived):
            needed = find_needed(own)
            key = -1 if needed is None else self._arguments[needed.path]
            found.setdefault(key, []).append(place)
        return found

    def _make_slots(self, tree: NameTree) -> dict[str, Slot]:
        return {
            name: self._make_slot(tree.attributes[at], tree.children.get(at))
            for name, at in tree.slots.items()
        }

    def _make_slot(self, attribute: int, inner: NameTree | None) -> Slot:
        slots = self._make_slots(inner) if inner else {}
        if attribute < 0 or attribute in self._kept or slots:
            return Slot(None, attribute, slots)
        name = self._table.types[attribute].name
        plain_class = _EITHER if name == "number" else _PLAIN_CLASSES.get(name)
        return Slot(plain_class, attribute, slots)

    def _choose_reading(self, attribute: int, is_used: bool) -> int:
        if not is_used:
            return READ_NOTHING
        if attribute in self._kept:
            return READ_OTHER
        if attribute in self._folded:
            return READ_FOLDED
        return _READINGS.get(self._table.types[attribute].name, READ_OTHER)

    # ── reading ────────────────────────────────────────────────────────────────────────────

    def read(self, event: Mapping[str, Any], rejects: Rejects | None) -> EventBuffer:
        """The event in a buffer, which the caller gives back; rejected values are added to
        `rejects`.
        """
        values = ReadValues()
        self._look_up(event, self._slots, values, rejects)
        if self._strings is not None:
            self._put(strings_of(event), self._strings, STRINGS, values)
        if self._derived:
            self._derive(values, rejects)
        buffer = self._take_buffer()
        buffer.write(values)
        buffer.event, buffer.rejects = event, rejects
        return buffer

    def read_typed(self, typed: Mapping[Path, Any], rejects: Rejects | None) -> EventBuffer:
        """The same for an event whose values have been read."""
        values = ReadValues()
        for path, value in typed.items():
            attribute = self._numbers.get(path)
            if attribute is not None and value is not None:
                self._put(value, attribute, self._table.types[attribute], values)
        if self._derived:
            self._derive(values, rejects)
        buffer = self._take_buffer()
        buffer.write(values)
        buffer.rejects = rejects
        return buffer

    def read_text(self, text: str | bytes, rejects: Rejects | None) -> EventBuffer | None:
        """The same for JSON text; None if it must be parsed as a whole: it may not be an event, or
        have a key twice; so it is if all of its strings are needed.
        """
        if self._strings is not None:
            return None
        try:
            data = text.encode() if isinstance(text, str) else text
        except UnicodeEncodeError:
            return None
        buffer = self._take_buffer()
        buffer.rejects = rejects
        space = self._json_buffers.pop() if self._json_buffers else self._make_json_buffer()
        is_read = space.read(data, buffer)
        if is_read and (space.n_odd or self._derived):
            values = ReadValues()
            for attribute, value in space.odd_values():
                self._read_value(value, attribute, values, rejects)
            self._derive(values, rejects)
            buffer.append(values)
        self._json_buffers.append(space)
        if is_read:
            return buffer
        self.give_back(buffer)
        return None

    def _take_buffer(self) -> EventBuffer:
        try:
            return self._buffers.pop()
        except IndexError:
            return EventBuffer()

    def _make_json_buffer(self) -> JsonBuffer:
        return JsonBuffer(self._table.json_names.arrays, self._readings)

    def give_back(self, buffer: EventBuffer) -> None:
        """Return a buffer for reuse."""
        self._buffers.append(buffer)

    def _look_up(
        self,
        event: Mapping[str, Any],
        slots: dict[str, Slot],
        values: ReadValues,
        rejects: Rejects | None,
    ) -> None:
        words, texts = values.words, values.texts
        # An event often has few of very many attributes, or many that no expression uses.
        items: Any
        if type(event) is dict and len(event) <= len(slots):
            items = zip(map(slots.get, event), event.values(), strict=True)
        else:
            items = zip(slots.values(), map(event.get, slots), strict=True)
        for slot, value in items:
            if slot is None or value is None:
                continue
            kind, plain_class = type(value), slot.plain_class
            if kind is plain_class:
                if kind is str:
                    if value.isascii():
                        words += (slot.attribute, len(value))
                        texts.append(value)
                        continue
                elif kind is float:
                    words.append(slot.attribute)
                    values.doubles.append(value)
                    continue
                elif INT64_MIN <= value <= INT64_MAX:
                    words += (slot.attribute, value)
                    continue
            elif plain_class is _EITHER:
                if kind is float:
                    words.append(slot.attribute | _DOUBLE)
                    values.doubles.append(value)
                    continue
                if kind is int and INT64_MIN <= value <= INT64_MAX:
                    words += (slot.attribute, value)
                    continue
            elif plain_class is float and kind is int and -_EXACT_DOUBLES < value < _EXACT_DOUBLES:
                words.append(slot.attribute)
                values.doubles.append(float(value))
                continue
            if slot.inner and hasattr(value, "get"):
                self._look_up(value, slot.inner, values, rejects)
            if slot.attribute >= 0:
                self._read_value(value, slot.attribute, values, rejects)

    def _read_value(
        self, value: Any, attribute: int, values: ReadValues, rejects: Rejects | None
    ) -> None:
        """Read a value that is not plain, or that more than its own column needs."""
        type_ = self._table.types[attribute]
        try:
            typed = read_value(value, type_)
        except WrongTypeError as error:
            if rejects is not None:
                rejects.add_value(0, self._table.paths[attribute], type_, value, error)
            return
        if rejects is not None and reads_foreign(type_) and holds_foreign(value, type_):
            found = Foreign(1, rejects.first_row, show(value), str(type_))
            rejects.oddities.add_foreign(print_path(self._table.paths[attribute]), found)
        is_one = type_.takes_one and not isinstance(plain_value(value), list | tuple)
        if is_one and rejects is not None:
            rejects.oddities.add_ones(print_path(self._table.paths[attribute]), 0, 1)
        self._put(typed, attribute, type_, values)

    def _put(self, typed: Any, attribute: int, type_: Type, values: ReadValues) -> None:
        if attribute in self._kept:
            values.typed = {**values.typed, attribute: typed}
        if type_.element is None:
            self._put_scalar(typed, attribute, type_, values)
            return
        elements = [element for element in typed if element is not None]
        mark = _MARK_NULL if len(elements) < len(typed) else _MARK
        values.words.append(attribute | mark)
        for element in elements:
            self._put_scalar(element, attribute, type_.element, values)

    def _put_scalar(self, value: Any, attribute: int, type_: Type, values: ReadValues) -> None:
        words = values.words
        form = self._forms[attribute]
        if form == AS_TEXT:
            self._put_text(value, attribute, values)
        elif form == AS_WORD:
            words += (attribute, CARRIAGES[type_.name].to_number(value))
        elif form == AS_DOUBLE:
            words.append(attribute)
            values.doubles.append(value)
        elif form == AS_WIDE:
            units = scale_decimal(value, type_.scale)[0]
            words += (attribute, _signed(units & _LOW_WORD), units >> 64)
        elif form == AS_NOTHING:
            words.append(attribute)
        elif isinstance(value, float):
            words.append(attribute | _DOUBLE)
            values.doubles.append(value)
        elif isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
            words += (attribute, value)
        else:
            values.exact = (*values.exact, (attribute, value))

    def _put_text(self, text: str, attribute: int, values: ReadValues) -> None:
        values.texts.append(text)
        if text.isascii():
            values.words += (attribute, len(text))
        elif attribute in self._folded:
            lower = text.lower()
            values.words += (attribute | _FOLDED, len(text.encode()), len(lower.encode()))
            values.texts.append(lower)
        else:
            values.words += (attribute, len(text.encode()))

    def _derive(self, values: ReadValues, rejects: Rejects | None) -> None:
        """Compute the derived values of the event."""
        numbers, typed = self._arguments, dict(values.typed)
        report = None if rejects is None else _NoResults(rejects).add
        places = list(self._derived_of[-1])
        for attribute in typed:
            places += self._derived_of.get(attribute, ())
        for place in sorted(places):
            own, attribute = self._derived[place]
            value = compute_derived(own, lambda argument: typed.get(numbers[argument.path]), report)
            if value is not None:
                assert own.type is not None
                self._put(value, attribute, own.type, values)


def _signed(word: int) -> int:
    """An unsigned word of 64 bits as a signed one of the same bits."""
    return word - (1 << 64) if word > INT64_MAX else word


class _NoResults:
    """Reports each function that has no result for an event once, however many others use it."""

    def __init__(self, rejects: Rejects) -> None:
        self._rejects = rejects
        self._seen: set[Path] = set()

    def add(self, value: Derived, arguments: tuple[Any, ...]) -> None:
        """Count the event, unless it has been counted for this function."""
        if value.path not in self._seen:
            self._seen.add(value.path)
            assert value.type is not None
            reason = describe_no_result(value, arguments)
            self._rejects.add_no_result(value.path, value.type, arguments, reason)
